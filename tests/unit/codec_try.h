/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding under watch, for tests of the codec room. */
#ifndef TESTS_CODEC_TRY_H
#define TESTS_CODEC_TRY_H

#include "codec/codec_priv.h"
#include "codec_samples.h"

#define TRY_BLKSZ 512

/* All codecs, zero padding, the limits that codec_samples.c keeps to. */
extern const struct codec_config try_config;

struct try_outcome {
	int result;
	uint8_t *dst; /* dst_len bytes */
	struct codec_fault fault;
};

/* A request for @dst_len bytes, not partial, blocks of TRY_BLKSZ; the functions below set dst. */
struct codec_request try_request(enum codec_alg alg, struct bytes src, size_t dst_len);

/* A pcluster: @stream right-aligned in whole blocks, zeros in front. Caller frees. */
struct bytes try_pad(struct bytes stream, size_t align);

/*
 * Decode over different old contents of dst. Asserts that these matter neither for the result nor
 * for the bytes of a success, that the bytes around dst stay as they are, and that a failure
 * says something. dst is allocated to the byte: with --enable-asan any excess is seen.
 */
struct try_outcome try_decode(struct codec_ctx *ctx, struct codec_request req);
void try_drop(struct try_outcome *out);

/*
 * Run those of @tests whose initial state, a const enum codec_alg *, is NULL or built. The others
 * are left out: what cmocka prints for skip(), "not ok # SKIP", is a failure to prove.
 */
struct CMUnitTest;
int try_run(const char *name, const struct CMUnitTest *tests, size_t count);

/* Assert the result and, if that is 0, the bytes. */
void try_expect(struct codec_ctx *ctx, struct codec_request req, int result, const uint8_t *plain);

/* Assert -EUCLEAN, with @text somewhere in the fault. */
void try_expect_fault(struct codec_ctx *ctx, struct codec_request req, const char *text);

#endif
