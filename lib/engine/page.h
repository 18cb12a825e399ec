/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Pages: one allocator for every page that decompression takes (engine.md B).
 *
 * Order: the caller's own pagepool, then the reserved pool, then the system. Pages live in one memory
 * object, so that a page can be mapped at several addresses; where there is none, erofs_pages_init()
 * fails with -ENOSYS and callers use linear buffers.
 */
#ifndef EROFS_ENGINE_PAGE_H
#define EROFS_ENGINE_PAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGES_MAX_RESERVED 16384
#define PAGES_MAX_OUTPUT 3074	/* 4 KiB pages that the longest extent, 12 MiB, may touch, and one */

enum page_source {
	PAGE_POOL,
	PAGE_RESERVED,
	PAGE_SYSTEM,
	PAGE_FAILED,
	PAGE_SOURCES,
};

struct page {
	struct page *next;
	uint32_t index;		/* page number in the memory object */
	uint32_t lent;		/* of the request that has it: places it stands in */
	const void *lent_to;
};

struct page_counters {
	uint64_t count, total_ns, max_ns;
};

/* A caller's private list; no lock. */
struct pagepool {
	struct page *head;
	struct page_counters by_source[PAGE_SOURCES];
};

struct pages {
	pthread_mutex_t	lock;
	int		fd;		/* C  the memory object */
	struct page	*table;		/* C  one for each page of the object, side by side: lists run through them */
	uint8_t		*base;		/* C  all of it, mapped once; NULL: no address space */
	size_t		size;		/* C  bytes of a page */
	unsigned int	target;		/* C  pages of the full reserved pool */
	struct page	*reserved;	/* L */
	atomic_uint	nreserved;	/* A  relaxed: tested for emptiness before the lock is taken */
	unsigned int	lowest;		/* L  lowest fill of the reserved pool */
	struct page	*holes;		/* L  pages of the object that are punched out */
	uint32_t	length;		/* L  pages of the object */
	uint32_t	limit;		/* C  pages the object may have */
	atomic_uint	mapped;		/* A  relaxed: places where pages are mapped (lz4_map.h) */
	unsigned int	max_mapped;	/* C  half of the mappings that a process may have */
	uint64_t	clock_ns;	/* C  what reading the clock twice takes: subtracted from each time */
	bool		locked;		/* C  the reserved pages are locked in memory */
	int		lock_error;	/* C  an errno: why not */
	uint64_t	refills;	/* L  pages that came back into the reserved pool */
};	/* L lock  C constant once created  A atomic, order stated */

/**
 * erofs_pages_init() - make the allocator with its reserved pool full and resident
 * @reserved: pages; less (0) if they could not be had: look at pages->target
 * @limit:    pages that may exist at a time
 * Return: 0, -ENOSYS no memory object to be had, -ENOMEM.
 */
int erofs_pages_init(struct pages *pages, unsigned int reserved, uint32_t limit);
void erofs_pages_fini(struct pages *pages);

/**
 * erofs_page_take() - take one page (B1)
 * @pool:         the caller's pagepool; also counts
 * @use_reserved: may the reserved pool serve it?
 * Return: the page, NULL if there is none (counted as failed).
 */
struct page *erofs_page_take(struct pages *pages, struct pagepool *pool, bool use_reserved);

/**
 * erofs_pagepool_fill() - move up to @count reserved pages into an empty pagepool, under one lock
 * A batch that takes its window at once gets it in one run, as it was given back: page by page, the runs
 * of several workers mix, and each page costs a mapping (engine.md B4).
 */
void erofs_pagepool_fill(struct pages *pages, struct pagepool *pool, unsigned int count);

/* Where a page can be read and written; pages->base must be there. */
static inline uint8_t *erofs_page_address(const struct pages *pages, const struct page *page)
{
	return pages->base + (size_t)page->index * pages->size;
}

/**
 * erofs_pages_take() - take @count pages at once, in the order of B1 for each
 * What the pagepool has is taken in one go and timed as one.
 * Return: how many were taken; fewer: there are no more (counted as failed).
 */
unsigned int erofs_pages_take(struct pages *pages, struct pagepool *pool, bool use_reserved, struct page **list,
			      unsigned int count);

/** erofs_page_give() - give a short-lived page back to the caller's pagepool (B3) */
void erofs_page_give(struct pagepool *pool, struct page *page);

/** erofs_pagepool_release() - empty a pagepool: refill the reserved pool first, the rest to the system (B3) */
void erofs_pagepool_release(struct pages *pages, struct pagepool *pool);

#endif
