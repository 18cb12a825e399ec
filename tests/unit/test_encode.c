// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Encoders: what fits into a pcluster. What one writes must be no longer than the room, must decode to the
 * bytes it took by the decoder of fsck.erofs, and must not depend on what it wrote before.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/enc.h"
#include "codec_samples.h"
#include "codec_try.h"

#define GUARD 64
#define MIB ((size_t)1 << 20)
#define LARGE_DICT (UINT32_C(1) << 17)

/* An encoder, and the decoder of an image that declares what it was made with. */
struct enc_case {
	const struct enc_method *m;
	void *state;
	struct codec_ctx *ctx;
};

/* A pcluster and what was taken for it. */
struct filled {
	int got;
	size_t taken;
	struct bytes out;	/* got bytes */
};

static struct enc_case open_case(const struct enc_method *m, int level, uint32_t max_out)
{
	struct enc_config config = { .level = level, .max_out = max_out };
	struct codec_config declared = try_config;
	struct enc_case c = { .m = m };

	if (m->max_dict)
		config.dict_size = m->max_dict < LARGE_DICT ? m->max_dict : LARGE_DICT;
	if (m->alg == CODEC_LZMA)
		declared.lzma_dict_size = config.dict_size;
	if (m->alg == CODEC_ZSTD)
		declared.zstd_window_log = 17;
	assert_int_equal(m->make(&config, &c.state), 0);
	assert_int_equal(erofs_codec_ctx_new(&declared, &c.ctx), 0);
	return c;
}

static void close_case(struct enc_case *c)
{
	c->m->free(c->state);
	erofs_codec_ctx_free(c->ctx);
}

/* Fill, and see that nothing behind the room was touched, nor more taken than was there. */
static struct filled fill(struct enc_case *c, struct bytes src, size_t room)
{
	struct filled f = { .taken = src.len };
	uint8_t *dst = malloc(room + GUARD);
	size_t i;

	assert_non_null(dst);
	memset(dst, 0xa5, room + GUARD);
	f.got = c->m->fill(c->state, src.p, &f.taken, dst, room);
	assert_true(f.got >= 0);
	assert_true((size_t)f.got <= room);
	for (i = room; i < room + GUARD; i++)
		assert_int_equal(dst[i], 0xa5);
	if (f.got) {
		assert_true(f.taken > 0);
		assert_true(f.taken <= src.len);
	}
	f.out = (struct bytes){ dst, (size_t)f.got };
	return f;
}

/* Right-aligned in its pcluster and, as the tail of an inode, without padding. */
static void expect_decodes(struct enc_case *c, const struct filled *f, struct bytes src)
{
	struct bytes pcluster;

	if (!f->got)
		return;
	pcluster = try_pad(f->out, TRY_BLKSZ);
	/* padding is found by its zeros */
	assert_int_not_equal(f->out.p[0], 0);
	try_expect(c->ctx, try_request(c->m->alg, pcluster, f->taken), 0, src.p);
	try_expect(c->ctx, try_request(c->m->alg, f->out, f->taken), 0, src.p);
	free(pcluster.p);
}

/* Fill and decode. Return: what was taken, 0: nothing fits. */
static size_t round_trip(struct enc_case *c, struct bytes src, size_t room)
{
	struct filled f = fill(c, src, room);

	expect_decodes(c, &f, src);
	free(f.out.p);
	return f.got ? f.taken : 0;
}

static const struct enc_method *method_of(void **state)
{
	const char *name = *state;

	return erofs_enc_find(name, strlen(name));
}

static void fills_pclusters_of_each_size(void **state)
{
	static const size_t rooms[] = { TRY_BLKSZ, 1024, 4096, 12288, 65536, MIB };
	const struct enc_method *m = method_of(state);
	struct bytes text = samples_text(4 * MIB);
	size_t i, least = 0;

	for (i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		struct enc_case c = open_case(m, m->default_level, (uint32_t)rooms[i]);
		struct filled f = fill(&c, text, rooms[i]);

		expect_decodes(&c, &f, text);
		/* the text becomes half or less: a pcluster that takes no more than its size saves nothing */
		assert_true(f.taken > rooms[i]);
		assert_true(f.taken > least);
		/* and there is more than enough of it to fill the room nearly */
		if (f.taken < text.len)
			assert_true((size_t)f.got > rooms[i] - rooms[i] / 8);
		least = f.taken;
		free(f.out.p);
		close_case(&c);
	}
	free(text.p);
}

static void takes_all_of_what_fits(void **state)
{
	static const size_t sizes[] = { 100, 511, 512, 513, 4095, 4096, 4097, 6000 };
	const struct enc_method *m = method_of(state);
	struct enc_case c = open_case(m, m->default_level, 65536);
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct bytes text = samples_text(sizes[i]);
		struct bytes zeros = samples_zeros(sizes[i]);

		assert_int_equal(round_trip(&c, text, 65536), sizes[i]);
		assert_int_equal(round_trip(&c, zeros, 65536), sizes[i]);
		free(text.p);
		free(zeros.p);
	}
	close_case(&c);
}

static void single_bytes(void **state)
{
	static const size_t rooms[] = { TRY_BLKSZ, 4096, MIB };
	const struct enc_method *m = method_of(state);
	struct enc_case c = open_case(m, m->default_level, MIB);
	unsigned int value;
	size_t i;

	for (i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		for (value = 0; value < 256; value += 51) {
			uint8_t byte = (uint8_t)value;

			assert_int_equal(round_trip(&c, (struct bytes){ &byte, 1 }, rooms[i]), 1);
		}
	}
	close_case(&c);
}

static void noise_stays_in_the_room(void **state)
{
	static const size_t rooms[] = { TRY_BLKSZ, 4096, 65536 };
	const struct enc_method *m = method_of(state);
	struct bytes noise = samples_noise(300000);
	struct enc_case c = open_case(m, m->default_level, 65536);
	size_t i;

	for (i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		struct bytes as_much = { noise.p, rooms[i] };

		/* no method makes noise shorter: what is taken is no more than the room */
		assert_true(round_trip(&c, noise, rooms[i]) <= rooms[i]);
		assert_true(round_trip(&c, as_much, rooms[i]) <= rooms[i]);
	}
	close_case(&c);
	free(noise.p);
}

static void rooms_below_a_block(void **state)
{
	const struct enc_method *m = method_of(state);
	struct enc_case c = open_case(m, m->default_level, 4096);
	struct bytes text = samples_text(4096);
	size_t room;

	/* mkfs.erofs has no room below a block: this is to see that none is left, not that it is used */
	for (room = 16; room < TRY_BLKSZ; room += 16)
		round_trip(&c, text, room);
	close_case(&c);
	free(text.p);
}

static void longest_extent_of_the_format(void **state)
{
	const struct enc_method *m = method_of(state);
	struct enc_case c = open_case(m, m->default_level, MIB);
	struct bytes zeros = samples_zeros(CODEC_MAX_DLEN);

	/* an extent of the format, in the largest pcluster and in one block; a search may stop just before its end */
	assert_true(round_trip(&c, zeros, MIB) > CODEC_MAX_DLEN - 4096);
	assert_true(round_trip(&c, zeros, 4096) > 4096 * 100);
	close_case(&c);
	free(zeros.p);
}

static void try_level(const struct enc_method *m, int level, struct bytes src)
{
	struct enc_case c = open_case(m, level, 16384);

	/* level 0 of DEFLATE stores */
	if (round_trip(&c, src, 16384) <= (level || m->alg != CODEC_DEFLATE ? 16384 : 0))
		fail_msg("level %d of %s saves nothing", level, m->name);
	close_case(&c);
}

static void each_level_of_its_ranges_works(void **state)
{
	const struct enc_method *m = method_of(state);
	struct bytes text = samples_text(100000);
	int level;

	try_level(m, m->default_level, text);
	for (level = m->min_level; level <= m->max_level; level++)
		try_level(m, level, text);
	for (level = m->more_levels; m->more_levels && level <= m->max_more; level++)
		try_level(m, level, text);
	free(text.p);
}

static void expect_same(const struct filled *one, const struct filled *two)
{
	assert_int_equal(one->got, two->got);
	if (!one->got)
		return;
	assert_int_equal(one->taken, two->taken);
	assert_memory_equal(one->out.p, two->out.p, one->out.len);
}

/* Images are the same for any number of workers because of this. */
static void what_it_did_before_leaves_no_trace(void **state)
{
	const struct enc_method *m = method_of(state);
	struct bytes text = samples_text(400000), noise = samples_noise(100000), zeros = samples_zeros(200000);
	struct bytes part = { text.p + 1000, text.len - 1000 };
	struct bytes inputs[] = { text, noise, zeros, part, { text.p, 1 }, { text.p, 5000 } };
	size_t count = sizeof(inputs) / sizeof(*inputs), i, k;
	int levels[] = { m->min_level, m->default_level, m->max_level < 9 ? m->max_level : 9 };

	for (k = 0; k < 3; k++) {
		struct enc_case used = open_case(m, levels[k], 65536);

		/* forth and back, so that each input follows each of its neighbours */
		for (i = 0; i < 2 * count; i++) {
			struct bytes src = inputs[i < count ? i : 2 * count - 1 - i];
			struct enc_case fresh = open_case(m, levels[k], 65536);
			size_t room = i % 3 ? 65536 : 4096;
			struct filled one = fill(&fresh, src, room), two = fill(&used, src, room);

			expect_same(&one, &two);
			free(one.out.p);
			free(two.out.p);
			close_case(&fresh);
		}
		close_case(&used);
	}
	free(text.p);
	free(noise.p);
	free(zeros.p);
}

static void methods_are_found_by_whole_names(void **state)
{
	const char *list = erofs_enc_list(), *at, *end;

	(void)state;
	assert_null(erofs_enc_find("", 0));
	assert_null(erofs_enc_find("lz", 2));
	assert_null(erofs_enc_find("lz4x", 4));
	assert_null(erofs_enc_find("zip", 3));
	for (at = list; *at; at = *end ? end + 2 : end) {
		const struct enc_method *m;

		end = strchr(at, ',');
		if (!end)
			end = at + strlen(at);
		m = erofs_enc_find(at, (size_t)(end - at));
		assert_non_null(m);
		assert_int_equal(strlen(m->name), end - at);
		assert_true(erofs_codec_is_built(m->alg));
	}
}

#define METHODS(text, test) \
	{ "lz4_" text, test, NULL, NULL, (void *)"lz4" }, { "lz4hc_" text, test, NULL, NULL, (void *)"lz4hc" }, \
	{ "lzma_" text, test, NULL, NULL, (void *)"lzma" }, \
	{ "deflate_" text, test, NULL, NULL, (void *)"deflate" }, \
	{ "libdeflate_" text, test, NULL, NULL, (void *)"libdeflate" }, \
	{ "zstd_" text, test, NULL, NULL, (void *)"zstd" }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_are_found_by_whole_names),
		METHODS("fills_pclusters_of_each_size", fills_pclusters_of_each_size),
		METHODS("takes_all_of_what_fits", takes_all_of_what_fits),
		METHODS("single_bytes", single_bytes),
		METHODS("noise_stays_in_the_room", noise_stays_in_the_room),
		METHODS("rooms_below_a_block", rooms_below_a_block),
		METHODS("longest_extent_of_the_format", longest_extent_of_the_format),
		METHODS("each_level_of_its_ranges_works", each_level_of_its_ranges_works),
		METHODS("what_it_did_before_leaves_no_trace", what_it_did_before_leaves_no_trace),
	};
	struct CMUnitTest built[sizeof(tests) / sizeof(*tests)];
	size_t i, count = 0;

	/* methods that this build has not are left out: a skip of cmocka's counts as a failure to prove */
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		const char *name = tests[i].initial_state;

		if (!name || erofs_enc_find(name, strlen(name)))
			built[count++] = tests[i];
	}
	printf("# methods of this build: %s\n", erofs_enc_list());
	fflush(stdout);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("encode", built, count, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
