// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* erofs_list() and erofs_path_of(): names in path order, without loading inodes that nobody asks for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/list.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "walk/sorted_priv.h"

#define MAX_TARGET 4096		/* PATH_MAX; format.md has no longer symlinks */

struct list {
	struct job *job;
	struct erofs_inode start;
	struct sorted *names;
	char *target;		/* MAX_TARGET bytes if inodes are asked for */
	bool damaged;		/* beside what names->damaged knows */
};

static void end_list(struct list *l)
{
	erofs_sorted_free(l->names);
	free(l->target);
	if (l->job)
		erofs_job_end(l->job);
}

static int begin_list(struct list *l, struct erofs_image *img, struct erofs_engine *eng, uint64_t nid,
		      unsigned int flags, const struct erofs_select *sel, struct erofs_diag *diag)
{
	int err = erofs_job_begin(eng, img, diag, &l->job);

	if (!err)
		err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(l->job, 0)), nid, &l->start);
	return err ? err : erofs_sorted_new(l->job, &l->start, sel, flags, diag, &l->names);
}

/* ---- names ---- */

static void read_target(struct list *l, const struct erofs_inode *ino, struct erofs_name *name)
{
	size_t len = (size_t)min_u64(ino->size, MAX_TARGET);

	if (erofs_lane_read(erofs_job_lane(l->job, 0), ino, 0, l->target, len)) {
		l->damaged = true;
		return;
	}
	name->target = l->target;
	name->target_len = len;
}

static int hand_out(struct list *l, const struct sorted_entry *e, erofs_list_fn fn, void *priv)
{
	struct erofs_name name = { .path = e->path, .len = e->len, .nid = e->nid, .type = e->type };
	struct erofs_stat st;

	if (l->target && e->has_ino) {
		erofs_inode_stat(&e->ino, &st);
		name.stat = &st;
		if (S_ISLNK(st.mode))
			read_target(l, &e->ino, &name);
	}
	return fn(priv, &name);
}

int erofs_list(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_list_options *options,
	       erofs_list_fn fn, void *priv, struct erofs_diag *diag)
{
	unsigned int flags = SORTED_NAMES | (options->one_level ? SORTED_ONE_LEVEL : 0) |
			     (options->stat ? 0 : SORTED_NO_INODES);
	auto_call(end_list) struct list l = { 0 };
	const struct sorted_entry *e;
	int r;

	if (options->size < sizeof(*options))
		return -EINVAL;
	l.target = options->stat ? malloc(MAX_TARGET) : NULL;
	if (options->stat && !l.target)
		return -ENOMEM;
	r = begin_list(&l, img, eng, options->has_nid ? options->nid : img->super->info.root_nid, flags,
		       options->select, diag);
	if (r)
		return r;
	if (!S_ISDIR(l.start.mode))
		return -ENOTDIR;
	while ((r = erofs_sorted_next(l.names, &e)) > 0) {
		r = e->len && e->verdict == SELECT_YES ? hand_out(&l, e, fn, priv) : 0;
		if (r)
			return r;
	}
	return r ? r : l.damaged || erofs_sorted_damaged(l.names) ? -EUCLEAN : 0;
}

/* ---- nid to path ---- */

int erofs_path_of(struct erofs_image *img, struct erofs_engine *eng, uint64_t nid, struct erofs_diag *diag,
		  char **ret_path)
{
	auto_call(end_list) struct list l = { 0 };
	const struct sorted_entry *e;
	char *path;
	int r = begin_list(&l, img, eng, img->super->info.root_nid, SORTED_NAMES | SORTED_NO_INODES,
			   NULL, diag);

	while (!r && (r = erofs_sorted_next(l.names, &e)) > 0)
		r = e->nid == nid;
	if (r < 0)
		return r;
	if (!r)
		return erofs_sorted_damaged(l.names) ? -EUCLEAN : -ENOENT;
	path = malloc(e->len + 2);
	if (!path)
		return -ENOMEM;
	path[0] = '/';
	memcpy(path + 1, e->path, e->len + 1);
	*ret_path = path;
	return 0;
}
