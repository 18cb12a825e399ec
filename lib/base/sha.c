// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * SHA by libcrypto, which is loaded when the first digest is wanted: linked, it takes 1.6 of the 3.3 ms
 * that checking a small image takes from start to end, and hardly any run wants it.
 */
#include <stdlib.h>

#include "base/checked.h"
#include "base/sha.h"

#ifdef HAVE_LIBCRYPTO
#include <dlfcn.h>
#include <openssl/evp.h>

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#define LIBCRYPTO "libcrypto.so.3"
#else
#define LIBCRYPTO "libcrypto.so.1.1"
#endif

struct sha {
	enum sha_kind kind;
	bool failed;
	EVP_MD_CTX *ctx;
	const EVP_MD *type;	/* NULL once the context knows it: naming it again makes it look it up */
	__typeof__(&EVP_MD_CTX_free) free;
	__typeof__(&EVP_DigestInit_ex) init;
	__typeof__(&EVP_DigestUpdate) update;
	__typeof__(&EVP_DigestFinal_ex) final;
};

/* Once loaded it stays: digests come by the thousand. */
static void *load(void)
{
	return dlopen(LIBCRYPTO, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

bool erofs_sha_is_there(void)
{
	return load();
}

struct sha *erofs_sha_new(enum sha_kind kind)
{
	struct sha *sha = calloc(1, sizeof(*sha));
	__typeof__(&EVP_MD_CTX_new) make;
	__typeof__(&EVP_sha256) type;
	void *lib = load();

	if (!sha || !lib) {
		free(sha);
		return NULL;
	}
	sha->kind = kind;
	/* POSIX's way from an object pointer to a function pointer */
	*(void **)&make = dlsym(lib, "EVP_MD_CTX_new");
	*(void **)&type = dlsym(lib, kind == SHA_256 ? "EVP_sha256" : "EVP_sha512");
	*(void **)&sha->init = dlsym(lib, "EVP_DigestInit_ex");
	*(void **)&sha->free = dlsym(lib, "EVP_MD_CTX_free");
	*(void **)&sha->update = dlsym(lib, "EVP_DigestUpdate");
	*(void **)&sha->final = dlsym(lib, "EVP_DigestFinal_ex");
	if (make && type && sha->init && sha->free && sha->update && sha->final)
		sha->ctx = make();
	if (sha->ctx) {
		sha->type = type();
		erofs_sha_begin(sha);
		if (!sha->failed)
			return sha;
	}
	erofs_sha_free(sha);
	return NULL;
}

void erofs_sha_free(struct sha *sha)
{
	if (sha && sha->ctx)
		sha->free(sha->ctx);
	free(sha);
}

void erofs_sha_begin(struct sha *sha)
{
	sha->failed = sha->init(sha->ctx, sha->type, NULL) != 1;
	sha->type = NULL;
}

void erofs_sha_update(struct sha *sha, const void *buf, size_t len)
{
	sha->failed |= sha->update(sha->ctx, buf, len) != 1;
}

bool erofs_sha_final(struct sha *sha, uint8_t *digest)
{
	unsigned int len = 0;

	return !sha->failed && sha->final(sha->ctx, digest, &len) == 1 && len == erofs_sha_size(sha->kind);
}

#else

struct sha {
	enum sha_kind kind;
};

bool erofs_sha_is_there(void)
{
	return false;
}

struct sha *erofs_sha_new(enum sha_kind kind)
{
	(void)kind;
	return NULL;
}

void erofs_sha_free(struct sha *sha)
{
	(void)sha;
}

void erofs_sha_begin(struct sha *sha)
{
	(void)sha;
}

void erofs_sha_update(struct sha *sha, const void *buf, size_t len)
{
	(void)sha;
	(void)buf;
	(void)len;
}

bool erofs_sha_final(struct sha *sha, uint8_t *digest)
{
	(void)sha;
	(void)digest;
	return false;
}

#endif

void erofs_sha_zeros(struct sha *sha, uint64_t len)
{
	static const uint8_t zeros[65536];

	for (; len; len -= min_u64(len, sizeof(zeros)))
		erofs_sha_update(sha, zeros, (size_t)min_u64(len, sizeof(zeros)));
}
