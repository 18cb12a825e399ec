// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A tar archive as the source. Contents stay where they are if the archive is a plain file; those of a
 * stream, of a compressed archive and of sparse files go to an unlinked file in TMPDIR.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/temp.h"
#include "base/untar.h"
#include "write/foreign.h"
#include "write/tree_priv.h"

#define IN_ARCHIVE (UINT64_C(1) << 63)	/* in node->key: not in the temporary file */

struct input {
	struct writer *w;
	struct untar *untar;
	struct tree tree;
	const char *name;		/* of the archive */
	int fd, temp;
	bool owned;			/* close fd */
	bool is_index;			/* contents stay where they are, on a device */
	bool no_data;			/* there are none: all files are holes */
	uint64_t temp_end;
};

/* ---- for the one who writes ---- */

static int open_contents(struct feed *src, const struct node *node, struct contents *ret)
{
	struct input *in = src->priv;

	*ret = (struct contents){ .fd = node->key & IN_ARCHIVE ? in->fd : in->temp,
				  .off = node->key & ~IN_ARCHIVE };
	return 0;
}

static void free_input(struct feed *src)
{
	struct input *in = src->priv;

	if (!in)
		return;
	erofs_untar_free(in->untar);
	erofs_tree_fini(&in->tree);
	if (in->owned)
		close(in->fd);
	if (in->temp >= 0)
		close(in->temp);
	free(in);
	src->priv = NULL;
}

static const struct feed_ops ops = { .open = open_contents, .free = free_input };

/* ---- contents ---- */

static int fail_archive(struct input *in, int err, const char *path)
{
	struct erofs_diag *diag = in->w->diag;

	if (err == -ECANCELED || err == -ENOMEM)
		return err;
	if (err != -EBADMSG)
		return erofs_diag_fail(diag, err, AT_NOWHERE, "cannot read %s", in->name);
	if (path)
		return erofs_diag_fail_path(diag, err, path, "cannot read it from %s: %s", in->name,
					    erofs_untar_error(in->untar));
	return erofs_diag_fail(diag, err, AT_NOWHERE, "%s is no tar archive, or damaged: %s", in->name,
			       erofs_untar_error(in->untar));
}

/* Does the archive have these bytes at this place? It is asked, because who reads it might be wrong. */
static bool is_there(const struct input *in, const struct untar_piece *p)
{
	uint8_t buf[4096];
	size_t len = (size_t)min_u64(p->len, sizeof(buf));

	return p->place < IN_ARCHIVE && erofs_fdio_pread(in->fd, buf, len, p->place) == (ssize_t)len &&
	       !memcmp(buf, p->buf, len);
}

static int spill(struct input *in, const struct node *node, const struct untar_piece *p)
{
	uint64_t off = in->temp_end + p->off;
	int err;

	err = erofs_write_temp(in->w, &in->temp);
	if (err)
		return err;
	err = range_ok(p->off, p->len, node->size) ? erofs_fdio_pwrite(in->temp, p->buf, p->len, off) : -EFBIG;
	if (err)
		return erofs_diag_fail(in->w->diag, err, AT_NOWHERE, "cannot write a temporary file in %s",
				       erofs_temp_folder());
	return 0;
}

/* 1: it can stay in the archive; 0: it is in the temporary file now. */
static int copy_contents(struct input *in, struct node *node, const struct untar_entry *e, const char *path)
{
	bool can_stay = !e->is_sparse;
	struct untar_piece p;
	int r, err;

	while ((r = erofs_untar_data(in->untar, &p)) > 0) {
		if (can_stay && !p.off && is_there(in, &p)) {
			node->key = IN_ARCHIVE | p.place;
			return 1;
		}
		can_stay = false;
		err = p.len ? spill(in, node, &p) : 0;
		if (err)
			return err;
	}
	return r < 0 ? fail_archive(in, r, path) : 0;
}

static int fail_index(struct input *in, const char *path)
{
	return erofs_diag_fail_path(in->w->diag, -EOPNOTSUPP, path,
				    "its contents do not lie in whole blocks of the archive");
}

/* What follows a piece in its last block is not zeros, so only the end of the file may lie within one. */
static bool is_in_blocks(const struct node *node, uint32_t blksz)
{
	size_t i;

	for (i = 0; i < node->foreign->count; i++) {
		const struct piece *p = &node->foreign->pieces[i];

		if ((p->la | p->pa) % blksz || ((p->la + p->len) % blksz && p->la + p->len != node->size))
			return false;
	}
	return true;
}

/* A file without holes is one piece, which need not be read. */
static int index_contents(struct input *in, struct node *node, const struct untar_entry *e, const char *path)
{
	struct untar_piece p;
	int r, err = erofs_foreign_init(node);

	if (err)
		return err;
	while ((r = erofs_untar_data(in->untar, &p)) > 0) {
		uint64_t len = e->is_sparse ? p.len : e->size;

		if (!range_ok(p.off, p.len, e->size) || p.pos > INT64_MAX)
			return fail_archive(in, -EBADMSG, path);
		err = p.len ? erofs_foreign_add(node, &(struct piece){ p.off, len, p.pos, 1 }) : 0;
		if (err)
			return err;
		if (p.len && !e->is_sparse)
			break;
	}
	if (r < 0)
		return fail_archive(in, r, path);
	return is_in_blocks(node, in->w->blksz) ? 0 : fail_index(in, path);
}

static int take_contents(struct input *in, struct node *node, const struct untar_entry *e, const char *path)
{
	uint64_t end;
	int r;

	if (!add_ok(in->temp_end, e->size, &end) || end > INT64_MAX)
		return erofs_diag_fail_path(in->w->diag, -EFBIG, path, "cannot be stored");
	node->size = e->size;
	if (in->is_index)
		return index_contents(in, node, e, path);
	if (in->no_data)
		return erofs_foreign_init(node);
	node->key = in->temp_end;
	r = copy_contents(in, node, e, path);
	if (!r) {
		in->temp_end = end;
		/* all of it a hole, or one at the end: there has to be a file, and it has to reach there */
		r = e->size ? erofs_write_temp(in->w, &in->temp) : 0;
		if (!r && in->temp >= 0 && ftruncate(in->temp, (off_t)end))
			r = erofs_diag_fail(in->w->diag, -errno, AT_NOWHERE,
					    "cannot write a temporary file in %s", erofs_temp_folder());
	}
	return r < 0 ? r : 0;
}

/* ---- entries ---- */

static int fail_entry(struct input *in, const char *path, int err, const char *why)
{
	return err == -ENOMEM ? err : erofs_diag_fail_path(in->w->diag, err, path, "%s", why);
}

static int take_link(struct input *in, struct node *node, const struct untar_entry *e)
{
	struct node *target;
	int err;

	if (!node->parent)
		return fail_entry(in, e->path, -EINVAL, "stands for the root, and is no folder");
	err = erofs_tree_find(&in->tree, e->hardlink, false, &target);
	if (err == -ENOENT || (!err && S_ISDIR(target->mode)))
		return erofs_diag_fail_path(in->w->diag, -ENOENT, e->path, "is a link to %s, which is %s",
					    e->hardlink, err ? "not there" : "a folder");
	return err ? err : erofs_tree_link(&in->tree, node, target);
}

static int take_xattrs(struct input *in, struct node *node, const struct untar_entry *e)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && !in->w->o->no_xattrs && i < e->nxattrs; i++)
		err = erofs_xattr_add(in->w, node, e->xattrs[i].name, e->xattrs[i].value, e->xattrs[i].len);
	return err ? fail_entry(in, e->path, err, "an attribute that cannot be stored") : 0;
}

static int take_target(struct input *in, struct node *node, const struct untar_entry *e)
{
	const char *target = e->symlink ? e->symlink : "";
	size_t len = strlen(target);

	if (!len || len > DISK_SYMLINK_MAX)
		return fail_entry(in, e->path, -ENAMETOOLONG, "a symlink whose target is empty or too long");
	node->target = strdup(target);
	node->size = len;
	return node->target ? 0 : -ENOMEM;
}

static int take_metadata(struct input *in, struct node *node, const struct untar_entry *e)
{
	if (e->uid < 0 || e->gid < 0 || e->uid > UINT32_MAX || e->gid > UINT32_MAX)
		return fail_entry(in, e->path, -EOVERFLOW, "owner or group has no number of 32 bits");
	node->uid = (uint32_t)e->uid;
	node->gid = (uint32_t)e->gid;
	node->mtime = e->has_mtime ? e->mtime : in->w->build_time;
	node->mtime_nsec = e->has_mtime ? e->mtime_nsec : 0;
	return take_xattrs(in, node, e);
}

static int take_inode(struct input *in, struct node *node, const struct untar_entry *e)
{
	int err;

	switch (e->mode & S_IFMT) {
	case S_IFREG: case S_IFDIR: case S_IFLNK: case S_IFCHR: case S_IFBLK: case S_IFIFO: case S_IFSOCK: break;
	default: return fail_entry(in, e->path, -EINVAL, "is of no type that images have");
	}
	if (!node->parent && !S_ISDIR(e->mode))
		return fail_entry(in, e->path, -EINVAL, "stands for the root, and is no folder");
	err = erofs_tree_reset(&in->tree, node, e->mode);
	if (!err)
		err = take_metadata(in, node, e);
	if (err)
		return err;
	if (S_ISLNK(e->mode))
		return take_target(in, node, e);
	if (S_ISCHR(e->mode) || S_ISBLK(e->mode))
		node->rdev = erofs_node_rdev(e->major, e->minor);
	return S_ISREG(e->mode) && e->size ? take_contents(in, node, e, e->path) : 0;
}

static int take_entry(struct input *in, const struct untar_entry *e)
{
	struct node *node;
	int err;

	if (!e->path || !*e->path)
		return erofs_diag_fail(in->w->diag, -EINVAL, AT_NOWHERE, "%s has an entry without a name",
				       in->name);
	if (e->warning)
		erofs_diag_warn_path(in->w->diag, e->path, "%s: %s", in->name, e->warning);
	err = erofs_tree_find(&in->tree, e->path, true, &node);
	if (err)
		return err;
	return e->hardlink ? take_link(in, node, e) : take_inode(in, node, e);
}

static int read_archive(struct input *in)
{
	struct untar_entry e;
	int r, err;

	while ((r = erofs_untar_next(in->untar, &e)) > 0) {
		err = take_entry(in, &e);
		if (err)
			return err;
	}
	if (r < 0)
		return fail_archive(in, r, NULL);
	if (in->is_index) {
		err = erofs_device_add(in->w, "", div_up_pow2(erofs_untar_bytes(in->untar), in->w->blkbits));
		if (err)
			return err;
	}
	if (!erofs_untar_drain(in->untar))
		erofs_diag_warn_path(in->w->diag, in->name, "ends without the mark for that: it may not be all");
	return 0;
}

/* ---- beginning and end ---- */

static bool is_cancelled(void *priv)
{
	return erofs_write_is_cancelled(priv);
}

static int open_archive(struct input *in, const char *path)
{
	struct erofs_diag *diag = in->w->diag;
	int err;

	if (strcmp(path, "-")) {
		in->name = path;
		in->fd = open(path, O_RDONLY | O_CLOEXEC);
		in->owned = in->fd >= 0;
		if (in->fd < 0)
			return erofs_diag_fail(diag, -errno, AT_NOWHERE, "cannot open %s", path);
	} else {
		in->name = "standard input";
		in->fd = STDIN_FILENO;
		if (isatty(in->fd))
			return erofs_diag_fail(diag, -EINVAL, AT_NOWHERE, "no tar archive comes from a terminal");
	}
	err = erofs_untar_open(in->fd, in->no_data, is_cancelled, in->w, &in->untar);
	if (err == -EOPNOTSUPP)
		erofs_diag_fail(diag, err, AT_NOWHERE, "tar archives need libarchive, which is not there");
	return err;
}

int erofs_input_tar(struct writer *w, const char *path, struct feed *ret)
{
	struct input *in = calloc(1, sizeof(*in));
	int err;

	if (!in)
		return -ENOMEM;
	in->w = w;
	in->fd = in->temp = -1;
	in->no_data = w->o->source_type == EROFS_WRITE_TAR_HEADERS;
	in->is_index = w->o->source_type == EROFS_WRITE_TAR_INDEX;
	*ret = (struct feed){ .ops = &ops, .priv = in };
	err = erofs_tree_init(&in->tree, w);
	if (!err)
		err = open_archive(in, path);
	if (!err)
		err = read_archive(in);
	if (err)
		return err;
	return erofs_tree_take(&in->tree, w->o->sort == EROFS_WRITE_SORT_NONE);
}
