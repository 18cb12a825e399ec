// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The store of lanes, and looking inside single inodes: the public interface of erofs/inode.h. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <erofs/inode.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "engine/lane_priv.h"
#include "engine/look.h"

#define LOOK_KEEP 4		/* lanes of 256 KiB and more that wait for the next call */

struct look {
	pthread_mutex_t	lock;
	struct lane	*lanes[LOOK_KEEP];	/* L */
	unsigned int	count;			/* L */
};	/* L lock */

int erofs_look_new(struct look **ret_look)
{
	struct look *look = calloc(1, sizeof(*look));

	if (!look)
		return -ENOMEM;
	pthread_mutex_init(&look->lock, NULL);
	*ret_look = look;
	return 0;
}

void erofs_look_free(struct look *look)
{
	if (!look)
		return;
	while (look->count)
		erofs_lane_free(look->lanes[--look->count]);
	pthread_mutex_destroy(&look->lock);
	free(look);
}

static void set_diag(struct lane *lane, struct erofs_diag *diag)
{
	lane->diag = diag;
	lane->mb.diag = diag;
}

int erofs_look_take(struct erofs_image *img, struct erofs_diag *diag, struct lane **ret_lane)
{
	struct look *look = img->look;
	struct lane *lane = NULL;

	pthread_mutex_lock(&look->lock);
	if (look->count)
		lane = look->lanes[--look->count];
	pthread_mutex_unlock(&look->lock);
	if (!lane)
		return erofs_lane_new(img, NULL, diag, ret_lane);
	set_diag(lane, diag);
	*ret_lane = lane;
	return 0;
}

void erofs_look_give(struct lane *lane)
{
	struct look *look;

	if (!lane)
		return;
	set_diag(lane, NULL);
	look = lane->img->look;
	pthread_mutex_lock(&look->lock);
	if (look->count < LOOK_KEEP) {
		look->lanes[look->count++] = lane;
		lane = NULL;
	}
	pthread_mutex_unlock(&look->lock);
	erofs_lane_free(lane);
}

/* ---- inodes ---- */

int erofs_inode_open(struct erofs_image *img, uint64_t nid, struct erofs_diag *diag,
		     struct erofs_inode **ret_ino)
{
	auto_free struct erofs_inode *ino = malloc(sizeof(*ino));
	auto_lane struct lane *lane = NULL;
	int err;

	if (!ino)
		return -ENOMEM;
	err = erofs_look_take(img, diag, &lane);
	if (!err)
		err = erofs_inode_load(&lane->mb, nid, ino);
	if (!err)
		*ret_ino = steal(ino);
	return err;
}

void erofs_inode_close(struct erofs_inode *ino)
{
	free(ino);
}

void erofs_inode_stat(const struct erofs_inode *ino, struct erofs_stat *ret_stat)
{
	struct erofs_stat st = {
		.nid = ino->nid,
		.size = ino->size,
		.stored = ino->size,
		.mode = ino->mode,
		.nlink = ino->nlink,
		.uid = ino->uid,
		.gid = ino->gid,
		.rdev_major = ino->rdev_major,
		.rdev_minor = ino->rdev_minor,
		.mtime = ino->mtime,
		.mtime_nsec = ino->mtime_nsec,
		.layout = ino->layout,
		.inode_size = ino->extended ? 64 : 32,
		.xattr_size = ino->xattr_size,
	};

	if (erofs_inode_is_compressed(ino))
		st.stored = ino->start_blk << ino->img->blkbits;
	*ret_stat = st;
}

/* Have inodes of this type contents? Device numbers stand where others have an address. */
static bool has_contents(const struct erofs_inode *ino)
{
	return S_ISREG(ino->mode) || S_ISDIR(ino->mode) || S_ISLNK(ino->mode);
}

ssize_t erofs_pread(const struct erofs_inode *ino, struct erofs_diag *diag, void *buf, size_t len,
		    uint64_t off)
{
	auto_lane struct lane *lane = NULL;
	int err;

	if (!has_contents(ino))
		return -EINVAL;
	if (off >= ino->size)
		return 0;
	len = (size_t)min_u64(min_u64(len, SSIZE_MAX), ino->size - off);
	err = erofs_look_take(ino->img, diag, &lane);
	if (!err)
		err = erofs_lane_read(lane, ino, off, buf, len);
	return err ? err : (ssize_t)len;
}

/* ---- extents ---- */

struct erofs_extents {
	struct lane *lane;
	bool empty;		/* nothing to map */
	int err;		/* sticky */
	struct map map;
};

void erofs_extents_close(struct erofs_extents *extents)
{
	if (!extents)
		return;
	erofs_look_give(extents->lane);
	free(extents);
}

static void close_extents(struct erofs_extents **extents)
{
	erofs_extents_close(*extents);
}

int erofs_extents_open(const struct erofs_inode *ino, struct erofs_diag *diag,
		       struct erofs_extents **ret_extents)
{
	auto_call(close_extents) struct erofs_extents *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	err = erofs_look_take(ino->img, diag, &e->lane);
	e->empty = !has_contents(ino) || !ino->size;
	if (!err && !e->empty)
		err = erofs_map_begin(&e->map, ino, &e->lane->mb, false);
	if (!err)
		*ret_extents = steal(e);
	return err;
}

int erofs_extents_next(struct erofs_extents *e, struct erofs_extent_info *ret_extent)
{
	struct erofs_extent_info info = { 0 };
	struct extent ext;
	int r;

	if (e->empty || e->err)
		return e->err;
	r = erofs_map_next(&e->map, &ext);
	if (r <= 0) {
		e->err = r;
		e->empty = !r;
		return r;
	}
	info.la = ext.la;
	info.len = ext.len;
	info.hole = ext.kind == EXTENT_HOLE;
	info.fragment = ext.kind == EXTENT_FRAGMENT;
	info.compressed = ext.kind == EXTENT_ENCODED;
	if (ext.kind == EXTENT_RAW || ext.kind == EXTENT_ENCODED) {
		info.pa = ext.pa;
		info.plen = ext.plen;
		info.dev = ext.meta ? 0 : ext.dev;
	}
	*ret_extent = info;
	return 1;
}

/* ---- extended attributes ---- */

struct erofs_xattrs {
	struct lane *lane;
	struct xattr_iter *it;		/* the lane's */
	struct xattr_view view;
};

void erofs_xattrs_close(struct erofs_xattrs *xattrs)
{
	if (!xattrs)
		return;
	erofs_look_give(xattrs->lane);
	free(xattrs);
}

static void close_xattrs(struct erofs_xattrs **xattrs)
{
	erofs_xattrs_close(*xattrs);
}

int erofs_xattrs_open(const struct erofs_inode *ino, struct erofs_diag *diag,
		      struct erofs_xattrs **ret_xattrs)
{
	auto_call(close_xattrs) struct erofs_xattrs *x = calloc(1, sizeof(*x));
	int err;

	if (!x)
		return -ENOMEM;
	err = erofs_look_take(ino->img, diag, &x->lane);
	if (err)
		return err;
	x->it = erofs_lane_xattrs(x->lane);
	if (!x->it)
		return -ENOMEM;
	err = erofs_xattr_begin(x->it, ino);
	if (!err)
		*ret_xattrs = steal(x);
	return err;
}

int erofs_xattrs_next(struct erofs_xattrs *x, struct erofs_xattr *ret_xattr)
{
	int r;

	do
		r = erofs_xattr_next(x->it, &x->view);
	while (r > 0 && x->view.hidden);
	if (!r)
		return erofs_xattr_damage(x->it);
	if (r < 0)
		return r;
	ret_xattr->name = x->view.name;
	ret_xattr->value = x->view.value;
	ret_xattr->size = x->view.size;
	return 1;
}
