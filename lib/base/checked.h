/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Arithmetic on lengths and offsets that came from an image: it fails instead of wrapping. */
#ifndef EROFS_BASE_CHECKED_H
#define EROFS_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define add_ok(a, b, ret) (!__builtin_add_overflow((a), (b), (ret)))
#define sub_ok(a, b, ret) (!__builtin_sub_overflow((a), (b), (ret)))
#define mul_ok(a, b, ret) (!__builtin_mul_overflow((a), (b), (ret)))

/* Does [off, off + len) lie within [0, size)? */
static inline bool range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Round up to a power of two; the caller knows that @v is at most 2^63. */
static inline uint64_t round_up_u64(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static inline uint64_t round_down_u64(uint64_t v, uint64_t align)
{
	return v & ~(align - 1);
}

/* ceil(v / 2^bits) without overflow */
static inline uint64_t div_up_pow2(uint64_t v, unsigned int bits)
{
	return (v >> bits) + ((v & ((UINT64_C(1) << bits) - 1)) != 0);
}

#endif
