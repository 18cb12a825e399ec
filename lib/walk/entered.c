// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which directories were entered, and which wait because their ".." leads elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "walk/walk_int.h"

#define FIRST_SLOTS 256
#define PATH_TEXT 300	/* an escaped path in a message, cut if longer */
#define SLOTS_SHARE 2	/* half of the state memory: 786,000 directories by default with two workers */

int erofs_walk_state_new(struct walk *w)
{
	struct walk_state *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->slots = calloc(FIRST_SLOTS, sizeof(*st->slots));
	if (!st->slots) {
		free(st);
		return -ENOMEM;
	}
	st->nslots = FIRST_SLOTS;
	st->max_slots = erofs_job_state_bytes(w->job) / SLOTS_SHARE / sizeof(*st->slots);
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

	free(st->slots);
	pthread_mutex_destroy(&st->lock);
	free(st);
	w->state = NULL;
}

static size_t find_slot(const uint64_t *slots, size_t nslots, uint64_t key)
{
	size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (nslots - 1);

	while (slots[at] && slots[at] != key)
		at = (at + 1) & (nslots - 1);
	return at;
}

static bool grow(struct walk_state *st)
{
	size_t i, n = st->nslots * 2;
	uint64_t *slots;

	if (n > st->max_slots)
		return false;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	for (i = 0; i < st->nslots; i++)
		if (st->slots[i])
			slots[find_slot(slots, n, st->slots[i])] = st->slots[i];
	free(st->slots);
	st->slots = slots;
	st->nslots = n;
	return true;
}

/* The lock is held. Return: 1 new, 0 known, -ENOMEM. */
static int mark(struct walk_state *st, uint64_t nid)
{
	size_t at = find_slot(st->slots, st->nslots, nid + 1);

	if (st->slots[at])
		return 0;
	if (st->nused >= st->nslots / 4 * 3) {
		if (!grow(st))
			return -ENOMEM;
		at = find_slot(st->slots, st->nslots, nid + 1);
	}
	st->slots[at] = nid + 1;
	st->nused++;
	return 1;
}

bool erofs_walk_mark(struct walk *w, uint64_t nid)
{
	struct walk_state *st = w->state;
	int r;

	if (nid == UINT64_MAX)
		return false;
	pthread_mutex_lock(&st->lock);
	r = mark(st, nid);
	pthread_mutex_unlock(&st->lock);
	if (r == -ENOMEM) {
		atomic_store(&st->out_of_memory, true);
		erofs_diag_fail(w->diag, r, AT_NOWHERE,
				"more than %zu directories do not fit the memory limit", st->nslots / 4 * 3);
		erofs_job_cancel(w->job);
	}
	return r == 1;
}

static bool put_aside(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
		      const struct erofs_inode *ino)
{
	struct stray *s = calloc(1, sizeof(*s));
	bool kept = false;

	if (!s)
		return false;
	s->path = erofs_walk_path(dir, de->name, de->len);
	s->dir = dir;
	s->ino = *ino;
	s->off = de->off;
	s->len = de->len;
	memcpy(s->name, de->name, de->len);
	pthread_mutex_lock(&w->state->lock);
	if (s->path && w->state->nstrays < WALK_MAX_STRAYS) {
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

int erofs_walk_find_parent(struct walk *w, struct lane *lane, const struct erofs_inode *ino,
			   uint64_t *ret_nid)
{
	size_t valid = ino->size < ino->img->blksz ? (size_t)ino->size : ino->img->blksz;
	auto_free uint8_t *block = malloc(valid);
	struct dirent_view de;
	struct dirblk db;
	int err;

	if (!block)
		return -ENOMEM;
	err = erofs_lane_read(lane, ino, 0, block, valid);
	if (!err)
		err = erofs_dirblk_open(&db, ino->nid, 0, block, valid, w->diag);
	while (!err && erofs_dirblk_next(&db, &de) > 0) {
		if (de.len != 2 || de.name[0] != '.' || de.name[1] != '.')
			continue;
		*ret_nid = de.nid;
		return 0;
	}
	return err ? err : -ENODATA;
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

	if (dir->depth + 1 >= WALK_MAX_DEPTH) {
		erofs_diag_damage(w->diag, DIR_DEPTH, AT(dir->ino.nid, de->off),
				  "directories are nested deeper than %u levels", WALK_MAX_DEPTH);
		return false;
	}
	if (erofs_walk_find_parent(w, lane, ino, &parent) || parent != dir->ino.nid) {
		if (!put_aside(w, dir, de, ino))
			erofs_diag_damage(w->diag, DIR_PARENTS, AT(dir->ino.nid, de->off),
					  "too many directories do not name their parent");
		return false;
	}
	if (erofs_walk_mark(w, ino->nid))
		return true;
	erofs_walk_report_again(w, dir, de);
	return false;
}
