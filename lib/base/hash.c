// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Hashes. XXH32 is small enough to be here: so name filters are checked in every build, and one
 * library less is needed for names of a few bytes.
 */
#include "base/hash.h"
#include "base/wire.h"

#define XXH_P1 UINT32_C(0x9e3779b1)
#define XXH_P2 UINT32_C(0x85ebca77)
#define XXH_P3 UINT32_C(0xc2b2ae3d)
#define XXH_P4 UINT32_C(0x27d4eb2f)
#define XXH_P5 UINT32_C(0x165667b1)

static uint32_t rotate_left(uint32_t v, unsigned int bits)
{
	return v << bits | v >> (32 - bits);
}

/* Four lanes of 4 bytes each, while 16 bytes are left; the lanes are then folded into one. */
static uint32_t hash_stripes(const uint8_t **p, const uint8_t *end, uint32_t seed)
{
	uint32_t lane[4] = { seed + XXH_P1 + XXH_P2, seed + XXH_P2, seed, seed - XXH_P1 };
	unsigned int i;

	for (; end - *p >= 16; *p += 16) {
		for (i = 0; i < 4; i++)
			lane[i] = rotate_left(lane[i] + bytes_le32(*p + 4 * i) * XXH_P2, 13) *
				  XXH_P1;
	}
	return rotate_left(lane[0], 1) + rotate_left(lane[1], 7) + rotate_left(lane[2], 12) +
	       rotate_left(lane[3], 18);
}

uint32_t erofs_hash_xxh32(const void *buf, size_t len, uint32_t seed)
{
	const uint8_t *p = buf, *end = p + len;
	uint32_t h = len >= 16 ? hash_stripes(&p, end, seed) : seed + XXH_P5;

	h += (uint32_t)len;
	for (; end - p >= 4; p += 4)
		h = rotate_left(h + bytes_le32(p) * XXH_P3, 17) * XXH_P4;
	for (; p < end; p++)
		h = rotate_left(h + *p * XXH_P5, 11) * XXH_P1;
	h = (h ^ h >> 15) * XXH_P2;
	h = (h ^ h >> 13) * XXH_P3;
	return h ^ h >> 16;
}

uint64_t erofs_hash_bytes(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *p = buf;
	uint64_t h = seed ^ UINT64_C(0x9e3779b97f4a7c15);
	size_t i;

	for (i = 0; i < len; i++) {
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
		h ^= h >> 29;
	}
	return (h ^ len) * UINT64_C(0x9e3779b97f4a7c15);
}
