/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The LZ4 ring: output that nobody wants needs only the window that LZ4 refers back to (engine.md C2).
 *
 * RING_WINDOW bytes of pages are mapped again and again over an address range, so that decoding 12 MiB
 * touches 68 KiB of memory. Mapped once and kept (the caching policy of B4), and never smaller than the
 * full window: the codec does not know smaller ones (C3). Belongs to one thread.
 */
#ifndef EROFS_ENGINE_LZ4_RING_H
#define EROFS_ENGINE_LZ4_RING_H

#include "engine/page.h"

#define RING_DISTANCE 65535	/* bytes that LZ4 refers back at most */

struct lz4_ring {
	uint8_t *base;		/* the address range; NULL: not made yet */
	size_t reserved;	/* bytes of address space */
	size_t mapped;		/* bytes of it that are mapped */
	size_t window;		/* bytes of pages that repeat */
	unsigned int npages;
	struct page **pages;
};

/**
 * erofs_ring_get() - an output range of at least @len bytes
 * Return: its address, NULL if memory, address space or mappings cannot be had: use a linear buffer.
 */
uint8_t *erofs_ring_get(struct lz4_ring *ring, struct pages *pages, struct pagepool *pool, size_t len);

/** erofs_ring_drop() - unmap, give the pages to @pool */
void erofs_ring_drop(struct lz4_ring *ring, struct pagepool *pool);

#endif
