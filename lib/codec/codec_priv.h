/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * codec: one pcluster, memory to memory.
 *
 * Owns the decoder contexts of the codec libraries. A context belongs to one thread; it is allocated
 * once, for the largest dictionary or window that the image declares, and reset for each pcluster.
 * Knows nothing of images, files or threads, takes no locks, reports nothing: a fault is described
 * in a struct codec_fault and the caller, who knows where the bytes lie, reports it.
 */
#ifndef EROFS_CODEC_PRIV_H
#define EROFS_CODEC_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids 0 to 3 are those of the format (format.md 9.1); plain pclusters follow (9.8). */
enum codec_alg {
	CODEC_LZ4,
	CODEC_LZMA,
	CODEC_DEFLATE,
	CODEC_ZSTD,
	CODEC_SHIFTED,
	CODEC_INTERLACED,
	CODEC_COUNT,
};

#define CODEC_MAX_PLEN (UINT32_C(1) << 20)		/* stored bytes of a pcluster, format.md 9.1 */
#define CODEC_MAX_DLEN (UINT32_C(12) << 20)		/* decoded bytes of an extent, format.md 9.1 */

/* From the superblock and its configuration records; limits were checked there. */
struct codec_config {
	bool zero_padding;		/* streams are right-aligned (format.md 9.7) */
	uint32_t lz4_max_distance;	/* bytes; 0 means 65535 */
	uint32_t lzma_dict_size;	/* bytes; 0: no LZMA in this image */
	uint8_t deflate_window_bits;	/* 8..15; 0: no DEFLATE in this image */
	uint8_t zstd_window_log;	/* log2 bytes; 0: no Zstandard in this image */
};

struct codec_request {
	enum codec_alg alg;
	const uint8_t *src;		/* the stored pcluster, padding included */
	size_t src_len;			/* 1..CODEC_MAX_PLEN */
	uint8_t *dst;			/* at least dst_len bytes; never written behind them */
	size_t dst_len;			/* 1..CODEC_MAX_DLEN: bytes wanted from the decoded beginning */
	bool partial;			/* the stream may decode to more than dst_len (format.md 9.12) */
	uint32_t blksz;			/* padding is shorter than this; unit of interlaced data */
	uint32_t interlace;		/* CODEC_INTERLACED: file offset of dst[0] modulo blksz */
};

struct codec_fault {
	char text[120];			/* what is wrong, one lower-case clause, no full stop */
};

struct codec_ctx;

/**
 * erofs_codec_ctx_new() - make one thread's decoders
 * @config:  copied
 * @ret_ctx: receives the context; contexts of the single codecs are made at their first use
 * Return: 0, -ENOMEM.
 */
int erofs_codec_ctx_new(const struct codec_config *config, struct codec_ctx **ret_ctx);

/** erofs_codec_ctx_free() - free a context; NULL is fine */
void erofs_codec_ctx_free(struct codec_ctx *ctx);

/**
 * erofs_codec_decode() - decode one pcluster
 * @fault: filled when the result is -EUCLEAN or -EOPNOTSUPP
 * Without @req->partial the stream must decode to exactly @req->dst_len bytes and, with zero
 * padding, end where the pcluster ends. On failure the contents of @req->dst are unspecified but were
 * written, never read: the caller must not use them.
 * Return: 0; -EUCLEAN the stream is damaged; -EOPNOTSUPP codec missing in this build; -ENOMEM.
 */
int erofs_codec_decode(struct codec_ctx *ctx, const struct codec_request *req,
		       struct codec_fault *fault);

/** erofs_codec_is_built() - was this algorithm compiled in? Shifted and interlaced always are. */
bool erofs_codec_is_built(unsigned int alg);

/** erofs_codec_name() - "lz4", "lzma", "deflate", "zstd", "shifted", "interlaced"; NULL if unknown */
const char *erofs_codec_name(unsigned int alg);

#endif
