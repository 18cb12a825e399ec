// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What workers do: one name's metadata, there and here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "verify/verify_priv.h"

#define TEXT 400	/* of one side of a difference; longer ones are cut */

void erofs_compare_note(struct compare_parcel *p, size_t item, const char *key, const char *found,
			const char *wanted)
{
	size_t sizes[3] = { strlen(key) + 1, strlen(found) + 1, strlen(wanted) + 1 };
	struct compare_note note = { .item = item, .len = sizeof(note) + sizes[0] + sizes[1] + sizes[2] };

	if (erofs_tarbuf_reserve(&p->notes, note.len)) {
		p->err = -ENOMEM;
		return;
	}
	(void)erofs_tarbuf_add(&p->notes, &note, sizeof(note));
	(void)erofs_tarbuf_add(&p->notes, key, sizes[0]);
	(void)erofs_tarbuf_add(&p->notes, found, sizes[1]);
	(void)erofs_tarbuf_add(&p->notes, wanted, sizes[2]);
}

const char *erofs_compare_dirent(unsigned int type)
{
	static const char *const words[] = { "unknown", "regular", "directory", "char_device",
					     "block_device", "fifo", "socket", "symlink" };

	return words[type < sizeof(words) / sizeof(*words) ? type : 0];
}

const char *erofs_compare_type(uint32_t mode)
{
	return erofs_compare_dirent(erofs_dirent_type((uint16_t)mode));
}

static void note_numbers(struct compare_parcel *p, size_t i, const char *key, uint64_t found, uint64_t wanted)
{
	char a[24], b[24];

	if (found == wanted)
		return;
	snprintf(a, sizeof(a), "%" PRIu64, found);
	snprintf(b, sizeof(b), "%" PRIu64, wanted);
	erofs_compare_note(p, i, key, a, b);
}

static void compare_mode(struct compare_parcel *p, size_t i, const struct erofs_inode *ino, const struct wanted *w)
{
	char a[8], b[8];

	if ((ino->mode & 07777u) == (w->mode & 07777))
		return;
	snprintf(a, sizeof(a), "%04o", ino->mode & 07777u);
	snprintf(b, sizeof(b), "%04o", (unsigned int)w->mode & 07777);
	erofs_compare_note(p, i, "mode", a, b);
}

static void compare_time(struct compare_parcel *p, size_t i, const struct erofs_inode *ino, const struct wanted *w)
{
	char a[40], b[40];

	if (ino->mtime == w->mtime && (ino->mtime_nsec == w->mtime_nsec || w->only_seconds))
		return;
	snprintf(a, sizeof(a), "%" PRId64 ".%09" PRIu32, ino->mtime, ino->mtime_nsec);
	snprintf(b, sizeof(b), "%" PRId64 ".%09" PRIu32, w->mtime, w->mtime_nsec);
	erofs_compare_note(p, i, "time", a, b);
}

static void compare_device(struct compare_parcel *p, size_t i, const struct erofs_inode *ino, const struct wanted *w)
{
	char a[32], b[32];

	if (ino->rdev_major == w->major && ino->rdev_minor == w->minor)
		return;
	snprintf(a, sizeof(a), "%" PRIu32 ":%" PRIu32, ino->rdev_major, ino->rdev_minor);
	snprintf(b, sizeof(b), "%" PRIu32 ":%" PRIu32, w->major, w->minor);
	erofs_compare_note(p, i, "device", a, b);
}

static void compare_target(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	const struct erofs_inode *ino = &p->items[i].ino;
	const char *wanted = (const char *)l->base + w->target;
	char found[4096], a[TEXT], b[TEXT];

	if (ino->size > sizeof(found))
		return;		/* damage that was reported */
	if (erofs_lane_read(l->lane, ino, 0, found, (size_t)ino->size)) {
		p->damaged = true;
		return;
	}
	if (ino->size == w->target_len && !memcmp(found, wanted, w->target_len))
		return;
	erofs_escape_name(found, (size_t)ino->size, a, sizeof(a));
	erofs_escape_name(wanted, w->target_len, b, sizeof(b));
	erofs_compare_note(p, i, "link", a, b);
}

/* What files have whatever their type. */
static void compare_common(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w,
			   unsigned int what)
{
	const struct erofs_inode *ino = &p->items[i].ino;

	if (what & EROFS_COMPARE_MODE)
		compare_mode(p, i, ino, w);
	if (what & EROFS_COMPARE_UID)
		note_numbers(p, i, "uid", ino->uid, w->uid);
	if (what & EROFS_COMPARE_GID)
		note_numbers(p, i, "gid", ino->gid, w->gid);
	if (what & EROFS_COMPARE_TIME)
		compare_time(p, i, ino, w);
	if (what & COMPARE_XATTRS)
		erofs_compare_xattrs(l, p, i, w);
}

static void compare_file(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w,
			 unsigned int what)
{
	const struct erofs_inode *ino = &p->items[i].ino;
	char a[32], b[32];

	if (what & EROFS_COMPARE_SIZE)
		note_numbers(p, i, "size", ino->size, w->size);
	p->items[i].is_other = w->has & EROFS_COMPARE_SIZE && ino->size != w->size;
	if (!(what & EROFS_COMPARE_DATA))
		return;
	if (!p->items[i].is_other) {
		if (!p->items[i].in_ranges)
			erofs_compare_data(l, p, i, w);
	} else if (!(what & EROFS_COMPARE_SIZE)) {
		snprintf(a, sizeof(a), "%" PRIu64 " bytes", ino->size);
		snprintf(b, sizeof(b), "%" PRIu64 " bytes", w->size);
		erofs_compare_note(p, i, "data", a, b);
	}
}

static void compare_typed(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w,
			  unsigned int what)
{
	struct compare_item *item = &p->items[i];

	switch (item->ino.mode & S_IFMT) {
	case S_IFREG:
		compare_file(l, p, i, w, what);
		break;
	case S_IFLNK:
		if (what & EROFS_COMPARE_LINK)
			compare_target(l, p, i, w);
		break;
	case S_IFCHR:
	case S_IFBLK:
		if (what & EROFS_COMPARE_DEVICE)
			compare_device(p, i, &item->ino, w);
		break;
	default:
		break;
	}
	if (!(what & EROFS_COMPARE_HARDLINK) || S_ISDIR(item->ino.mode) || item->again)
		return;
	item->is_linkable = true;
	item->group[0] = w->group[0];
	item->group[1] = w->group[1];
	item->nlink = w->nlink;
	if (w->is_link)
		item->link_to = item->record + sizeof(*w) + w->link_to;
}

int erofs_record_gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
			const struct compare_item *item, struct wanted *w)
{
	(void)c;
	memcpy(w, p->facts.data + item->record, sizeof(*w));
	l->base = p->facts.data + item->record + sizeof(*w);
	l->data = w->data_len ? l->base + w->data : NULL;
	l->data_len = w->data_len;
	return 0;
}

static void note_missing(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	const struct compare_item *item = &p->items[i];
	const char *type = w->is_link ? "hardlink" :
			   w->has & EROFS_COMPARE_TYPE ? erofs_compare_type(w->mode) :
							 erofs_compare_dirent(item->kind);

	if (l->c->what & EROFS_COMPARE_NAMES && !item->optional && !w->is_image)
		erofs_compare_note(p, i, "missing", "none", type);
}

static void fill_item(struct compare_lane *l, struct compare_parcel *p, size_t i)
{
	struct compare_item *item = &p->items[i];
	struct wanted w = { 0 };
	bool same_type;
	unsigned int what;

	if (l->c->source.gather(l->c, l, p, item, &w))
		p->failed = true;
	if (!item->is_there) {
		note_missing(l, p, i, &w);
		return;
	}
	if (item->broken)
		return;		/* reported as damage */
	what = w.has & l->c->what;
	same_type = !(w.has & EROFS_COMPARE_TYPE) || !((w.mode ^ item->ino.mode) & S_IFMT);
	item->is_other = !same_type;
	if (!same_type && what & EROFS_COMPARE_TYPE) {
		/* the rest differs for that reason */
		erofs_compare_note(p, i, "type", erofs_compare_type(item->ino.mode), erofs_compare_type(w.mode));
		return;
	}
	compare_common(l, p, i, &w, what);
	if (same_type)
		compare_typed(l, p, i, &w, what);
}

static void done_with(struct compare_lane *l)
{
	if (l->fd >= 0 && !l->keep_fd)
		close(l->fd);
	l->fd = -1;
	l->keep_fd = false;
	l->fd_off = 0;
	l->data = NULL;
	l->buf.len = 0;
	l->base = NULL;
}

static void fill_range(struct compare_lane *l, struct compare_parcel *p)
{
	struct compare_item *item = &p->items[0];
	struct wanted w = { 0 };

	if (p->hashes) {
		erofs_compare_hash_range(l, p);
		return;
	}
	if (l->c->source.gather(l->c, l, p, item, &w)) {
		p->failed = true;
		return;
	}
	item->is_other = !(w.has & EROFS_COMPARE_DATA) || !S_ISREG(w.mode) || w.size != item->ino.size;
	if (!item->is_other)
		erofs_compare_range(l, p, &w);
}

static void fill_items(struct compare_lane *l, struct compare_parcel *p)
{
	uint64_t before;
	size_t i;

	for (i = 0; i < p->count && !p->err && !erofs_job_is_cancelled(l->c->job); i++) {
		before = p->bytes;
		fill_item(l, p, i);
		done_with(l);
		erofs_lane_count(l->lane, !p->items[i].in_ranges, p->bytes - before);
	}
}

void erofs_compare_fill(struct lane *lane, struct parcel *parcel)
{
	struct compare_parcel *p = (struct compare_parcel *)parcel;
	struct compare *c = parcel->flight->arg;
	struct compare_lane *l = &c->lanes[erofs_lane_index(lane)];

	l->lane = lane;
	if (p->is_range) {
		fill_range(l, p);
		done_with(l);
		erofs_lane_count(lane, p->last, p->bytes);
	} else {
		fill_items(l, p);
	}
	if (c->source.settle)
		c->source.settle(c, l);
}

void erofs_compare_lane_fini(struct compare_lane *l)
{
	done_with(l);
	erofs_tarbuf_free(&l->buf);
	free(l->piece);
	free(l->whole);
	free(l->attributes.names);
	erofs_sha_free(l->sha256);
	erofs_sha_free(l->sha512);
	erofs_verity_hasher_fini(&l->hasher);
	erofs_verity_fini(&l->tree);
}

/* ---- words ---- */

static const struct {
	const char *word;
	unsigned int what;
} words[] = {
	{ "names", EROFS_COMPARE_NAMES },
	{ "type", EROFS_COMPARE_TYPE },
	{ "mode", EROFS_COMPARE_MODE },
	{ "owner", EROFS_COMPARE_UID | EROFS_COMPARE_GID },
	{ "uid", EROFS_COMPARE_UID },
	{ "gid", EROFS_COMPARE_GID },
	{ "size", EROFS_COMPARE_SIZE },
	{ "data", EROFS_COMPARE_DATA },
	{ "time", EROFS_COMPARE_TIME },
	{ "link", EROFS_COMPARE_LINK },
	{ "hardlink", EROFS_COMPARE_HARDLINK },
	{ "device", EROFS_COMPARE_DEVICE },
	{ "xattr", COMPARE_XATTRS },
	{ "acl", EROFS_COMPARE_ACL },
	{ "caps", EROFS_COMPARE_CAPS },
	{ "label", EROFS_COMPARE_LABEL },
};

unsigned int erofs_compare_word(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i].word) == len && !memcmp(words[i].word, word, len))
			return words[i].what;
	return 0;
}

const char *erofs_compare_words(void)
{
	return "names, type, mode, owner, uid, gid, size, data, time, link, hardlink, device, xattr, acl, caps, label";
}
