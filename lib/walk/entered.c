// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which directories were entered, and which wait because their ".." leads elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "walk/walk_int.h"

#define FIRST_SLOTS 8
#define PATH_TEXT 300	/* an escaped path in a message, cut if longer */
#define SUBS_SHARE 2	/* half of the state memory: 786,000 subdirectories in one by default with two workers */
#define STRAY_BLOCKS (UINT64_C(1) << 18)	/* 1 GiB: seconds; each stray may have many ancestors of any size */

int erofs_walk_state_new(struct walk *w, uint64_t start)
{
	struct walk_state *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->start = start;
	st->max_bytes = erofs_job_state_bytes(w->job) / SUBS_SHARE;
	st->blocks_left = STRAY_BLOCKS;
	atomic_init(&st->out_of_memory, false);
	pthread_mutex_init(&st->lock, NULL);
	w->state = st;
	return 0;
}

static void free_stray(struct stray *s)
{
	if (s)
		free(s->path);
	free(s);
}

void erofs_walk_state_free(struct walk *w)
{
	struct walk_state *st = w->state;

	free(st->entered);
	pthread_mutex_destroy(&st->lock);
	free(st);
	w->state = NULL;
}

/* ---- subdirectories of one directory ---- */

static size_t find_slot(const uint64_t *slots, size_t nslots, uint64_t key)
{
	size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (nslots - 1);

	while (slots[at] && slots[at] != key)
		at = (at + 1) & (nslots - 1);
	return at;
}

static bool grow(struct walk_state *st, struct walk_dir *dir)
{
	size_t i, n = dir->nslots ? dir->nslots * 2 : FIRST_SLOTS;
	uint64_t *subs;

	if (st->bytes + n * sizeof(*subs) > st->max_bytes)
		return false;
	subs = calloc(n, sizeof(*subs));
	if (!subs)
		return false;
	for (i = 0; i < dir->nslots; i++)
		if (dir->subs[i])
			subs[find_slot(subs, n, dir->subs[i])] = dir->subs[i];
	free(dir->subs);
	st->bytes += (n - dir->nslots) * sizeof(*subs);
	dir->subs = subs;
	dir->nslots = n;
	return true;
}

/* The lock is held. Return: 1 new, 0 known, -ENOMEM. */
static int mark(struct walk_state *st, struct walk_dir *dir, uint64_t nid)
{
	size_t at;

	if (dir->nused >= dir->nslots / 4 * 3 && !grow(st, dir))
		return -ENOMEM;
	at = find_slot(dir->subs, dir->nslots, nid + 1);
	if (dir->subs[at])
		return 0;
	dir->subs[at] = nid + 1;
	dir->nused++;
	return 1;
}

static bool is_entered_stray(const struct walk_state *st, uint64_t nid)
{
	unsigned int i;

	for (i = 0; i < st->nentered; i++)
		if (st->entered[i] == nid)
			return true;
	return false;
}

bool erofs_walk_mark_sub(struct walk *w, struct walk_dir *dir, uint64_t nid)
{
	struct walk_state *st = w->state;
	int r;

	/* where the walk began, and what it entered by another way, have no say in who their parent is */
	if (nid == UINT64_MAX || nid == st->start || is_entered_stray(st, nid))
		return false;
	pthread_mutex_lock(&st->lock);
	r = mark(st, dir, nid);
	pthread_mutex_unlock(&st->lock);
	if (r == -ENOMEM) {
		atomic_store(&st->out_of_memory, true);
		erofs_diag_fail(w->diag, r, AT(dir->ino.nid, 0),
				"its more than %zu subdirectories do not fit the memory limit", dir->nused);
		erofs_job_cancel(w->job);
	}
	return r == 1;
}

void erofs_walk_forget_subs(struct walk *w, struct walk_dir *dir)
{
	if (w->state && dir->subs) {	/* what was kept open may be left after the walk */
		pthread_mutex_lock(&w->state->lock);
		w->state->bytes -= dir->nslots * sizeof(*dir->subs);
		pthread_mutex_unlock(&w->state->lock);
	}
	free(dir->subs);
	dir->subs = NULL;
	dir->nslots = dir->nused = 0;
}

/* ---- strays ---- */

/* What was not looked at for want of memory is not "not there": the walk ends. */
static int no_memory(struct walk *w)
{
	erofs_diag_fail(w->diag, -ENOMEM, AT_NOWHERE, "no memory to walk the tree");
	atomic_store(&w->state->out_of_memory, true);
	erofs_job_cancel(w->job);
	return -ENOMEM;
}

/* false: there are too many. */
static bool put_aside(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
		      const struct erofs_inode *ino)
{
	struct stray *s = calloc(1, sizeof(*s));
	bool kept = false;

	if (s)
		s->path = erofs_walk_path(dir, de->name, de->len);
	if (!s || !s->path) {
		free_stray(s);
		no_memory(w);
		return true;
	}
	s->dir = dir;
	s->ino = *ino;
	s->off = de->off;
	s->len = de->len;
	memcpy(s->name, de->name, de->len);
	pthread_mutex_lock(&w->state->lock);
	if (w->state->nstrays < WALK_MAX_STRAYS) {
		erofs_walk_keep_open(dir);
		s->next = w->state->strays;
		w->state->strays = s;
		w->state->nstrays++;
		kept = true;
	}
	pthread_mutex_unlock(&w->state->lock);
	if (!kept)
		free_stray(s);
	return kept;
}

struct stray *erofs_walk_next_stray(struct walk *w)
{
	struct stray **best = &w->state->strays, **at, *s;

	for (at = best; *at; at = &(*at)->next)
		if (strcmp((*at)->path, (*best)->path) < 0)
			best = at;
	s = *best;
	if (!s)
		return NULL;
	*best = s->next;
	free(s->path);
	s->path = NULL;
	return s;
}

/* An entry that is looked for. */
struct wanted {
	bool parent;		/* the entry ".." */
	uint64_t nid;		/* else: one that leads to it */
};

static bool is_wanted(const struct dirent_view *de, const struct wanted *want)
{
	bool dots = de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));

	if (want->parent)
		return dots && de->len == 2;
	return !dots && !de->bad_name && de->nid == want->nid;
}

/* Search a block; one that cannot be read holds nothing. 0 found, -ENODATA, -ENOMEM (reported). */
static int search_block(struct walk *w, struct lane *lane, const struct erofs_inode *ino, uint64_t blk,
			const struct wanted *want, struct dirent_view *ret_de)
{
	uint64_t off = blk << ino->img->blkbits;
	size_t valid = (size_t)min_u64(ino->img->blksz, ino->size - off);
	auto_free uint8_t *block = malloc(valid);
	struct dirblk db;
	int err;

	if (!block)
		return no_memory(w);
	err = erofs_lane_read(lane, ino, off, block, valid);
	if (!err)
		err = erofs_dirblk_open(&db, ino->nid, off, block, valid, w->diag);
	if (err)
		return err == -ENOMEM ? no_memory(w) : -ENODATA;
	while (erofs_dirblk_next(&db, ret_de) > 0)
		if (is_wanted(ret_de, want))
			return 0;
	return -ENODATA;
}

int erofs_walk_find_parent(struct walk *w, struct lane *lane, const struct erofs_inode *ino,
			   uint64_t *ret_nid)
{
	const struct wanted want = { .parent = true };
	struct dirent_view de;
	int err = ino->size ? search_block(w, lane, ino, 0, &want, &de) : -ENODATA;

	if (!err)
		*ret_nid = de.nid;
	return err;
}

bool erofs_walk_has_child(struct walk *w, struct lane *lane, uint64_t nid, uint64_t child,
			  struct erofs_inode *ret_ino)
{
	const struct wanted want = { .nid = child };
	struct dirent_view de;
	uint64_t blk;

	if (erofs_inode_load(erofs_lane_metabuf(lane), nid, ret_ino) || !S_ISDIR(ret_ino->mode))
		return false;
	for (blk = 0; blk << ret_ino->img->blkbits < ret_ino->size && w->state->blocks_left; blk++) {
		w->state->blocks_left--;
		if (!search_block(w, lane, ret_ino, blk, &want, &de))
			return true;
	}
	return false;
}

/*
 * Did the walk enter this directory from its parent? So it is if every directory on the way up by ".." has
 * the one below it among its entries, and the way ends at the start or at a stray that was entered.
 */
static bool was_entered(struct walk *w, struct lane *lane, const struct erofs_inode *ino)
{
	struct erofs_inode at = *ino;
	unsigned int depth;

	for (depth = 0; depth < WALK_MAX_DEPTH; depth++) {
		uint64_t parent, nid = at.nid;

		if (nid == w->state->start || is_entered_stray(w->state, nid))
			return true;
		if (erofs_walk_find_parent(w, lane, &at, &parent) || parent == nid)
			return false;
		/* not known: rather once too few than too often */
		if (!erofs_walk_has_child(w, lane, parent, nid, &at))
			return !w->state->blocks_left || atomic_load(&w->state->out_of_memory);
	}
	return true;
}

bool erofs_walk_note_stray(struct walk *w, uint64_t nid)
{
	struct walk_state *st = w->state;

	if (nid == st->start || is_entered_stray(st, nid) || st->nentered == WALK_MAX_STRAYS)
		return false;
	if (!st->entered)
		st->entered = malloc(WALK_MAX_STRAYS * sizeof(*st->entered));
	if (!st->entered) {
		no_memory(w);
		return false;
	}
	st->entered[st->nentered++] = nid;
	return true;
}

bool erofs_walk_mark_stray(struct walk *w, struct lane *lane, const struct erofs_inode *ino)
{
	return !was_entered(w, lane, ino) && erofs_walk_note_stray(w, ino->nid);
}

static bool is_ancestor(const struct walk_dir *dir, uint64_t nid)
{
	while (dir && dir->ino.nid != nid)
		dir = dir->up;
	return dir;
}

void erofs_walk_report_again(struct walk *w, struct walk_dir *dir, const struct dirent_view *de)
{
	auto_free char *path = w->strict ? erofs_walk_path(dir, de->name, de->len) : NULL;
	char shown[PATH_TEXT];

	if (!w->strict)
		return;
	erofs_escape_name(path ? path : "?", path ? strlen(path) : 1, shown, sizeof(shown));
	if (is_ancestor(dir, de->nid))
		erofs_diag_damage(w->diag, DIR_CYCLE, AT(dir->ino.nid, de->off),
				  "%s leads back to the directory nid %" PRIu64 ", a cycle", shown, de->nid);
	else
		erofs_diag_damage(w->diag, DIR_PARENTS, AT(dir->ino.nid, de->off),
				  "%s is a second name of the directory nid %" PRIu64, shown, de->nid);
}

bool erofs_walk_may_enter(struct walk *w, struct lane *lane, struct walk_dir *dir,
			  const struct dirent_view *de, const struct erofs_inode *ino)
{
	uint64_t parent;
	int err;

	if (dir->depth + 1 >= WALK_MAX_DEPTH) {
		erofs_diag_damage(w->diag, DIR_DEPTH, AT(dir->ino.nid, de->off),
				  "directories are nested deeper than %u levels", WALK_MAX_DEPTH);
		return false;
	}
	err = erofs_walk_find_parent(w, lane, ino, &parent);
	if (err == -ENOMEM)
		return false;
	if (err || parent != dir->ino.nid) {
		if (!put_aside(w, dir, de, ino))
			erofs_diag_damage(w->diag, DIR_PARENTS, AT(dir->ino.nid, de->off),
					  "too many directories do not name their parent");
		return false;
	}
	if (erofs_walk_mark_sub(w, dir, ino->nid))
		return true;
	erofs_walk_report_again(w, dir, de);
	return false;
}
