/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Hashes: the one of the format's xattr name filter, and one for tables in memory. */
#ifndef EROFS_BASE_HASH_H
#define EROFS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/** erofs_hash_xxh32() - XXH32 as its public specification says; for short names, not for speed */
uint32_t erofs_hash_xxh32(const void *buf, size_t len, uint32_t seed);

/** erofs_hash_bytes() - 64 bits of hash for tables in memory; not stable between versions */
uint64_t erofs_hash_bytes(const void *buf, size_t len, uint64_t seed);

#endif
