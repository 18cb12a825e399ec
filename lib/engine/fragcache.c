// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Decoded extents of the packed and metabox files: hash, least recently used first out. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/fragcache.h"

#define BUCKETS 1024	/* 4 KiB pclusters that double fill 12 MiB with 1500 entries */

struct dcache {
	pthread_mutex_t	lock;
	pthread_cond_t	filled;
	struct dentry	*bucket[BUCKETS];	/* L */
	struct dentry	*newest, *oldest;	/* L */
	size_t		bytes, budget;		/* L, C */
	uint64_t	lookups, fills;		/* L */
};	/* L lock  C constant once created */

int erofs_dcache_new(size_t budget, struct dcache **ret_cache)
{
	struct dcache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->filled, NULL);
	cache->budget = budget;
	*ret_cache = cache;
	return 0;
}

static struct dentry **find_bucket(struct dcache *cache, uint64_t nid, uint64_t la)
{
	uint64_t h = (la ^ nid << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return &cache->bucket[h >> 54];
}

static void unlink_lru(struct dcache *cache, struct dentry *d)
{
	*(d->newer ? &d->newer->older : &cache->newest) = d->older;
	*(d->older ? &d->older->newer : &cache->oldest) = d->newer;
}

static void push_lru(struct dcache *cache, struct dentry *d)
{
	d->newer = NULL;
	d->older = cache->newest;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = d;
	cache->newest = d;
}

static void unlink_hash(struct dcache *cache, struct dentry *d)
{
	struct dentry **at = find_bucket(cache, d->nid, d->la);

	while (*at != d)
		at = &(*at)->hash_next;
	*at = d->hash_next;
}

static void free_dentry(struct dentry *d)
{
	free(d->data);
	free(d);
}

void erofs_dcache_free(struct dcache *cache)
{
	if (!cache)
		return;
	while (cache->newest) {
		struct dentry *d = cache->newest;

		unlink_lru(cache, d);
		free_dentry(d);
	}
	pthread_cond_destroy(&cache->filled);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static bool fits(const struct dentry *d, size_t len)
{
	return d->room >= len && d->room / 2 <= len;
}

/*
 * Drop what was not used for longest until @len more bytes fit. The first buffer of about that size is
 * handed on instead of freed: large buffers would otherwise be unmapped and mapped again each time.
 */
static struct dentry *evict(struct dcache *cache, size_t len)
{
	struct dentry *d = cache->oldest, *spare = NULL;

	while (d && cache->bytes + len > cache->budget) {
		struct dentry *newer = d->newer;

		if (!d->users) {
			unlink_lru(cache, d);
			unlink_hash(cache, d);
			cache->bytes -= d->room;
			if (!spare && fits(d, len))
				spare = d;
			else
				free_dentry(d);
		}
		d = newer;
	}
	return spare;
}

static struct dentry *new_dentry(size_t len)
{
	struct dentry *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->room = (len + 4095) & ~(size_t)4095;
	d->data = malloc(d->room);
	if (d->data)
		return d;
	free(d);
	return NULL;
}

static struct dentry *insert(struct dcache *cache, uint64_t nid, uint64_t la, size_t len)
{
	struct dentry *d = evict(cache, len);
	struct dentry **bucket = find_bucket(cache, nid, la);

	if (!d)
		d = new_dentry(len);
	if (!d)
		return NULL;
	d->nid = nid;
	d->la = la;
	d->len = len;
	d->users = 1;
	d->state = 1;
	d->hash_next = *bucket;
	*bucket = d;
	push_lru(cache, d);
	cache->bytes += d->room;
	cache->fills++;
	return d;
}

static struct dentry *find(struct dcache *cache, uint64_t nid, uint64_t la, size_t len)
{
	struct dentry *d = *find_bucket(cache, nid, la);

	while (d && (d->nid != nid || d->la != la || d->len != len))
		d = d->hash_next;
	return d;
}

/* The lock is held. An entry that could not be filled leaves with its last user. */
static void release(struct dcache *cache, struct dentry *d)
{
	if (--d->users || d->state >= 0)
		return;
	unlink_lru(cache, d);
	unlink_hash(cache, d);
	cache->bytes -= d->room;
	free_dentry(d);
}

int erofs_dcache_get(struct dcache *cache, uint64_t nid, uint64_t la, size_t len,
		     struct dentry **ret_dentry, bool *ret_fill)
{
	struct dentry *d;
	int err = 0;

	pthread_mutex_lock(&cache->lock);
	cache->lookups++;
	d = find(cache, nid, la, len);
	*ret_fill = !d;
	if (!d) {
		d = insert(cache, nid, la, len);
		err = d ? 0 : -ENOMEM;
	} else {
		d->users++;
		while (d->state == 1)
			pthread_cond_wait(&cache->filled, &cache->lock);
		err = d->state;
		unlink_lru(cache, d);
		push_lru(cache, d);
		if (err)
			release(cache, d);
	}
	pthread_mutex_unlock(&cache->lock);
	if (!err)
		*ret_dentry = d;
	return err;
}

void erofs_dcache_filled(struct dcache *cache, struct dentry *dentry, int err)
{
	pthread_mutex_lock(&cache->lock);
	dentry->state = err;
	pthread_cond_broadcast(&cache->filled);
	if (err)
		release(cache, dentry);
	pthread_mutex_unlock(&cache->lock);
}

void erofs_dcache_put(struct dcache *cache, struct dentry *dentry)
{
	pthread_mutex_lock(&cache->lock);
	release(cache, dentry);
	pthread_mutex_unlock(&cache->lock);
}

void erofs_dcache_counts(struct dcache *cache, uint64_t *ret_lookups, uint64_t *ret_fills)
{
	pthread_mutex_lock(&cache->lock);
	*ret_lookups = cache->lookups;
	*ret_fills = cache->fills;
	pthread_mutex_unlock(&cache->lock);
}
