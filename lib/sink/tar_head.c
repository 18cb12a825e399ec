// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Headers of tar entries: fields, extended records. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/escape.h"
#include "sink/tar_head.h"

#define NAME_FIELD 100
#define MAX_7 UINT64_C(07777777)	/* seven octal digits: owners, modes, devices */
#define MAX_11 UINT64_C(077777777777)	/* eleven: sizes, times */
#define PAX_NAME "././@PaxHeader"	/* of the extended header, for programs that do not know it */

/* The header block of POSIX ustar. */
struct tar_block {
	char name[NAME_FIELD];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[NAME_FIELD];
	char magic[6], version[2];
	char uname[32], gname[32];
	char major[8], minor[8];
	char prefix[155];
	char rest[12];
};

_Static_assert(sizeof(struct tar_block) == TAR_BLOCK, "header block");

void erofs_tarbuf_free(struct tarbuf *b)
{
	free(b->data);
	*b = (struct tarbuf){ 0 };
}

int erofs_tarbuf_reserve(struct tarbuf *b, size_t more)
{
	size_t room = b->room ? b->room : 4096;
	uint8_t *grown;

	if (more <= b->room - b->len)
		return 0;
	while (room - b->len < more)
		if (!mul_ok(room, 2, &room))
			return -ENOMEM;
	grown = realloc(b->data, room);
	if (!grown)
		return -ENOMEM;
	b->data = grown;
	b->room = room;
	return 0;
}

int erofs_tarbuf_add(struct tarbuf *b, const void *data, size_t len)
{
	int err = erofs_tarbuf_reserve(b, len);

	if (err)
		return err;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

int erofs_tarbuf_pad(struct tarbuf *b)
{
	size_t pad = -b->len % TAR_BLOCK;
	int err = erofs_tarbuf_reserve(b, pad);

	if (err)
		return err;
	if (pad)
		memset(b->data + b->len, 0, pad);
	b->len += pad;
	return 0;
}

/* ---- records ---- */

int erofs_tar_record(struct tarbuf *records, const char *key, const void *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, total = rest + 1;	/* a blank, an equals sign, a newline */
	char head[24];
	int n, err;

	/* the length counts its own digits */
	while (total - rest != (size_t)snprintf(head, sizeof(head), "%zu", total))
		total++;
	n = snprintf(head, sizeof(head), "%zu ", total);
	err = erofs_tarbuf_reserve(records, total);
	if (err)
		return err;
	(void)erofs_tarbuf_add(records, head, (size_t)n);
	(void)erofs_tarbuf_add(records, key, strlen(key));
	(void)erofs_tarbuf_add(records, "=", 1);
	(void)erofs_tarbuf_add(records, value, len);
	return erofs_tarbuf_add(records, "\n", 1);
}

static int number_record(struct tarbuf *records, const char *key, uint64_t v, uint64_t max)
{
	char text[24];

	if (v <= max)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, v);
	return erofs_tar_record(records, key, text, strlen(text));
}

/* Seconds with a fraction. EROFS counts nanoseconds up from the second, also before 1970. */
static int time_record(struct tarbuf *records, int64_t sec, uint32_t nsec)
{
	bool minus = sec < 0;
	uint64_t whole = minus ? -(uint64_t)sec : (uint64_t)sec;
	char text[40];

	if (!nsec && !minus && whole <= MAX_11)
		return 0;
	if (minus && nsec) {
		whole--;
		nsec = 1000000000 - nsec;
	}
	if (nsec)
		snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu32, minus ? "-" : "", whole, nsec);
	else
		snprintf(text, sizeof(text), "%s%" PRIu64, minus ? "-" : "", whole);
	return erofs_tar_record(records, "mtime", text, strlen(text));
}

/* Records of names go in front: whoever reads them must know their character set first. */
static int name_records(struct tarbuf *out, const struct tar_head *h)
{
	bool long_path = h->path_len > NAME_FIELD, long_link = h->link && h->link_len > NAME_FIELD;
	int err = 0;

	if ((long_path && !erofs_is_utf8(h->path, h->path_len)) ||
	    (long_link && !erofs_is_utf8(h->link, h->link_len)))
		err = erofs_tar_record(out, "hdrcharset", "BINARY", 6);
	if (!err && long_path)
		err = erofs_tar_record(out, "path", h->path, h->path_len);
	if (!err && long_link)
		err = erofs_tar_record(out, "linkpath", h->link, h->link_len);
	return err;
}

static int all_records(struct tarbuf *out, const struct tar_head *h, const struct tarbuf *xattrs)
{
	const struct erofs_inode *ino = h->ino;
	int err = name_records(out, h);

	if (!err)
		err = number_record(out, "size", h->size, MAX_11);
	if (!err)
		err = number_record(out, "uid", ino->uid, MAX_7);
	if (!err)
		err = number_record(out, "gid", ino->gid, MAX_7);
	if (!err && (h->type == TAR_CHAR || h->type == TAR_BLOCKDEV)) {
		err = number_record(out, "SCHILY.devmajor", ino->rdev_major, MAX_7);
		if (!err)
			err = number_record(out, "SCHILY.devminor", ino->rdev_minor, MAX_7);
	}
	if (!err)
		err = time_record(out, ino->mtime, ino->mtime_nsec);
	return err ? err : erofs_tarbuf_add(out, xattrs->data, xattrs->len);
}

/* ---- the header block ---- */

/* Octal digits up to the field's last byte, which stays NUL. What is too large is cut to the largest. */
static void put_octal(char *field, size_t size, uint64_t v)
{
	uint64_t max = (UINT64_C(1) << 3 * (size - 1)) - 1;

	if (v > max)
		v = max;
	for (size -= 1; size; v >>= 3)
		field[--size] = (char)('0' + (v & 7));
}

static void put_checksum(struct tar_block *b)
{
	const uint8_t *p = (const uint8_t *)b;
	unsigned int sum = 0;
	size_t i;

	memset(b->checksum, ' ', sizeof(b->checksum));
	for (i = 0; i < sizeof(*b); i++)
		sum += p[i];
	put_octal(b->checksum, 7, sum);
	b->checksum[6] = '\0';
}

static int put_block(struct tarbuf *out, const struct tar_head *h)
{
	struct tar_block b = { .magic = "ustar", .version = { '0', '0' }, .type = (char)h->type };
	const struct erofs_inode *ino = h->ino;
	bool device = h->type == TAR_CHAR || h->type == TAR_BLOCKDEV;

	memcpy(b.name, h->path, (size_t)min_u64(h->path_len, NAME_FIELD));
	if (h->link)
		memcpy(b.link, h->link, (size_t)min_u64(h->link_len, NAME_FIELD));
	put_octal(b.mode, sizeof(b.mode), ino ? ino->mode & 07777u : 0644);
	put_octal(b.uid, sizeof(b.uid), ino ? ino->uid : 0);
	put_octal(b.gid, sizeof(b.gid), ino ? ino->gid : 0);
	put_octal(b.size, sizeof(b.size), h->size);
	put_octal(b.mtime, sizeof(b.mtime), ino && ino->mtime > 0 ? (uint64_t)ino->mtime : 0);
	put_octal(b.major, sizeof(b.major), device ? ino->rdev_major : 0);
	put_octal(b.minor, sizeof(b.minor), device ? ino->rdev_minor : 0);
	put_checksum(&b);
	return erofs_tarbuf_add(out, &b, sizeof(b));
}

int erofs_tar_put_head(struct tarbuf *out, const struct tar_head *h, struct tarbuf *records)
{
	struct tarbuf all = { 0 };
	struct tar_head pax = { .path = PAX_NAME, .path_len = strlen(PAX_NAME), .type = TAR_PAX };
	int err = all_records(&all, h, records);

	records->len = 0;
	pax.size = all.len;
	if (!err && all.len) {
		err = put_block(out, &pax);
		if (!err)
			err = erofs_tarbuf_add(out, all.data, all.len);
		if (!err)
			err = erofs_tarbuf_pad(out);
	}
	erofs_tarbuf_free(&all);
	return err ? err : put_block(out, h);
}
