/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The codec table, the contexts, and the padding in front of compressed data. The only file that
 * knows which codec libraries this build has.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec_priv.h"
#include "codec/dec.h"
#include "codec/enc.h"

static const char *const names[CODEC_COUNT] = {
	[CODEC_LZ4] = "lz4",
	[CODEC_LZMA] = "lzma",
	[CODEC_DEFLATE] = "deflate",
	[CODEC_ZSTD] = "zstd",
	[CODEC_SHIFTED] = "shifted",
	[CODEC_INTERLACED] = "interlaced",
};

static const struct dec_ops *const rows[CODEC_COUNT] = {
#if HAVE_LZ4
	[CODEC_LZ4] = &erofs_dec_lz4,
#endif
#if HAVE_LZMA
	[CODEC_LZMA] = &erofs_dec_lzma,
#endif
#if HAVE_ZLIB && HAVE_LIBDEFLATE
	[CODEC_DEFLATE] = &erofs_dec_libdeflate,
#elif HAVE_ZLIB
	[CODEC_DEFLATE] = &erofs_dec_deflate,
#endif
#if HAVE_ZSTD
	[CODEC_ZSTD] = &erofs_dec_zstd,
#endif
	[CODEC_SHIFTED] = &erofs_dec_shifted,
	[CODEC_INTERLACED] = &erofs_dec_interlaced,
};

#if HAVE_LZ4
#define LZ4_NAMES ", lz4, lz4hc"
#else
#define LZ4_NAMES ""
#endif
#if HAVE_LZMA
#define LZMA_NAMES ", lzma"
#else
#define LZMA_NAMES ""
#endif
#if HAVE_ZLIB && HAVE_LIBDEFLATE
#define DEFLATE_NAMES ", deflate, libdeflate"
#elif HAVE_ZLIB
#define DEFLATE_NAMES ", deflate"
#else
#define DEFLATE_NAMES ""
#endif
#if HAVE_ZSTD
#define ZSTD_NAMES ", zstd"
#else
#define ZSTD_NAMES ""
#endif

static const struct enc_method *const methods[] = {
#if HAVE_LZ4
	&erofs_enc_lz4, &erofs_enc_lz4hc,
#endif
#if HAVE_LZMA
	&erofs_enc_lzma,
#endif
#if HAVE_ZLIB
	&erofs_enc_deflate,
#endif
#if HAVE_ZLIB && HAVE_LIBDEFLATE
	&erofs_enc_libdeflate,
#endif
#if HAVE_ZSTD
	&erofs_enc_zstd,
#endif
	NULL,
};

struct codec_ctx {
	struct codec_config config;
	void *state[CODEC_COUNT]; /* made at the first use of the codec */
};

int erofs_codec_damage(struct codec_fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return -EUCLEAN;
}

bool erofs_codec_is_built(unsigned int alg)
{
	return alg < CODEC_COUNT && rows[alg];
}

const char *erofs_codec_name(unsigned int alg)
{
	return alg < CODEC_COUNT ? names[alg] : NULL;
}

int erofs_codec_ctx_new(const struct codec_config *config, struct codec_ctx **ret_ctx)
{
	struct codec_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return -ENOMEM;
	ctx->config = *config;
	*ret_ctx = ctx;
	return 0;
}

void erofs_codec_ctx_free(struct codec_ctx *ctx)
{
	if (!ctx)
		return;
	for (unsigned int alg = 0; alg < CODEC_COUNT; alg++) {
		if (ctx->state[alg])
			rows[alg]->free(ctx->state[alg]);
	}
	free(ctx);
}

/* Many last pclusters of files are half padding, so eight bytes a step. */
static size_t count_leading_zeros(const uint8_t *p, size_t len)
{
	uint64_t word;
	size_t n = 0;

	while (len - n >= sizeof(word)) {
		memcpy(&word, p + n, sizeof(word));
		if (word)
			break;
		n += sizeof(word);
	}
	while (n < len && !p[n])
		n++;
	return n;
}

/*
 * format.md 9.7: a right-aligned stream begins with the first byte that is not zero, within the
 * first block. Without zero padding (LZ4 of old images only) the stream begins at once and anything
 * may follow it, so its end can't be demanded.
 */
static int find_stream(const struct codec_config *config, struct codec_request *req,
		       struct codec_fault *fault)
{
	size_t limit = req->src_len < req->blksz ? req->src_len : req->blksz;
	size_t padding;

	if (!config->zero_padding) {
		if (req->alg != CODEC_LZ4)
			return erofs_codec_damage(fault, "%s data in an image without zero padding",
						  names[req->alg]);
		req->partial = true;
		return 0;
	}
	padding = count_leading_zeros(req->src, limit);
	if (padding == limit)
		return erofs_codec_damage(fault, "first block of the pcluster is all zero");
	req->src += padding;
	req->src_len -= padding;
	return 0;
}

static int describe_missing(unsigned int alg, struct codec_fault *fault)
{
	size_t size = sizeof(fault->text);

	if (alg < CODEC_COUNT)
		snprintf(fault->text, size, "this build has no %s decoder", names[alg]);
	else
		snprintf(fault->text, size, "compression algorithm %u is unknown", alg);
	return -EOPNOTSUPP;
}

int erofs_codec_decode(struct codec_ctx *ctx, const struct codec_request *req,
		       struct codec_fault *fault)
{
	struct codec_request stream = *req;
	const struct dec_ops *ops;
	int err;

	if (!erofs_codec_is_built(req->alg))
		return describe_missing(req->alg, fault);
	ops = rows[req->alg];
	if (req->alg != CODEC_SHIFTED && req->alg != CODEC_INTERLACED) {
		err = find_stream(&ctx->config, &stream, fault);
		if (err)
			return err;
	}
	if (ops->make && !ctx->state[req->alg]) {
		err = ops->make(&ctx->config, &ctx->state[req->alg], fault);
		if (err)
			return err;
	}
	return ops->decode(ctx->state[req->alg], &stream, fault);
}

const struct enc_method *erofs_enc_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; methods[i]; i++)
		if (strlen(methods[i]->name) == len && !memcmp(methods[i]->name, name, len))
			return methods[i];
	return NULL;
}

const char *erofs_enc_list(void)
{
	static const char text[] = LZ4_NAMES LZMA_NAMES DEFLATE_NAMES ZSTD_NAMES;

	return methods[0] ? text + 2 : "none";
}
