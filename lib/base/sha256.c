// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* SHA-256 by libcrypto. */
#include "base/sha256.h"

#ifdef HAVE_LIBCRYPTO
#include <openssl/evp.h>

bool erofs_sha256_is_there(void)
{
	return true;
}

struct sha256 *erofs_sha256_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1)
		return (struct sha256 *)ctx;
	EVP_MD_CTX_free(ctx);
	return NULL;
}

void erofs_sha256_free(struct sha256 *sha)
{
	EVP_MD_CTX_free((EVP_MD_CTX *)sha);
}

bool erofs_sha256_update(struct sha256 *sha, const void *buf, size_t len)
{
	return EVP_DigestUpdate((EVP_MD_CTX *)sha, buf, len) == 1;
}

bool erofs_sha256_final(struct sha256 *sha, uint8_t digest[SHA256_SIZE])
{
	unsigned int len = 0;

	return EVP_DigestFinal_ex((EVP_MD_CTX *)sha, digest, &len) == 1 && len == SHA256_SIZE;
}

#else

bool erofs_sha256_is_there(void)
{
	return false;
}

struct sha256 *erofs_sha256_new(void)
{
	return NULL;
}

void erofs_sha256_free(struct sha256 *sha)
{
	(void)sha;
}

bool erofs_sha256_update(struct sha256 *sha, const void *buf, size_t len)
{
	(void)sha;
	(void)buf;
	(void)len;
	return false;
}

bool erofs_sha256_final(struct sha256 *sha, uint8_t digest[SHA256_SIZE])
{
	(void)sha;
	(void)digest;
	return false;
}

#endif
