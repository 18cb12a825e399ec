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
	size_t		size;		/* C  bytes of a page */
	unsigned int	target;		/* C  pages of the full reserved pool */
	struct page	*reserved;	/* L */
	atomic_uint	nreserved;	/* A  relaxed: tested for emptiness before the lock is taken */
	unsigned int	lowest;		/* L  lowest fill of the reserved pool */
	struct page	*holes;		/* L  pages of the object that are punched out */
	uint32_t	length;		/* L  pages of the object */
	uint32_t	limit;		/* C  pages the object may have */
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

/** erofs_page_give() - give a short-lived page back to the caller's pagepool (B3) */
void erofs_page_give(struct pagepool *pool, struct page *page);

/** erofs_pagepool_release() - empty a pagepool: refill the reserved pool first, the rest to the system (B3) */
void erofs_pagepool_release(struct pages *pages, struct pagepool *pool);

#endif
