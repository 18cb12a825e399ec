// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Which inodes were met, and by how many names: hash tables over a window of nids. Where one is full the
 * window shrinks for all; what others already have beyond it is not looked at, since the next pass counts
 * those nids from their first name on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_priv.h"

#define FIRST_SLOTS 64

static uint64_t hash_nid(uint64_t nid)
{
	return nid * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t get_hi(struct links *l)
{
	return atomic_load_explicit(&l->hi, memory_order_relaxed);
}

static void lower_hi(struct links *l, uint64_t hi)
{
	uint64_t old = get_hi(l);

	while (hi < old && !atomic_compare_exchange_weak_explicit(&l->hi, &old, hi, memory_order_relaxed,
								   memory_order_relaxed))
		;
}

int erofs_links_init(struct links *l, size_t bytes)
{
	unsigned int i;

	memset(l, 0, sizeof(*l));
	atomic_init(&l->hi, UINT64_MAX);
	l->max_slots = bytes / LINK_SHARDS / sizeof(struct link_slot);
	if (l->max_slots < FIRST_SLOTS)
		l->max_slots = FIRST_SLOTS;
	for (i = 0; i < LINK_SHARDS; i++) {
		struct link_shard *s = &l->shards[i];

		pthread_mutex_init(&s->lock, NULL);
		s->slots = calloc(FIRST_SLOTS, sizeof(*s->slots));
		s->nslots = FIRST_SLOTS;
		if (!s->slots)
			return -ENOMEM;
	}
	return 0;
}

void erofs_links_fini(struct links *l)
{
	unsigned int i;

	for (i = 0; i < LINK_SHARDS && l->shards[i].nslots; i++) {
		free(l->shards[i].slots);
		pthread_mutex_destroy(&l->shards[i].lock);
	}
	memset(l, 0, sizeof(*l));
}

static struct link_slot *find(struct link_slot *slots, size_t nslots, uint64_t nid)
{
	size_t at = (size_t)(hash_nid(nid) >> 20) & (nslots - 1);

	while (slots[at].names && slots[at].nid != nid)
		at = (at + 1) & (nslots - 1);
	return &slots[at];
}

/* Move what lies below @hi to a table of @nslots. false: no memory, nothing changed. */
static bool rehash(struct link_shard *s, size_t nslots, uint64_t hi)
{
	struct link_slot *slots = calloc(nslots, sizeof(*slots));
	size_t i, used = 0;

	if (!slots)
		return false;
	for (i = 0; i < s->nslots; i++) {
		if (!s->slots[i].names || s->slots[i].nid >= hi)
			continue;
		*find(slots, nslots, s->slots[i].nid) = s->slots[i];
		used++;
	}
	free(s->slots);
	s->slots = slots;
	s->nslots = nslots;
	s->nused = used;
	return true;
}

static int compare_nid(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A nid with about as many smaller ones in the table as larger ones: the median of a sample. */
static uint64_t middle_nid(const struct link_shard *s)
{
	uint64_t sample[255];
	size_t i, n = 0, step = s->nused / 255 + 1, skip = 0;

	for (i = 0; i < s->nslots && n < 255; i++)
		if (s->slots[i].names && skip++ % step == 0)
			sample[n++] = s->slots[i].nid;
	qsort(sample, n, sizeof(*sample), compare_nid);
	return sample[n / 2];
}

/* Make room by growing, or by leaving the upper half of the nids to the next pass. */
static bool make_room(struct links *l, struct link_shard *s)
{
	uint64_t mid;

	if (s->nused < s->nslots / 8 * 7)
		return true;
	if (s->nslots * 2 <= l->max_slots && rehash(s, s->nslots * 2, get_hi(l)))
		return true;
	mid = middle_nid(s);
	if (mid <= l->lo)
		return s->nused + 1 < s->nslots;
	lower_hi(l, mid);
	return rehash(s, s->nslots, get_hi(l));
}

enum links_answer erofs_links_add(struct links *l, uint64_t nid, uint32_t nlink)
{
	struct link_shard *s = &l->shards[hash_nid(nid) >> 59];
	enum links_answer answer = LINKS_OUTSIDE;
	struct link_slot *slot;

	_Static_assert(LINK_SHARDS == 32, "five bits of the hash choose");
	if (nid < l->lo || nid >= get_hi(l))
		return LINKS_OUTSIDE;
	pthread_mutex_lock(&s->lock);
	if (make_room(l, s) && nid < get_hi(l)) {
		slot = find(s->slots, s->nslots, nid);
		answer = slot->names ? LINKS_SEEN : LINKS_NEW;
		if (!slot->names) {
			slot->nid = nid;
			slot->nlink = nlink;
			s->nused++;
		}
		if (slot->names < UINT32_MAX)
			slot->names++;
	}
	pthread_mutex_unlock(&s->lock);
	return answer;
}

static void report_shard(const struct link_shard *s, uint64_t hi, const struct erofs_image *img,
			 struct erofs_diag *diag)
{
	size_t i;

	for (i = 0; i < s->nslots; i++) {
		const struct link_slot *slot = &s->slots[i];

		if (slot->names && slot->nid < hi && slot->names != slot->nlink)
			erofs_diag_damage(diag, INODE_NLINK, AT(slot->nid, erofs_inode_pos(img, slot->nid)),
					  "link count is %" PRIu32 ", %" PRIu32 " name%s found", slot->nlink,
					  slot->names, slot->names == 1 ? "" : "s");
	}
}

void erofs_links_report(struct links *l, const struct erofs_image *img, struct erofs_diag *diag)
{
	unsigned int i;

	for (i = 0; i < LINK_SHARDS; i++)
		report_shard(&l->shards[i], get_hi(l), img, diag);
}

bool erofs_links_advance(struct links *l)
{
	uint64_t hi = get_hi(l);

	l->lo = hi;
	if (hi == UINT64_MAX)
		return false;
	atomic_store_explicit(&l->hi, UINT64_MAX, memory_order_relaxed);
	return true;
}

void erofs_links_clear(struct links *l)
{
	unsigned int i;

	for (i = 0; i < LINK_SHARDS; i++) {
		memset(l->shards[i].slots, 0, l->shards[i].nslots * sizeof(*l->shards[i].slots));
		l->shards[i].nused = 0;
	}
}
