/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* SHA-256, by libcrypto where the build has it. */
#ifndef EROFS_BASE_SHA256_H
#define EROFS_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

struct sha256;

bool erofs_sha256_is_there(void);
/* NULL: no memory, or not there. Free it with erofs_sha256_free(). */
struct sha256 *erofs_sha256_new(void);
void erofs_sha256_free(struct sha256 *sha);
/* false: the library failed. */
bool erofs_sha256_update(struct sha256 *sha, const void *buf, size_t len);
/* The digest of all updates; nothing may follow but erofs_sha256_free(). */
bool erofs_sha256_final(struct sha256 *sha, uint8_t digest[SHA256_SIZE]);

#endif
