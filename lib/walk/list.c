// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* erofs_list(): names in path order on the calling thread, without loading inodes that nobody asks for. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/list.h>

#include "base/cleanup.h"
#include "walk/seen.h"
#include "walk/select_priv.h"
#include "walk/walk_priv.h"

#define LIST_MAX_DEPTH 2048	/* what PATH_MAX allows; a level keeps up to 64 KiB of its directory */
#define MAX_TARGET 4096		/* PATH_MAX; format.md has no longer symlinks */

struct list_level {
	struct erofs_inode *ino;
	struct erofs_dir *dir;
	size_t path_len;	/* of the directory's path, with its slash */
	bool disordered;	/* reported */
	bool selected;		/* with all below it */
	size_t prev_len;	/* of the name before, 0: none yet */
	char prev[256];
};

struct list {
	struct erofs_image *img;
	struct erofs_engine *eng;
	struct erofs_diag *diag;
	const struct erofs_list_options *o;
	erofs_list_fn fn;
	void *priv;
	struct list_level *levels;
	size_t depth, room;
	char *path;
	size_t path_room;
	struct seen seen;
	char *target;		/* MAX_TARGET bytes if inodes are asked for */
	int err;		/* the first error; the listing goes on beside it */
};

static void pop_level(struct list *l)
{
	struct list_level *level = &l->levels[--l->depth];

	erofs_dir_close(level->dir);
	erofs_inode_close(level->ino);
}

static void end_list(struct list *l)
{
	while (l->depth)
		pop_level(l);
	free(l->levels);
	free(l->path);
	free(l->target);
	erofs_seen_fini(&l->seen);
}

static void note(struct list *l, int err)
{
	if (err && !l->err)
		l->err = err;
}

/* Takes @ino, also if it fails. */
static int push_level(struct list *l, struct erofs_inode *ino, size_t path_len, bool selected)
{
	struct list_level level = { .ino = ino, .path_len = path_len, .selected = selected };
	int err;

	if (l->depth == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct list_level *grown = realloc(l->levels, room * sizeof(*grown));

		if (!grown) {
			erofs_inode_close(ino);
			return -ENOMEM;
		}
		l->levels = grown;
		l->room = room;
	}
	err = erofs_dir_open(ino, l->diag, &level.dir);
	if (err) {
		erofs_inode_close(ino);
		return err;
	}
	l->levels[l->depth++] = level;
	return 0;
}

static int set_path(struct list *l, size_t at, const struct erofs_entry *de)
{
	/* room for a slash as well */
	if (at + de->len + 2 > l->path_room) {
		size_t room = 2 * (at + de->len + 2);
		char *grown = realloc(l->path, room);

		if (!grown)
			return -ENOMEM;
		l->path = grown;
		l->path_room = room;
	}
	memcpy(l->path + at, de->name, de->len);
	l->path[at + de->len] = '\0';
	return 0;
}

/* Enter the directory at l->path unless it was before. Takes @ino. 0, -ENOMEM. */
static int enter(struct list *l, struct erofs_inode *ino, size_t path_len, bool selected)
{
	uint64_t parent = l->levels[l->depth - 1].ino->nid, nid = ino->nid;
	int r = erofs_seen_add(&l->seen, nid);

	if (r > 0 && l->depth < LIST_MAX_DEPTH) {
		l->path[path_len] = '/';
		return push_level(l, ino, path_len + 1, selected);
	}
	erofs_inode_close(ino);
	if (r < 0)
		return r;
	note(l, r ? erofs_diag_damage(l->diag, DIR_DEPTH, AT(parent, 0),
				      "directories are nested deeper than %d levels", LIST_MAX_DEPTH) :
		    erofs_diag_damage(l->diag, DIR_PARENTS, AT(parent, 0),
				      "there is a second name of the directory nid %" PRIu64, nid));
	return 0;
}

static int read_target(struct list *l, const struct erofs_inode *ino, struct erofs_name *name)
{
	ssize_t n = erofs_pread(ino, l->diag, l->target, MAX_TARGET, 0);

	if (n < 0)
		return (int)n;
	name->target = l->target;
	name->target_len = (size_t)n;
	return 0;
}

/* Hand out one name, and enter it if it is a directory. */
static int take(struct list *l, const struct erofs_entry *de)
{
	size_t at = l->levels[l->depth - 1].path_len, len = at + de->len;
	struct erofs_name name = { .len = len, .nid = de->nid, .type = de->type };
	struct erofs_inode *ino = NULL;
	bool below = !l->o->one_level && (de->type == DIRENT_DIR || de->type == 0);
	enum select_verdict verdict;
	struct erofs_stat st;
	int r = set_path(l, at, de);

	if (r)
		return r;
	name.path = l->path;
	verdict = erofs_select_match(l->o->select, l->path, len, l->levels[l->depth - 1].selected);
	if (verdict == SELECT_NO || !erofs_select_may_be(verdict, de->type))
		return 0;
	if (below || l->o->stat) {
		r = erofs_inode_open(l->img, de->nid, l->diag, &ino);
		if (r == -ENOMEM)
			return r;
		note(l, r);
	}
	if (ino && l->o->stat && verdict == SELECT_YES) {
		erofs_inode_stat(ino, &st);
		name.stat = &st;
		if (S_ISLNK(st.mode))
			note(l, read_target(l, ino, &name));
	}
	r = verdict == SELECT_YES ? l->fn(l->priv, &name) : 0;
	if (!r && below && ino && S_ISDIR(ino->mode))
		return enter(l, ino, len, verdict == SELECT_YES);
	erofs_inode_close(ino);
	return r;
}

static bool is_dots(const struct erofs_entry *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

/* Lookups search by order: a name out of it may not be found by others, or stand there twice. */
static void check_order(struct list *l, struct list_level *level, const struct erofs_entry *de)
{
	size_t common = de->len < level->prev_len ? de->len : level->prev_len;
	int cmp = memcmp(level->prev, de->name, common);

	if (level->prev_len && !level->disordered && (cmp > 0 || (!cmp && level->prev_len >= de->len))) {
		level->disordered = true;
		note(l, erofs_diag_damage(l->diag, DIRENT_ORDER, AT(level->ino->nid, 0),
					  "names are not in ascending order"));
	}
	if (de->len <= sizeof(level->prev)) {
		memcpy(level->prev, de->name, de->len);
		level->prev_len = de->len;
	}
}

static int step(struct list *l)
{
	struct list_level *level = &l->levels[l->depth - 1];
	struct erofs_entry de;
	int r = erofs_dir_next(level->dir, &de);

	if (r > 0 && is_dots(&de))
		return 0;
	if (r > 0) {
		check_order(l, level, &de);
		return take(l, &de);
	}
	note(l, r);
	pop_level(l);
	if (l->eng && erofs_engine_is_cancelled(l->eng))
		return -ECANCELED;
	return r == -ENOMEM ? r : 0;
}

int erofs_list(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_list_options *options,
	       erofs_list_fn fn, void *priv, struct erofs_diag *diag)
{
	auto_call(end_list) struct list l = { .img = img, .eng = eng, .diag = diag, .o = options, .fn = fn,
					      .priv = priv };
	struct erofs_inode *ino;
	int r;

	if (options->size < sizeof(*options))
		return -EINVAL;
	l.target = options->stat ? malloc(MAX_TARGET) : NULL;
	if (options->stat && !l.target)
		return -ENOMEM;
	r = erofs_inode_open(img, options->has_nid ? options->nid : img->super->info.root_nid, diag, &ino);
	if (r)
		return r;
	r = erofs_seen_add(&l.seen, ino->nid);
	if (r < 0) {
		erofs_inode_close(ino);
		return r;
	}
	r = push_level(&l, ino, 0, erofs_select_match(options->select, "", 0, false) == SELECT_YES);
	while (!r && l.depth)
		r = step(&l);
	return r ? r : l.err;
}
