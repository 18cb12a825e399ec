/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compressed streams for tests of the codec room, made by the codec libraries at test time. */
#ifndef TESTS_CODEC_SAMPLES_H
#define TESTS_CODEC_SAMPLES_H

#include "codec/codec_priv.h"

struct bytes {
	uint8_t *p;
	size_t len;
};

#define SAMPLES_LZMA_DICT 65536
#define SAMPLES_ZSTD_WINDOW_LOG 20

/* Bytes that compress to about half: lines of words with numbers among them. Caller frees. */
struct bytes samples_text(size_t len);
struct bytes samples_zeros(size_t len);
struct bytes samples_noise(size_t len);

/* A stream of @alg that decodes to exactly @plain, as a builder would make it. Caller frees. */
struct bytes samples_compress(enum codec_alg alg, struct bytes plain);

/* Stored blocks only. The first byte is 0 before a builder sets bit 3 (format.md 9.7). */
struct bytes samples_deflate_stored(struct bytes plain);

struct samples_zstd {
	int window_log; /* 0: the library's choice */
	bool no_content_size;
	bool checksum;
};
struct bytes samples_zstd_with(struct bytes plain, const struct samples_zstd *how);

#endif
