// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Contents of a regular file. Small ones are decoded first, so that nothing is made if that fails.
 * Large ones are cut into ranges: whoever meets the file starts with the first, and workers with
 * nothing to do join; the last one to finish gives the file its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "extract/extract_priv.h"

/*
 * A range is 4 MiB: at 1.4 GB/s (lz4 to tmpfs, one core) 3 ms, so that two cores end a file of 64 MiB
 * within 5 per cent of each other; setting up a range (a seek in the map) costs about 10 us.
 */
#define WRITE_RANGE (UINT64_C(4) << 20)
#define ZERO_BLOCK 4096		/* what --sparse punches */

/* ---- writing ---- */

static bool is_zero(const uint8_t *data, size_t len)
{
	return !len || (!data[0] && !memcmp(data, data + 1, len - 1));
}

/* Write, leaving out blocks of zeros. */
static int write_sparse(int fd, const uint8_t *data, size_t len, uint64_t off)
{
	size_t at = 0, end;
	int err;

	while (at < len) {
		for (end = at; end < len; end += min_u64(len - end, ZERO_BLOCK))
			if (is_zero(data + end, (size_t)min_u64(len - end, ZERO_BLOCK)))
				break;
		err = erofs_fdio_pwrite(fd, data + at, end - at, off + at);
		if (err)
			return err;
		at = end;
		while (at < len && is_zero(data + at, (size_t)min_u64(len - at, ZERO_BLOCK)))
			at += min_u64(len - at, ZERO_BLOCK);
	}
	return 0;
}

int erofs_extract_write_run(const struct extract *x, int fd, const struct run *run)
{
	if (!run->data)
		return 0;
	if (x->opt->sparse)
		return write_sparse(fd, run->data, (size_t)run->len, run->la);
	return erofs_fdio_pwrite(fd, run->data, (size_t)run->len, run->la);
}

/* What is left to be done with a written file before it may have its name or keep it. */
static int finish(struct extract *x, struct lane *lane, const struct restore_at *at,
		  const struct erofs_inode *ino, bool set_size, const char **ret_what)
{
	int err = 0;

	*ret_what = "cannot write";
	if (set_size && ftruncate(at->fd, (off_t)ino->size))
		err = -errno;
	if (!err)
		err = erofs_restore(x, lane, at, ino, ret_what);
	if (!err && x->restore.fsync && fsync(at->fd)) {
		*ret_what = "cannot flush";
		err = -errno;
	}
	return err;
}

static int close_checked(int *fd)
{
	int done = steal_fd(fd);

	return close(done) ? -errno : 0;
}

/* ---- small files ---- */

/* Write all runs behind the first, which is decoded. Return: 0, -EUCLEAN… reported, or *ret_what. */
static int write_runs(struct extract *x, struct stream *s, struct run *run, int fd, bool *ret_tail_hole,
		      const char **ret_what)
{
	int err, r = 1;

	while (r > 0) {
		*ret_what = "cannot write";
		err = erofs_extract_write_run(x, fd, run);
		if (err)
			return err;
		*ret_tail_hole = !run->data || x->opt->sparse;
		*ret_what = NULL;
		if (erofs_job_is_cancelled(x->job))
			return -ECANCELED;
		r = erofs_stream_next(s, run);
	}
	return r;
}

static int write_small(struct extract *x, struct lane *lane, struct walk_dir *dir, int dir_fd,
		       const char *name, const struct erofs_inode *ino, const char **ret_what)
{
	struct tree_dir *target = erofs_extract_target(x, dir);
	struct restore_at at = { .dir = dir, .report_name = name, .fresh = target->fresh };
	struct erofs_diag *diag = erofs_extract_hush(x, lane);
	auto_close int fd = -1;
	bool tail_hole = false;
	struct stream s;
	struct run run;
	int err, r = 0;

	*ret_what = NULL;
	if (ino->size) {
		err = erofs_stream_begin(&s, lane, ino, 0, ino->size);
		r = err ? err : erofs_stream_next(&s, &run);
	}
	if (r < 0 && !erofs_extract_may_salvage(x, r)) {
		erofs_lane_divert(lane, diag);
		return r;
	}
	*ret_what = "cannot create";
	at.mode = erofs_restore_first_mode(&x->restore, ino, target->fresh);
	fd = erofs_tree_create(&x->tree, dir_fd, name, at.mode);
	at.fd = fd;
	err = fd < 0 ? fd : r;
	if (r < 0 && fd >= 0)
		*ret_what = NULL;
	if (fd >= 0 && r > 0)
		err = write_runs(x, &s, &run, fd, &tail_hole, ret_what);
	erofs_lane_divert(lane, diag);
	if (fd < 0)
		return fd;
	if (err && !*ret_what && erofs_extract_may_salvage(x, err)) {
		tail_hole = false;
		at.mode = 0600;		/* to be marked, it must be writable */
		err = fchmod(fd, at.mode) ? -errno : erofs_extract_salvage(x, lane, ino, fd, ret_what);
	}
	if (!err)
		err = finish(x, lane, &at, ino, tail_hole, ret_what);
	if (!err) {
		*ret_what = "cannot write";
		err = close_checked(&fd);
	}
	if (err)
		(void)unlinkat(dir_fd, name, 0);
	return err;
}

/* ---- large files ---- */

struct large {
	struct extract *x;		/* C */
	struct walk_dir *dir;		/* C  kept open */
	struct erofs_inode ino;		/* C */
	struct tree_part part;		/* C  while ranges are written */
	int dir_fd;			/* C  pinned */
	uint64_t nranges;		/* C */
	_Atomic uint64_t next;		/* A  relaxed: range to be taken */
	atomic_uint users;		/* A  acq_rel: workers on it; the last one finishes */
	atomic_uint helpers;		/* A  relaxed: asked for so far */
	atomic_int err;			/* A  relaxed until finished: the first error */
	const char *_Atomic what;	/* A  relaxed until finished: what failed, NULL: reported */
	char name[];			/* C */
};	/* C constant once created  A atomic, order stated */

struct help {
	struct work work;
	struct large *large;
};

static void note_error(struct large *l, int err, const char *what)
{
	int none = 0;

	if (atomic_compare_exchange_strong_explicit(&l->err, &none, err, memory_order_relaxed,
						    memory_order_relaxed))
		atomic_store_explicit(&l->what, what, memory_order_relaxed);
}

static void write_range(struct large *l, struct lane *lane, uint64_t from, uint64_t to)
{
	struct erofs_diag *diag = erofs_extract_hush(l->x, lane);
	struct stream s;
	struct run run;
	int r = erofs_stream_begin(&s, lane, &l->ino, from, to);

	while (!r && (r = erofs_stream_next(&s, &run)) > 0) {
		r = erofs_extract_write_run(l->x, l->part.fd, &run);
		if (r)
			note_error(l, r, "cannot write");
		else if (erofs_job_is_cancelled(l->x->job))
			r = -ECANCELED;
	}
	erofs_lane_divert(lane, diag);
	if (r < 0)
		note_error(l, r, NULL);
	else
		erofs_lane_count(lane, 0, to - from);
}

static int finish_large(struct large *l, struct lane *lane, const char **ret_what)
{
	struct extract *x = l->x;
	struct restore_at at = { .fd = l->part.fd, .mode = 0600, .dir = l->dir, .report_name = l->name,
				 .fresh = erofs_extract_target(x, l->dir)->fresh };
	int err = atomic_load_explicit(&l->err, memory_order_relaxed);
	bool broken;

	*ret_what = atomic_load_explicit(&l->what, memory_order_relaxed);
	broken = err && !*ret_what && erofs_extract_may_salvage(x, err);
	if (broken)
		err = erofs_extract_salvage(x, lane, &l->ino, l->part.fd, ret_what);
	if (!err)
		err = finish(x, lane, &at, &l->ino, !broken, ret_what);
	if (!err) {
		*ret_what = "cannot create";
		err = erofs_tree_part_finish(&x->tree, l->dir_fd, &l->part, l->name);
	}
	if (close(l->part.fd) && !err) {
		*ret_what = "cannot write";
		err = -errno;
		(void)unlinkat(l->dir_fd, l->name, 0);
	}
	if (err)
		erofs_tree_part_drop(l->dir_fd, &l->part);
	return err;
}

/* One worker less; the last one finishes the file. */
static void leave_large(struct large *l, struct lane *lane)
{
	struct extract *x = l->x;
	const char *what;
	int err;

	if (atomic_fetch_sub_explicit(&l->users, 1, memory_order_acq_rel) != 1)
		return;
	err = finish_large(l, lane, &what);
	if (err && what)
		erofs_extract_fail(x, err, l->dir, l->name, what);
	else if (err)
		erofs_extract_fail(x, err, NULL, NULL, NULL);
	erofs_tree_unpin(&x->tree, erofs_extract_target(x, l->dir));
	erofs_extract_settle(x, lane, l->dir, l->name, &l->ino, err);
	if (l->dir)
		erofs_walk_close(&x->walk, lane, l->dir);
	free(l);
}

static void work_on(struct large *l, struct lane *lane);

static void run_help(struct lane *lane, struct work *work)
{
	struct help *h = (struct help *)work;
	struct large *l = h->large;

	free(h);
	work_on(l, lane);
}

/* Let an idle worker join, if there is enough left to do. */
static void ask_for_help(struct large *l)
{
	struct help *h;

	if (atomic_load_explicit(&l->next, memory_order_relaxed) + 1 >= l->nranges ||
	    atomic_load_explicit(&l->helpers, memory_order_relaxed) >= erofs_job_active_lanes(l->x->job) ||
	    !erofs_job_is_hungry(l->x->job))
		return;
	h = malloc(sizeof(*h));
	if (!h)
		return;
	h->work.run = run_help;
	h->work.bytes = 0;
	h->work.path = true;
	h->large = l;
	atomic_fetch_add_explicit(&l->helpers, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->users, 1, memory_order_relaxed);
	erofs_job_submit(l->x->job, &h->work);
}

/* If range @n begins in a hole that reaches beyond it, nobody needs to look at the ranges inside it. */
static void skip_hole(struct large *l, struct lane *lane, uint64_t n)
{
	struct extent ext;
	struct map map;
	uint64_t behind, next;

	if (n + 2 >= l->nranges || erofs_map_begin(&map, &l->ino, erofs_lane_metabuf(lane), false) ||
	    erofs_map_seek(&map, n * WRITE_RANGE) || erofs_map_next(&map, &ext) <= 0 ||
	    ext.kind != EXTENT_HOLE)
		return;		/* what is wrong with the map, whoever writes the range reports */
	behind = (ext.la + ext.len) / WRITE_RANGE;
	next = atomic_load_explicit(&l->next, memory_order_relaxed);
	while (next < behind && !atomic_compare_exchange_weak_explicit(&l->next, &next, behind,
								       memory_order_relaxed,
								       memory_order_relaxed))
		;
	if (next < behind)
		erofs_lane_count(lane, 0, (behind - next) * WRITE_RANGE);
}

static void work_on(struct large *l, struct lane *lane)
{
	while (!atomic_load_explicit(&l->err, memory_order_relaxed)) {
		uint64_t n = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed), to;

		if (n >= l->nranges)
			break;
		skip_hole(l, lane, n);
		ask_for_help(l);
		to = n + 1 == l->nranges ? l->ino.size : (n + 1) * WRITE_RANGE;
		write_range(l, lane, n * WRITE_RANGE, to);
	}
	leave_large(l, lane);
}

/* Takes over the pin of @dir_fd if it succeeds. */
static int begin_large(struct extract *x, struct walk_dir *dir, int dir_fd, const char *name,
		       const struct erofs_inode *ino, struct large **ret_large)
{
	struct large *l = calloc(1, sizeof(*l) + strlen(name) + 1);
	int err;

	if (!l)
		return -ENOMEM;
	err = erofs_tree_part_begin(&x->tree, dir_fd, &l->part);
	if (err) {
		free(l);
		return err;
	}
	l->x = x;
	l->dir = dir;
	l->ino = *ino;
	l->dir_fd = dir_fd;
	l->nranges = ino->size / WRITE_RANGE + (ino->size % WRITE_RANGE != 0);
	strcpy(l->name, name);
	atomic_init(&l->users, 1);
	if (dir)
		erofs_walk_keep_open(dir);
	*ret_large = l;
	return 0;
}

/* An old entry that stays makes all work on a large file vain. */
static bool is_in_the_way(const struct extract *x, int dir_fd, const char *name)
{
	struct stat st;

	return !x->opt->overwrite && !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

bool erofs_extract_is_large(const struct extract *x, const struct erofs_inode *ino)
{
	return ino->size > STREAM_RUN || x->opt->safe_writes;
}

int erofs_extract_contents(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
			   const struct erofs_inode *ino)
{
	struct tree_dir *target = erofs_extract_target(x, dir);
	const char *what = "cannot enter the folder of";
	struct large *large = NULL;
	int dir_fd, err = erofs_tree_pin(&x->tree, target, &dir_fd);

	if (!err && erofs_extract_is_large(x, ino)) {
		what = "cannot create";
		err = is_in_the_way(x, dir_fd, name) ? erofs_tree_make_room(&x->tree, dir_fd, name) :
						       begin_large(x, dir, dir_fd, name, ino, &large);
		if (!err) {
			work_on(large, lane);
			return 1;
		}
		erofs_tree_unpin(&x->tree, target);
	} else if (!err) {
		err = write_small(x, lane, dir, dir_fd, name, ino, &what);
		erofs_tree_unpin(&x->tree, target);
	}
	if (err)
		erofs_extract_fail(x, err, what ? dir : NULL, what ? name : NULL, what);
	return err;
}
