// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Sorting references in place: quicksort that falls back to heapsort, since images choose the input.
 * Not qsort(): it may allocate as much again, and calls back for every comparison.
 */
#include "check/check_priv.h"

#define SORT_SMALL 24	/* insertion sort from here down */

static inline bool is_less(const struct pcref *a, const struct pcref *b)
{
	return a->addr != b->addr ? a->addr < b->addr : a->word > b->word;
}

static inline void swap_refs(struct pcref *a, struct pcref *b)
{
	struct pcref t = *a;

	*a = *b;
	*b = t;
}

static void sort_small(struct pcref *r, size_t n)
{
	size_t i, j;

	for (i = 1; i < n; i++) {
		struct pcref x = r[i];

		for (j = i; j && is_less(&x, &r[j - 1]); j--)
			r[j] = r[j - 1];
		r[j] = x;
	}
}

static void sift_down(struct pcref *r, size_t at, size_t n)
{
	size_t child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && is_less(&r[child], &r[child + 1]))
			child++;
		if (!is_less(&r[at], &r[child]))
			return;
		swap_refs(&r[at], &r[child]);
		at = child;
	}
}

static void sort_heap(struct pcref *r, size_t n)
{
	size_t i;

	for (i = n / 2; i--; )
		sift_down(r, i, n);
	for (i = n; i-- > 1; ) {
		swap_refs(&r[0], &r[i]);
		sift_down(r, 0, i);
	}
}

/* Median of three to the middle; that keeps sorted input sorted. n > 2. */
static struct pcref choose_pivot(struct pcref *r, size_t n)
{
	struct pcref *mid = &r[n / 2], *last = &r[n - 1];

	if (is_less(mid, r))
		swap_refs(mid, r);
	if (is_less(last, mid)) {
		swap_refs(last, mid);
		if (is_less(mid, r))
			swap_refs(mid, r);
	}
	return *mid;
}

/* Returns the length of the first part: 1 .. n - 1. */
static size_t split(struct pcref *r, size_t n)
{
	struct pcref pivot = choose_pivot(r, n);
	size_t i = 0, j = n - 1;

	for (;;) {
		while (is_less(&r[i], &pivot))
			i++;
		while (is_less(&pivot, &r[j]))
			j--;
		if (i >= j)
			return j + 1 < n ? j + 1 : n - 1;
		swap_refs(&r[i++], &r[j--]);
	}
}

static bool is_sorted(const struct pcref *r, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (is_less(&r[i], &r[i - 1]))
			return false;
	return true;
}

void erofs_pcref_sort(struct pcref *refs, size_t count)
{
	struct {
		struct pcref *r;
		size_t n;
		unsigned int depth;
	} stack[8 * sizeof(size_t)], cur = { refs, count, 0 };	/* the longer part waits: log2(count) deep */
	unsigned int top = 0, max_depth = 0;

	for (; count; count >>= 1)
		max_depth += 2;
	for (;;) {
		while (cur.n > SORT_SMALL && !is_sorted(cur.r, cur.n)) {
			size_t first;

			if (cur.depth++ > max_depth) {
				sort_heap(cur.r, cur.n);
				break;
			}
			first = split(cur.r, cur.n);
			stack[top] = cur;
			if (first > cur.n - first) {
				stack[top++].n = first;
				cur.r += first;
				cur.n -= first;
			} else {
				stack[top].r += first;
				stack[top++].n -= first;
				cur.n = first;
			}
		}
		if (cur.n <= SORT_SMALL)
			sort_small(cur.r, cur.n);
		if (!top)
			return;
		cur = stack[--top];
	}
}
