// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Names of one inode: the first that is met makes it, the others become links. Directories of first
 * names stay open until all names of the inode were seen, so that they can still be entered. Inodes that
 * do not fit the memory limit get another walk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extract/extract_priv.h"

#define GROUP_BYTES (sizeof(struct link_group) + 16)	/* with what malloc adds */

void erofs_linktab_init(struct link_table *t, size_t max_bytes)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->room, NULL);
	t->max_bytes = max_bytes;
	t->hi = UINT64_MAX;
}

static struct link_group **find(struct link_table *t, uint64_t nid)
{
	struct link_group **at = &t->buckets[(nid * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LINK_BUCKETS];

	while (*at && (*at)->nid != nid)
		at = &(*at)->next;
	return at;
}

/* What a directory takes that is kept for a name, with what malloc adds to its two parts. */
static size_t dir_bytes(const struct walk_dir *dir)
{
	return sizeof(*dir) + dir->len + sizeof(struct extract_dir) + 32;
}

/* A name keeps its directory and all above it; several names keep them together. The lock is held. */
static size_t keep_dirs(struct walk_dir *dir)
{
	size_t bytes = 0;

	for (; dir && !((struct extract_dir *)dir->priv)->kept++; dir = dir->up)
		bytes += dir_bytes(dir);
	return bytes;
}

static size_t release_dirs(struct walk_dir *dir)
{
	size_t bytes = 0;

	for (; dir && !--((struct extract_dir *)dir->priv)->kept; dir = dir->up)
		bytes += dir_bytes(dir);
	return bytes;
}

static size_t name_bytes(const struct link_name *n)
{
	return sizeof(*n) + n->len + 16;
}

static void add_name(struct link_table *t, const struct link_name *n)
{
	t->bytes += name_bytes(n) + keep_dirs(n->dir);
}

static void remove_name(struct link_table *t, const struct link_name *n)
{
	t->bytes -= name_bytes(n) + release_dirs(n->dir);
}

void erofs_linktab_free_name(struct walk *w, struct lane *lane, struct link_name *name)
{
	if (!name)
		return;
	if (name->dir)
		erofs_walk_close(w, lane, name->dir);
	free(name);
}

static void free_groups(struct link_table *t, struct walk *w, struct lane *lane)
{
	size_t i;

	for (i = 0; i < LINK_BUCKETS; i++)
		while (t->buckets[i]) {
			struct link_group *g = t->buckets[i];

			t->buckets[i] = g->next;
			if (g->first)
				remove_name(t, g->first);
			erofs_linktab_free_name(w, lane, g->first);
			free(g);
		}
	t->bytes = 0;
}

void erofs_linktab_fini(struct link_table *t, struct walk *w, struct lane *lane)
{
	free_groups(t, w, lane);
	pthread_cond_destroy(&t->room);
	pthread_mutex_destroy(&t->lock);
}

bool erofs_linktab_advance(struct link_table *t, struct walk *w, struct lane *lane)
{
	if (t->hi == UINT64_MAX)
		return false;
	free_groups(t, w, lane);
	t->lo = t->hi;
	t->hi = UINT64_MAX;
	return true;
}

static struct link_name *new_name(struct walk_dir *dir, const char *name, size_t len)
{
	struct link_name *n = malloc(sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	n->next = NULL;
	n->dir = dir;
	n->len = len;
	memcpy(n->name, name, len);
	n->name[len] = '\0';
	if (dir)
		erofs_walk_keep_open(dir);
	return n;
}

/* A group of an inode that was not met in this walk. The lock is held. Return: enum link_claim, -ENOMEM. */
static int begin_group(struct link_table *t, struct link_group **at, const struct erofs_inode *ino)
{
	struct link_group *g;

	if (ino->nid < t->lo || ino->nid >= t->hi)
		return LINK_LATER;
	if (t->bytes >= t->max_bytes) {
		t->hi = ino->nid;
		return LINK_LATER;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->nid = ino->nid;
	g->left = ino->nlink;
	g->busy = true;
	*at = g;
	t->bytes += GROUP_BYTES;
	return LINK_MAKE;
}

/* The lock is held. -EAGAIN: there is no memory to let the name wait. */
static int claim(struct link_table *t, struct walk_dir *dir, const char *name, size_t len,
		 const struct erofs_inode *ino, const struct link_name **ret_first)
{
	struct link_group **at = find(t, ino->nid), *g = *at;
	struct link_name *waiting;

	if (!g)
		return begin_group(t, at, ino);
	if (g->first) {
		g->users++;
		*ret_first = g->first;
		return LINK_TO;
	}
	if (!g->busy) {
		g->busy = true;
		return LINK_MAKE;
	}
	waiting = t->bytes < t->max_bytes ? new_name(dir, name, len) : NULL;
	if (!waiting)
		return -EAGAIN;
	add_name(t, waiting);
	waiting->next = g->waiting;
	g->waiting = waiting;
	return LINK_WAIT;
}

int erofs_linktab_claim(struct link_table *t, struct walk_dir *dir, const char *name, size_t len,
			const struct erofs_inode *ino, const struct link_name **ret_first)
{
	int r;

	pthread_mutex_lock(&t->lock);
	/* waiting here is safe: who makes the first name is at it, and waits for nobody */
	while ((r = claim(t, dir, name, len, ino, ret_first)) == -EAGAIN)
		pthread_cond_wait(&t->room, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* One name less to come; the last one ends the group. The lock is held. Return: a name to be freed. */
static struct link_name *count_name(struct link_table *t, struct link_group **at)
{
	struct link_group *g = *at;
	struct link_name *first = g->first;

	if (g->left && --g->left)
		return NULL;
	if (g->waiting || g->busy || g->users)	/* more names than the inode says: keep it for them */
		return NULL;
	*at = g->next;
	t->bytes -= GROUP_BYTES;
	if (first)
		remove_name(t, first);
	free(g);
	return first;
}

int erofs_linktab_made(struct link_table *t, struct walk *w, struct lane *lane, struct walk_dir *dir,
		       const char *name, size_t len, uint64_t nid, bool made)
{
	struct link_name *done = NULL;
	struct link_group **at, *g;
	int err = 0;

	pthread_mutex_lock(&t->lock);
	at = find(t, nid);
	g = *at;
	if (g) {
		if (made && !g->first) {
			g->first = new_name(dir, name, len);
			err = g->first ? 0 : -ENOMEM;
			if (g->first)
				add_name(t, g->first);
		}
		/* not made: the next one that waits tries, and stays busy for the rest */
		g->busy = !g->first && g->waiting;
		done = count_name(t, at);
		pthread_cond_broadcast(&t->room);
	}
	pthread_mutex_unlock(&t->lock);
	erofs_linktab_free_name(w, lane, done);
	return err;
}

struct link_name *erofs_linktab_next(struct link_table *t, uint64_t nid)
{
	struct link_name *next = NULL;
	struct link_group *g;

	pthread_mutex_lock(&t->lock);
	g = *find(t, nid);
	if (g && g->waiting) {
		next = g->waiting;
		g->waiting = next->next;
		remove_name(t, next);
		g->users += g->first != NULL;
		g->busy = !g->first;
		pthread_cond_broadcast(&t->room);
	}
	pthread_mutex_unlock(&t->lock);
	return next;
}

void erofs_linktab_linked(struct link_table *t, struct walk *w, struct lane *lane, uint64_t nid)
{
	struct link_name *done = NULL;
	struct link_group **at;

	pthread_mutex_lock(&t->lock);
	at = find(t, nid);
	if (*at) {
		(*at)->users--;
		done = count_name(t, at);
	}
	pthread_mutex_unlock(&t->lock);
	erofs_linktab_free_name(w, lane, done);
}
