/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The cache of decoded extents of the packed and the metabox file, shared by all lanes of a run, so
 * that a pcluster that holds 500 small tails is decoded about once (engine.md E2).
 *
 * Bounded in bytes; entries in use may exceed the bound by one extent a lane. One thread decodes an
 * entry, others that want it wait: the decoding thread waits for nothing but, for the packed file, the
 * metabox file, which never waits for the packed one. The lock is a leaf.
 */
#ifndef EROFS_ENGINE_FRAGCACHE_H
#define EROFS_ENGINE_FRAGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dcache;

struct dentry {
	struct dentry *hash_next, *newer, *older;	/* L */
	uint64_t nid, la;	/* C while in the cache */
	uint8_t *data;		/* C while users > 0 */
	size_t len, room;	/* bytes decoded, bytes allocated */
	unsigned int users;	/* L */
	int state;		/* L  1: being filled, 0: ready, negative: its error */
};	/* L the cache's lock  C constant */

int erofs_dcache_new(size_t budget, struct dcache **ret_cache);
void erofs_dcache_free(struct dcache *cache);

/**
 * erofs_dcache_get() - find or make the entry of one extent
 * @nid, @la, @len: the file and the extent
 * @ret_fill: true: the caller must fill data and call erofs_dcache_filled()
 * Waits while another thread fills it.
 * Return: 0 and an entry that erofs_dcache_put() gives back; -ENOMEM; the error of whoever filled it.
 */
int erofs_dcache_get(struct dcache *cache, uint64_t nid, uint64_t la, size_t len,
		     struct dentry **ret_dentry, bool *ret_fill);
void erofs_dcache_filled(struct dcache *cache, struct dentry *dentry, int err);
void erofs_dcache_put(struct dcache *cache, struct dentry *dentry);

/* Look-ups and fills so far. */
void erofs_dcache_counts(struct dcache *cache, uint64_t *ret_lookups, uint64_t *ret_fills);

#endif
