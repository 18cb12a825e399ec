// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Names of one inode: the first that is met makes it, the others become links. Directories of first
 * names stay open until all names of the inode were seen, so that they can still be entered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extract/extract_priv.h"

void erofs_linktab_init(struct link_table *t, size_t max_bytes)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
	t->max_bytes = max_bytes;
}

void erofs_linktab_free_name(struct walk *w, struct lane *lane, struct link_name *name)
{
	if (!name)
		return;
	if (name->dir)
		erofs_walk_close(w, lane, name->dir);
	free(name);
}

void erofs_linktab_fini(struct link_table *t, struct walk *w, struct lane *lane)
{
	size_t i;

	for (i = 0; i < LINK_BUCKETS; i++)
		while (t->buckets[i]) {
			struct link_group *g = t->buckets[i];

			t->buckets[i] = g->next;
			erofs_linktab_free_name(w, lane, g->first);
			free(g);
		}
	pthread_mutex_destroy(&t->lock);
}

static struct link_group **find(struct link_table *t, uint64_t nid)
{
	struct link_group **at = &t->buckets[(nid * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LINK_BUCKETS];

	while (*at && (*at)->nid != nid)
		at = &(*at)->next;
	return at;
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

static struct link_group *add_group(struct link_table *t, struct link_group **at,
				    const struct erofs_inode *ino)
{
	struct link_group *g;

	if (t->bytes + sizeof(*g) > t->max_bytes)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->nid = ino->nid;
	g->left = ino->nlink;
	*at = g;
	t->bytes += sizeof(*g);
	return g;
}

/* The lock is held. */
static int claim(struct link_table *t, struct walk_dir *dir, const char *name, size_t len,
		 const struct erofs_inode *ino, const struct link_name **ret_first)
{
	struct link_group **at = find(t, ino->nid), *g = *at;
	struct link_name *waiting;

	if (!g) {
		g = add_group(t, at, ino);
		if (!g)
			return -ENOMEM;
		g->busy = true;
		return LINK_MAKE;
	}
	if (g->first) {
		g->users++;
		*ret_first = g->first;
		return LINK_TO;
	}
	if (!g->busy) {
		g->busy = true;
		return LINK_MAKE;
	}
	if (t->bytes + sizeof(*waiting) + len > t->max_bytes)
		return -ENOMEM;
	waiting = new_name(dir, name, len);
	if (!waiting)
		return -ENOMEM;
	t->bytes += sizeof(*waiting) + len;
	waiting->next = g->waiting;
	g->waiting = waiting;
	return LINK_WAIT;
}

int erofs_linktab_claim(struct link_table *t, struct walk_dir *dir, const char *name, size_t len,
			const struct erofs_inode *ino, const struct link_name **ret_first)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = claim(t, dir, name, len, ino, ret_first);
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
	t->bytes -= sizeof(*g) + (first ? sizeof(*first) + first->len : 0);
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
			t->bytes += g->first ? sizeof(*g->first) + len : 0;
			err = g->first ? 0 : -ENOMEM;
		}
		/* not made: the next one that waits tries, and stays busy for the rest */
		g->busy = !g->first && g->waiting;
		done = count_name(t, at);
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
		t->bytes -= sizeof(*next) + next->len;
		g->users += g->first != NULL;
		g->busy = !g->first;
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
