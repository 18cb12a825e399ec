// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Extended attributes of one inode, inline and shared (format.md 8), one entry at a time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "diag/diag_priv.h"
#include "meta/xattr_priv.h"

#define ENTRY_HEAD sizeof(struct disk_xattr_entry)

/* prefix, infix and suffix, a NUL in front of hidden names, one behind all */
_Static_assert(XATTR_NAME_SIZE > 24 + 2 * DISK_XATTR_NAME_MAX + 2, "longest name");

int erofs_xattr_iter_new(struct metabuf *mb, struct xattr_iter **ret_it)
{
	struct xattr_iter *it = calloc(1, sizeof(*it));

	if (!it)
		return -ENOMEM;
	it->mb = mb;
	it->buf = malloc(DISK_XATTR_NAME_MAX + DISK_XATTR_VALUE_MAX);
	if (!it->buf) {
		free(it);
		return -ENOMEM;
	}
	*ret_it = it;
	return 0;
}

void erofs_xattr_iter_free(struct xattr_iter *it)
{
	if (!it)
		return;
	free(it->seen);
	free(it->buf);
	free(it);
}

int erofs_xattr_begin(struct xattr_iter *it, const struct erofs_inode *ino)
{
	struct disk_xattr_header raw;
	size_t ids;
	int err;

	it->ino = NULL;
	it->damaged = false;
	it->filter = 0;
	it->pos = it->end = 0;
	it->shared_count = it->shared_next = 0;
	if (!ino->xattr_size)
		return 0;
	err = erofs_metabuf_read(it->mb, ino->in_box, ino->nid, ino->xattr_pos, &raw, sizeof(raw));
	if (err)
		return err;
	ids = raw.h_shared_count * sizeof(struct le32);
	if (ids > ino->xattr_size - sizeof(raw)) {
		it->damaged = true;
		return erofs_diag_damage(it->mb->diag, XATTR_AREA, AT(ino->nid, ino->xattr_pos),
					 "%u shared xattrs counted, the xattr area of %" PRIu32
					 " bytes has room for %zu", raw.h_shared_count,
					 ino->xattr_size,
					 (ino->xattr_size - sizeof(raw)) / sizeof(struct le32));
	}
	if (ino->xattr_size == sizeof(raw))
		erofs_diag_note(it->mb->diag, ODD_INODE, AT(ino->nid, ino->xattr_pos),
				"xattr area without any xattr");
	err = erofs_metabuf_read(it->mb, ino->in_box, ino->nid, ino->xattr_pos + sizeof(raw),
				 it->shared, ids);
	if (err)
		return err;
	it->ino = ino;
	it->filter = le32_get(raw.h_name_filter);
	it->shared_count = raw.h_shared_count;
	it->pos = ino->xattr_pos + sizeof(raw) + ids;
	it->end = ino->xattr_pos + ino->xattr_size;
	return 0;
}

/* An entry: where it is and what its four bytes say. */
struct entry_head {
	bool in_box, shared;
	uint64_t pos;		/* of the entry in its container */
	uint8_t index;
	unsigned int name_len, size;
};

static int read_head(struct xattr_iter *it, struct entry_head *h)
{
	struct disk_xattr_entry raw;
	int err = erofs_metabuf_read(it->mb, h->in_box, it->ino->nid, h->pos, &raw, sizeof(raw));

	if (err)
		return err;
	h->index = raw.e_name_index;
	h->name_len = raw.e_name_len;
	h->size = le16_get(raw.e_value_size);
	return 0;
}

static int read_body(struct xattr_iter *it, const struct entry_head *h)
{
	return erofs_metabuf_read(it->mb, h->in_box, it->ino->nid,
				  h->pos + ENTRY_HEAD, it->buf, (size_t)h->name_len + h->size);
}

/* 1: an entry, its name and value in it->buf; 0: no more inline ones. */
static int next_inline(struct xattr_iter *it, struct entry_head *h)
{
	uint64_t len;
	int err;

	while (it->pos < it->end) {
		h->in_box = it->ino->in_box;
		h->shared = false;
		h->pos = it->pos;
		/* the area is a multiple of 4 bytes, so the head fits */
		err = read_head(it, h);
		if (err)
			return err;
		len = round_up_u64(ENTRY_HEAD + h->name_len + h->size, DISK_XATTR_ALIGN);
		if (len > it->end - it->pos) {
			it->damaged = true;
			erofs_diag_damage(it->mb->diag, XATTR_ENTRY, AT(it->ino->nid, h->pos),
					  "xattr entry with a name of %u and a value of %u bytes:"
					  " behind the end of the xattr area (%" PRIu64
					  " bytes left)", h->name_len, h->size, it->end - it->pos);
			it->pos = it->end;
			return 0;
		}
		it->pos += len;
		/* zeros are room that a builder left free */
		if (!h->name_len && !h->size && !h->index)
			continue;
		err = read_body(it, h);
		return err ? err : 1;
	}
	return 0;
}

static void report_shared(struct xattr_iter *it, const struct entry_head *h, uint32_t id,
			  const char *what)
{
	it->damaged = true;
	erofs_diag_damage(it->mb->diag, XATTR_SHARED, AT(it->ino->nid, h->pos),
			  "shared xattr %" PRIu32 " %s the %s (%" PRIu64 " bytes)", id, what,
			  h->in_box ? "metabox" : "image", erofs_metabuf_end(it->mb, h->in_box));
}

/* 1: an entry, its name and value in it->buf; 0: no more. */
static int next_shared(struct xattr_iter *it, struct entry_head *h)
{
	const struct super *sb = it->mb->img->super;
	uint64_t end;
	int err;

	while (it->shared_next < it->shared_count) {
		uint32_t id = le32_get(it->shared[it->shared_next++]);

		h->in_box = sb->xattr_in_box;
		h->shared = true;
		/* 2^48 + 2^34 at most */
		h->pos = sb->xattr_base + (uint64_t)id * DISK_XATTR_ALIGN;
		end = erofs_metabuf_end(it->mb, h->in_box);
		if (!range_ok(h->pos, ENTRY_HEAD, end)) {
			report_shared(it, h, id, "is behind the end of");
			continue;
		}
		err = read_head(it, h);
		if (err)
			return err;
		if (!range_ok(h->pos + ENTRY_HEAD, (uint64_t)h->name_len + h->size, end)) {
			report_shared(it, h, id, "goes beyond the end of");
			continue;
		}
		if (!h->name_len && !h->size && !h->index) {
			report_shared(it, h, id, "is no entry but zeros in");
			continue;
		}
		err = read_body(it, h);
		return err ? err : 1;
	}
	return 0;
}

/* Find base index and infix. False, and reported, if the index means nothing. */
static bool find_prefix(struct xattr_iter *it, const struct entry_head *h, unsigned int *ret_base,
			const char **ret_infix, size_t *ret_len)
{
	const struct xattr_prefixes *prefixes = it->mb->img->prefixes;
	unsigned int id = h->index & ~DISK_XATTR_LONG;

	*ret_base = h->index;
	*ret_infix = "";
	*ret_len = 0;
	if (h->index & DISK_XATTR_LONG) {
		if (!prefixes || id >= prefixes->count) {
			it->damaged = true;
			erofs_diag_damage(it->mb->diag, XATTR_PREFIX, AT(it->ino->nid, h->pos),
					  "xattr with long prefix %u (there are %u)", id,
					  prefixes ? prefixes->count : 0);
			return false;
		}
		*ret_base = prefixes->prefix[id].base_index;
		*ret_infix = prefixes->prefix[id].infix;
		*ret_len = prefixes->prefix[id].len;
	}
	if (erofs_xattr_prefix_of(*ret_base))
		return true;
	erofs_diag_note(it->mb->diag, XATTR_INDEX, AT(it->ino->nid, h->pos),
			"xattr with unknown name index %u: skipped", *ret_base);
	return false;
}

/* Put the name together in @xa. False, and reported, if no system could have such a name. */
static bool build_name(struct xattr_iter *it, const struct entry_head *h, unsigned int base,
		       const char *infix, size_t infix_len, struct xattr_view *xa)
{
	const char *prefix = erofs_xattr_prefix_of(base);
	bool is_acl = base == XATTR_INDEX_ACL_ACCESS || base == XATTR_INDEX_ACL_DEFAULT;
	/* hidden names have no full form: an empty string, and the rest behind it */
	size_t prefix_len = strlen(prefix), at = base ? prefix_len : 1;
	size_t rest = infix_len + h->name_len;
	const char *wrong = NULL;

	memcpy(xa->name, prefix, prefix_len + 1);
	memcpy(xa->name + at, infix, infix_len);
	memcpy(xa->name + at + infix_len, it->buf, h->name_len);
	xa->name[at + rest] = '\0';
	xa->base_name = xa->name + at;
	xa->name_len = base ? at + rest : 0;
	if (memchr(xa->base_name, '\0', rest))
		wrong = "contains a NUL";
	else if (base && !is_acl && !rest)
		wrong = "ends behind its prefix";
	else if (is_acl && rest)
		wrong = "has more than the name of an ACL";
	if (!wrong)
		return true;
	it->damaged = true;
	erofs_diag_damage(it->mb->diag, XATTR_ENTRY, AT(it->ino->nid, h->pos),
			  "xattr name with index %u, %zu bytes, %s", h->index, rest, wrong);
	return false;
}

static bool make_view(struct xattr_iter *it, const struct entry_head *h, struct xattr_view *xa)
{
	const char *infix;
	unsigned int base;
	size_t infix_len;

	if (!find_prefix(it, h, &base, &infix, &infix_len) ||
	    !build_name(it, h, base, infix, infix_len, xa))
		return false;
	xa->base_index = (uint8_t)base;
	xa->value = it->buf + h->name_len;
	xa->size = h->size;
	xa->shared = h->shared;
	xa->hidden = !base;
	xa->is_digest = !h->name_len && it->mb->img->super->ishare_prefix >= 0 &&
			h->index == (DISK_XATTR_LONG | (unsigned int)it->mb->img->super->ishare_prefix);
	return true;
}

int erofs_xattr_next(struct xattr_iter *it, struct xattr_view *ret_xa)
{
	struct entry_head h = { 0 };
	int r;

	if (!it->ino)
		return 0;
	for (;;) {
		r = next_inline(it, &h);
		if (!r)
			r = next_shared(it, &h);
		if (r <= 0)
			return r;
		if (make_view(it, &h, ret_xa))
			return 1;
	}
}

int erofs_xattr_damage(const struct xattr_iter *it)
{
	return it->damaged ? -EUCLEAN : 0;
}
