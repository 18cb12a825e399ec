// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Pages that repeat over an address range: the window of LZ4 output nobody asked for. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "codec/codec_priv.h"
#include "engine/lz4_ring.h"

static size_t window_pages(const struct pages *pages)
{
	return (RING_DISTANCE + pages->size - 1) / pages->size + 1;
}

static bool take_pages(struct lz4_ring *ring, struct pages *pages, struct pagepool *pool)
{
	size_t want = window_pages(pages);

	ring->pages = calloc(want, sizeof(*ring->pages));
	if (!ring->pages)
		return false;
	for (ring->npages = 0; ring->npages < want; ring->npages++) {
		ring->pages[ring->npages] = erofs_page_take(pages, pool, true);
		if (!ring->pages[ring->npages])
			return false;
	}
	ring->window = want * pages->size;
	return true;
}

static bool make_ring(struct lz4_ring *ring, struct pages *pages, struct pagepool *pool)
{
	void *base;

	if (!take_pages(ring, pages, pool))
		return false;
	ring->reserved = round_up_u64(CODEC_MAX_DLEN, pages->size) + ring->window;
	base = mmap(NULL, ring->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return false;
	ring->base = base;
	return true;
}

/* Map the window once more, in as few mappings as the pages' order allows. */
static bool map_window(struct lz4_ring *ring, const struct pages *pages)
{
	unsigned int i, n;

	for (i = 0; i < ring->npages; i += n) {
		void *at = ring->base + ring->mapped + i * pages->size;

		for (n = 1; i + n < ring->npages; n++)
			if (ring->pages[i + n]->index != ring->pages[i]->index + n)
				break;
		if (mmap(at, n * pages->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages->fd,
			 (off_t)ring->pages[i]->index * (off_t)pages->size) == MAP_FAILED)
			return false;
	}
	ring->mapped += ring->window;
	return true;
}

uint8_t *erofs_ring_get(struct lz4_ring *ring, struct pages *pages, struct pagepool *pool, size_t len)
{
	if (pages->fd < 0 || len > CODEC_MAX_DLEN)
		return NULL;
	if (!ring->base && !make_ring(ring, pages, pool)) {
		erofs_ring_drop(ring, pool);
		return NULL;
	}
	while (ring->mapped < len)
		if (ring->mapped + ring->window > ring->reserved || !map_window(ring, pages))
			return NULL;
	return ring->base;
}

void erofs_ring_drop(struct lz4_ring *ring, struct pagepool *pool)
{
	if (ring->base)
		munmap(ring->base, ring->reserved);
	while (ring->npages)
		erofs_page_give(pool, ring->pages[--ring->npages]);
	free(ring->pages);
	memset(ring, 0, sizeof(*ring));
}
