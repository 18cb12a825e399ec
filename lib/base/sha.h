/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* SHA-256 and SHA-512, by libcrypto where the build has it. A context belongs to one thread. */
#ifndef EROFS_BASE_SHA_H
#define EROFS_BASE_SHA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sha_kind {
	SHA_256,
	SHA_512,
};

#define SHA256_SIZE 32
#define SHA_MAX_SIZE 64		/* bytes of the longest digest */

struct sha;

/* Bytes of a digest, and of what the function takes in at a time. */
static inline size_t erofs_sha_size(enum sha_kind kind)
{
	return kind == SHA_256 ? SHA256_SIZE : SHA_MAX_SIZE;
}

static inline size_t erofs_sha_block(enum sha_kind kind)
{
	return kind == SHA_256 ? 64 : 128;
}

/* Is libcrypto to be had? */
bool erofs_sha_is_there(void);
/* NULL: no memory, or not there. Free it with erofs_sha_free(). */
struct sha *erofs_sha_new(enum sha_kind kind);
void erofs_sha_free(struct sha *sha);
/* Start; or start over, whatever went before. Allocates nothing the second time. */
void erofs_sha_begin(struct sha *sha);
void erofs_sha_update(struct sha *sha, const void *buf, size_t len);
void erofs_sha_zeros(struct sha *sha, uint64_t len);
/* The digest of all updates. false: the library failed, in this call or one before it. */
bool erofs_sha_final(struct sha *sha, uint8_t *digest);

#endif
