// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules B1 to B5 and C2 of the engine: pages, the reserved pool, the ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "codec/codec_priv.h"
#include "engine/lz4_ring.h"
#include "engine/page.h"

/* Pages of the memory object that take memory. */
static long resident(const struct pages *pages)
{
	struct stat st;

	assert_int_equal(fstat(pages->fd, &st), 0);
	return (long)st.st_blocks * 512 / (long)pages->size;
}

static void rule_B1_takes_pagepool_then_reserved_then_system(void **state)
{
	struct pagepool pool = { 0 };
	struct pages pages;
	struct page *p[4];
	int i;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 2, 16), 0);
	for (i = 0; i < 3; i++)
		p[i] = erofs_page_take(&pages, &pool, true);
	assert_int_equal(pool.by_source[PAGE_RESERVED].count, 2);
	assert_int_equal(pool.by_source[PAGE_SYSTEM].count, 1);
	erofs_page_give(&pool, p[2]);
	p[3] = erofs_page_take(&pages, &pool, true);
	assert_ptr_equal(p[3], p[2]);
	assert_int_equal(pool.by_source[PAGE_POOL].count, 1);
	for (i = 0; i < 3; i++)
		erofs_page_give(&pool, p[i]);
	erofs_pagepool_release(&pages, &pool);
	erofs_pages_fini(&pages);
}

static void rule_B1_only_those_who_may_get_reserved_pages(void **state)
{
	struct pagepool pool = { 0 };
	struct pages pages;
	struct page *p;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 4, 16), 0);
	p = erofs_page_take(&pages, &pool, false);
	assert_non_null(p);
	assert_int_equal(pool.by_source[PAGE_RESERVED].count, 0);
	assert_int_equal(pool.by_source[PAGE_SYSTEM].count, 1);
	assert_int_equal(atomic_load(&pages.nreserved), 4);
	erofs_page_give(&pool, p);
	erofs_pagepool_release(&pages, &pool);
	erofs_pages_fini(&pages);
}

static void rule_B1_failure_is_counted_and_returned(void **state)
{
	struct pagepool pool = { 0 };
	struct pages pages;
	struct page *p;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 0, 1), 0);
	p = erofs_page_take(&pages, &pool, true);
	assert_non_null(p);
	assert_null(erofs_page_take(&pages, &pool, true));
	assert_int_equal(pool.by_source[PAGE_FAILED].count, 1);
	erofs_page_give(&pool, p);
	erofs_pagepool_release(&pages, &pool);
	erofs_pages_fini(&pages);
}

static void rule_B2_reserved_pages_are_resident_from_the_start(void **state)
{
	struct pages pages;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 64, 128), 0);
	assert_int_equal(pages.target, 64);
	assert_true(resident(&pages) >= 64);
	erofs_pages_fini(&pages);
}

static void rule_B3_release_refills_the_pool_first_and_frees_the_rest(void **state)
{
	struct pagepool pool = { 0 };
	struct page *taken[40];
	struct pages pages;
	int i;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 8, 64), 0);
	for (i = 0; i < 40; i++)
		taken[i] = erofs_page_take(&pages, &pool, true);
	assert_int_equal(atomic_load(&pages.nreserved), 0);
	assert_int_equal(pages.lowest, 0);
	assert_int_equal(resident(&pages), 40);
	for (i = 0; i < 40; i++)
		erofs_page_give(&pool, taken[i]);
	erofs_pagepool_release(&pages, &pool);
	assert_int_equal(atomic_load(&pages.nreserved), 8);
	assert_int_equal(resident(&pages), 8);
	assert_null(pool.head);
	erofs_pages_fini(&pages);
}

static void rule_C2_ring_of_17_pages_holds_any_output(void **state)
{
	struct pagepool pool = { 0 };
	struct lz4_ring ring = { 0 };
	struct pages pages;
	uint8_t *out;
	size_t i;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 0, 64), 0);
	if (pages.size != 4096)
		skip();
	out = erofs_ring_get(&ring, &pages, &pool, CODEC_MAX_DLEN);
	assert_non_null(out);
	assert_int_equal(ring.npages, 17);
	memset(out, 7, CODEC_MAX_DLEN);
	assert_int_equal(resident(&pages), 17);
	/* what was written 17 pages ago is the same memory */
	for (i = 0; i + ring.window < CODEC_MAX_DLEN; i += 100003) {
		out[i] = (uint8_t)i;
		assert_int_equal(out[i + ring.window], (uint8_t)i);
	}
	erofs_ring_drop(&ring, &pool);
	erofs_pagepool_release(&pages, &pool);
	assert_int_equal(resident(&pages), 0);
	erofs_pages_fini(&pages);
}

static void rule_C2_ring_serves_from_the_reserved_pool(void **state)
{
	struct pagepool pool = { 0 };
	struct lz4_ring ring = { 0 };
	struct pages pages;

	(void)state;
	assert_int_equal(erofs_pages_init(&pages, 64, 128), 0);
	assert_non_null(erofs_ring_get(&ring, &pages, &pool, 100000));
	assert_int_equal(pool.by_source[PAGE_RESERVED].count, ring.npages);
	assert_int_equal(pool.by_source[PAGE_SYSTEM].count, 0);
	erofs_ring_drop(&ring, &pool);
	erofs_pagepool_release(&pages, &pool);
	assert_int_equal(atomic_load(&pages.nreserved), 64);
	erofs_pages_fini(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_B1_takes_pagepool_then_reserved_then_system),
		cmocka_unit_test(rule_B1_only_those_who_may_get_reserved_pages),
		cmocka_unit_test(rule_B1_failure_is_counted_and_returned),
		cmocka_unit_test(rule_B2_reserved_pages_are_resident_from_the_start),
		cmocka_unit_test(rule_B3_release_refills_the_pool_first_and_frees_the_rest),
		cmocka_unit_test(rule_C2_ring_of_17_pages_holds_any_output),
		cmocka_unit_test(rule_C2_ring_serves_from_the_reserved_pool),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
