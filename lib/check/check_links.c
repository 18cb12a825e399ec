// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Every inode once, and its names counted: a table of nids in bounded memory, in shards so that lanes
 * rarely meet. A shard that runs full gives up the upper half of its nids; nids are spread over shards
 * by hash, so its middle is about the middle of all, and the window of every shard ends there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/check_priv.h"

#define FIRST_SLOTS 32
#define MIN_SLOTS 64	/* of a shard, whatever the limit says */

int erofs_links_init(struct links *links, size_t bytes)
{
	unsigned int i;

	memset(links, 0, sizeof(*links));
	atomic_init(&links->hi, UINT64_MAX);
	links->max_slots = bytes / LINK_SHARDS / sizeof(struct link_slot);
	if (links->max_slots < MIN_SLOTS)
		links->max_slots = MIN_SLOTS;
	for (i = 0; i < LINK_SHARDS; i++)
		pthread_mutex_init(&links->shards[i].lock, NULL);
	for (i = 0; i < LINK_SHARDS; i++) {
		struct link_shard *s = &links->shards[i];

		s->slots = calloc(FIRST_SLOTS, sizeof(*s->slots));
		if (!s->slots)
			return -ENOMEM;
		s->nslots = FIRST_SLOTS;
	}
	return 0;
}

void erofs_links_fini(struct links *links)
{
	unsigned int i;

	if (!links->max_slots)
		return;
	for (i = 0; i < LINK_SHARDS; i++) {
		free(links->shards[i].slots);
		pthread_mutex_destroy(&links->shards[i].lock);
	}
	links->max_slots = 0;
}

void erofs_links_begin(struct links *links, uint64_t lo)
{
	unsigned int i;

	for (i = 0; i < LINK_SHARDS; i++) {
		struct link_shard *s = &links->shards[i];

		memset(s->slots, 0, s->nslots * sizeof(*s->slots));
		s->nused = 0;
	}
	links->lo = lo;
	atomic_store_explicit(&links->hi, UINT64_MAX, memory_order_relaxed);
}

static uint64_t hash_nid(uint64_t nid)
{
	nid *= UINT64_C(0x9e3779b97f4a7c15);
	nid ^= nid >> 32;
	return nid * UINT64_C(0xd6e8feb86659fd93);
}

/* The slot of a key, or the free one where it belongs. */
static struct link_slot *find_slot(struct link_slot *slots, size_t nslots, uint64_t key, uint64_t hash)
{
	size_t at = (size_t)((hash >> 8 & UINT32_MAX) * (uint64_t)nslots >> 32);

	while (slots[at].key && slots[at].key != key)
		at = at + 1 < nslots ? at + 1 : 0;
	return &slots[at];
}

/* Put the slots whose key is at most @last into a new array. false: no memory, nothing was changed. */
static bool rebuild(struct link_shard *s, size_t nslots, uint64_t last)
{
	struct link_slot *slots = calloc(nslots, sizeof(*slots));
	size_t i, used = 0;

	if (!slots)
		return false;
	for (i = 0; i < s->nslots; i++) {
		const struct link_slot *old = &s->slots[i];

		if (!old->key || old->key > last)
			continue;
		*find_slot(slots, nslots, old->key, hash_nid(old->key - 1)) = *old;
		used++;
	}
	free(s->slots);
	s->slots = slots;
	s->nslots = nslots;
	s->nused = used;
	return true;
}

static size_t count_up_to(const struct link_shard *s, uint64_t key)
{
	size_t i, n = 0;

	for (i = 0; i < s->nslots; i++)
		n += s->slots[i].key && s->slots[i].key <= key;
	return n;
}

/* The largest of the lower half of the keys, by halving the range of values. */
static uint64_t find_middle(const struct link_shard *s)
{
	uint64_t lo = 1, hi = UINT64_MAX;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (count_up_to(s, mid) >= s->nused / 2)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Drop the keys behind @last, telling which they were. */
static int evict(struct link_shard *s, uint64_t last, struct link_evicted *ev)
{
	size_t i, n = s->nused - count_up_to(s, last);
	uint64_t *nids = realloc(ev->nids, (ev->count + n + 1) * sizeof(*nids));

	if (!nids)
		return -ENOMEM;
	ev->nids = nids;
	for (i = 0; i < s->nslots; i++)
		if (s->slots[i].key > last)
			nids[ev->count++] = s->slots[i].key - 1;
	if (rebuild(s, s->nslots, last))
		return 0;
	ev->count -= n;
	return -ENOMEM;
}

static uint64_t get_hi(const struct links *links)
{
	return atomic_load_explicit(&links->hi, memory_order_relaxed);
}

static void sink_hi(struct links *links, uint64_t to)
{
	uint64_t hi = get_hi(links);

	while (to < hi && !atomic_compare_exchange_weak_explicit(&links->hi, &hi, to, memory_order_relaxed,
								 memory_order_relaxed))
		;
}

static int make_room(struct links *links, struct link_shard *s, struct link_evicted *ev)
{
	size_t nslots = s->nslots * 2 < links->max_slots ? s->nslots * 2 : links->max_slots;
	uint64_t last, hi;
	int err;

	if (nslots > s->nslots && rebuild(s, nslots, UINT64_MAX))
		return 0;
	/* others may have made the window smaller already */
	hi = get_hi(links);
	if (hi != UINT64_MAX) {
		err = evict(s, hi, ev);	/* keys are nid + 1: those of nids below hi */
		if (err || s->nused < s->nslots / 2)
			return err;
	}
	last = find_middle(s);
	err = evict(s, last, ev);
	if (!err)
		sink_hi(links, last);
	return err;
}

/* The lock is held. */
static int add_name(struct links *links, struct link_shard *s, uint64_t nid, uint32_t nlink, uint64_t hash,
		    struct link_evicted *ev)
{
	struct link_slot *slot = find_slot(s->slots, s->nslots, nid + 1, hash);

	if (slot->key) {
		slot->names += slot->names != UINT32_MAX;
		return LINK_AGAIN;
	}
	if (s->nused >= s->nslots / 8 * 7) {
		int err = make_room(links, s, ev);

		if (err)
			return err;
		if (nid >= get_hi(links))
			return LINK_OUTSIDE;
		slot = find_slot(s->slots, s->nslots, nid + 1, hash);
	}
	*slot = (struct link_slot){ .key = nid + 1, .names = 1, .nlink = nlink };
	s->nused++;
	return LINK_FIRST;
}

int erofs_links_add(struct links *links, uint64_t nid, uint32_t nlink, struct link_evicted *ev)
{
	uint64_t hash = hash_nid(nid);
	struct link_shard *s = &links->shards[hash % LINK_SHARDS];
	int r = LINK_OUTSIDE;

	if (nid < links->lo || nid == UINT64_MAX)
		return r;
	pthread_mutex_lock(&s->lock);
	/* below the window's end only: what is evicted later is counted anew by the next pass */
	if (nid < get_hi(links))
		r = add_name(links, s, nid, nlink, hash, ev);
	pthread_mutex_unlock(&s->lock);
	return r;
}

uint64_t erofs_links_end(const struct links *links)
{
	return get_hi(links);
}

static void report_slot(const struct link_slot *slot, bool complete, struct erofs_diag *diag)
{
	if (slot->names == slot->nlink || (!complete && slot->names < slot->nlink))
		return;
	erofs_diag_damage(diag, INODE_NLINK, AT_NID(slot->key - 1), "link count %" PRIu32 ", %" PRIu32
			  " name%s found", slot->nlink, slot->names, slot->names == 1 ? "" : "s");
}

void erofs_links_report(struct links *links, bool complete, struct erofs_diag *diag)
{
	uint64_t hi = get_hi(links);
	unsigned int i;
	size_t k;

	for (i = 0; i < LINK_SHARDS; i++) {
		const struct link_shard *s = &links->shards[i];

		for (k = 0; k < s->nslots; k++)
			if (s->slots[k].key && s->slots[k].key - 1 < hi)
				report_slot(&s->slots[k], complete, diag);
	}
}
