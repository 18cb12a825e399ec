// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Directories of the tree: made on the way down or when first needed, finished when all below is done. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "extract/extract_priv.h"
#include "walk/select_priv.h"

static bool is_stripped(const struct extract *x, const struct walk_dir *dir)
{
	return dir->depth <= x->opt->strip_components;
}

/* ---- what is meant ---- */

static enum select_verdict judge(const struct extract *x, const struct walk_dir *up, const char *name, size_t len)
{
	auto_free char *path = erofs_walk_path(up, name, len);

	/* without memory nothing is refused: what is too much is better than what is missing */
	return path ? erofs_select_match(x->opt->select, path + 1, strlen(path + 1),
					 ((struct extract_dir *)up->priv)->selected) :
		      SELECT_YES;
}

bool erofs_extract_wants(struct walk *w, struct walk_dir *dir, const struct dirent_view *de)
{
	struct extract *x = w->arg;

	/* its name would be gone; of a directory, what is below it is still there */
	if (dir->depth < x->opt->strip_components && de->type && de->type != DIRENT_DIR)
		return false;
	return !x->opt->select || erofs_select_may_be(judge(x, dir, de->name, de->len), de->type);
}

/* ---- making ---- */

/* A directory whose parents are made. */
static int make_dir(struct extract *x, struct walk_dir *dir)
{
	struct extract_dir *d = dir->priv;
	int err = x->again ? erofs_tree_enter(&x->tree, erofs_extract_target(x, dir->up), dir->name, &d->own) :
			     erofs_tree_mkdir(&x->tree, erofs_extract_target(x, dir->up), dir->name, &d->own);

	d->target = &d->own;
	if (err && !x->again)	/* else the first walk said why it is not there */
		erofs_extract_fail(x, err, dir, NULL, "cannot create the directory");
	atomic_store_explicit(&d->made, err ? err : 1, memory_order_release);
	return err;
}

static int get_made(const struct walk_dir *dir)
{
	return atomic_load_explicit(&((struct extract_dir *)dir->priv)->made, memory_order_acquire);
}

/* The outermost directory on the way down to @dir that is not made; NULL: all are. */
static struct walk_dir *next_to_make(struct walk_dir *dir)
{
	struct walk_dir *next = NULL;

	for (; !get_made(dir); dir = dir->up)
		next = dir;
	return next;
}

int erofs_extract_need_dir(struct extract *x, struct walk_dir *dir)
{
	struct walk_dir *next;
	int made = get_made(dir);

	if (made)
		return made < 0 ? made : 0;
	pthread_mutex_lock(&x->dirs_lock);
	while ((next = next_to_make(dir))) {
		int up = get_made(next->up);

		if (up < 0)
			atomic_store_explicit(&((struct extract_dir *)next->priv)->made, up, memory_order_release);
		else
			(void)make_dir(x, next);
	}
	made = get_made(dir);
	pthread_mutex_unlock(&x->dirs_lock);
	return made < 0 ? made : 0;
}

int erofs_extract_enter_dir(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	struct extract *x = w->arg;
	struct extract_dir *d = calloc(1, sizeof(*d));
	int err = 0;

	(void)lane;
	if (!d) {
		erofs_extract_fail(x, -ENOMEM, dir, NULL, "cannot create the directory");
		return -ENOMEM;
	}
	dir->priv = d;
	d->selected = !x->opt->select ||
		      (dir->up ? judge(x, dir->up, dir->name, dir->len) :
				 erofs_select_match(x->opt->select, "", 0, false)) == SELECT_YES;
	if (is_stripped(x, dir)) {
		d->target = &x->tree.root;
		atomic_store_explicit(&d->made, 1, memory_order_release);
		if (x->again && !dir->up)
			err = erofs_tree_enter(&x->tree, NULL, NULL, d->target);
	} else if (d->selected) {
		err = erofs_extract_need_dir(x, dir->up);
		if (!err)
			err = make_dir(x, dir);
	}
	if (!err)
		return 0;
	free(d);
	dir->priv = NULL;
	return x->again ? -ENODATA : err;
}

/* ---- leaving ---- */

/* Owner, mode and times, which would not have stayed before. */
static void finish_dir(struct extract *x, struct lane *lane, struct walk_dir *dir)
{
	struct tree_dir *target = erofs_extract_target(x, dir);
	struct restore_at at = { .mode = 0700, .fresh = target->fresh, .dir = dir };
	const char *what = "cannot enter the directory";
	int err = erofs_tree_pin(&x->tree, target, &at.fd);

	if (!err) {
		err = erofs_restore(x, lane, &at, &dir->ino, &what);
		erofs_tree_unpin(&x->tree, target);
	}
	if (err)
		erofs_extract_fail(x, err, dir, NULL, what);
	else if (!x->again)
		atomic_fetch_add_explicit(&x->directories, 1, memory_order_relaxed);
	erofs_lane_count(lane, !x->again, 0);
}

void erofs_extract_leave_dir(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	struct extract *x = w->arg;
	struct extract_dir *d = dir->priv;

	/* the target folder is the start only if nothing was stripped */
	if (get_made(dir) > 0 && (!is_stripped(x, dir) || !x->opt->strip_components))
		finish_dir(x, lane, dir);
	if (get_made(dir) > 0 && !is_stripped(x, dir))
		erofs_tree_forget(&x->tree, &d->own);
	dir->priv = NULL;
	free(d);
}
