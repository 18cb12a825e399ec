// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Inodes: core, attributes, map, tail, in one write. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "write/write_priv.h"

static bool fits_compact(const struct node *node)
{
	return node->uid <= UINT16_MAX && node->gid <= UINT16_MAX && node->size <= UINT32_MAX &&
	       (node->nlink <= UINT16_MAX || S_ISDIR(node->mode));
}

int erofs_inode_choose(struct writer *w, struct node *node)
{
	auto_free char *path = NULL;
	bool fits = fits_compact(node);

	if (erofs_xattr_size(node) > sizeof(struct disk_xattr_header) + 4 * (UINT16_MAX - 1)) {
		path = erofs_node_path(node);
		return erofs_diag_fail_path(w->diag, -E2BIG, path ? path : "?",
					    "more than 256 KiB of attributes");
	}
	/* without 48BIT the only time of compact inodes is the epoch (format.md 2.6) */
	node->extended = !fits || node->mtime != w->build_time || node->mtime_nsec;
	/* 1 as the number of links says nothing where "." is not counted either */
	if (w->o->inodes == EROFS_WRITE_INODES_EXTENDED || (w->o->dot_omitted && node->nlink > UINT16_MAX))
		node->extended = true;
	if (w->o->inodes != EROFS_WRITE_INODES_COMPACT)
		return 0;
	node->extended = false;
	if (fits)
		return 0;
	path = erofs_node_path(node);
	return erofs_diag_fail_path(w->diag, -EOVERFLOW, path ? path : "?",
				    "size, owner or number of links is too large for a compact inode");
}

size_t erofs_inode_head(const struct node *node)
{
	return (node->extended ? sizeof(struct disk_inode_extended) : sizeof(struct disk_inode_compact)) +
	       erofs_xattr_size(node);
}

static uint16_t count_of(const struct node *node)
{
	size_t size = erofs_xattr_size(node);

	return size ? (uint16_t)((size - sizeof(struct disk_xattr_header)) / 4 + 1) : 0;
}

static void fill_compact(const struct node *node, const struct body *body, uint8_t *dst)
{
	struct disk_inode_compact *d = (struct disk_inode_compact *)dst;

	d->i_xattr_icount = le16_of(count_of(node));
	d->i_mode = le16_of((uint16_t)node->mode);
	/* 1 says that the number of a directory's links is not known */
	d->i_nb = le16_of(node->nlink <= UINT16_MAX ? (uint16_t)node->nlink : 1);
	d->i_size = le32_of((uint32_t)node->size);
	d->i_u = le32_of(body->u);
	d->i_ino = le32_of(node->ino);
	d->i_uid = le16_of((uint16_t)node->uid);
	d->i_gid = le16_of((uint16_t)node->gid);
}

static void fill_extended(const struct node *node, const struct body *body, uint8_t *dst)
{
	struct disk_inode_extended *d = (struct disk_inode_extended *)dst;

	d->i_xattr_icount = le16_of(count_of(node));
	d->i_mode = le16_of((uint16_t)node->mode);
	d->i_size = le64_of(node->size);
	d->i_u = le32_of(body->u);
	d->i_ino = le32_of(node->ino);
	d->i_uid = le32_of(node->uid);
	d->i_gid = le32_of(node->gid);
	d->i_mtime = le64_of((uint64_t)node->mtime);
	d->i_mtime_nsec = le32_of(node->mtime_nsec);
	d->i_nlink = le32_of(node->nlink);
}

/* Bits of i_format that do not depend on its form. */
static uint16_t format_of(const struct writer *w, const struct node *node, const struct body *body)
{
	unsigned int bits = body->layout << DISK_INODE_LAYOUT_SHIFT;

	if (w->o->dot_omitted && S_ISDIR(node->mode))
		bits |= DISK_INODE_BIT4;
	return (uint16_t)bits;
}

static size_t body_start(const struct node *node, const struct body *body)
{
	size_t head = erofs_inode_head(node);

	return body->map_len ? (size_t)round_up_u64(head, body->map_align) : head;
}

int erofs_inode_put_at(struct writer *w, const struct node *node, const struct body *body, uint64_t pos)
{
	size_t map_at = body_start(node, body), size = map_at + body->map_len + body->tail_len;
	size_t core = node->extended ? sizeof(struct disk_inode_extended) : sizeof(struct disk_inode_compact);
	auto_free uint8_t *large = NULL;
	uint8_t small[1024], *buf = small;

	if (size > sizeof(small))
		buf = large = malloc(size);
	if (!buf)
		return -ENOMEM;
	memset(buf, 0, map_at);
	if (node->extended)
		fill_extended(node, body, buf);
	else
		fill_compact(node, body, buf);
	((struct disk_inode_compact *)buf)->i_format =
		le16_of((uint16_t)(format_of(w, node, body) | (node->extended ? DISK_INODE_EXTENDED : 0)));
	erofs_xattr_fill(w, node, buf + core);
	if (body->map_len)
		memcpy(buf + map_at, body->map, body->map_len);
	if (body->tail_len)
		memcpy(buf + map_at + body->map_len, body->tail, body->tail_len);
	return erofs_output_write(w, buf, size, pos);
}

int erofs_inode_put(struct writer *w, struct node *node, const struct body *body)
{
	uint64_t pos, size = body_start(node, body) + body->map_len + body->tail_len;
	int err = erofs_space_meta(&w->space, size, body->tail_len, &pos);

	if (err)
		return err;
	node->nid = pos >> DISK_NID_SHIFT;
	return erofs_inode_put_at(w, node, body, pos);
}
