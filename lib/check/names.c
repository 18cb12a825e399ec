// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Findings know nids; people know paths: a walk that tells one the other. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "check/check_priv.h"

static void name_nid(struct walk *w, const struct walk_dir *dir, const struct dirent_view *de, uint64_t nid)
{
	auto_free char *path = NULL;

	if (!erofs_diag_has_nid(w->diag, nid))
		return;
	path = erofs_walk_path(dir, de ? de->name : NULL, de ? de->len : 0);
	if (path)
		erofs_diag_name(w->diag, nid, path);
}

static int name_dir(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	(void)lane;
	name_nid(w, dir, NULL, dir->ino.nid);
	return 0;
}

static void name_entry(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de,
		       const struct erofs_inode *ino)
{
	(void)lane;
	name_nid(w, dir, de, ino->nid);
}

static void name_broken(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de)
{
	(void)lane;
	name_nid(w, dir, de, de->nid);
}

int erofs_name_findings(struct erofs_image *img, struct erofs_engine *eng, struct erofs_diag *diag,
			uint64_t start_nid)
{
	static const struct walk_ops ops = { .enter = name_dir, .entry = name_entry, .broken = name_broken };
	struct walk w = { .diag = diag, .ops = &ops };
	const struct erofs_super_info *info = &img->super->info;
	struct erofs_inode start;
	int err;

	if (!erofs_diag_wants_names(diag))
		return 0;
	if (info->packed_nid)
		erofs_diag_name(diag, info->packed_nid, "(packed file)");
	if (info->metabox_nid)
		erofs_diag_name(diag, info->metabox_nid, "(metabox file)");
	/* also after a cancel: the findings that there are want names, and this decodes no data */
	err = erofs_job_begin_late(eng, img, diag, &w.job);
	if (err)
		return err;
	err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(w.job, 0)), start_nid, &start);
	if (!err && S_ISDIR(start.mode))
		err = erofs_walk_run(&w, &start);
	else if (!err)
		erofs_diag_name(diag, start_nid, "/");
	erofs_job_end(w.job);
	return err;
}
