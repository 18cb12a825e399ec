// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The lines: of sha256sum, of "fsverity digest", and of mtree(5). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "archive/sums_priv.h"

/* A line that is being put together; the first error sticks. */
struct line {
	struct tarbuf *out;
	int err;
};

static void add_bytes(struct line *l, const void *data, size_t len)
{
	if (!l->err)
		l->err = erofs_tarbuf_add(l->out, data, len);
}

static void add_text(struct line *l, const char *text)
{
	add_bytes(l, text, strlen(text));
}

static bool has_room(struct line *l, size_t len)
{
	if (!l->err)
		l->err = erofs_tarbuf_reserve(l->out, len);
	return !l->err;
}

static void add_char(struct line *l, int c)
{
	l->out->data[l->out->len++] = (uint8_t)c;
}

static void add_hex(struct line *l, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	if (!has_room(l, 2 * len))
		return;
	for (i = 0; i < len; i++) {
		add_char(l, digits[bytes[i] >> 4]);
		add_char(l, digits[bytes[i] & 15]);
	}
}

/* ---- digests ---- */

/* What would break a line: a backslash stands in front of it, and in front of the line (sha256sum). */
static void add_escaped(struct line *l, const char *path, size_t len)
{
	size_t i;

	if (!has_room(l, 2 * len))
		return;
	for (i = 0; i < len; i++) {
		int c = path[i];

		if (c == '\\' || c == '\n' || c == '\r') {
			add_char(l, '\\');
			c = c == '\n' ? 'n' : c == '\r' ? 'r' : '\\';
		}
		add_char(l, c);
	}
}

static bool needs_escape(const char *path, size_t len)
{
	return memchr(path, '\\', len) || memchr(path, '\n', len) || memchr(path, '\r', len);
}

int erofs_sums_digest_line(const struct sums *s, struct tarbuf *out, const char *path,
			   const struct sums_item *item)
{
	struct line l = { .out = out };

	if (s->want_verity) {
		/* "fsverity digest" prints names as they are */
		add_text(&l, s->params.kind == SHA_256 ? "sha256:" : "sha512:");
		add_hex(&l, item->value.verity, erofs_sha_size(s->params.kind));
		add_text(&l, " ");
		add_bytes(&l, path, item->path_len);
	} else {
		if (needs_escape(path, item->path_len))
			add_text(&l, "\\");
		add_hex(&l, item->value.sha, erofs_sha_size(s->kind));
		add_text(&l, "  ");
		add_escaped(&l, path, item->path_len);
	}
	add_text(&l, "\n");
	return l.err;
}

/* ---- mtree ---- */

/* Printable ASCII without what mtree(5) gives a meaning; all else as \ooo. */
static void add_octal(struct line *l, const char *text, size_t len)
{
	size_t i;

	if (!has_room(l, 4 * len))
		return;
	for (i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c > 0x20 && c < 0x7f && !strchr("\\#=*?[", c)) {
			add_char(l, c);
			continue;
		}
		add_char(l, '\\');
		add_char(l, '0' + (c >> 6));
		add_char(l, '0' + (c >> 3 & 7));
		add_char(l, '0' + (c & 7));
	}
}

static void add_path(struct line *l, const char *path, size_t len)
{
	add_text(l, len ? "./" : ".");
	add_octal(l, path, len);
}

static const char *type_word(uint16_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR: return "dir";
	case S_IFLNK: return "link";
	case S_IFCHR: return "char";
	case S_IFBLK: return "block";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	default: return "file";
	}
}

/* st_ino as Linux shows it (format.md 5.1). */
static uint64_t inode_number(const struct erofs_inode *ino)
{
	uint64_t nid = ino->nid;

	if (!ino->img->super->metabox)
		return nid;
	return (nid & 0x7fffffff) | nid >> 63 << 31 | (nid >> 31 & 0xffffffff) << 32;
}

static void add_type_words(struct line *l, const struct sums_item *item, const char *target)
{
	const struct erofs_inode *ino = &item->ino;
	char text[96];

	if (S_ISREG(ino->mode)) {
		snprintf(text, sizeof(text), " size=%" PRIu64, ino->size);
		add_text(l, text);
		if (item->value.has_sha) {
			add_text(l, " sha256digest=");
			add_hex(l, item->value.sha, SHA256_SIZE);
		}
	} else if (S_ISLNK(ino->mode) && target) {
		add_text(l, " link=");
		add_octal(l, target, (size_t)ino->size);
	} else if (S_ISCHR(ino->mode) || S_ISBLK(ino->mode)) {
		snprintf(text, sizeof(text), " device=native,%" PRIu32 ",%" PRIu32, ino->rdev_major,
			 ino->rdev_minor);
		add_text(l, text);
	}
}

int erofs_sums_mtree_line(struct tarbuf *out, const char *path, const struct sums_item *item, const char *target)
{
	const struct erofs_inode *ino = &item->ino;
	struct line l = { .out = out };
	char text[256];

	add_path(&l, path, item->path_len);
	snprintf(text, sizeof(text),
		 " type=%s mode=%04o uid=%" PRIu32 " gid=%" PRIu32 " nlink=%" PRIu32 " inode=%" PRIu64
		 " time=%" PRId64 ".%09" PRIu32,
		 type_word(ino->mode), ino->mode & 07777u, ino->uid, ino->gid, ino->nlink, inode_number(ino),
		 ino->mtime, ino->mtime_nsec);
	add_text(&l, text);
	add_type_words(&l, item, target);
	add_text(&l, "\n");
	return l.err;
}

int erofs_sums_comment(struct tarbuf *out, const char *path, size_t len, const char *name, const uint8_t *value,
		       size_t size)
{
	struct line l = { .out = out };

	add_text(&l, "#erofs: ");
	add_path(&l, path, len);
	add_text(&l, name ? " xattr." : " fsverity");
	if (name)
		add_octal(&l, name, strlen(name));
	add_text(&l, "=");
	add_hex(&l, value, size);
	add_text(&l, "\n");
	return l.err;
}

/* ---- order ---- */

struct slice {
	const uint8_t *data;
	size_t len;
};

static int compare_slices(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;
	int r = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

int erofs_sums_sorted(struct tarbuf *out, const struct tarbuf *from)
{
	const uint8_t *at = from->data, *end = at + from->len, *stop;
	auto_free struct slice *lines = NULL;
	size_t n = 0, room = 0, i;
	int err = 0;

	for (; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		if (n == room) {
			struct slice *grown = realloc(lines, (room = room ? 2 * room : 16) * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			lines = grown;
		}
		lines[n++] = (struct slice){ at, (size_t)(stop + 1 - at) };
	}
	if (n > 1)
		qsort(lines, n, sizeof(*lines), compare_slices);
	for (i = 0; i < n && !err; i++)
		err = erofs_tarbuf_add(out, lines[i].data, lines[i].len);
	return err;
}
