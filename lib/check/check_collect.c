// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The collector: references to stored data, found in the order of directories, wanted in the order of
 * addresses, in bounded memory.
 *
 * A shelf that is full grows while there is memory, then leaves out what is double, and at last gives
 * up the upper half of its addresses: then the window's end sinks for all lanes, and another pass over
 * the metadata collects what lies behind it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "check/check_priv.h"

#define STEP_MAX 16384		/* references, 256 KiB: grown by mremap, not by copying */
#define STEP_MIN 256

/* ---- groups ---- */

/* Stored length, algorithm, then decoded length: for finding references that disagree in the first two. */
static uint64_t key_first(uint64_t word)
{
	return (word >> 13 & 0x1ffffff) << 24 | (word >> 38 & 0xffffff);
}

static bool is_partial_word(uint64_t word)
{
	return word >> 13 & 1;
}

static void add_exact(struct group *g, uint64_t word)
{
	g->exact_max = g->has_exact ? max_u64(g->exact_max, word) : word;
	g->exact_min = g->has_exact ? min_u64(g->exact_min, word) : word;
	g->has_exact = true;
}

static void add_partial(struct group *g, uint64_t word)
{
	if (!g->has_partial) {
		g->partial_long = g->partial_max = g->partial_min = word;
		g->has_partial = true;
		return;
	}
	g->partial_long = max_u64(g->partial_long, word);
	if (key_first(word) > key_first(g->partial_max))
		g->partial_max = word;
	if (key_first(word) < key_first(g->partial_min))
		g->partial_min = word;
}

void erofs_group_add(struct group *g, uint64_t word)
{
	if (word & PCREF_RAW) {
		g->raw_len = max_u64(g->raw_len, word & ~PCREF_RAW);
		g->has_raw = true;
	} else if (is_partial_word(word)) {
		add_partial(g, word);
	} else {
		add_exact(g, word);
	}
}

void erofs_group_init(struct group *g, const struct pcref *ref)
{
	*g = (struct group){ .addr = ref->addr };
	erofs_group_add(g, ref->word);
}

/* Insert into a descending list unless it is there. */
static unsigned int put_word(struct pcref *refs, unsigned int n, uint64_t addr, uint64_t word)
{
	unsigned int at, i;

	for (at = 0; at < n && refs[at].word > word; at++)
		;
	if (at < n && refs[at].word == word)
		return n;
	for (i = n; i > at; i--)
		refs[i] = refs[i - 1];
	refs[at] = (struct pcref){ addr, word };
	return n + 1;
}

unsigned int erofs_group_refs(const struct group *g, struct pcref refs[GROUP_REFS])
{
	unsigned int n = 0;

	if (g->has_raw)
		n = put_word(refs, n, g->addr, PCREF_RAW | g->raw_len);
	if (g->has_exact) {
		n = put_word(refs, n, g->addr, g->exact_max);
		n = put_word(refs, n, g->addr, g->exact_min);
	}
	if (g->has_partial) {
		n = put_word(refs, n, g->addr, g->partial_long);
		n = put_word(refs, n, g->addr, g->partial_max);
		n = put_word(refs, n, g->addr, g->partial_min);
	}
	return n;
}

/* ---- shelves ---- */

int erofs_collector_init(struct collector *col, unsigned int nshelves, size_t bytes)
{
	size_t total = bytes / sizeof(struct pcref), step = total / nshelves / 4;
	unsigned int i;

	step = step > STEP_MAX ? STEP_MAX : step < STEP_MIN ? STEP_MIN : step;
	col->shelves = aligned_alloc(CHECK_LINE, nshelves * sizeof(*col->shelves));
	if (!col->shelves)
		return -ENOMEM;
	for (i = 0; i < nshelves; i++)
		col->shelves[i] = (struct shelf){ .bound = UINT64_MAX };
	col->nshelves = nshelves;
	col->step = step;
	col->lo = 0;
	atomic_init(&col->bound, UINT64_MAX);
	atomic_init(&col->spare, total > nshelves * step ? total - nshelves * step : 0);
	return 0;
}

void erofs_collector_fini(struct collector *col)
{
	unsigned int i;

	for (i = 0; i < col->nshelves; i++)
		free(col->shelves[i].refs);
	free(col->shelves);
	*col = (struct collector){ 0 };
}

static uint64_t get_bound(struct collector *col)
{
	return atomic_load_explicit(&col->bound, memory_order_relaxed);
}

static bool take_spare(struct collector *col, size_t count)
{
	size_t spare = atomic_load_explicit(&col->spare, memory_order_relaxed);

	do {
		if (spare < count)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&col->spare, &spare, spare - count,
							memory_order_relaxed, memory_order_relaxed));
	return true;
}

static bool resize(struct shelf *s, size_t room)
{
	struct pcref *refs = realloc(s->refs, room * sizeof(*refs));

	if (!refs)
		return false;
	s->refs = refs;
	s->room = room;
	return true;
}

/* Leave out what the sunken window no longer covers, and return memory that others can use. */
static void purge(struct collector *col, struct shelf *s)
{
	uint64_t bound = get_bound(col);
	size_t i, n = 0, room;

	for (i = 0; i < s->count; i++)
		if (s->refs[i].addr < bound)
			s->refs[n++] = s->refs[i];
	s->count = n;
	s->bound = bound;
	room = (n / col->step + 1) * col->step;
	if (room < s->room && room >= col->step) {
		size_t back = s->room - room;

		if (resize(s, room))
			atomic_fetch_add_explicit(&col->spare, back, memory_order_relaxed);
	}
}

/* Sort and reduce groups. */
static void compact(struct shelf *s)
{
	size_t i = 0, n = 0;

	erofs_pcref_sort(s->refs, s->count);
	while (i < s->count) {
		struct pcref kept[GROUP_REFS];
		unsigned int k, nkept;
		struct group g;

		erofs_group_init(&g, &s->refs[i]);
		for (i++; i < s->count && s->refs[i].addr == g.addr; i++)
			erofs_group_add(&g, s->refs[i].word);
		nkept = erofs_group_refs(&g, kept);
		for (k = 0; k < nkept; k++)
			s->refs[n++] = kept[k];
	}
	s->count = n;
}

static void sink_bound(struct collector *col, uint64_t to)
{
	uint64_t bound = get_bound(col);

	while (to < bound && !atomic_compare_exchange_weak_explicit(&col->bound, &bound, to, memory_order_relaxed,
								    memory_order_relaxed))
		;
}

static int make_room(struct collector *col, struct shelf *s)
{
	if (!s->room)
		return resize(s, col->step) ? 0 : -ENOMEM;
	if (take_spare(col, col->step)) {
		if (resize(s, s->room + col->step))
			return 0;
		atomic_fetch_add_explicit(&col->spare, col->step, memory_order_relaxed);
	}
	compact(s);
	/* a shelf holds at least STEP_MIN references, a group at most 6: the middle is not the first group */
	if (s->count > s->room / 4 * 3) {
		sink_bound(col, s->refs[s->count / 2].addr);
		purge(col, s);
	}
	return 0;
}

int erofs_collector_add(struct collector *col, unsigned int shelf, uint64_t addr, uint64_t word)
{
	struct shelf *s = &col->shelves[shelf];
	int err;

	if (addr < col->lo || addr >= get_bound(col))
		return 0;
	if (s->count && s->refs[s->count - 1].addr == addr && s->refs[s->count - 1].word == word)
		return 0;
	if (s->bound != get_bound(col))
		purge(col, s);
	while (s->count == s->room) {
		err = make_room(col, s);
		if (err)
			return err;
	}
	if (addr < get_bound(col))
		s->refs[s->count++] = (struct pcref){ addr, word };
	return 0;
}

void erofs_collector_sort(struct collector *col, unsigned int shelf)
{
	struct shelf *s = &col->shelves[shelf];

	if (s->bound != get_bound(col))
		purge(col, s);
	compact(s);
	s->next = 0;
}

/* ---- draining ---- */

static const struct pcref *head_of(const struct shelf *s)
{
	return s->next < s->count ? &s->refs[s->next] : NULL;
}

bool erofs_collector_next(struct collector *col, struct group *ret_group)
{
	const struct pcref *head = NULL, *r;
	unsigned int i;

	for (i = 0; i < col->nshelves; i++) {
		r = head_of(&col->shelves[i]);
		if (r && (!head || r->addr < head->addr))
			head = r;
	}
	if (!head)
		return false;
	erofs_group_init(ret_group, head);
	for (i = 0; i < col->nshelves; i++) {
		struct shelf *s = &col->shelves[i];

		while ((r = head_of(s)) && r->addr == ret_group->addr) {
			erofs_group_add(ret_group, r->word);
			s->next++;
		}
	}
	return true;
}

bool erofs_collector_advance(struct collector *col)
{
	uint64_t bound = get_bound(col);
	unsigned int i;

	if (bound == UINT64_MAX)
		return false;
	for (i = 0; i < col->nshelves; i++) {
		col->shelves[i].count = 0;
		col->shelves[i].bound = UINT64_MAX;
	}
	col->lo = bound;
	atomic_store_explicit(&col->bound, UINT64_MAX, memory_order_relaxed);
	return true;
}
