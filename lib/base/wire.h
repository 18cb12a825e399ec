/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Fields as they lie on disk: little-endian, unaligned, and of types of their own, so that no raw
 * value slips into arithmetic before it was turned into host order.
 */
#ifndef EROFS_BASE_WIRE_H
#define EROFS_BASE_WIRE_H

#include <stdint.h>

struct le16 {
	uint8_t b[2];
};

struct le32 {
	uint8_t b[4];
};

struct le64 {
	uint8_t b[8];
};

static inline uint16_t bytes_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t bytes_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t bytes_le64(const uint8_t *p)
{
	return bytes_le32(p) | (uint64_t)bytes_le32(p + 4) << 32;
}

static inline void put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline struct le16 le16_of(uint16_t v)
{
	struct le16 r;

	put_le16(r.b, v);
	return r;
}

static inline struct le32 le32_of(uint32_t v)
{
	struct le32 r;

	put_le32(r.b, v);
	return r;
}

static inline struct le64 le64_of(uint64_t v)
{
	struct le64 r;

	put_le64(r.b, v);
	return r;
}

static inline uint16_t le16_get(struct le16 v)
{
	return bytes_le16(v.b);
}

static inline uint32_t le32_get(struct le32 v)
{
	return bytes_le32(v.b);
}

static inline uint64_t le64_get(struct le64 v)
{
	return bytes_le64(v.b);
}

#endif
