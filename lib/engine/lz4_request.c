// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* One LZ4 request on pages: bounce pages for the gaps, contiguity, in place or not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "engine/lz4_request.h"

#define MAX_WINDOW_PAGES (LZ4_WINDOW / 4096 + 2)

/*
 * Decoding in place never overtakes its input if the input ends this far behind the output: the rule of
 * liblz4's documentation.
 */
static size_t needed_margin(size_t in_len)
{
	return (in_len >> 8) + 32;
}

void erofs_lz4_pages_init(struct lz4_pages *lp, struct pages *pages, struct pagepool *pool,
			  struct codec_ctx *codec)
{
	memset(lp, 0, sizeof(*lp));
	lp->pages = pages;
	lp->pool = pool;
	lp->codec = codec;
}

void erofs_lz4_pages_fini(struct lz4_pages *lp)
{
	if (!lp->pages)
		return;
	erofs_lz4_map_fini(&lp->out_map, lp->pages);
	erofs_lz4_map_fini(&lp->in_map, lp->pages);
	free(lp->ring);
	free(lp->wanted);
	free(lp->fresh);
	free(lp->global);
	memset(lp, 0, sizeof(*lp));
}

unsigned int erofs_lz4_window_pages(uint32_t max_distance, size_t page_size)
{
	size_t distance = max_distance && max_distance < LZ4_WINDOW ? max_distance : LZ4_WINDOW;

	return (unsigned int)((distance + page_size - 1) / page_size + 1);
}

/* ---- output pages ---- */

static void give_bounce(struct lz4_pages *lp, struct lz4_request *req, const bool *wanted)
{
	unsigned int i;

	/* last place first: the pool is a stack, and the next request shall find the first one on top */
	for (i = req->nout; i--;) {
		struct page *page = req->out[i];

		if (wanted[i] || !page)
			continue;
		req->out[i] = NULL;
		/* a page stands in several places: the lowest one gives it back */
		if (page->lent-- == 1)
			erofs_page_give(lp->pool, page);
	}
}

static unsigned int count_gaps(const struct lz4_request *req)
{
	unsigned int i, n = 0;

	for (i = 0; i < req->nout; i++)
		n += !req->out[i];
	return n;
}

/*
 * Fill the gaps (C2): with a page that dropped out of the window, else with a fresh one. Fresh ones are
 * taken at once: as many as can be needed, what is left over goes back.
 * Return: 0, -ENOMEM; what was taken stands in req->out either way.
 */
static int fill_gaps(struct lz4_pages *lp, struct lz4_request *req, const bool *wanted)
{
	unsigned int window = erofs_lz4_window_pages(req->max_distance, lp->pages->size), i;
	unsigned int gaps = count_gaps(req), most = req->keep_bounce || gaps < window ? gaps : window;
	unsigned int nfresh = erofs_pages_take(lp->pages, lp->pool, true, lp->fresh, most), used = 0, nspare = 0;
	int err = 0;

	for (i = 0; i < window; i++)
		lp->ring[i] = NULL;
	for (i = 0; i < req->nout && !err; i++) {
		struct page **slot = &lp->ring[i % window], *page = *slot;

		/* what stood here a window ago has dropped out of it */
		if (page && !req->keep_bounce)
			lp->spare[nspare++] = page;
		*slot = NULL;
		if (wanted[i])
			continue;
		if (!nspare && used == nfresh) {
			err = -ENOMEM;
			break;
		}
		page = nspare ? lp->spare[--nspare] : lp->fresh[used++];
		page->lent = page->lent_to == req ? page->lent + 1 : 1;
		page->lent_to = req;
		*slot = page;
		req->out[i] = page;
	}
	while (nfresh > used)
		erofs_page_give(lp->pool, lp->fresh[--nfresh]);
	return err;
}

static bool are_consecutive(struct page *const *list, unsigned int count)
{
	unsigned int i;

	for (i = 1; i < count; i++)
		if (list[i]->index != list[0]->index + i)
			return false;
	return true;
}

/* An address at which the pages are behind each other. NULL: there is none. */
static uint8_t *make_contiguous(struct lz4_pages *lp, struct lz4_map *map, struct page *const *list,
				unsigned int count)
{
	if (lp->pages->base && are_consecutive(list, count)) {
		lp->straight++;
		return erofs_page_address(lp->pages, list[0]);
	}
	lp->mapped++;
	return erofs_lz4_map(map, lp->pages, list, count);
}

/* ---- input ---- */

/* The global buffer with room for @size bytes. NULL: no memory, or larger than any pcluster. */
static uint8_t *get_global(struct lz4_pages *lp, size_t size)
{
	uint8_t *grown;

	if (size > CODEC_MAX_PLEN)
		return NULL;
	if (size <= lp->global_room)
		return lp->global;
	grown = realloc(lp->global, size);
	if (!grown)
		return NULL;
	lp->global = grown;
	lp->global_room = size;
	return grown;
}

/* Zero bytes in front of the stream, within the first block. */
static size_t count_padding(const uint8_t *src, const struct lz4_request *req)
{
	size_t n = 0, limit = min_u64(req->in_len, req->blksz);

	while (req->zero_padding && n < limit && !src[n])
		n++;
	return n;
}

bool erofs_lz4_may_be_in_place(const struct lz4_request *req, size_t page_size, size_t start)
{
	size_t out_bytes = req->nout * page_size, out_end = req->out_off + req->out_len;

	if (!req->zero_padding || req->partial || req->nout < req->nin)
		return false;
	if ((req->in_off + req->in_len) % req->blksz || req->in_off + req->in_len != req->nin * page_size)
		return false;
	return out_bytes >= out_end && out_bytes - out_end >= needed_margin(req->in_len - start);
}

/*
 * Where the codec shall read from. In place it must be the address inside the output's mapping: another
 * mapping of the same pages would hide from the codec that they overlap.
 */
static const uint8_t *get_input(struct lz4_pages *lp, const struct lz4_request *req, uint8_t *out)
{
	size_t size = lp->pages->size;
	const uint8_t *src;
	uint8_t *copy;

	if (req->src)
		return req->src;
	if (!req->in_place)
		return make_contiguous(lp, &lp->in_map, req->in, req->nin) + req->in_off;
	src = out + (req->nout - req->nin) * size + req->in_off;
	if (req->nout >= req->nin && erofs_lz4_may_be_in_place(req, size, count_padding(src, req))) {
		lp->in_place++;
		return src;
	}
	copy = get_global(lp, req->in_len);
	if (!copy)
		return NULL;
	lp->copied++;
	if (req->nout >= req->nin)
		memcpy(copy, src, req->in_len);
	else
		memcpy(copy, make_contiguous(lp, &lp->in_map, req->in, req->nin) + req->in_off, req->in_len);
	return copy;
}

/* ---- the request ---- */

static int decode(struct lz4_pages *lp, struct lz4_request *req, struct codec_fault *fault)
{
	uint8_t *out = make_contiguous(lp, &lp->out_map, req->out, req->nout);
	struct codec_request codec = {
		.alg = CODEC_LZ4,
		.src_len = req->in_len,
		.dst = out + req->out_off,
		.dst_len = req->out_len,
		.partial = req->partial,
		.blksz = req->blksz,
	};
	int err;

	if (!out)
		return -ENOSYS;
	codec.src = get_input(lp, req, out);
	if (!codec.src)
		return -ENOMEM;
	err = erofs_codec_decode(lp->codec, &codec, fault);
	/* nobody shall take what was there before for output (C7) */
	if (err)
		memset(codec.dst, 0, codec.dst_len);
	return err;
}

static bool make_ring(struct lz4_pages *lp)
{
	if (lp->ring)
		return true;
	/* bounce pages that dropped out of the window are never more than those in it */
	lp->ring = calloc(3 * MAX_WINDOW_PAGES, sizeof(*lp->ring));
	lp->wanted = calloc(PAGES_MAX_OUTPUT, sizeof(*lp->wanted));
	lp->fresh = calloc(PAGES_MAX_OUTPUT, sizeof(*lp->fresh));
	if (lp->ring && lp->wanted && lp->fresh) {
		lp->spare = lp->ring + MAX_WINDOW_PAGES;
		return true;
	}
	free(lp->ring);
	free(lp->wanted);
	free(lp->fresh);
	lp->ring = lp->fresh = NULL;
	lp->wanted = NULL;
	return false;
}

int erofs_lz4_decode_pages(struct lz4_pages *lp, struct lz4_request *req, struct codec_fault *fault)
{
	unsigned int i;
	bool *wanted;
	int err;

	if (!req->nout || req->nout > PAGES_MAX_OUTPUT ||
	    req->out_off + req->out_len > req->nout * lp->pages->size)
		return -EINVAL;
	if (!make_ring(lp))
		return -ENOMEM;
	wanted = lp->wanted;
	for (i = 0; i < req->nout; i++)
		wanted[i] = req->out[i];
	err = fill_gaps(lp, req, wanted);
	if (!err)
		err = decode(lp, req, fault);
	if (err || !req->keep_bounce)
		give_bounce(lp, req, wanted);
	return err;
}
