// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Log-linear histograms. */
#include <math.h>

#include "base/hist.h"

#define LAST_CLASS (HIST_POWERS * HIST_PARTS - 1)

/* Values below HIST_PARTS have a class each; from there on the highest HIST_PART_BITS + 1 bits choose. */
static unsigned int class_of(uint64_t v)
{
	unsigned int bits, c;

	if (v < HIST_PARTS)
		return (unsigned int)v;
	bits = 63u - (unsigned int)__builtin_clzll(v);
	c = (bits - HIST_PART_BITS) * HIST_PARTS + (unsigned int)(v >> (bits - HIST_PART_BITS));
	return c < LAST_CLASS ? c : LAST_CLASS;
}

/* The largest value of a class. */
static uint64_t top_of(unsigned int c)
{
	unsigned int shift;

	if (c < 2 * HIST_PARTS)
		return c;
	shift = c / HIST_PARTS - 1;
	return ((uint64_t)(c % HIST_PARTS + HIST_PARTS + 1) << shift) - 1;
}

void erofs_hist_add(struct hist *h, uint64_t v)
{
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count++;
	h->total += v;
	h->squares += (double)v * (double)v;
	h->classes[class_of(v)]++;
}

void erofs_hist_merge(struct hist *to, const struct hist *from)
{
	unsigned int i;

	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->total += from->total;
	to->squares += from->squares;
	for (i = 0; i <= LAST_CLASS; i++)
		to->classes[i] += from->classes[i];
}

uint64_t erofs_hist_quantile(const struct hist *h, double share)
{
	uint64_t want = (uint64_t)ceil(share * (double)h->count), seen = 0, top;
	unsigned int i;

	for (i = 0; i <= LAST_CLASS; i++) {
		seen += h->classes[i];
		if (!h->classes[i] || seen < want)
			continue;
		top = top_of(i);
		return top < h->max ? (top > h->min ? top : h->min) : h->max;
	}
	return h->max;
}

double erofs_hist_deviation(const struct hist *h)
{
	double n = (double)h->count, mean, variance;

	if (!h->count)
		return 0.0;
	mean = (double)h->total / n;
	variance = h->squares / n - mean * mean;
	return variance > 0.0 ? sqrt(variance) : 0.0;
}
