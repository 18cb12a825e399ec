// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* One entry that is no directory: hard links first, then by type. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "extract/extract_priv.h"

#define SYMLINK_MAX 4095	/* bytes; longer ones were refused when the inode was loaded */

struct tree_dir *erofs_extract_target(struct extract *x, const struct walk_dir *dir)
{
	return dir ? ((struct extract_dir *)dir->priv)->target : &x->tree.root;
}

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- symlinks, devices, FIFOs, sockets ---- */

static int read_target(struct lane *lane, const struct erofs_inode *ino, char *buf)
{
	int err = erofs_lane_read(lane, ino, 0, buf, (size_t)ino->size);

	if (err)
		return err;
	buf[ino->size] = '\0';
	if (strlen(buf) != ino->size)
		return erofs_diag_damage(erofs_lane_diag(lane), SYMLINK_TARGET, AT(ino->nid, strlen(buf)),
					 "a NUL byte in the symlink's target");
	return 0;
}

/* Make it, once more if something was in the way that may go. @target: of a symlink. */
static int make_node(struct extract *x, int dir_fd, const char *name, const struct erofs_inode *ino,
		     const char *target)
{
	unsigned int tries;

	for (tries = 0; tries < 2; tries++) {
		int err = S_ISLNK(ino->mode) ? symlinkat(target, dir_fd, name) :
			  mknodat(dir_fd, name, (ino->mode & S_IFMT) | 0600,
				  makedev(ino->rdev_major, ino->rdev_minor));

		if (!err)
			return 0;
		if (errno != EEXIST)
			return -errno;
		err = erofs_tree_make_room(&x->tree, dir_fd, name);
		if (err)
			return err;
	}
	return -EEXIST;
}

static bool is_device(const struct erofs_inode *ino)
{
	return S_ISCHR(ino->mode) || S_ISBLK(ino->mode);
}

/* Return: 0 (also if a device was skipped), negative errno with *ret_what, NULL if it was reported. */
static int make_special(struct extract *x, struct lane *lane, struct walk_dir *dir, int dir_fd,
			const char *name, const struct erofs_inode *ino, const char **ret_what)
{
	struct restore_at at = { .fd = -1, .dir_fd = dir_fd, .name = name, .mode = 0600, .dir = dir,
				 .report_name = name };
	char target[SYMLINK_MAX + 1] = "";
	int err = S_ISLNK(ino->mode) ? read_target(lane, ino, target) : 0;

	*ret_what = NULL;
	if (err)
		return err;
	*ret_what = "cannot create";
	err = make_node(x, dir_fd, name, ino, target);
	if (err == -EPERM && is_device(ino) && !x->restore.privileged) {
		erofs_skips_add(&x->skips, SKIP_DEVICE, err, dir, name);
		return -ENODATA;
	}
	if (err)
		return err;
	err = erofs_restore(x, lane, &at, ino, ret_what);
	if (err)
		(void)unlinkat(dir_fd, name, 0);
	return err;
}

static int make_other(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
		       const struct erofs_inode *ino)
{
	struct tree_dir *target = erofs_extract_target(x, dir);
	const char *what = "cannot enter the folder of";
	int dir_fd, err = erofs_tree_pin(&x->tree, target, &dir_fd);

	if (!err) {
		err = make_special(x, lane, dir, dir_fd, name, ino, &what);
		erofs_tree_unpin(&x->tree, target);
	}
	if (err && err != -ENODATA)
		erofs_extract_fail(x, err, what ? dir : NULL, what ? name : NULL, what);
	return err;
}

int erofs_extract_make(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
		       const struct erofs_inode *ino)
{
	if (S_ISREG(ino->mode))
		return erofs_extract_contents(x, lane, dir, name, ino);
	return make_other(x, lane, dir, name, ino);
}

/* ---- hard links ---- */

static int link_pinned(struct extract *x, int from_fd, const char *from, int to_fd, const char *to)
{
	int err;

	if (!linkat(from_fd, from, to_fd, to, 0))
		return 0;
	if (errno != EEXIST)
		return -errno;
	err = erofs_tree_make_room(&x->tree, to_fd, to);
	if (err)
		return err;
	return linkat(from_fd, from, to_fd, to, 0) ? -errno : 0;
}

static int make_link(struct extract *x, const struct walk_dir *from_dir, const char *from,
		     const struct walk_dir *dir, const char *name)
{
	struct tree_dir *a = erofs_extract_target(x, from_dir), *b = erofs_extract_target(x, dir);
	int from_fd, to_fd, err = erofs_tree_pin(&x->tree, a, &from_fd);

	if (err)
		return err;
	err = erofs_tree_pin(&x->tree, b, &to_fd);
	if (!err) {
		err = link_pinned(x, from_fd, from, to_fd, name);
		erofs_tree_unpin(&x->tree, b);
	}
	erofs_tree_unpin(&x->tree, a);
	return err;
}

/* Can't be linked here, but copied (X4)? */
static bool may_copy(int err)
{
	return err == -EMLINK || err == -EPERM || err == -EXDEV || err == -EOPNOTSUPP || err == -ENOSYS;
}

/* Link to a name that is made; false: a copy is to be made instead. */
static bool link_name(struct extract *x, const struct walk_dir *from_dir, const char *from,
		      struct walk_dir *dir, const char *name)
{
	int err = make_link(x, from_dir, from, dir, name);

	if (!err) {
		count(&x->hard_links);
		return true;
	}
	if (!may_copy(err)) {
		erofs_extract_fail(x, err, dir, name, "cannot link");
		return true;
	}
	erofs_skips_add(&x->skips, SKIP_LINK, err, dir, name);
	return false;
}

static void make(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
		 const struct erofs_inode *ino)
{
	int r = erofs_extract_make(x, lane, dir, name, ino);

	if (r <= 0)
		erofs_extract_settle(x, lane, dir, name, ino, r);
}

/* A copy takes no part in the group: an inode of its own, which nothing else waits for. */
static void make_copy(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
		      const struct erofs_inode *ino)
{
	struct erofs_inode copy = *ino;

	copy.nlink = 1;
	make(x, lane, dir, name, &copy);
}

static void count_made(struct extract *x, struct lane *lane, const struct erofs_inode *ino, int err)
{
	if (!err && S_ISREG(ino->mode)) {
		count(&x->files);
		atomic_fetch_add_explicit(&x->bytes, ino->size, memory_order_relaxed);
	} else if (!err) {
		count(S_ISLNK(ino->mode) ? &x->symlinks : &x->specials);
	}
	erofs_lane_count(lane, 1, S_ISREG(ino->mode) && !erofs_extract_is_large(x, ino) ? ino->size : 0);
}

/* Link all names that waited to one that was made. */
static void link_waiting(struct extract *x, struct lane *lane, const struct walk_dir *dir, const char *name,
			 const struct erofs_inode *ino)
{
	struct link_name *waiting;

	while ((waiting = erofs_linktab_next(&x->links, ino->nid))) {
		if (!link_name(x, dir, name, waiting->dir, waiting->name))
			make_copy(x, lane, waiting->dir, waiting->name, ino);
		erofs_linktab_linked(&x->links, &x->walk, lane, ino->nid);
		erofs_linktab_free_name(&x->walk, lane, waiting);
	}
}

/* The next name's turn, after one could not be made. Damaged contents are so under any name. */
static int make_again(struct extract *x, struct lane *lane, const struct link_name *name,
		      const struct erofs_inode *ino, int err)
{
	if (err != -EUCLEAN && err != -EOPNOTSUPP)
		return erofs_extract_make(x, lane, name->dir, name->name, ino);
	erofs_extract_fail(x, err, NULL, NULL, NULL);
	return err;
}

void erofs_extract_settle(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
			  const struct erofs_inode *ino, int err)
{
	struct link_name *own = NULL, *next;
	int noted;

	for (;;) {
		count_made(x, lane, ino, err);
		if (ino->nlink <= 1)
			return;
		noted = erofs_linktab_made(&x->links, &x->walk, lane, dir, name, strlen(name), ino->nid, !err);
		if (noted)
			erofs_extract_fail(x, noted, dir, name, "cannot note a hard link");
		if (!err)
			break;
		next = erofs_linktab_next(&x->links, ino->nid);
		erofs_linktab_free_name(&x->walk, lane, own);
		own = next;
		if (!own)
			return;
		err = make_again(x, lane, own, ino, err);
		if (err > 0) {
			erofs_linktab_free_name(&x->walk, lane, own);
			return;
		}
		dir = own->dir;
		name = own->name;
	}
	link_waiting(x, lane, dir, name, ino);
	erofs_linktab_free_name(&x->walk, lane, own);
}

/* Was this name made by an earlier walk of this run? */
static bool is_made(struct extract *x, const struct walk_dir *dir, const char *name)
{
	struct tree_dir *target = erofs_extract_target(x, dir);
	bool made = false;
	int dir_fd;

	if (!erofs_tree_pin(&x->tree, target, &dir_fd)) {
		made = erofs_tree_has_made(&x->tree, dir_fd, name);
		erofs_tree_unpin(&x->tree, target);
	}
	return made;
}

static void make_linked(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
			const struct erofs_inode *ino)
{
	const struct link_name *first = NULL;
	int r;

	if (x->again && is_made(x, dir, name))
		return;
	r = erofs_linktab_claim(&x->links, dir, name, strlen(name), ino, &first);
	switch (r) {
	case LINK_MAKE:
		make(x, lane, dir, name, ino);
		break;
	case LINK_TO:
		if (!link_name(x, first->dir, first->name, dir, name))
			make_copy(x, lane, dir, name, ino);
		erofs_lane_count(lane, 1, 0);
		erofs_linktab_linked(&x->links, &x->walk, lane, ino->nid);
		break;
	case LINK_WAIT:
	case LINK_LATER:
		break;
	default:
		erofs_extract_fail(x, r, dir, name, "cannot note another hard link (see --max-memory)");
		break;
	}
}

void erofs_extract_entry(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de,
			 const struct erofs_inode *ino)
{
	struct extract *x = w->arg;
	char name[256];

	memcpy(name, de->name, de->len);
	name[de->len] = '\0';
	if (dir->depth < x->opt->strip_components)
		return;
	if (erofs_extract_need_dir(x, dir)) {
		if (!x->again)
			erofs_extract_fail(x, -ENOENT, NULL, NULL, NULL);
		return;
	}
	if (ino->nlink > 1)
		make_linked(x, lane, dir, name, ino);
	else if (!x->again)
		make(x, lane, dir, name, ino);
}
