/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * LZ4 by pages: one pcluster decoded into a list of output pages, some of which nobody wants
 * (engine.md C1 to C7). Belongs to one thread.
 */
#ifndef EROFS_ENGINE_LZ4_REQUEST_H
#define EROFS_ENGINE_LZ4_REQUEST_H

#include "codec/codec_priv.h"
#include "engine/lz4_map.h"

#define LZ4_WINDOW 65535	/* bytes that LZ4 refers back at most */

/* What one thread needs to decode by pages. */
struct lz4_pages {
	struct pages *pages;		/* borrowed */
	struct pagepool *pool;		/* borrowed */
	struct codec_ctx *codec;	/* borrowed */
	struct lz4_map out_map, in_map;
	struct page **ring;		/* bounce pages by place modulo the window */
	struct page **spare;		/* bounce pages that dropped out of the window */
	struct page **fresh;		/* of one request: taken for its gaps */
	bool *wanted;			/* of one request: places that the caller supplied */
	uint8_t *global;		/* the CPU's global buffer (C6) */
	size_t global_room;
	uint64_t in_place, copied, mapped, straight;	/* requests that went each way */
};

struct lz4_request {
	/* input: bytes at @src, or (src NULL) in pages, from @in_off of the first on */
	const uint8_t *src;
	struct page *const *in;
	unsigned int nin;
	size_t in_off, in_len;
	/* output: @out_len bytes from @out_off of the first page on; NULL in @out: nobody wants that page */
	struct page **out;
	unsigned int nout;
	size_t out_off, out_len;
	bool partial;			/* the stream may hold more */
	bool in_place;			/* the input's pages are the last ones of the output's */
	bool keep_bounce;		/* several bases: bounce pages are not used twice, and stay in @out */
	uint32_t max_distance;		/* bytes, 0: 65535 */
	uint32_t blksz;
	bool zero_padding;
};

void erofs_lz4_pages_init(struct lz4_pages *lp, struct pages *pages, struct pagepool *pool,
			  struct codec_ctx *codec);
void erofs_lz4_pages_fini(struct lz4_pages *lp);

/* Pages of window that output needs: C1. */
unsigned int erofs_lz4_window_pages(uint32_t max_distance, size_t page_size);

/* May this request be decoded in place? @start: bytes of padding in front of the stream (C5). */
bool erofs_lz4_may_be_in_place(const struct lz4_request *req, size_t page_size, size_t start);

/**
 * erofs_lz4_decode_pages() - decode one request
 * Bounce pages go back to the pagepool, so that the next request gets them in the same order.
 * Return: 0; -EUCLEAN with @fault: then the wanted pages hold zeros where output is missing; -ENOMEM no
 * page; -ENOSYS the pages cannot be made contiguous here: use linear memory.
 */
int erofs_lz4_decode_pages(struct lz4_pages *lp, struct lz4_request *req, struct codec_fault *fault);

#endif
