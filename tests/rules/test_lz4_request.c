// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules C1 to C7: requests put together by hand, with gaps everywhere, and compared with a plain decode.
 * In builds without sanitizers memmove() is our own here, so that overlapping copies are tried in both
 * directions (C5).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/lz4_request.h"

#ifdef HAVE_LZ4
#include <lz4.h>

#define PAGE 4096
#define BLKSZ 4096
#define MAX_PAGES 64

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MEMMOVE 0
#else
#define OWN_MEMMOVE 1
static bool backwards_first;

/* Correct for every overlap; which way it goes where both would do is the test's to choose. */
void *memmove(void *to, const void *from, size_t len)
{
	volatile uint8_t *t = to;
	const volatile uint8_t *f = from;
	bool overlap_up = t > f && t < f + len, overlap_down = f > t && f < t + len;
	size_t i;

	if (overlap_up || (!overlap_down && backwards_first)) {
		for (i = len; i--;)
			t[i] = f[i];
	} else {
		for (i = 0; i < len; i++)
			t[i] = f[i];
	}
	return to;
}
#endif

struct world {
	struct pages pages;
	struct pagepool pool;
	struct codec_ctx *codec;
	struct lz4_pages lp;
	uint8_t *plain, *packed;	/* MAX_PAGES pages; room for its compressed form */
	uint64_t seed;
};

static uint64_t next_random(struct world *w)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return w->seed >> 33;
}

static int make_world(void **state)
{
	struct codec_config config = { .zero_padding = true };
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(erofs_pages_init(&w->pages, 64, 512), 0);
	assert_int_equal(erofs_codec_ctx_new(&config, &w->codec), 0);
	erofs_lz4_pages_init(&w->lp, &w->pages, &w->pool, w->codec);
	w->plain = malloc(MAX_PAGES * PAGE);
	w->packed = malloc((size_t)LZ4_compressBound(MAX_PAGES * PAGE) + BLKSZ);
	w->seed = 4711;
	*state = w;
	return 0;
}

static int end_world(void **state)
{
	struct world *w = *state;

	erofs_lz4_pages_fini(&w->lp);
	erofs_codec_ctx_free(w->codec);
	erofs_pagepool_release(&w->pages, &w->pool);
	erofs_pages_fini(&w->pages);
	free(w->plain);
	free(w->packed);
	free(w);
	return 0;
}

/* Data with matches near and far, some noise. */
static void make_plain(struct world *w, size_t len)
{
	size_t at = 0, n, from;

	while (at < len) {
		n = 1 + next_random(w) % 300;
		if (n > len - at)
			n = len - at;
		if (at > 16 && next_random(w) % 4) {
			from = next_random(w) % (at < 65000 ? at : 65000) + 1;
			while (n--) {
				w->plain[at] = w->plain[at - from];
				at++;
			}
		} else {
			while (n--)
				w->plain[at++] = (uint8_t)next_random(w);
		}
	}
}

/* Compress @len bytes, right-aligned in whole blocks as an image has them. Return: bytes stored. */
static size_t pack(struct world *w, size_t len)
{
	int bound = LZ4_compressBound((int)len);
	uint8_t *tmp = malloc((size_t)bound);
	size_t stored;
	int n;

	assert_non_null(tmp);
	n = LZ4_compress_default((const char *)w->plain, (char *)tmp, (int)len, bound);
	assert_true(n > 0);
	stored = ((size_t)n + BLKSZ - 1) / BLKSZ * BLKSZ;
	memset(w->packed, 0, stored);
	memcpy(w->packed + stored - (size_t)n, tmp, (size_t)n);
	free(tmp);
	return stored;
}

static void take_pages(struct world *w, struct page **list, unsigned int count, unsigned int gap_mask)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		list[i] = gap_mask & 1u << i % 32 ? NULL : erofs_page_take(&w->pages, &w->pool, false);
}

static void give_pages(struct world *w, struct page **list, unsigned int count)
{
	while (count--)
		if (list[count])
			erofs_page_give(&w->pool, list[count]);
}

/* Every wanted page must hold what a plain decode has there. */
static void expect_pages(struct world *w, struct page **out, unsigned int nout, size_t off, size_t len)
{
	unsigned int i;

	for (i = 0; i < nout; i++) {
		size_t from = i ? 0 : off, to = PAGE, done = i ? i * (size_t)PAGE - off : 0;

		if (!out[i])
			continue;
		if (to - from > len - done)
			to = from + len - done;
		assert_memory_equal(erofs_page_address(&w->pages, out[i]) + from, w->plain + done, to - from);
	}
}

static uint64_t taken(const struct world *w)
{
	const struct page_counters *c = w->pool.by_source;

	return c[PAGE_POOL].count + c[PAGE_RESERVED].count + c[PAGE_SYSTEM].count;
}

static void rule_C1_window_is_the_distance_in_pages_and_one(void **state)
{
	(void)state;
	assert_int_equal(erofs_lz4_window_pages(0, PAGE), 17);
	assert_int_equal(erofs_lz4_window_pages(65535, PAGE), 17);
	assert_int_equal(erofs_lz4_window_pages(4096, PAGE), 2);
	assert_int_equal(erofs_lz4_window_pages(4097, PAGE), 3);
	assert_int_equal(erofs_lz4_window_pages(1, PAGE), 2);
	assert_int_equal(erofs_lz4_window_pages(65535, 65536), 2);
}

static void one_shape(struct world *w)
{
	size_t off = next_random(w) % 3 ? 0 : next_random(w) % PAGE;
	size_t len = 1 + next_random(w) % (MAX_PAGES * PAGE - off - 1);
	unsigned int nout = (unsigned int)((off + len + PAGE - 1) / PAGE), gaps = (unsigned int)next_random(w);
	struct page *out[MAX_PAGES], *before[MAX_PAGES];
	struct lz4_request req = { .out = out, .nout = nout, .out_off = off, .out_len = len, .blksz = BLKSZ,
				   .zero_padding = true, .src = w->packed };
	struct codec_fault fault;
	uint64_t first;

	if (next_random(w) % 8 == 0)
		gaps = next_random(w) % 2 ? 0 : ~0u;
	make_plain(w, len);
	req.in_len = pack(w, len);
	take_pages(w, out, nout, gaps);
	memcpy(before, out, sizeof(before));
	first = taken(w);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	assert_true(taken(w) - first <= 17);
	assert_memory_equal(out, before, nout * sizeof(*out));
	expect_pages(w, out, nout, off, len);
	give_pages(w, out, nout);
	erofs_pagepool_release(&w->pages, &w->pool);
	assert_int_equal(atomic_load(&w->pages.nreserved), 64);
}

static void rule_C2_gaps_anywhere_need_no_more_than_a_window(void **state)
{
	int i;

	for (i = 0; i < 3000; i++)
		one_shape(*state);
}

static void rule_C2_with_several_bases_no_page_stands_in_twice(void **state)
{
	struct world *w = *state;
	struct page *out[40] = { NULL };
	struct lz4_request req = { .out = out, .nout = 40, .out_len = 40 * PAGE, .blksz = BLKSZ,
				   .zero_padding = true, .src = w->packed, .keep_bounce = true };
	struct codec_fault fault;
	unsigned int i, j;

	make_plain(w, 40 * PAGE);
	req.in_len = pack(w, 40 * PAGE);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	for (i = 0; i < 40; i++)
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(out[i], out[j]);
	expect_pages(w, out, 40, 0, 40 * PAGE);
	give_pages(w, out, 40);
}

static void rule_C3_consecutive_pages_are_decoded_into_as_they_are(void **state)
{
	struct world *w = *state;
	struct page *out[8], *swap;
	struct lz4_request req = { .out = out, .nout = 8, .out_len = 8 * PAGE, .blksz = BLKSZ,
				   .zero_padding = true, .src = w->packed };
	struct codec_fault fault;
	unsigned int i;

	erofs_pagepool_fill(&w->pages, &w->pool, 8);
	take_pages(w, out, 8, 0);
	for (i = 1; i < 8; i++)
		assert_int_equal(out[i]->index, out[0]->index + i);
	make_plain(w, 8 * PAGE);
	req.in_len = pack(w, 8 * PAGE);
	w->lp.straight = w->lp.mapped = 0;
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	assert_int_equal(w->lp.straight, 1);
	assert_int_equal(w->lp.mapped, 0);
	expect_pages(w, out, 8, 0, 8 * PAGE);
	swap = out[2];
	out[2] = out[5];
	out[5] = swap;
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	assert_int_equal(w->lp.mapped, 1);
	expect_pages(w, out, 8, 0, 8 * PAGE);
	give_pages(w, out, 8);
}

static void rule_C3_one_page_of_output_ending_at_each_byte(void **state)
{
	struct world *w = *state;
	struct codec_fault fault;
	struct page *out[1];
	size_t len;

	take_pages(w, out, 1, 0);
	make_plain(w, PAGE);
	for (len = 1; len <= PAGE; len++) {
		struct lz4_request req = { .out = out, .nout = 1, .out_len = len, .blksz = BLKSZ,
					   .zero_padding = true, .src = w->packed, .in_len = pack(w, len) };

		memset(erofs_page_address(&w->pages, out[0]), 0xa5, PAGE);
		assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
		expect_pages(w, out, 1, 0, len);
		if (len < PAGE)
			assert_int_equal(erofs_page_address(&w->pages, out[0])[len], 0xa5);
	}
	give_pages(w, out, 1);
}

static void rule_C4_a_first_block_of_zeros_is_damage(void **state)
{
	struct world *w = *state;
	struct page *out[4];
	struct lz4_request req = { .out = out, .nout = 4, .out_len = 4 * PAGE, .blksz = BLKSZ,
				   .zero_padding = true, .src = w->packed, .in_len = 2 * BLKSZ };
	struct codec_fault fault;
	unsigned int i;

	take_pages(w, out, 4, 2);
	memset(w->packed, 0, 2 * BLKSZ);
	w->packed[BLKSZ] = 1;
	for (i = 0; i < 4; i++)
		if (out[i])
			memset(erofs_page_address(&w->pages, out[i]), 0xee, PAGE);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), -EUCLEAN);
	/* C7: nothing of what was there before is left */
	for (i = 0; i < 4; i++)
		if (out[i])
			assert_int_equal(erofs_page_address(&w->pages, out[i])[77], 0);
	assert_null(out[1]);
	give_pages(w, out, 4);
}

/* Put the packed bytes into the last pages of the output, and decode from there. */
static void decode_in_place(struct world *w, size_t len, unsigned int nout, bool zero_padding, bool partial)
{
	size_t stored = pack(w, len);
	unsigned int nin = (unsigned int)(stored / PAGE), i;
	struct page *out[MAX_PAGES + 16];
	struct lz4_request req = { .out = out, .nout = nout, .out_len = len, .blksz = BLKSZ,
				   .zero_padding = zero_padding, .partial = partial, .in_len = stored,
				   .in_place = true, .nin = nin };
	struct codec_fault fault;

	assert_true(nin <= nout);
	take_pages(w, out, nout, 0);
	req.in = out + nout - nin;
	for (i = 0; i < nin; i++)
		memcpy(erofs_page_address(&w->pages, req.in[i]), w->packed + i * (size_t)PAGE, PAGE);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	expect_pages(w, out, (unsigned int)((len + PAGE - 1) / PAGE), 0, len);
	give_pages(w, out, nout);
}

static void rule_C5_in_place_where_the_margin_allows_else_through_the_global_buffer(void **state)
{
	struct world *w = *state;
	size_t pages;
	int direction;

	for (direction = 0; direction < 1 + OWN_MEMMOVE; direction++) {
#if OWN_MEMMOVE
		backwards_first = direction;
#endif
		for (pages = 4; pages < 40; pages++) {
			make_plain(w, pages * PAGE);
			w->lp.in_place = w->lp.copied = 0;
			/* a page behind the output: room enough */
			decode_in_place(w, pages * PAGE, (unsigned int)pages + 1, true, false);
			assert_int_equal(w->lp.in_place, 1);
			/* the output fills its last page: no margin at all */
			decode_in_place(w, pages * PAGE, (unsigned int)pages, true, false);
			assert_int_equal(w->lp.in_place, 1);
			assert_int_equal(w->lp.copied, 1);
			/* partial references never */
			decode_in_place(w, pages * PAGE, (unsigned int)pages + 1, true, true);
			assert_int_equal(w->lp.in_place, 1);
			assert_int_equal(w->lp.copied, 2);
		}
	}
}

static void rule_C5_the_margin_to_the_byte(void **state)
{
	struct lz4_request req = { .nin = 2, .nout = 5, .in_len = 2 * PAGE, .blksz = BLKSZ, .zero_padding = true };
	size_t start = 100, margin = ((2 * PAGE - start) >> 8) + 32;

	(void)state;
	req.out_len = 5 * PAGE - margin;
	assert_true(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.out_len++;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.out_len--;
	req.out_off = 1;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.out_off = 0;
	req.zero_padding = false;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.zero_padding = true;
	req.partial = true;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.partial = false;
	req.in_len--;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
	req.in_len++;
	req.nout = 1;
	req.out_len = 10;
	assert_false(erofs_lz4_may_be_in_place(&req, PAGE, start));
}

static void rule_C6_the_global_buffer_grows_and_never_shrinks(void **state)
{
	struct world *w = *state;

	make_plain(w, 30 * PAGE);
	decode_in_place(w, 4 * PAGE, 4, true, false);
	assert_true(w->lp.global_room > 0 && w->lp.global_room < 30 * PAGE);
	decode_in_place(w, 30 * PAGE, 30, true, false);
	assert_true(w->lp.global_room > 4 * PAGE);
	decode_in_place(w, 4 * PAGE, 4, true, false);
	assert_true(w->lp.global_room > 4 * PAGE);
}

static void rule_C7_partial_takes_the_beginning_whole_must_be_exact(void **state)
{
	struct world *w = *state;
	size_t len = 20 * PAGE, stored, want;
	struct page *out[21];
	struct codec_fault fault;

	make_plain(w, len);
	stored = pack(w, len);
	take_pages(w, out, 21, 0);
	for (want = 1; want < len; want += 777) {
		struct lz4_request req = { .out = out, .nout = 21, .out_len = want, .blksz = BLKSZ,
					   .zero_padding = true, .src = w->packed, .in_len = stored,
					   .partial = true };

		assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
		expect_pages(w, out, (unsigned int)((want + PAGE - 1) / PAGE), 0, want);
		req.partial = false;
		assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), -EUCLEAN);
		req.partial = true;
		req.out_len = len + 1;
		assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), -EUCLEAN);
	}
	give_pages(w, out, 21);
}

static void rule_B1_no_page_to_be_had_is_an_error_and_leaves_the_request_as_it_was(void **state)
{
	struct world *w = *state;
	struct page *out[20] = { NULL }, *mine, *all[600];
	struct lz4_request req = { .out = out, .nout = 20, .out_len = 20 * PAGE, .blksz = BLKSZ,
				   .zero_padding = true, .src = w->packed };
	struct codec_fault fault;
	unsigned int n = 0, i;

	make_plain(w, 20 * PAGE);
	req.in_len = pack(w, 20 * PAGE);
	mine = erofs_page_take(&w->pages, &w->pool, true);
	out[19] = mine;
	while (n < 600 && (all[n] = erofs_page_take(&w->pages, &w->pool, true)))
		n++;
	erofs_page_give(&w->pool, all[--n]);
	erofs_page_give(&w->pool, all[--n]);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), -ENOMEM);
	for (i = 0; i < 19; i++)
		assert_null(out[i]);
	assert_ptr_equal(out[19], mine);
	while (n)
		erofs_page_give(&w->pool, all[--n]);
	assert_int_equal(erofs_lz4_decode_pages(&w->lp, &req, &fault), 0);
	erofs_page_give(&w->pool, mine);
	erofs_pagepool_release(&w->pages, &w->pool);
	assert_int_equal(atomic_load(&w->pages.nreserved), 64);
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, make_world, end_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_C1_window_is_the_distance_in_pages_and_one),
		world_test(rule_C2_gaps_anywhere_need_no_more_than_a_window),
		world_test(rule_C2_with_several_bases_no_page_stands_in_twice),
		world_test(rule_C3_consecutive_pages_are_decoded_into_as_they_are),
		world_test(rule_C3_one_page_of_output_ending_at_each_byte),
		world_test(rule_C4_a_first_block_of_zeros_is_damage),
		world_test(rule_C5_in_place_where_the_margin_allows_else_through_the_global_buffer),
		cmocka_unit_test(rule_C5_the_margin_to_the_byte),
		world_test(rule_C6_the_global_buffer_grows_and_never_shrinks),
		world_test(rule_C7_partial_takes_the_beginning_whole_must_be_exact),
		world_test(rule_B1_no_page_to_be_had_is_an_error_and_leaves_the_request_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("1..0 # SKIP built without LZ4");
	return 0;
}

#endif
