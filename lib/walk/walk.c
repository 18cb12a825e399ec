// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The parallel walk: work items, frames, giving work away.
 *
 * An item is a range of one directory's blocks. Its worker goes depth first on a stack of frames: so
 * memory is bounded by depth, and files are met about in their order on disk. While others are hungry
 * the oldest frame is given away, whose rest is the largest piece of work there is (giving away each
 * subdirectory as it came cost a wake-up for 15 us of work), or half of a large directory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "walk/walk_int.h"

struct frame {
	struct walk_dir *dir;	/* kept open */
	uint64_t blk, end;
	unsigned int entry;	/* entries of blk that are done */
};

struct item {
	struct work work;
	struct walk *walk;
	struct frame frame;
};

struct stack {
	struct frame *frames;
	size_t first, count, room;	/* frames in front of first were given away */
};

/* ---- nodes ---- */

void erofs_walk_keep_open(struct walk_dir *dir)
{
	atomic_fetch_add_explicit(&dir->open, 1, memory_order_relaxed);
}

void erofs_walk_hold(struct walk_dir *dir)
{
	atomic_fetch_add_explicit(&dir->held, 1, memory_order_relaxed);
}

void erofs_walk_drop(struct walk_dir *dir)
{
	while (dir && atomic_fetch_sub_explicit(&dir->held, 1, memory_order_acq_rel) == 1) {
		struct walk_dir *up = dir->up;

		free(dir);
		dir = up;
	}
}

void erofs_walk_close(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	while (dir && atomic_fetch_sub_explicit(&dir->open, 1, memory_order_acq_rel) == 1) {
		struct walk_dir *up = dir->up;

		if (w->strict)
			erofs_walk_check_left(w, dir);
		if (w->ops->leave)
			w->ops->leave(w, lane, dir);
		erofs_walk_forget_subs(w, dir);
		erofs_walk_drop(dir);
		dir = up;
	}
}

/* A node that is open once and, if it has a parent, keeps that open and held. */
static struct walk_dir *new_dir(struct walk_dir *up, const struct erofs_inode *ino, const char *name,
				unsigned int len)
{
	struct walk_dir *dir = calloc(1, sizeof(*dir) + len + 1);

	if (!dir)
		return NULL;
	dir->up = up;
	dir->ino = *ino;
	dir->depth = up ? up->depth + 1 : 0;
	dir->len = len;
	memcpy(dir->name, name, len);
	atomic_init(&dir->open, 1);
	atomic_init(&dir->held, 1);
	if (up) {
		erofs_walk_keep_open(up);
		erofs_walk_hold(up);
	}
	return dir;
}

/* Undo new_dir() for a directory that was not entered. */
static void abandon_dir(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	struct walk_dir *up = dir->up;

	erofs_walk_drop(dir);
	erofs_walk_close(w, lane, up);
}

/* ---- items ---- */

static struct frame whole_dir(struct walk_dir *dir)
{
	return (struct frame){ .dir = dir, .end = div_up_pow2(dir->ino.size, dir->ino.img->blkbits) };
}

static void run_item(struct lane *lane, struct work *work);

/* Queue a frame; the item keeps its directory open from now on. false: no memory. */
static bool give_away(struct walk *w, const struct frame *frame)
{
	struct item *item = malloc(sizeof(*item));

	if (!item)
		return false;
	item->work.run = run_item;
	item->work.bytes = 0;
	item->work.path = w->path;
	item->walk = w;
	item->frame = *frame;
	erofs_job_submit(w->job, &item->work);
	return true;
}

static bool push_frame(struct stack *st, const struct frame *frame)
{
	if (st->count == st->room) {
		size_t room = st->room ? st->room * 2 : 32;
		struct frame *grown = realloc(st->frames, room * sizeof(*grown));

		if (!grown)
			return false;
		st->frames = grown;
		st->room = room;
	}
	st->frames[st->count++] = *frame;
	return true;
}

/* ---- scanning ---- */

struct scan {
	struct walk *w;
	struct lane *lane;
	struct stack stack;
	uint8_t *block;
	char prev[256];		/* last name of prev_dir that was seen, for the order */
	unsigned int prev_len;
	const struct walk_dir *prev_dir;
	uint64_t prev_blk;
};

static void out_of_memory(struct scan *s)
{
	erofs_diag_fail(s->w->diag, -ENOMEM, AT_NOWHERE, "no memory to walk the tree");
	atomic_store(&s->w->state->out_of_memory, true);
	erofs_job_cancel(s->w->job);
}

/* Make, enter and schedule a subdirectory. */
static void descend(struct scan *s, struct walk_dir *parent, const struct dirent_view *de,
		    const struct erofs_inode *ino)
{
	struct walk_dir *dir = new_dir(parent, ino, de->name, de->len);
	struct frame frame;
	int err = 0;

	if (!dir) {
		out_of_memory(s);
		return;
	}
	if (s->w->ops->enter)
		err = s->w->ops->enter(s->w, s->lane, dir);
	if (err) {
		abandon_dir(s->w, s->lane, dir);
		return;
	}
	frame = whole_dir(dir);
	if (push_frame(&s->stack, &frame))
		return;
	erofs_walk_close(s->w, s->lane, dir);
	out_of_memory(s);
}

/* One entry that is neither "." nor "..". */
static void visit_entry(struct scan *s, struct walk_dir *dir, const struct dirent_view *de)
{
	struct erofs_inode ino;

	if (s->w->ops->wanted && !s->w->ops->wanted(s->w, dir, de))
		return;
	if (erofs_inode_load(erofs_lane_metabuf(s->lane), de->nid, &ino)) {
		atomic_store_explicit(&dir->broken, true, memory_order_relaxed);
		if (s->w->ops->broken)
			s->w->ops->broken(s->w, s->lane, dir, de);
		return;
	}
	if (s->w->strict)
		erofs_walk_check_type(s->w, dir, de, &ino);
	if (!S_ISDIR(ino.mode)) {
		if (s->w->ops->entry)
			s->w->ops->entry(s->w, s->lane, dir, de, &ino);
		return;
	}
	atomic_fetch_add_explicit(&dir->subdirs, 1, memory_order_relaxed);
	if (erofs_walk_may_enter(s->w, s->lane, dir, de, &ino))
		descend(s, dir, de, &ino);
}

static bool is_dots(const struct dirent_view *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

static void remember_name(struct scan *s, const struct frame *f, const struct dirent_view *de)
{
	memcpy(s->prev, de->name, de->len);
	s->prev_len = de->len;
	s->prev_dir = f->dir;
	s->prev_blk = f->blk;
}

/* The name in front of the frame's position, so that order is checked across blocks and pauses. */
static void recall_name(struct scan *s, const struct frame *f, struct dirblk *db)
{
	uint64_t before = f->entry ? f->blk : f->blk - 1;
	struct dirent_view de;

	if (!s->w->strict || (s->prev_dir == f->dir && s->prev_blk == before))
		return;
	s->prev_dir = NULL;
	if (f->entry) {
		db->next = f->entry - 1;
		if (erofs_dirblk_next(db, &de) > 0 && db->next == f->entry)
			remember_name(s, f, &de);
	} else if (f->blk) {
		s->prev_len = erofs_walk_last_name(s->w, s->lane, f->dir, before, s->prev);
		s->prev_dir = s->prev_len ? f->dir : NULL;
		s->prev_blk = before;
	}
}

/* Read and open the frame's block. Return: 0, or an error that was reported. */
static int open_block(struct scan *s, const struct frame *f, struct dirblk *db)
{
	const struct erofs_inode *ino = &f->dir->ino;
	unsigned int bits = ino->img->blkbits;
	size_t valid = (size_t)min_u64(ino->img->blksz, ino->size - (f->blk << bits));
	int err = erofs_lane_read(s->lane, ino, f->blk << bits, s->block, valid);

	if (!err)
		err = erofs_dirblk_open(db, ino->nid, f->blk << bits, s->block, valid, s->w->diag);
	if (err)
		atomic_store_explicit(&f->dir->broken, true, memory_order_relaxed);
	return err;
}

/* Entries of the current block from the frame's position on; stops when a subdirectory was pushed. */
static bool scan_block(struct scan *s, size_t at)
{
	struct frame *f = &s->stack.frames[at];
	struct walk_dir *dir = f->dir;
	struct dirent_view de;
	struct dirblk db;

	if (open_block(s, f, &db))
		return true;
	recall_name(s, f, &db);
	db.next = f->entry;
	while (erofs_dirblk_next(&db, &de) > 0) {
		if (erofs_job_is_cancelled(s->w->job))
			return true;
		f->entry = db.next;
		if (s->w->strict) {
			erofs_walk_check_order(s->w, dir, &de,
					       s->prev_dir == dir ? s->prev : NULL, s->prev_len);
			remember_name(s, f, &de);
		}
		if (is_dots(&de)) {
			erofs_walk_check_dots(s->w, dir, &de);
			continue;
		}
		if (de.bad_name) {
			atomic_store_explicit(&dir->broken, true, memory_order_relaxed);
			continue;
		}
		visit_entry(s, dir, &de);
		if (s->stack.count > at + 1)
			return false;
		f = &s->stack.frames[at];
	}
	return true;
}

/* Give half of what the only frame has left to whoever is idle. */
static void split_frame(struct scan *s, struct frame *f)
{
	struct frame half = *f;

	if (f->end - f->blk < 2 || f->entry)
		return;
	half.blk += (f->end - f->blk + 1) / 2;
	erofs_walk_keep_open(f->dir);
	if (give_away(s->w, &half))
		f->end = half.blk;
	else
		erofs_walk_close(s->w, s->lane, f->dir);
}

static void share(struct scan *s)
{
	struct stack *st = &s->stack;

	if (!erofs_job_is_hungry(s->w->job))
		return;
	if (st->count - st->first == 1)
		split_frame(s, &st->frames[st->first]);
	else if (give_away(s->w, &st->frames[st->first]))
		st->first++;
}

static void pop_frame(struct scan *s)
{
	struct frame *f = &s->stack.frames[--s->stack.count];

	if (f->blk < f->end)	/* cancelled */
		atomic_store_explicit(&f->dir->broken, true, memory_order_relaxed);
	erofs_walk_close(s->w, s->lane, f->dir);
}

static void scan_stack(struct scan *s)
{
	while (s->stack.count > s->stack.first) {
		size_t at = s->stack.count - 1;
		struct frame *f = &s->stack.frames[at];

		if (f->blk >= f->end || erofs_job_is_cancelled(s->w->job)) {
			pop_frame(s);
			continue;
		}
		share(s);
		if (!scan_block(s, at))
			continue;
		f = &s->stack.frames[at];
		f->blk++;
		f->entry = 0;
	}
}

static void run_item(struct lane *lane, struct work *work)
{
	struct item *item = (struct item *)work;
	struct scan s = { .w = item->walk, .lane = lane };

	s.block = malloc(item->frame.dir->ino.img->blksz);
	if (s.block && push_frame(&s.stack, &item->frame)) {
		scan_stack(&s);
	} else {
		out_of_memory(&s);
		erofs_walk_close(item->walk, lane, item->frame.dir);
	}
	free(s.stack.frames);
	free(s.block);
	free(item);
}

/* ---- the run ---- */

static int start_walk(struct walk *w, const struct erofs_inode *start)
{
	struct lane *lane = erofs_job_lane(w->job, 0);
	struct walk_dir *dir = new_dir(NULL, start, "", 0);
	struct frame frame;
	int err = 0;

	if (!dir)
		return -ENOMEM;
	if (w->ops->enter)
		err = w->ops->enter(w, lane, dir);
	if (err) {
		erofs_walk_drop(dir);
		return err == -ENODATA ? 0 : err;
	}
	frame = whole_dir(dir);
	if (give_away(w, &frame))
		return 0;
	erofs_walk_close(w, lane, dir);
	return -ENOMEM;
}

/*
 * Directories whose ".." does not lead back were put aside: to enter them at once would make the
 * result depend on which worker came first, where several entries lead to one.
 */
static void enter_stray(struct walk *w, struct lane *lane, struct stray *st)
{
	struct scan s = { .w = w, .lane = lane };
	struct dirent_view de = { .nid = st->ino.nid, .name = st->name, .len = st->len, .off = st->off };

	if (!erofs_walk_mark_stray(w, lane, &st->ino)) {
		erofs_walk_report_again(w, st->dir, &de);
		return;
	}
	s.block = malloc(st->ino.img->blksz);
	if (s.block)
		descend(&s, st->dir, &de, &st->ino);
	else
		out_of_memory(&s);
	scan_stack(&s);
	free(s.stack.frames);
	free(s.block);
}

static void enter_strays(struct walk *w)
{
	struct lane *lane = erofs_job_lane(w->job, 0);
	struct stray *st;

	while ((st = erofs_walk_next_stray(w))) {
		if (!erofs_job_is_cancelled(w->job))
			enter_stray(w, lane, st);
		erofs_job_wait(w->job);
		erofs_walk_close(w, lane, st->dir);
		free(st);
	}
}

int erofs_walk_run(struct walk *w, const struct erofs_inode *start)
{
	int err;

	if (!S_ISDIR(start->mode))
		return -ENOTDIR;
	err = erofs_walk_state_new(w, start->nid);
	if (err)
		return err;
	err = start_walk(w, start);
	erofs_job_wait(w->job);
	enter_strays(w);
	if (!err && atomic_load(&w->state->out_of_memory))
		err = -ENOMEM;
	if (!err && erofs_job_is_cancelled(w->job))
		err = -ECANCELED;
	erofs_walk_state_free(w);
	return err;
}

char *erofs_walk_path(const struct walk_dir *dir, const char *name, size_t len)
{
	size_t size = (name ? len + 1 : 0) + 1;
	const struct walk_dir *d;
	char *path, *at;

	for (d = dir; d && d->len; d = d->up)
		size += d->len + 1;
	path = malloc(size < 2 ? 2 : size);
	if (!path)
		return NULL;
	at = path + size - 1;
	*at = '\0';
	if (name) {
		at -= len;
		memcpy(at, name, len);
		*--at = '/';
	}
	for (d = dir; d && d->len; d = d->up) {
		at -= d->len;
		memcpy(at, d->name, d->len);
		*--at = '/';
	}
	if (size < 2)
		memcpy(path, "/", 2);
	return path;
}
