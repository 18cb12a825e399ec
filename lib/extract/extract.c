// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The run: target, walk, directories, result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "extract/extract_priv.h"

void erofs_extract_fail(struct extract *x, int err, const struct walk_dir *dir, const char *name,
			const char *what)
{
	int none = 0;

	atomic_fetch_add_explicit(&x->failed, 1, memory_order_relaxed);
	if (err == -ECANCELED)
		return;
	/* one name twice in the image is damage, and reported; on a target that folds case it is not */
	if (err == -ENOTUNIQ && erofs_diag_has_nid(x->diag, (name ? dir : dir->up)->ino.nid))
		what = NULL;
	if (what) {
		auto_free char *path = erofs_walk_path(dir, name, name ? strlen(name) : 0);

		erofs_diag_fail_path(x->diag, err, path ? path : "?", "%s", what);
		atomic_compare_exchange_strong_explicit(&x->err, &none, err, memory_order_relaxed,
							memory_order_relaxed);
	}
	if (x->opt->fail_fast)
		erofs_job_cancel(x->job);
}

static void note_broken(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de)
{
	(void)lane;
	(void)dir;
	(void)de;
	if (!((struct extract *)w->arg)->again)
		erofs_extract_fail(w->arg, -EUCLEAN, NULL, NULL, NULL);
}

/* ---- the run ---- */

/* "/" would be overwritten by a slip of the keyboard. */
static int check_target(struct extract *x)
{
	struct stat root, st;

	if (x->opt->force || stat(x->opt->target, &st) || stat("/", &root))
		return 0;
	if (st.st_dev != root.st_dev || st.st_ino != root.st_ino)
		return 0;
	erofs_diag_fail(x->diag, -EINVAL, AT_NOWHERE, "the target is the root directory: use --force");
	return -EINVAL;
}

static int report_target(struct extract *x, int err)
{
	return erofs_diag_fail(x->diag, err, AT_NOWHERE, "cannot use %s as the target", x->opt->target);
}

static int extract_tree(struct extract *x, const struct erofs_inode *start)
{
	static const struct walk_ops ops = { .enter = erofs_extract_enter_dir, .entry = erofs_extract_entry,
					     .broken = note_broken, .leave = erofs_extract_leave_dir };
	static const struct walk_ops some = { .enter = erofs_extract_enter_dir, .entry = erofs_extract_entry,
					      .broken = note_broken, .leave = erofs_extract_leave_dir,
					      .wanted = erofs_extract_wants };
	struct lane *lane = erofs_job_lane(x->job, 0);
	int err = erofs_tree_open(&x->tree, x->opt->target, x->opt->mkdir_parents, x->opt->overwrite,
				  erofs_job_active_lanes(x->job));

	if (err) {
		erofs_tree_close(&x->tree);
		return report_target(x, err);
	}
	erofs_linktab_init(&x->links, erofs_job_state_bytes(x->job));
	pthread_mutex_init(&x->dirs_lock, NULL);
	x->walk.ops = x->opt->select || x->opt->strip_components ? &some : &ops;
	do {
		err = erofs_walk_run(&x->walk, start);
		x->again = true;
	} while (!err && erofs_linktab_advance(&x->links, &x->walk, lane));
	erofs_linktab_fini(&x->links, &x->walk, lane);
	pthread_mutex_destroy(&x->dirs_lock);
	/* no directory of the image says what the target folder is to be like */
	if (x->opt->strip_components && x->tree.fresh)
		(void)fchmod(x->tree.root.fd, 0777 & ~x->restore.umask);
	erofs_tree_close(&x->tree);
	return err;
}

static int extract_file(struct extract *x, const struct erofs_inode *start)
{
	struct lane *lane = erofs_job_lane(x->job, 0);
	struct erofs_inode ino = *start;
	const char *name;
	int err = erofs_tree_open_parent(&x->tree, x->opt->target, x->opt->mkdir_parents, x->opt->overwrite,
					 &name);

	if (err) {
		erofs_tree_close(&x->tree);
		return report_target(x, err);
	}
	ino.nlink = 1;		/* its other names are not made */
	err = erofs_extract_make(x, lane, NULL, name, &ino);
	if (err <= 0)
		erofs_extract_settle(x, lane, NULL, name, &ino, err);
	erofs_job_wait(x->job);
	erofs_tree_close(&x->tree);
	return erofs_job_is_cancelled(x->job) ? -ECANCELED : 0;
}

static int run_extract(struct extract *x)
{
	uint64_t nid = x->opt->has_nid ? x->opt->nid : x->img->super->info.root_nid;
	struct erofs_inode start;
	int err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(x->job, 0)), nid, &start);

	if (!err)
		err = check_target(x);
	if (err)
		return err;
	erofs_restore_init(&x->restore, x->opt);
	x->walk = (struct walk){ .job = x->job, .diag = x->diag, .arg = x, .path = true };
	return S_ISDIR(start.mode) ? extract_tree(x, &start) : extract_file(x, &start);
}

static void sum_up(const struct extract *x, uint64_t skipped, struct erofs_extract_result *ret)
{
	ret->files = atomic_load(&x->files);
	ret->directories = atomic_load(&x->directories);
	ret->symlinks = atomic_load(&x->symlinks);
	ret->hard_links = atomic_load(&x->hard_links);
	ret->specials = atomic_load(&x->specials);
	ret->bytes = atomic_load(&x->bytes);
	ret->skipped = skipped;
	ret->failed = atomic_load(&x->failed);
	ret->damaged = atomic_load(&x->damaged);
}

/* The first of: what ended the run, target failures, damage, skips with strict. */
static int choose_result(const struct extract *x, int err, uint64_t damaged_before, uint64_t skipped)
{
	int target = atomic_load(&x->err);

	if (err && !(err == -ECANCELED && x->opt->fail_fast && atomic_load(&x->failed)))
		return err;
	if (target)
		return target;
	if (x->diag && erofs_diag_count(x->diag, EROFS_SEV_CORRUPT) > damaged_before)
		return -EUCLEAN;
	if (atomic_load(&x->failed) || atomic_load(&x->damaged))
		return -EIO;
	return skipped && x->opt->strict ? -EPERM : err;
}

int erofs_extract(struct erofs_image *img, struct erofs_engine *eng,
		  const struct erofs_extract_options *options, struct erofs_diag *diag,
		  struct erofs_extract_result *ret_result)
{
	struct extract x = { .img = img, .diag = diag, .opt = options };
	uint64_t skipped, before = diag ? erofs_diag_count(diag, EROFS_SEV_CORRUPT) : 0;
	int err;

	if (!options || !options->target || !*options->target)
		return -EINVAL;
	err = options->salvage ? erofs_diag_filter_new(diag, NULL, &x.quiet) : 0;
	if (!err)
		err = erofs_job_begin(eng, img, diag, &x.job);
	if (err) {
		erofs_diag_free(x.quiet);
		return err;
	}
	erofs_skips_init(&x.skips);
	err = run_extract(&x);
	erofs_job_end(x.job);
	erofs_diag_free(x.quiet);
	if (err == -ENOMEM)
		erofs_diag_fail(diag, err, AT_NOWHERE, "the extraction is not complete");
	skipped = erofs_skips_report(&x.skips, diag, options->strict);
	erofs_skips_fini(&x.skips);
	if (ret_result)
		sum_up(&x, skipped, ret_result);
	return choose_result(&x, err, before, skipped);
}
