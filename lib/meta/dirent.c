// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Directory blocks: the entries of one block (format.md 7). Order over blocks, "." and "..", and
 * what the entries lead to are the walk's.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/escape.h"
#include "diag/diag_priv.h"
#include "disk/layout.h"
#include "meta/meta_priv.h"

#define SHOWN_NAME (4 * DISK_NAME_MAX + 1)

static const struct disk_dirent *dirent_at(const struct dirblk *db, unsigned int i)
{
	return (const struct disk_dirent *)db->data + i;
}

static uint64_t offset_of(const struct dirblk *db, unsigned int i)
{
	return db->base + (uint64_t)i * sizeof(struct disk_dirent);
}

/* The first slash or NUL in [from, to), or @to. Once for a block is faster than for each name. */
static size_t find_odd_byte(const uint8_t *data, size_t from, size_t to)
{
	const uint8_t *odd = memchr(data + from, '\0', to - from);

	if (odd)
		to = (size_t)(odd - data);
	odd = memchr(data + from, '/', to - from);
	return odd ? (size_t)(odd - data) : to;
}

int erofs_dirblk_open(struct dirblk *db, uint64_t nid, uint64_t base, const void *data,
		      size_t valid, struct erofs_diag *diag)
{
	unsigned int names;

	memset(db, 0, sizeof(*db));
	db->data = data;
	db->valid = valid;
	db->base = base;
	db->nid = nid;
	db->diag = diag;
	if (valid < sizeof(struct disk_dirent)) {
		db->damaged = 1;
		return erofs_diag_damage(diag, DIRENT_OFFSET, AT(nid, base),
					 "directory block of %zu bytes: too few for one entry",
					 valid);
	}
	names = le16_get(dirent_at(db, 0)->nameoff);
	if (!names || names % sizeof(struct disk_dirent) || names >= valid) {
		db->damaged = 1;
		return erofs_diag_damage(diag, DIRENT_OFFSET, AT(nid, base),
					 "first name offset of a directory block is %u (wanted a"
					 " multiple of %zu, less than %zu)", names,
					 sizeof(struct disk_dirent), valid);
	}
	db->count = names / (unsigned int)sizeof(struct disk_dirent);
	db->name_end = names;
	db->clean_end = find_odd_byte(db->data, names, valid);
	return 0;
}

/*
 * Where the name of entry @i lies. False, and reported, if that can't be told: its offset is not
 * behind the offsets before it, or its end not behind its offset. Offsets that go back are
 * distrusted: a name put together from parts of others must not come out.
 */
static bool find_name(struct dirblk *db, unsigned int i, size_t *ret_off, size_t *ret_len)
{
	size_t off = le16_get(dirent_at(db, i)->nameoff), end = db->valid;
	bool is_last = i + 1 == db->count;

	if (!is_last)
		end = le16_get(dirent_at(db, i + 1)->nameoff);
	if (off < db->name_end || off >= db->valid || end > db->valid || end < off) {
		erofs_diag_damage(db->diag, DIRENT_OFFSET, AT(db->nid, offset_of(db, i)),
				  "entry %u of a directory block: name from %zu to %zu (wanted"
				  " within %zu to %zu)", i, off, end, db->name_end, db->valid);
		if (off < db->valid && off > db->name_end)
			db->name_end = off;
		return false;
	}
	if (is_last)
		end = off + strnlen((const char *)db->data + off, end - off);
	if (end == off || end - off > DISK_NAME_MAX) {
		erofs_diag_damage(db->diag, DIRENT_NAME, AT(db->nid, offset_of(db, i)),
				  "entry %u of a directory block: name of %zu bytes (wanted 1 to"
				  " %d)", i, end - off, DISK_NAME_MAX);
		db->name_end = end;
		return false;
	}
	db->name_end = end;
	*ret_off = off;
	*ret_len = end - off;
	return true;
}

static void check_entry(struct dirblk *db, struct dirent_view *de)
{
	char shown[SHOWN_NAME];

	de->bad_name = db->name_end > db->clean_end &&
		       (memchr(de->name, '/', de->len) || memchr(de->name, '\0', de->len));
	if (!de->bad_name && de->type <= DIRENT_LNK)
		return;
	db->damaged++;
	erofs_escape_name(de->name, de->len, shown, sizeof(shown));
	if (de->bad_name)
		erofs_diag_damage(db->diag, DIRENT_NAME, AT(db->nid, de->off),
				  "name \"%s\" (nid %" PRIu64 ") contains a slash or NUL", shown,
				  de->nid);
	if (de->type > DIRENT_LNK)
		erofs_diag_damage(db->diag, DIRENT_TYPE, AT(db->nid, de->off),
				  "entry \"%s\" (nid %" PRIu64 ") has unknown type %u", shown,
				  de->nid, de->type);
}

int erofs_dirblk_next(struct dirblk *db, struct dirent_view *ret_de)
{
	size_t off, len;

	while (db->next < db->count) {
		unsigned int i = db->next++;

		if (!find_name(db, i, &off, &len)) {
			db->damaged++;
			continue;
		}
		ret_de->nid = le64_get(dirent_at(db, i)->nid);
		ret_de->name = (const char *)db->data + off;
		ret_de->len = (unsigned int)len;
		ret_de->type = dirent_at(db, i)->file_type;
		ret_de->off = offset_of(db, i);
		check_entry(db, ret_de);
		return 1;
	}
	return 0;
}

unsigned int erofs_dirent_type(uint16_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return DIRENT_REG;
	case S_IFDIR:
		return DIRENT_DIR;
	case S_IFCHR:
		return DIRENT_CHR;
	case S_IFBLK:
		return DIRENT_BLK;
	case S_IFIFO:
		return DIRENT_FIFO;
	case S_IFSOCK:
		return DIRENT_SOCK;
	case S_IFLNK:
		return DIRENT_LNK;
	default:
		return DIRENT_UNKNOWN;
	}
}
