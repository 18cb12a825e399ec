/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See codec_samples.h. A codec that this build lacks gives an empty stream. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HAVE_LZ4
#include <lz4.h>
#endif
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "codec_samples.h"

#undef NDEBUG

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * UINT32_C(1664525) + UINT32_C(1013904223);
	return *seed >> 8;
}

static struct bytes new_bytes(size_t len)
{
	struct bytes b = { .p = malloc(len ? len : 1), .len = len };

	assert(b.p);
	return b;
}

struct bytes samples_text(size_t len)
{
	static const char *const words[] = {
		"block", "cluster", "extent", "index", "inode", "page"
	};
	struct bytes b = new_bytes(len);
	uint32_t seed = 1;
	size_t at = 0;

	while (at < len) {
		char word[32];
		int n = snprintf(word, sizeof(word), "%s %x\n", words[next_random(&seed) % 6],
				 (unsigned int)(next_random(&seed) & 0xfff));
		size_t take = len - at < (size_t)n ? len - at : (size_t)n;

		memcpy(b.p + at, word, take);
		at += take;
	}
	return b;
}

struct bytes samples_zeros(size_t len)
{
	struct bytes b = new_bytes(len);

	memset(b.p, 0, len);
	return b;
}

struct bytes samples_noise(size_t len)
{
	struct bytes b = new_bytes(len);
	uint32_t seed = 7;

	for (size_t i = 0; i < len; i++)
		b.p[i] = (uint8_t)next_random(&seed);
	return b;
}

#if HAVE_LZ4
static struct bytes compress_lz4(struct bytes plain)
{
	struct bytes b = new_bytes((size_t)LZ4_compressBound((int)plain.len));
	int len = LZ4_compress_default((const char *)plain.p, (char *)b.p, (int)plain.len,
				       (int)b.len);

	assert(len > 0);
	b.len = (size_t)len;
	return b;
}
#endif

#if HAVE_LZMA
static struct bytes compress_lzma(struct bytes plain)
{
	struct bytes b = new_bytes(plain.len + plain.len / 2 + 64);
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_options_lzma options;

	assert(!lzma_lzma_preset(&options, 1));
	options.dict_size = SAMPLES_LZMA_DICT;
	assert(lzma_microlzma_encoder(&stream, &options) == LZMA_OK);
	stream.next_in = plain.p;
	stream.avail_in = plain.len;
	stream.next_out = b.p;
	stream.avail_out = b.len;
	assert(lzma_code(&stream, LZMA_FINISH) == LZMA_STREAM_END);
	assert(stream.total_in == plain.len);
	b.len = (size_t)stream.total_out;
	lzma_end(&stream);
	return b;
}
#endif

#if HAVE_ZLIB
static struct bytes deflate_raw(struct bytes plain, int level)
{
	struct bytes b = new_bytes(plain.len + plain.len / 64 + 1024);
	z_stream z = { 0 };

	assert(deflateInit2(&z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	z.next_in = plain.p;
	z.avail_in = (uInt)plain.len;
	z.next_out = b.p;
	z.avail_out = (uInt)b.len;
	assert(deflate(&z, Z_FINISH) == Z_STREAM_END);
	b.len = z.total_out;
	deflateEnd(&z);
	return b;
}

struct bytes samples_deflate_stored(struct bytes plain)
{
	return deflate_raw(plain, 0);
}
#else
struct bytes samples_deflate_stored(struct bytes plain)
{
	(void)plain;
	return new_bytes(0);
}
#endif

#if HAVE_ZSTD
struct bytes samples_zstd_with(struct bytes plain, const struct samples_zstd *how)
{
	struct bytes b = new_bytes(ZSTD_compressBound(plain.len));
	ZSTD_CCtx *cctx = ZSTD_createCCtx();

	assert(cctx);
	if (how->window_log)
		ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, how->window_log);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, !how->no_content_size);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, how->checksum);
	b.len = ZSTD_compress2(cctx, b.p, b.len, plain.p, plain.len);
	assert(!ZSTD_isError(b.len));
	ZSTD_freeCCtx(cctx);
	return b;
}
#else
struct bytes samples_zstd_with(struct bytes plain, const struct samples_zstd *how)
{
	(void)plain;
	(void)how;
	return new_bytes(0);
}
#endif

struct bytes samples_compress(enum codec_alg alg, struct bytes plain)
{
	static const struct samples_zstd how = { .window_log = SAMPLES_ZSTD_WINDOW_LOG };
	struct bytes b;

	switch (alg) {
#if HAVE_LZ4
	case CODEC_LZ4:
		return compress_lz4(plain);
#endif
#if HAVE_LZMA
	case CODEC_LZMA:
		return compress_lzma(plain);
#endif
#if HAVE_ZLIB
	case CODEC_DEFLATE:
		b = deflate_raw(plain, 6);
		if (!b.p[0])
			b.p[0] = 8;
		return b;
#endif
	case CODEC_ZSTD:
		return samples_zstd_with(plain, &how);
	default:
		b = new_bytes(0);
		return b;
	}
}
