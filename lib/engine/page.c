// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The page allocator: pagepool, reserved pool, system (engine.md B1 to B3, B5). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/page.h"

/* @count pages were taken at once; the clock's own time is not theirs. */
static void count_take(const struct pages *pages, struct pagepool *pool, enum page_source source, uint64_t since,
		       unsigned int count)
{
	struct page_counters *c = &pool->by_source[source];
	uint64_t ns = erofs_now_ns() - since;

	ns -= ns < pages->clock_ns ? ns : pages->clock_ns;
	c->count += count;
	c->total_ns += ns;
	if (ns > c->max_ns)
		c->max_ns = ns;
}

/* A page of the object that is not resident. The lock is held. */
static struct page *find_hole(struct pages *pages)
{
	struct page *page = pages->holes;

	if (page) {
		pages->holes = page->next;
		return page;
	}
	if (pages->length == pages->limit)
		return NULL;
	page = &pages->table[pages->length];
	page->index = pages->length++;
	return page;
}

static void put_hole(struct pages *pages, struct page *page)
{
	pthread_mutex_lock(&pages->lock);
	page->next = pages->holes;
	pages->holes = page;
	pthread_mutex_unlock(&pages->lock);
}

/* Make a page of the object resident: the price of a fresh page is paid here, not in the codec. */
static int populate(struct pages *pages, const struct page *page)
{
	off_t off = (off_t)page->index * (off_t)pages->size;

	if (!fallocate(pages->fd, 0, off, (off_t)pages->size))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return pwrite(pages->fd, "", 1, off) == 1 ? 0 : -ENOMEM;
}

static void punch(struct pages *pages, const struct page *page)
{
	(void)fallocate(pages->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)page->index * (off_t)pages->size, (off_t)pages->size);
}

static struct page *take_system(struct pages *pages)
{
	struct page *page;

	pthread_mutex_lock(&pages->lock);
	page = find_hole(pages);
	pthread_mutex_unlock(&pages->lock);
	if (page && populate(pages, page)) {
		put_hole(pages, page);
		return NULL;
	}
	return page;
}

static struct page *take_reserved(struct pages *pages)
{
	struct page *page;
	unsigned int left;

	if (!atomic_load_explicit(&pages->nreserved, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&pages->lock);
	page = pages->reserved;
	if (page) {
		pages->reserved = page->next;
		left = atomic_fetch_sub_explicit(&pages->nreserved, 1, memory_order_relaxed) - 1;
		if (left < pages->lowest)
			pages->lowest = left;
	}
	pthread_mutex_unlock(&pages->lock);
	return page;
}

void erofs_pagepool_fill(struct pages *pages, struct pagepool *pool, unsigned int count)
{
	struct page *page, **tail = &pool->head;
	unsigned int left, n = 0;
	uint64_t since = erofs_now_ns();

	if (pool->head || !atomic_load_explicit(&pages->nreserved, memory_order_relaxed))
		return;
	pthread_mutex_lock(&pages->lock);
	for (; n < count && (page = pages->reserved); n++) {
		pages->reserved = page->next;
		page->next = NULL;
		*tail = page;
		tail = &page->next;
	}
	left = atomic_fetch_sub_explicit(&pages->nreserved, n, memory_order_relaxed) - n;
	if (left < pages->lowest)
		pages->lowest = left;
	pthread_mutex_unlock(&pages->lock);
	if (!n)
		return;
	count_take(pages, pool, PAGE_RESERVED, since, n);
}

struct page *erofs_page_take(struct pages *pages, struct pagepool *pool, bool use_reserved)
{
	uint64_t since = erofs_now_ns();
	enum page_source source = PAGE_POOL;
	struct page *page = pool->head;

	if (page) {
		pool->head = page->next;
	} else if (use_reserved && (page = take_reserved(pages))) {
		source = PAGE_RESERVED;
	} else {
		page = take_system(pages);
		source = page ? PAGE_SYSTEM : PAGE_FAILED;
	}
	count_take(pages, pool, source, since, 1);
	return page;
}

unsigned int erofs_pages_take(struct pages *pages, struct pagepool *pool, bool use_reserved, struct page **list,
			      unsigned int count)
{
	uint64_t since = erofs_now_ns();
	struct page *page = pool->head;
	unsigned int n = 0;

	for (; n < count && page; page = page->next)
		list[n++] = page;
	pool->head = page;
	if (n)
		count_take(pages, pool, PAGE_POOL, since, n);
	for (; n < count; n++) {
		list[n] = erofs_page_take(pages, pool, use_reserved);
		if (!list[n])
			break;
	}
	return n;
}

void erofs_page_give(struct pagepool *pool, struct page *page)
{
	page->next = pool->head;
	pool->head = page;
}

/* Put a page into the reserved pool if it wants one. */
static bool refill(struct pages *pages, struct page *page)
{
	bool taken = false;

	pthread_mutex_lock(&pages->lock);
	if (atomic_load_explicit(&pages->nreserved, memory_order_relaxed) < pages->target) {
		page->next = pages->reserved;
		pages->reserved = page;
		atomic_fetch_add_explicit(&pages->nreserved, 1, memory_order_relaxed);
		pages->refills++;
		taken = true;
	}
	pthread_mutex_unlock(&pages->lock);
	return taken;
}

/* Turn the list round: the last page goes into the reserved stack first, the first one on top. */
static struct page *reverse(struct page *list)
{
	struct page *turned = NULL;

	while (list) {
		struct page *next = list->next;

		list->next = turned;
		turned = list;
		list = next;
	}
	return turned;
}

void erofs_pagepool_release(struct pages *pages, struct pagepool *pool)
{
	pool->head = reverse(pool->head);
	while (pool->head) {
		struct page *page = pool->head;

		pool->head = page->next;
		if (refill(pages, page))
			continue;
		punch(pages, page);
		put_hole(pages, page);
	}
}

void erofs_pages_fini(struct pages *pages)
{
	if (pages->fd < 0)
		return;
	free(pages->table);
	if (pages->base)
		munmap(pages->base, (size_t)pages->limit * pages->size);
	pages->base = NULL;
	close(pages->fd);
	pages->fd = -1;
	pthread_mutex_destroy(&pages->lock);
}

static void fill_reserved(struct pages *pages, unsigned int reserved)
{
	while (pages->target < reserved) {
		struct page *page = take_system(pages);

		if (!page)
			break;
		page->next = pages->reserved;
		pages->reserved = page;
		pages->target++;
	}
	/* one contiguous run, its first page on top: pages are taken in ascending order */
	pages->reserved = reverse(pages->reserved);
	atomic_init(&pages->nreserved, pages->target);
	pages->lowest = pages->target;
	if (pages->target == reserved)
		return;
	/* all or nothing (B2): a pool that is smaller than asked for would only surprise */
	while (pages->reserved) {
		struct page *page = pages->reserved;

		pages->reserved = page->next;
		punch(pages, page);
		put_hole(pages, page);
	}
	pages->target = 0;
	pages->lowest = 0;
	atomic_store(&pages->nreserved, 0);
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How far two readings of the clock are apart with nothing between them: the median of some. */
static uint64_t measure_clock(void)
{
	uint64_t ns[33];
	unsigned int i;

	for (i = 0; i < 33; i++) {
		uint64_t begin = erofs_now_ns();

		ns[i] = erofs_now_ns() - begin;
	}
	qsort(ns, 33, sizeof(*ns), compare_ns);
	return ns[16];
}

/* Half of vm.max_map_count: the rest is for the program. */
static unsigned int choose_max_mapped(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned int max = 65530;

	if (f) {
		if (fscanf(f, "%u", &max) != 1)
			max = 65530;
		fclose(f);
	}
	return max / 2;
}

/* Locked pages are not reclaimed: where the right is missing, resident is all they are (B2). */
static void lock_reserved(struct pages *pages)
{
	if (!pages->target)
		return;
	if (pages->base && !mlock(pages->base, (size_t)pages->target * pages->size))
		pages->locked = true;
	else
		pages->lock_error = pages->base ? errno : ENOMEM;
}

static void map_object(struct pages *pages)
{
	void *base = mmap(NULL, (size_t)pages->limit * pages->size, PROT_READ | PROT_WRITE, MAP_SHARED, pages->fd, 0);

	pages->base = base == MAP_FAILED ? NULL : base;
}

int erofs_pages_init(struct pages *pages, unsigned int reserved, uint32_t limit)
{
	pthread_mutexattr_t attr;

	memset(pages, 0, sizeof(*pages));
	pages->size = (size_t)sysconf(_SC_PAGESIZE);
	pages->limit = limit;
	pages->fd = memfd_create("erofs-pages", MFD_CLOEXEC);
	if (pages->fd < 0)
		return -ENOSYS;
	if (ftruncate(pages->fd, (off_t)limit * (off_t)pages->size)) {
		close(steal_fd(&pages->fd));
		return -ENOSYS;
	}
	pages->table = calloc(limit, sizeof(*pages->table));
	if (!pages->table) {
		close(steal_fd(&pages->fd));
		return -ENOMEM;
	}
	/* a real-time worker must not wait behind a normal one that was preempted (A2) */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pages->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pages->max_mapped = choose_max_mapped();
	pages->clock_ns = measure_clock();
	fill_reserved(pages, reserved);
	map_object(pages);
	lock_reserved(pages);
	return 0;
}
