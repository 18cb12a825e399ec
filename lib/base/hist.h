/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * A histogram of times, in bounded memory: each power of two has HIST_PARTS classes of equal width, so
 * that what is read from it is at most 1/HIST_PARTS (0.8 per cent) above the true value. Sums are exact.
 */
#ifndef EROFS_BASE_HIST_H
#define EROFS_BASE_HIST_H

#include <stdint.h>

#define HIST_PART_BITS 7
#define HIST_PARTS (1u << HIST_PART_BITS)
#define HIST_POWERS 34		/* up to 2^41 ns: 36 minutes; longer times count as that */

struct hist {
	uint64_t count, total, min, max;
	double squares;			/* sum of squares */
	uint32_t classes[HIST_POWERS * HIST_PARTS];
};

/* Add one value. One thread. */
void erofs_hist_add(struct hist *h, uint64_t v);
/* Add all of @from to @to. */
void erofs_hist_merge(struct hist *to, const struct hist *from);
/* The value that @share (0 to 1) of all values do not exceed; 0 if there are none. */
uint64_t erofs_hist_quantile(const struct hist *h, double share);
/* Standard deviation; 0 if there are none. */
double erofs_hist_deviation(const struct hist *h);

#endif
