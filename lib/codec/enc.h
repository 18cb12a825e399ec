/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Encoders: as much input as fits into one pcluster.
 *
 * A method is what -z names: an algorithm of the format with the library that makes it. A struct enc
 * belongs to one thread; what it yields depends on its configuration and the input alone, never on what
 * it did before.
 */
#ifndef EROFS_CODEC_ENC_H
#define EROFS_CODEC_ENC_H

#include "codec/codec_priv.h"

#define ENC_LEVEL_OWN (-1)		/* none was given, and ours is none of the library's */

struct enc_config {
	int level;
	uint32_t dict_size;		/* bytes: dictionary or window; a power of two for Zstandard */
	uint32_t max_out;		/* bytes: the largest pcluster */
};

/*
 * @fill: *len bytes at src are there; *len becomes what was taken of them. At most @room bytes are
 * written to dst. Return: bytes of the stream, 0: nothing useful fits, negative errno.
 */
struct enc_method {
	const char *name;
	enum codec_alg alg;
	int min_level, max_level, default_level;
	int more_levels, max_more;	/* a second range, 0: none (LZMA's extreme levels) */
	uint32_t max_dict;		/* 0: the size cannot be chosen */
	int (*make)(const struct enc_config *config, void **ret_state);
	int (*fill)(void *state, const uint8_t *src, size_t *len, uint8_t *dst, size_t room);
	void (*free)(void *state);
};

extern const struct enc_method erofs_enc_lz4;
extern const struct enc_method erofs_enc_lz4hc;
extern const struct enc_method erofs_enc_lzma;
extern const struct enc_method erofs_enc_deflate;
extern const struct enc_method erofs_enc_libdeflate;
extern const struct enc_method erofs_enc_zstd;

/** erofs_enc_find() - the method of that name; NULL: unknown, or not in this build */
const struct enc_method *erofs_enc_find(const char *name, size_t len);

/** erofs_enc_list() - names of all methods of this build, separated by a comma and a blank */
const char *erofs_enc_list(void);

/*
 * For libraries that cannot fill a buffer of a given size: look for the longest input that fits.
 * @try: compress len bytes into room bytes. Return: size, 0: it does not fit, negative errno.
 */
typedef int (*enc_try_fn)(void *state, const uint8_t *src, size_t len, uint8_t *dst, size_t room);

struct enc_search {
	enc_try_fn try;
	void *state;
	uint8_t *spare;		/* room for the best so far, max_out bytes */
};
int erofs_enc_search(const struct enc_search *s, const uint8_t *src, size_t *len, uint8_t *dst,
		     size_t room);

#endif
