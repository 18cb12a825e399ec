/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What only one codec has: LZ4 without padding, matches of distance 0, the dictionary of LZMA, the
 * first byte of DEFLATE, the frames of Zstandard, plain pclusters; and the table itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec_samples.h"
#include "codec_try.h"

static const enum codec_alg lz4 = CODEC_LZ4, lzma = CODEC_LZMA, deflate = CODEC_DEFLATE,
			    zstd = CODEC_ZSTD;

static struct codec_ctx *new_ctx(const struct codec_config *config)
{
	struct codec_ctx *ctx = NULL;

	assert_int_equal(erofs_codec_ctx_new(config, &ctx), 0);
	return ctx;
}

static struct bytes append(struct bytes a, const uint8_t *p, size_t len)
{
	struct bytes b = { .p = malloc(a.len + len), .len = a.len + len };

	assert_non_null(b.p);
	memcpy(b.p, a.p, a.len);
	memcpy(b.p + a.len, p, len);
	return b;
}

/* The table */

static void every_algorithm_has_a_name(void **state)
{
	static const char *const expected[CODEC_COUNT] = { "lz4",  "lzma",    "deflate",
							   "zstd", "shifted", "interlaced" };

	(void)state;
	for (unsigned int alg = 0; alg < CODEC_COUNT; alg++)
		assert_string_equal(erofs_codec_name(alg), expected[alg]);
	assert_null(erofs_codec_name(CODEC_COUNT));
	assert_null(erofs_codec_name(UINT32_MAX));
	assert_true(erofs_codec_is_built(CODEC_SHIFTED));
	assert_true(erofs_codec_is_built(CODEC_INTERLACED));
	assert_false(erofs_codec_is_built(CODEC_COUNT));
	assert_false(erofs_codec_is_built(UINT32_MAX));
	erofs_codec_ctx_free(NULL);
}

static void missing_codec_is_named(void **state)
{
	struct codec_ctx *ctx = new_ctx(&try_config);
	struct bytes src = samples_noise(100);

	(void)state;
	for (unsigned int alg = 0; alg <= CODEC_COUNT; alg++) {
		struct try_outcome out;

		if (erofs_codec_is_built(alg))
			continue;
		out = try_decode(ctx, try_request(alg, src, 100));
		assert_int_equal(out.result, -EOPNOTSUPP);
		assert_non_null(strstr(out.fault.text, alg == CODEC_COUNT ? "6 is unknown" :
									    erofs_codec_name(alg)));
		try_drop(&out);
	}
	free(src.p);
	erofs_codec_ctx_free(ctx);
}

/* LZ4 */

static void rule_C4_without_padding_the_stream_begins_at_once(void **state)
{
	static const struct codec_config old = { .zero_padding = false };
	struct bytes plain = samples_text(3000), noise = samples_noise(64), stream, src;
	struct codec_ctx *ctx = new_ctx(&old);

	(void)state;
	stream = samples_compress(CODEC_LZ4, plain);
	try_expect(ctx, try_request(CODEC_LZ4, stream, 3000), 0, plain.p);
	try_expect(ctx, try_request(CODEC_LZ4, stream, 2999), 0, plain.p);
	src = append(stream, noise.p, noise.len);
	try_expect(ctx, try_request(CODEC_LZ4, src, 3000), 0, plain.p);
	free(src.p);
	/* A zero in front is a token here, not padding. */
	src = try_pad(stream, stream.len + 1);
	try_expect(ctx, try_request(CODEC_LZ4, src, 3000), -EUCLEAN, NULL);
	free(src.p);
	free(stream.p);
	free(noise.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

/* The zeros behind the stream are valid tokens with matches of distance 0: no way to get bytes. */
static void rule_C7_without_padding_a_short_stream_is_damage(void **state)
{
	static const struct codec_config old = { .zero_padding = false };
	struct bytes plain = samples_text(3000), zeros = samples_zeros(4096), stream, src;
	struct codec_ctx *ctx = new_ctx(&old);

	(void)state;
	stream = samples_compress(CODEC_LZ4, plain);
	src = append(stream, zeros.p, 4096 - stream.len);
	try_expect(ctx, try_request(CODEC_LZ4, src, 3000), 0, plain.p);
	for (size_t len = 3001; len < 9000; len += len < 3100 ? 1 : 101)
		try_expect(ctx, try_request(CODEC_LZ4, src, len), -EUCLEAN, NULL);
	try_expect(ctx, try_request(CODEC_LZ4, zeros, 1), -EUCLEAN, NULL);
	free(src.p);
	free(stream.p);
	free(zeros.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

static void rule_C7_lz4_match_of_distance_0_is_damage(void **state)
{
	/* "abcd", then 4 + 15 + 200 bytes of distance 0, then the five last literals */
	static uint8_t raw[] = {
		0x4f, 'a', 'b', 'c', 'd', 0, 0, 200, 0x50, 'v', 'w', 'x', 'y', 'z'
	};
	struct bytes src = { raw, sizeof(raw) };
	struct codec_request req = try_request(CODEC_LZ4, src, 228);
	struct codec_ctx *ctx = new_ctx(&try_config);
	struct try_outcome out;

	(void)state;
	out = try_decode(ctx, req); /* whatever liblz4 makes of it: the same over any old bytes */
	try_drop(&out);
	req.partial = true;
	for (req.dst_len = 5; req.dst_len <= 228; req.dst_len++)
		try_expect_fault(ctx, req, "refers back 0 bytes");
	for (req.dst_len = 1; req.dst_len <= 4; req.dst_len++)
		try_expect(ctx, req, 0, (const uint8_t *)"abcd");
	erofs_codec_ctx_free(ctx);
}

/* LZMA */

static void rule_D_lzma_match_behind_the_dictionary_is_damage(void **state)
{
	struct codec_config small = try_config;
	struct bytes noise = samples_noise(20000), plain, stream;
	struct codec_ctx *ctx, *whole = new_ctx(&try_config);

	(void)state;
	plain = append(noise, noise.p,
		       noise.len); /* the second half is one match of distance 20000 */
	stream = samples_compress(CODEC_LZMA, plain);
	try_expect(whole, try_request(CODEC_LZMA, stream, plain.len), 0, plain.p);
	small.lzma_dict_size = 4096;
	ctx = new_ctx(&small);
	try_expect(ctx, try_request(CODEC_LZMA, stream, plain.len), -EUCLEAN, NULL);
	erofs_codec_ctx_free(ctx);
	erofs_codec_ctx_free(whole);
	free(stream.p);
	free(plain.p);
	free(noise.p);
}

static void lzma_properties_beyond_the_format_are_damage(void **state)
{
	struct bytes plain = samples_text(1000), stream;
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	stream = samples_compress(CODEC_LZMA, plain);
	for (unsigned int byte = 225; byte < 255; byte++) { /* (pb * 5 + lp) * 9 + lc < 225 */
		stream.p[0] = (uint8_t)~byte;
		try_expect_fault(ctx, try_request(CODEC_LZMA, stream, 1000), "properties");
	}
	free(stream.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

/* DEFLATE */

static void deflate_stream_with_a_stored_block_first_has_bit_3_set(void **state)
{
	struct bytes plain = samples_noise(100000), stream, pcluster;
	struct codec_ctx *ctx = new_ctx(&try_config);
	struct codec_request req;

	(void)state;
	stream = samples_deflate_stored(plain);
	assert_int_equal(stream.p[0], 0); /* stored, not final: the padding would swallow it */
	stream.p[0] |= 8;
	pcluster = try_pad(stream, TRY_BLKSZ);
	assert_true(pcluster.len > stream.len);
	req = try_request(CODEC_DEFLATE, pcluster, plain.len);
	try_expect(ctx, req, 0, plain.p);
	req.partial = true;
	for (req.dst_len = 1; req.dst_len < plain.len; req.dst_len += 9973)
		try_expect(ctx, req, 0, plain.p);
	free(pcluster.p);
	free(stream.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

/* Zstandard */

static const struct samples_zstd zstd_forms[] = {
	{ .window_log = 0 },
	{ .no_content_size = true },
	{ .checksum = true },
	{ .no_content_size = true, .checksum = true },
	{ .window_log = 12, .checksum = true },
	{ .window_log = 10, .no_content_size = true },
};

static void zstd_content_size_and_checksum_are_optional(void **state)
{
	static const size_t sizes[] = { 1, 255, 256, 300, 65791, 65792, 300000 };
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	for (size_t i = 0; i < sizeof(zstd_forms) / sizeof(zstd_forms[0]) * 7; i++) {
		struct bytes plain = samples_text(sizes[i % 7]);
		struct bytes stream = samples_zstd_with(plain, &zstd_forms[i / 7]);
		struct codec_request req = try_request(CODEC_ZSTD, stream, plain.len);

		try_expect(ctx, req, 0, plain.p);
		req.dst_len = plain.len + 1;
		try_expect(ctx, req, -EUCLEAN, NULL);
		req.partial = true;
		try_expect(ctx, req, -EUCLEAN, NULL);
		req.dst_len = (plain.len + 1) / 2;
		try_expect(ctx, req, 0, plain.p);
		req.partial = false;
		if (plain.len > 1)
			try_expect(ctx, req, -EUCLEAN, NULL);
		free(stream.p);
		free(plain.p);
	}
	erofs_codec_ctx_free(ctx);
}

static void zstd_content_size_that_lies_is_damage(void **state)
{
	struct bytes plain = samples_text(5000), stream;
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	stream = samples_compress(CODEC_ZSTD, plain);
	assert_int_equal(stream.p[4] & 0xe0, 0x60); /* one segment, two bytes of content size */
	for (size_t size = 256; size < 9000; size += 244) {
		struct codec_request req = try_request(CODEC_ZSTD, stream, size);

		if (size == 5000)
			continue;
		stream.p[5] = (uint8_t)(size - 256);
		stream.p[6] = (uint8_t)((size - 256) >> 8);
		try_expect(ctx, req, -EUCLEAN, NULL);
		req.dst_len = 5000;
		try_expect_fault(ctx, req, "5000 wanted");
	}
	free(stream.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

static void zstd_checksum_is_verified(void **state)
{
	struct bytes plain = samples_text(5000), stream;
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	stream = samples_zstd_with(plain, &zstd_forms[2]);
	for (size_t back = 1; back <= 4; back++) {
		stream.p[stream.len - back] ^= 1;
		try_expect_fault(ctx, try_request(CODEC_ZSTD, stream, 5000), "damaged");
		stream.p[stream.len - back] ^= 1;
	}
	try_expect(ctx, try_request(CODEC_ZSTD, stream, 5000), 0, plain.p);
	free(stream.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

static void rule_D_zstd_window_above_the_limit_is_damage(void **state)
{
	static const struct samples_zstd wide = { .window_log = 17, .no_content_size = true };
	struct codec_config narrow = try_config;
	struct bytes plain = samples_text(200000);

	(void)state;
	for (uint8_t log = 15; log <= 18; log++) {
		struct bytes stream = samples_zstd_with(plain, &wide);
		struct bytes single = samples_compress(CODEC_ZSTD, plain); /* its window: 200000 */
		struct codec_request req = try_request(CODEC_ZSTD, stream, plain.len);
		struct codec_ctx *ctx;

		narrow.zstd_window_log = log;
		ctx = new_ctx(&narrow);
		for (int partial = 0; partial < 2; partial++) {
			req.partial = partial;
			req.src = stream.p;
			req.src_len = stream.len;
			try_expect(ctx, req, log < 17 ? -EUCLEAN : 0, plain.p);
			req.src = single.p;
			req.src_len = single.len;
			try_expect(ctx, req, log < 18 ? -EUCLEAN : 0, plain.p);
		}
		erofs_codec_ctx_free(ctx);
		free(single.p);
		free(stream.p);
	}
	free(plain.p);
}

static void zstd_is_one_frame_and_nothing_else(void **state)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y' };
	struct bytes plain = samples_text(2000), skip_first = { NULL, 0 }, stream, src;
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	stream = samples_compress(CODEC_ZSTD, plain);
	src = append(stream, skippable, sizeof(skippable));
	try_expect_fault(ctx, try_request(CODEC_ZSTD, src, 2000), "ends after");
	free(src.p);
	src = append(stream, stream.p, stream.len);
	try_expect(ctx, try_request(CODEC_ZSTD, src, 2000), -EUCLEAN, NULL);
	try_expect(ctx, try_request(CODEC_ZSTD, src, 4000), -EUCLEAN, NULL);
	free(src.p);
	skip_first.p = malloc(sizeof(skippable) + stream.len);
	assert_non_null(skip_first.p);
	memcpy(skip_first.p, skippable, sizeof(skippable));
	memcpy(skip_first.p + sizeof(skippable), stream.p, stream.len);
	skip_first.len = sizeof(skippable) + stream.len;
	try_expect_fault(ctx, try_request(CODEC_ZSTD, skip_first, 2000), "no zstd frame begins");
	free(skip_first.p);
	free(stream.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
}

static void zstd_dictionary_and_reserved_bit_are_damage(void **state)
{
	/* A content size of 1 in place of a window, and a last block that holds this byte raw */
	static uint8_t dict[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 1, 9, 0, 0, 'z' };
	static uint8_t reserved[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x28, 1, 9, 0, 0, 'z' };
	struct bytes with_dict = { dict, sizeof(dict) }, with_bit = { reserved, sizeof(reserved) };
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	try_expect_fault(ctx, try_request(CODEC_ZSTD, with_dict, 1), "dictionary 7");
	dict[5] = 0; /* dictionary 0 is none */
	try_expect(ctx, try_request(CODEC_ZSTD, with_dict, 1), 0, (const uint8_t *)"z");
	dict[5] = 7;
	try_expect_fault(ctx, try_request(CODEC_ZSTD, with_bit, 1), "reserved bit");
	erofs_codec_ctx_free(ctx);
}

/* Plain pclusters */

static void rule_C8_shifted_bytes_are_copied(void **state)
{
	struct bytes src = samples_noise(TRY_BLKSZ * 2);
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	src.p[0] = 0; /* no padding to skip here */
	for (size_t len = 1; len <= src.len; len++)
		try_expect(ctx, try_request(CODEC_SHIFTED, src, len), 0, src.p);
	try_expect_fault(ctx, try_request(CODEC_SHIFTED, src, src.len + 1), "1025 wanted");
	free(src.p);
	erofs_codec_ctx_free(ctx);
}

static void rule_C8_interlaced_block_is_rotated(void **state)
{
	static const struct codec_config old = { .zero_padding = false };
	struct bytes plain = samples_noise(TRY_BLKSZ), block = samples_zeros(TRY_BLKSZ);
	struct codec_ctx *ctx = new_ctx(&try_config), *bare = new_ctx(&old);

	(void)state;
	for (uint32_t shift = 0; shift < TRY_BLKSZ; shift++) {
		struct codec_request req = try_request(CODEC_INTERLACED, block, TRY_BLKSZ);

		for (size_t k = 0; k < TRY_BLKSZ; k++)
			block.p[(shift + k) % TRY_BLKSZ] = plain.p[k];
		req.interlace = shift;
		try_expect(ctx, req, 0, plain.p);
		try_expect(bare, req, 0, plain.p);
		for (req.dst_len = 1; req.dst_len < TRY_BLKSZ; req.dst_len += 37)
			try_expect(ctx, req, 0, plain.p);
	}
	free(block.p);
	free(plain.p);
	erofs_codec_ctx_free(ctx);
	erofs_codec_ctx_free(bare);
}

static void rule_C8_interlaced_pcluster_is_one_block(void **state)
{
	struct bytes src = samples_noise(TRY_BLKSZ * 2);
	struct codec_request req = try_request(CODEC_INTERLACED, src, 10);
	struct codec_ctx *ctx = new_ctx(&try_config);

	(void)state;
	req.interlace = 3;
	try_expect_fault(ctx, req, "1024 bytes, a block has 512");
	req.src_len = TRY_BLKSZ - 1;
	try_expect_fault(ctx, req, "511 bytes, a block has 512");
	req.src_len = TRY_BLKSZ;
	req.dst_len = TRY_BLKSZ + 1;
	try_expect_fault(ctx, req, "513 wanted");
	free(src.p);
	erofs_codec_ctx_free(ctx);
}

/* A test of one codec, left out where the build lacks it */
#define OF(alg, test) { #test, test, NULL, NULL, (void *)&alg }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm_has_a_name),
		cmocka_unit_test(missing_codec_is_named),
		OF(lz4, rule_C4_without_padding_the_stream_begins_at_once),
		OF(lz4, rule_C7_without_padding_a_short_stream_is_damage),
		OF(lz4, rule_C7_lz4_match_of_distance_0_is_damage),
		OF(lzma, rule_D_lzma_match_behind_the_dictionary_is_damage),
		OF(lzma, lzma_properties_beyond_the_format_are_damage),
		OF(deflate, deflate_stream_with_a_stored_block_first_has_bit_3_set),
		OF(zstd, zstd_content_size_and_checksum_are_optional),
		OF(zstd, zstd_content_size_that_lies_is_damage),
		OF(zstd, zstd_checksum_is_verified),
		OF(zstd, rule_D_zstd_window_above_the_limit_is_damage),
		OF(zstd, zstd_is_one_frame_and_nothing_else),
		OF(zstd, zstd_dictionary_and_reserved_bit_are_damage),
		cmocka_unit_test(rule_C8_shifted_bytes_are_copied),
		cmocka_unit_test(rule_C8_interlaced_block_is_rotated),
		cmocka_unit_test(rule_C8_interlaced_pcluster_is_one_block),
	};

	return try_run("codec_own", tests, sizeof(tests) / sizeof(tests[0]));
}
