/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* The clock that all figures are taken with. */
#ifndef EROFS_BASE_CLOCK_H
#define EROFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t erofs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
