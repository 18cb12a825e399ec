// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Collecting references to pclusters, in bounded memory, and bringing them into physical order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_priv.h"

#define FIRST_ROOM 1024

static int compare_refs(const void *va, const void *vb)
{
	const struct pcref *a = va, *b = vb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->word > b->word ? -1 : a->word < b->word;
}

static uint64_t get_hi(struct ref_window *win)
{
	return atomic_load_explicit(&win->hi, memory_order_relaxed);
}

static void lower_hi(struct ref_window *win, uint64_t hi)
{
	uint64_t old = get_hi(win);

	while (hi < old && !atomic_compare_exchange_weak_explicit(&win->hi, &old, hi, memory_order_relaxed,
								   memory_order_relaxed))
		;
}

static void drop_from(struct refs *r, uint64_t hi)
{
	size_t i, n = 0;

	for (i = 0; i < r->count; i++)
		if (r->refs[i].addr < hi)
			r->refs[n++] = r->refs[i];
	r->count = n;
}

static void drop_doubles(struct refs *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->count; i++)
		if (!n || compare_refs(&r->refs[n - 1], &r->refs[i]))
			r->refs[n++] = r->refs[i];
	r->count = n;
}

/*
 * Full: first what others already left to the next pass goes, then doubles, then the upper quarter. The
 * rest stays, so each pass gets on.
 */
static void squeeze(struct refs *r, struct ref_window *win)
{
	drop_from(r, get_hi(win));
	if (!r->count || r->count < r->room / 8 * 7)
		return;
	erofs_refs_sort(r);
	drop_doubles(r);
	if (r->count < r->room / 8 * 7)
		return;
	if (r->refs[r->count / 4 * 3].addr > r->refs[0].addr) {
		lower_hi(win, r->refs[r->count / 4 * 3].addr);
		drop_from(r, get_hi(win));
	}
}

/* Take up to @want references' worth of the budget that all lanes share. */
static size_t take_spare(struct ref_window *win, size_t want)
{
	size_t old = atomic_load_explicit(&win->spare, memory_order_relaxed), n;

	do
		n = old < want ? old : want;
	while (n && !atomic_compare_exchange_weak_explicit(&win->spare, &old, old - n, memory_order_relaxed,
							   memory_order_relaxed));
	return n;
}

/* The first room is always there: a lane that comes last must be able to shrink the window. */
static bool grow(struct refs *r, struct ref_window *win)
{
	size_t more = r->room ? take_spare(win, r->room) : FIRST_ROOM;
	struct pcref *grown;

	if (!more)
		return false;
	grown = realloc(r->refs, (r->room + more) * sizeof(*grown));
	if (!grown)
		return false;
	r->refs = grown;
	r->room += more;
	return true;
}

int erofs_refs_add(struct refs *r, struct ref_window *win, const struct pcref *ref)
{
	if (ref->addr < win->lo || ref->addr >= get_hi(win))
		return 0;
	if (r->count == r->room && !grow(r, win)) {
		squeeze(r, win);
		if (r->count == r->room)
			return -ENOMEM;
		if (ref->addr >= get_hi(win))
			return 0;
	}
	r->refs[r->count++] = *ref;
	return 0;
}

void erofs_refs_sort(struct refs *r)
{
	size_t i;

	for (i = 1; i < r->count; i++)
		if (compare_refs(&r->refs[i - 1], &r->refs[i]) > 0)
			break;
	if (i < r->count)
		qsort(r->refs, r->count, sizeof(*r->refs), compare_refs);
}

int erofs_refs_stream_begin(struct ref_stream *s, const struct refs *lanes, unsigned int nlanes, uint64_t hi)
{
	*s = (struct ref_stream){ .lanes = lanes, .nlanes = nlanes, .hi = hi };
	s->at = calloc(nlanes + 1, sizeof(*s->at));
	return s->at ? 0 : -ENOMEM;
}

void erofs_refs_stream_end(struct ref_stream *s)
{
	free(s->at);
	s->at = NULL;
}

/* The lane whose next reference is the smallest; nlanes: none has any. */
static unsigned int smallest(const struct ref_stream *s)
{
	unsigned int i, best = s->nlanes;

	for (i = 0; i < s->nlanes; i++)
		if (s->at[i] < s->lanes[i].count &&
		    (best == s->nlanes || compare_refs(&s->lanes[i].refs[s->at[i]],
						       &s->lanes[best].refs[s->at[best]]) < 0))
			best = i;
	return best;
}

bool erofs_refs_stream_next(struct ref_stream *s, struct pcref *ret_ref)
{
	unsigned int i;

	while ((i = smallest(s)) < s->nlanes) {
		const struct pcref *ref = &s->lanes[i].refs[s->at[i]++];

		if (ref->addr >= s->hi)
			return false;
		if (s->has_last && !compare_refs(&s->last, ref))
			continue;
		s->last = *ref;
		s->has_last = true;
		*ret_ref = *ref;
		return true;
	}
	return false;
}
