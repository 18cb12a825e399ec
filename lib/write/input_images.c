// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Images as the source: layers, the lowest first. Their trees are laid over each other. Contents stay in the
 * images, which become extra devices in the same order; those that lie beside inodes, are compressed or lie on
 * a device of a layer's own are copied.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/image.h>
#include <erofs/inode.h>

#include "base/fdio.h"
#include "base/temp.h"
#include "image/image_priv.h"
#include "write/foreign.h"
#include "write/tree_priv.h"

#define COPY_PIECE ((size_t)1 << 20)
#define MARK ".wh."
#define OPAQUE_MARK ".wh..wh..opq"

struct known {
	uint64_t nid;
	struct node *node;		/* NULL: an empty place */
};

struct input {
	struct writer *w;
	struct tree tree;
	int temp;			/* contents that are copied */
	uint64_t temp_end;
	uint8_t *buf;
	/* the layer that is read */
	struct erofs_image *img;
	const char *name;
	unsigned int dev;
	uint32_t first;			/* arrivals before this one are of lower layers */
	struct table known;		/* struct known: inodes that have a name already */
	struct known *queue;		/* folders to be read */
	size_t queued, queue_room;
};

/* ---- for the one who writes ---- */

static int open_contents(struct feed *src, const struct node *node, struct contents *ret)
{
	struct input *in = src->priv;

	*ret = (struct contents){ .fd = in->temp, .off = node->key };
	return 0;
}

static void end_layer(struct input *in)
{
	erofs_close(in->img);
	in->img = NULL;
	erofs_table_fini(&in->known);
}

static void free_input(struct feed *src)
{
	struct input *in = src->priv;

	if (!in)
		return;
	end_layer(in);
	erofs_tree_fini(&in->tree);
	if (in->temp >= 0)
		close(in->temp);
	free(in->queue);
	free(in->buf);
	free(in);
	src->priv = NULL;
}

static const struct feed_ops ops = { .open = open_contents, .free = free_input };

/* ---- inodes of the layer ---- */

/* NULL in *ret: it is new, and known as @node from now on. */
static int know(struct input *in, uint64_t nid, struct node *node, struct node **ret)
{
	uint32_t hash = erofs_table_hash(nid), at = 0;
	struct known *k;

	*ret = NULL;
	while ((k = erofs_table_next(&in->known, hash, &at))) {
		if (k->nid != nid)
			continue;
		*ret = k->node;
		return 0;
	}
	k = erofs_table_add(&in->known, hash);
	if (!k)
		return -ENOMEM;
	*k = (struct known){ nid, node };
	return 0;
}

static int enqueue(struct input *in, uint64_t nid, struct node *node)
{
	if (in->queued == in->queue_room) {
		size_t room = in->queue_room ? 2 * in->queue_room : 64;
		struct known *grown = realloc(in->queue, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		in->queue = grown;
		in->queue_room = room;
	}
	in->queue[in->queued++] = (struct known){ nid, node };
	return 0;
}

static int fail_layer(struct input *in, int err, uint64_t nid, const char *what)
{
	return erofs_diag_fail(in->w->diag, err, AT_NID(nid), "%s: %s", in->name, what);
}

/* ---- contents ---- */

static int copy_contents(struct input *in, struct node *node, const struct erofs_inode *ino)
{
	uint64_t off = 0;
	ssize_t n;
	int err;

	err = erofs_write_temp(in->w, &in->temp);
	if (err)
		return err;
	node->key = in->temp_end;
	while (off < node->size) {
		if (erofs_write_is_cancelled(in->w))
			return -ECANCELED;
		n = erofs_pread(ino, in->w->diag, in->buf, (size_t)min_u64(COPY_PIECE, node->size - off), off);
		if (n <= 0)
			return n ? (int)n : -EUCLEAN;
		err = erofs_fdio_pwrite(in->temp, in->buf, (size_t)n, node->key + off);
		if (err)
			return erofs_diag_fail(in->w->diag, err, AT_NOWHERE,
					       "cannot write a temporary file in %s", erofs_temp_folder());
		off += (uint64_t)n;
	}
	in->temp_end += node->size;
	return 0;
}

static void close_extents(struct erofs_extents **e)
{
	erofs_extents_close(*e);
}

/* 1: all of them lie in whole blocks of the layer's file; 0: they have to be copied. */
static int refer_to(struct input *in, struct node *node, const struct erofs_inode *ino)
{
	auto_call(close_extents) struct erofs_extents *extents = NULL;
	uint64_t rest = in->w->blksz - 1;
	struct erofs_extent_info e;
	int r = erofs_extents_open(ino, in->w->diag, &extents);

	if (!r)
		r = erofs_foreign_init(node);
	while (!r && (r = erofs_extents_next(extents, &e)) > 0) {
		if (e.fragment || e.compressed || e.dev || (!e.hole && (e.la | e.pa) & rest))
			return 0;
		r = e.hole ? 0 : erofs_foreign_add(node, &(struct piece){ e.la, e.len, e.pa, in->dev });
	}
	return r < 0 ? r : 1;
}

static int take_contents(struct input *in, struct node *node, const struct erofs_inode *ino,
			 const struct erofs_stat *st)
{
	int r;

	node->size = st->size;
	if (!st->size)
		return 0;
	/* layout 2: the end lies beside the inode, if there is one */
	r = st->layout == 2 && st->size % in->w->blksz ? 0 : refer_to(in, node, ino);
	if (r)
		return r < 0 ? r : 0;
	erofs_foreign_free(node);
	return copy_contents(in, node, ino);
}

static int take_target(struct input *in, struct node *node, const struct erofs_inode *ino,
		       const struct erofs_stat *st)
{
	ssize_t n;

	if (!st->size || st->size > DISK_SYMLINK_MAX)
		return -EUCLEAN;
	node->target = calloc(1, (size_t)st->size + 1);
	if (!node->target)
		return -ENOMEM;
	n = erofs_pread(ino, in->w->diag, node->target, (size_t)st->size, 0);
	if (n < 0)
		return (int)n;
	node->size = st->size;
	return (uint64_t)n == st->size && strlen(node->target) == st->size ? 0 : -EUCLEAN;
}

/* ---- metadata ---- */

static void close_xattrs(struct erofs_xattrs **x)
{
	erofs_xattrs_close(*x);
}

/* *ret_opaque: what lower layers have in this folder is not seen */
static int take_xattrs(struct input *in, struct node *node, const struct erofs_inode *ino, bool *ret_opaque)
{
	auto_call(close_xattrs) struct erofs_xattrs *xattrs = NULL;
	struct erofs_xattr x;
	int r = erofs_xattrs_open(ino, in->w->diag, &xattrs);

	*ret_opaque = false;
	while (!r && (r = erofs_xattrs_next(xattrs, &x)) > 0) {
		if (!strcmp(x.name, "trusted.overlay.opaque") && x.size == 1 && *(const char *)x.value == 'y')
			*ret_opaque = true;
		r = in->w->o->no_xattrs ? 0 : erofs_xattr_add(in->w, node, x.name, x.value, x.size);
	}
	return r;
}

static int fill(struct input *in, struct node *node, const struct erofs_inode *ino)
{
	struct erofs_stat st;
	bool opaque;
	int err;

	erofs_inode_stat(ino, &st);
	err = erofs_tree_reset(&in->tree, node, st.mode);
	if (!err)
		err = take_xattrs(in, node, ino, &opaque);
	if (!err && opaque && S_ISDIR(st.mode))
		err = erofs_tree_bury(&in->tree, node, in->first);
	if (err)
		return err;
	node->uid = st.uid;
	node->gid = st.gid;
	node->mtime = st.mtime;
	node->mtime_nsec = st.mtime_nsec;
	if (S_ISCHR(st.mode) || S_ISBLK(st.mode))
		node->rdev = erofs_node_rdev(st.rdev_major, st.rdev_minor);
	if (S_ISLNK(st.mode))
		return take_target(in, node, ino, &st);
	return S_ISREG(st.mode) ? take_contents(in, node, ino, &st) : 0;
}

static void close_inode(struct erofs_inode **ino)
{
	erofs_inode_close(*ino);
}

static int take_inode(struct input *in, struct node *node, uint64_t nid)
{
	auto_call(close_inode) struct erofs_inode *ino = NULL;
	struct node *other;
	int err = know(in, nid, node, &other);

	if (!err && other && S_ISDIR(other->mode))
		return fail_layer(in, -EUCLEAN, nid, "a folder has two names");
	if (!err && other)
		return erofs_tree_link(&in->tree, node, other);
	if (!err)
		err = erofs_inode_open(in->img, nid, in->w->diag, &ino);
	if (!err)
		err = fill(in, node, ino);
	if (err == -EUCLEAN)
		return fail_layer(in, err, nid, "the image is damaged");
	return !err && S_ISDIR(node->mode) ? enqueue(in, nid, node) : err;
}

/* ---- names ---- */

/* A mark of aufs takes away what lower layers have; what the layer has beside it stays. */
static int apply_mark(struct input *in, struct node *dir, const char *name, size_t len)
{
	struct node *hidden;
	int err;

	if (len == strlen(OPAQUE_MARK) && !memcmp(name, OPAQUE_MARK, len))
		return erofs_tree_bury(&in->tree, dir, in->first);
	err = erofs_tree_child(&in->tree, dir, name + strlen(MARK), len - strlen(MARK), &hidden);
	if (err || (hidden->mode && hidden->ino >= in->first))
		return err;
	/* the mark itself follows, and takes its place when the tree is complete */
	return erofs_tree_reset(&in->tree, hidden, 0);
}

static int take_name(struct input *in, struct node *dir, const struct erofs_entry *de)
{
	struct node *node;
	int err;

	if (de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.')))
		return 0;
	if (!de->len || memchr(de->name, '/', de->len) || memchr(de->name, 0, de->len))
		return fail_layer(in, -EUCLEAN, de->nid, "a name that cannot be");
	if (in->w->o->aufs && de->len > strlen(MARK) && !memcmp(de->name, MARK, strlen(MARK))) {
		err = apply_mark(in, dir, de->name, de->len);
		if (err)
			return err;
	}
	err = erofs_tree_child(&in->tree, dir, de->name, de->len, &node);
	return err ? err : take_inode(in, node, de->nid);
}

static void close_dir(struct erofs_dir **d)
{
	erofs_dir_close(*d);
}

static int read_folder(struct input *in, struct node *dir, uint64_t nid)
{
	auto_call(close_inode) struct erofs_inode *ino = NULL;
	auto_call(close_dir) struct erofs_dir *d = NULL;
	struct erofs_entry de;
	int r = erofs_inode_open(in->img, nid, in->w->diag, &ino);

	if (!r)
		r = erofs_dir_open(ino, in->w->diag, &d);
	while (!r && (r = erofs_dir_next(d, &de)) > 0)
		r = take_name(in, dir, &de);
	if (r == -EUCLEAN)
		return fail_layer(in, r, nid, "the folder is damaged");
	return r ? r : erofs_write_is_cancelled(in->w) ? -ECANCELED : 0;
}

/* ---- layers ---- */

static void make_tag(const struct erofs_super_info *info, char tag[33])
{
	int i;

	for (i = 0; i < 16; i++)
		snprintf(tag + 2 * i, 3, "%02x", info->uuid[i]);
}

/* The image layer says what is wrong, and not of which file. */
static int open_source(const struct writer *w, const char *path, struct erofs_image **ret)
{
	int err = erofs_open(path, NULL, w->diag, ret);

	if (!err)
		return 0;
	return erofs_diag_fail(w->diag, err, AT_NOWHERE, "%s: no folder, and not to be read as an image", path);
}

static int open_layer(struct input *in, const char *path, struct erofs_super_info *info)
{
	struct writer *w = in->w;
	char tag[33];
	int err;

	in->name = path;
	err = open_source(w, path, &in->img);
	if (err)
		return err;
	erofs_image_super(in->img, info);
	in->dev++;
	if (info->block_size != w->blksz)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s has blocks of %u bytes, which is not %u",
				       path, (unsigned int)info->block_size, (unsigned int)w->blksz);
	make_tag(info, tag);
	return erofs_device_add(w, tag, in->img->flat ? info->total_blocks : info->blocks);
}

static int read_layer(struct input *in, const char *path)
{
	struct erofs_super_info info;
	size_t at;
	int err = open_layer(in, path, &info);

	if (err)
		return err;
	in->first = in->tree.arrivals;
	in->queued = 0;
	err = take_inode(in, in->tree.root, info.root_nid);
	for (at = 0; !err && at < in->queued; at++)
		err = read_folder(in, in->queue[at].node, in->queue[at].nid);
	end_layer(in);
	return err;
}

int erofs_images_block_size(const struct writer *w, uint32_t *ret)
{
	struct erofs_super_info info;
	struct erofs_image *img;
	int err;

	/* then the images have to fit it */
	if (w->o->block_size)
		return 0;
	err = open_source(w, w->o->sources[0], &img);
	if (err)
		return err;
	erofs_image_super(img, &info);
	erofs_close(img);
	*ret = info.block_size;
	return 0;
}

int erofs_input_images(struct writer *w, struct feed *ret)
{
	struct input *in = calloc(1, sizeof(*in));
	size_t i;
	int err;

	if (!in)
		return -ENOMEM;
	in->known.size = sizeof(struct known);
	in->w = w;
	in->temp = -1;
	*ret = (struct feed){ .ops = &ops, .priv = in };
	in->buf = malloc(COPY_PIECE);
	err = erofs_tree_init(&in->tree, w);
	if (!err && !in->buf)
		err = -ENOMEM;
	for (i = 0; !err && w->o->sources[i]; i++)
		err = read_layer(in, w->o->sources[i]);
	return err ? err : erofs_tree_take(&in->tree, false);
}
