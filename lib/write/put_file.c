// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Everything that is no directory: contents in whole blocks, the rest beside the inode where it fits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "write/write_priv.h"

#define PIECE (UINT32_C(1) << 20)	/* bytes read and written at a time; a multiple of every block size */

static void close_contents(struct contents *c)
{
	if (c->owned && c->fd >= 0)
		close(c->fd);
}

static int fail_file(struct writer *w, const struct node *node, int err, const char *what)
{
	auto_free char *path = erofs_node_path(node);

	return erofs_diag_fail_path(w->diag, err, path ? path : "?", "%s", what);
}

/* Exactly what the size promised: a shorter file changed under our hands, and the image would lie. */
static int read_piece(struct writer *w, const struct node *node, const struct contents *c, uint64_t off,
		      size_t len)
{
	ssize_t got = erofs_fdio_pread(c->fd, w->scratch, len, c->off + off);

	if (got < 0)
		return fail_file(w, node, (int)got, "cannot read");
	if ((size_t)got != len)
		return fail_file(w, node, -EIO, "became shorter while it was read");
	return 0;
}

static bool takes_tail(const struct writer *w, const struct node *node, size_t tail)
{
	if (!tail || (w->o->no_inline_data && S_ISREG(node->mode)))
		return false;
	return erofs_inode_head(node) + tail <= w->blksz || tail <= w->blksz - 64;
}

/* The scratch buffer is left with the tail in it. */
static int put_blocks(struct writer *w, const struct node *node, struct body *body)
{
	auto_call(close_contents) struct contents c = { .fd = -1 };
	size_t tail = (size_t)(node->size % w->blksz), n;
	uint64_t full, off, pos;
	int err = w->feed.ops->open(&w->feed, node, &c);

	if (err)
		return err;
	if (!takes_tail(w, node, tail))
		tail = 0;
	full = node->size - tail;
	body->u = full ? (uint32_t)erofs_space_blocks(&w->space, div_up_pow2(full, w->blkbits)) :
			 DISK_NULL_BLK32;
	pos = (uint64_t)body->u << w->blkbits;
	for (off = 0; off < full; off += n) {
		n = (size_t)min_u64(PIECE, full - off);
		err = erofs_write_is_cancelled(w) ? -ECANCELED : read_piece(w, node, &c, off, n);
		if (!err)
			err = erofs_output_write(w, w->scratch, n, pos + off);
		if (err)
			return err;
	}
	if (!tail)
		return 0;
	body->layout = 2;
	body->tail = w->scratch;
	body->tail_len = tail;
	return read_piece(w, node, &c, full, tail);
}

static int put_symlink(struct writer *w, const struct node *node, struct body *body)
{
	size_t len = (size_t)node->size;
	uint64_t block;

	if (takes_tail(w, node, len) && len <= w->blksz - 64) {
		*body = (struct body){ .layout = 2, .u = DISK_NULL_BLK32,
				       .tail = (const uint8_t *)node->target, .tail_len = len };
		return 0;
	}
	block = erofs_space_blocks(&w->space, div_up_pow2(len, w->blkbits));
	body->u = (uint32_t)block;
	return erofs_output_write(w, node->target, len, block << w->blkbits);
}

int erofs_file_put(struct writer *w, struct node *node)
{
	struct body body = { 0 };
	int err = 0;

	if (S_ISREG(node->mode) && node->size)
		err = put_blocks(w, node, &body);
	else if (S_ISLNK(node->mode))
		err = put_symlink(w, node, &body);
	else if (S_ISCHR(node->mode) || S_ISBLK(node->mode))
		body.u = node->rdev;
	return err ? err : erofs_inode_put(w, node, &body);
}

int erofs_file_room(struct writer *w)
{
	w->scratch = malloc(PIECE);
	return w->scratch ? 0 : -ENOMEM;
}
