// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which inodes were met, and by how many names: a hash table over a window of nids. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_priv.h"

#define FIRST_SLOTS 256

int erofs_links_init(struct links *l, size_t bytes)
{
	memset(l, 0, sizeof(*l));
	l->slots = calloc(FIRST_SLOTS, sizeof(*l->slots));
	if (!l->slots)
		return -ENOMEM;
	l->nslots = FIRST_SLOTS;
	l->max_slots = bytes / sizeof(*l->slots);
	if (l->max_slots < FIRST_SLOTS)
		l->max_slots = FIRST_SLOTS;
	l->hi = UINT64_MAX;
	pthread_mutex_init(&l->lock, NULL);
	return 0;
}

void erofs_links_fini(struct links *l)
{
	if (!l->slots)
		return;
	free(l->slots);
	l->slots = NULL;
	pthread_mutex_destroy(&l->lock);
}

static struct link_slot *find(struct link_slot *slots, size_t nslots, uint64_t nid)
{
	size_t at = (size_t)(nid * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (nslots - 1);

	while (slots[at].names && slots[at].nid != nid)
		at = (at + 1) & (nslots - 1);
	return &slots[at];
}

/* Move what lies below l->hi to a table of @nslots. false: no memory, nothing changed. */
static bool rehash(struct links *l, size_t nslots)
{
	struct link_slot *slots = calloc(nslots, sizeof(*slots));
	size_t i, used = 0;

	if (!slots)
		return false;
	for (i = 0; i < l->nslots; i++) {
		if (!l->slots[i].names || l->slots[i].nid >= l->hi)
			continue;
		*find(slots, nslots, l->slots[i].nid) = l->slots[i];
		used++;
	}
	free(l->slots);
	l->slots = slots;
	l->nslots = nslots;
	l->nused = used;
	return true;
}

static int compare_nid(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A nid with about as many smaller ones in the table as larger ones: the median of a sample. */
static uint64_t middle_nid(const struct links *l)
{
	uint64_t sample[255];
	size_t i, n = 0, step = l->nused / 255 + 1, skip = 0;

	for (i = 0; i < l->nslots && n < 255; i++)
		if (l->slots[i].names && skip++ % step == 0)
			sample[n++] = l->slots[i].nid;
	qsort(sample, n, sizeof(*sample), compare_nid);
	return sample[n / 2];
}

/* Make room by growing, or by leaving the upper half of the nids to the next pass. */
static bool make_room(struct links *l)
{
	uint64_t mid;

	if (l->nused < l->nslots / 8 * 7)
		return true;
	if (l->nslots * 2 <= l->max_slots && rehash(l, l->nslots * 2))
		return true;
	mid = middle_nid(l);
	if (mid <= l->lo)
		return l->nused + 1 < l->nslots;
	l->hi = mid;
	return rehash(l, l->nslots);
}

enum links_answer erofs_links_add(struct links *l, uint64_t nid, uint32_t nlink)
{
	enum links_answer answer = LINKS_OUTSIDE;
	struct link_slot *slot;

	pthread_mutex_lock(&l->lock);
	if (nid >= l->lo && nid < l->hi && make_room(l) && nid < l->hi) {
		slot = find(l->slots, l->nslots, nid);
		answer = slot->names ? LINKS_SEEN : LINKS_NEW;
		if (!slot->names) {
			slot->nid = nid;
			slot->nlink = nlink;
			l->nused++;
		}
		if (slot->names < UINT32_MAX)
			slot->names++;
	}
	pthread_mutex_unlock(&l->lock);
	return answer;
}

void erofs_links_report(struct links *l, const struct erofs_image *img, struct erofs_diag *diag)
{
	size_t i;

	for (i = 0; i < l->nslots; i++) {
		const struct link_slot *s = &l->slots[i];

		if (s->names && s->names != s->nlink)
			erofs_diag_damage(diag, INODE_NLINK, AT(s->nid, erofs_inode_pos(img, s->nid)),
					  "link count is %" PRIu32 ", %"
					  PRIu32 " name%s found", s->nlink, s->names,
					  s->names == 1 ? "" : "s");
	}
}

bool erofs_links_advance(struct links *l)
{
	if (l->hi == UINT64_MAX) {
		l->lo = UINT64_MAX;
		return false;
	}
	l->lo = l->hi;
	l->hi = UINT64_MAX;
	return true;
}

void erofs_links_clear(struct links *l)
{
	memset(l->slots, 0, l->nslots * sizeof(*l->slots));
	l->nused = 0;
}
