/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all codecs have in common: padding, exact lengths, partial decoding, damage. Engine.md asks
 * for it in rule C7 (LZ4) and D (the others). What only one of them has is in test_codec_own.c.
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

#include "codec/codec_priv.h"
#include "codec_samples.h"
#include "codec_try.h"

static const enum codec_alg lz4 = CODEC_LZ4, lzma = CODEC_LZMA, deflate = CODEC_DEFLATE,
			    zstd = CODEC_ZSTD;

/* One codec, a context, a text, and the pcluster that holds it. */
struct codec_case {
	enum codec_alg alg;
	struct codec_ctx *ctx;
	struct bytes plain, stream, pcluster;
};

static struct codec_case open_case(void **state, struct bytes plain)
{
	struct codec_case c = { .alg = *(const enum codec_alg *)*state, .plain = plain };

	assert_int_equal(erofs_codec_ctx_new(&try_config, &c.ctx), 0);
	c.stream = samples_compress(c.alg, plain);
	c.pcluster = try_pad(c.stream, TRY_BLKSZ);
	return c;
}

static void close_case(struct codec_case *c)
{
	erofs_codec_ctx_free(c->ctx);
	free(c->plain.p);
	free(c->stream.p);
	free(c->pcluster.p);
}

static void decodes_exactly(void **state)
{
	static const size_t sizes[] = { 1, 2, 13, 511, 512, 4096, 5001, 70000, 1200000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct codec_case c = open_case(state, samples_text(sizes[i]));

		try_expect(c.ctx, try_request(c.alg, c.pcluster, c.plain.len), 0, c.plain.p);
		/* An inline tail has no padding. */
		try_expect(c.ctx, try_request(c.alg, c.stream, c.plain.len), 0, c.plain.p);
		close_case(&c);
	}
}

static void yields_more(void **state)
{
	struct codec_case c = open_case(state, samples_text(6000));

	for (size_t less = 1; less < c.plain.len; less += less < 300 ? 1 : 97)
		try_expect(c.ctx, try_request(c.alg, c.pcluster, c.plain.len - less), -EUCLEAN,
			   NULL);
	try_expect(c.ctx, try_request(c.alg, c.pcluster, 1), -EUCLEAN, NULL);
	try_expect_fault(c.ctx, try_request(c.alg, c.pcluster, 5999), "5999");
	try_expect_fault(c.ctx, try_request(c.alg, c.pcluster, 5999), erofs_codec_name(c.alg));
	close_case(&c);
}

static void yields_less(void **state)
{
	struct codec_case c = open_case(state, samples_text(6000));

	for (size_t more = 1; more < 100000; more += more < 300 ? 1 : 9973) {
		struct codec_request req = try_request(c.alg, c.pcluster, c.plain.len + more);

		try_expect(c.ctx, req, -EUCLEAN, NULL);
		req.partial = true;
		try_expect(c.ctx, req, -EUCLEAN, NULL);
	}
	try_expect_fault(c.ctx, try_request(c.alg, c.pcluster, 6001), "6001");
	close_case(&c);
}

static void partial_gives_the_beginning(void **state)
{
	struct codec_case c = open_case(state, samples_text(200000));
	size_t len = 1;

	while (len <= c.plain.len) {
		struct codec_request req = try_request(c.alg, c.pcluster, len);

		req.partial = true;
		try_expect(c.ctx, req, 0, c.plain.p);
		if (len < 300 || c.plain.len - len < 50)
			len++;
		else
			len = c.plain.len - len < 9000 ? c.plain.len - 49 : len + 8191;
	}
	close_case(&c);
}

static void check_truncated(struct codec_case *c, size_t keep)
{
	struct bytes cut = { .p = malloc(keep), .len = keep };
	struct codec_request req = try_request(c->alg, cut, c->plain.len);
	struct try_outcome out;

	assert_non_null(cut.p);
	memcpy(cut.p, c->stream.p, keep);
	try_expect(c->ctx, req, -EUCLEAN, NULL);
	/* All wanted bytes may lie before the cut (LZMA: the coder's last bytes), else damage. */
	req.partial = true;
	out = try_decode(c->ctx, req);
	if (out.result)
		assert_int_equal(out.result, -EUCLEAN);
	else
		assert_memory_equal(out.dst, c->plain.p, req.dst_len);
	if (keep + 16 < c->stream.len)
		assert_int_equal(out.result, -EUCLEAN);
	try_drop(&out);
	free(cut.p);
}

static void truncated_anywhere(void **state)
{
	struct codec_case c = open_case(state, samples_text(20000));

	assert_true(c.stream.len > 100);
	for (size_t keep = 1; keep <= 32; keep++)
		check_truncated(&c, keep);
	for (size_t keep = c.stream.len - 32; keep < c.stream.len; keep++)
		check_truncated(&c, keep);
	close_case(&c);
}

static void beginning_lost(void **state)
{
	struct codec_case c = open_case(state, samples_text(20000));

	for (size_t lost = 1; lost <= 32; lost++) {
		struct bytes cut = { c.stream.p + lost, c.stream.len - lost };
		struct codec_request req = try_request(c.alg, cut, c.plain.len);

		try_expect(c.ctx, req, -EUCLEAN, NULL);
	}
	close_case(&c);
}

/* Each byte gets another value: an answer must be 0 or damage, and never depend on old memory. */
static void flipped_bytes(void **state)
{
	struct codec_case c = open_case(state, samples_text(1500));

	for (size_t i = 0; i < c.stream.len; i++) {
		struct codec_request req = try_request(c.alg, c.stream, c.plain.len);

		for (int round = 0; round < 4; round++) {
			struct try_outcome out;

			c.stream.p[i] ^= (uint8_t)(0x41 << round);
			req.partial = round & 1;
			out = try_decode(c.ctx, req);
			assert_true(out.result == 0 || out.result == -EUCLEAN);
			try_drop(&out);
			c.stream.p[i] ^= (uint8_t)(0x41 << round);
		}
	}
	try_expect(c.ctx, try_request(c.alg, c.stream, c.plain.len), 0, c.plain.p);
	close_case(&c);
}

/* A few bytes that decode to more than any extent may have; and no end at all, by hand. */
static void endless(void **state)
{
	static const uint8_t zstd_head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x38 };
	struct codec_case c = open_case(state, samples_zeros(CODEC_MAX_DLEN + 4096));
	struct bytes src = samples_noise(CODEC_MAX_PLEN);
	struct codec_request req = try_request(c.alg, c.pcluster, CODEC_MAX_DLEN);

	try_expect_fault(c.ctx, req, "12582912");
	req.dst_len = 1;
	try_expect(c.ctx, req, -EUCLEAN, NULL);
	req.dst_len = 65536;
	req.partial = true;
	try_expect(c.ctx, req, 0, c.plain.p);

	for (size_t i = 0; i < src.len; i++) {
		if (c.alg == CODEC_DEFLATE) /* empty stored blocks, none of them final */
			src.p[i] = (uint8_t)(i % 5 < 3 ? i == 0 ? 8 : 0 : 0xff);
		else if (c.alg == CODEC_ZSTD) /* blocks of 128 KiB of one byte, none the last */
			src.p[i] = (uint8_t)(i < 6 ? zstd_head[i] :
						     UINT32_C(0x5a100002) >> (i - 6) % 4 * 8);
		else /* LZ4: one length. LZMA: whatever that may be */
			src.p[i] = (uint8_t)(c.alg == CODEC_LZMA && !i ? 0xa2 : 0xff);
	}
	req = try_request(c.alg, src, 65536);
	try_expect(c.ctx, req, -EUCLEAN, NULL);
	req.dst_len = CODEC_MAX_DLEN;
	try_expect(c.ctx, req, -EUCLEAN, NULL);
	free(src.p);
	close_case(&c);
}

static void zeros_alone(void **state)
{
	struct codec_case c = open_case(state, samples_zeros(3 * TRY_BLKSZ));
	struct codec_request req = try_request(c.alg, c.plain, 100);

	for (req.src_len = 1; req.src_len <= 3 * TRY_BLKSZ;
	     req.src_len += req.src_len < 8 ? 1 : 251)
		try_expect_fault(c.ctx, req, "first block of the pcluster is all zero");
	req.partial = true;
	try_expect_fault(c.ctx, req, "first block of the pcluster is all zero");
	close_case(&c);
}

static void padding_of_any_length(void **state)
{
	struct codec_case c = open_case(state, samples_text(3000));

	for (size_t padding = 0; padding <= TRY_BLKSZ + 1; padding++) {
		struct bytes src = samples_zeros(padding + c.stream.len);
		struct codec_request req = try_request(c.alg, src, c.plain.len);

		memcpy(src.p + padding, c.stream.p, c.stream.len);
		try_expect(c.ctx, req, padding < TRY_BLKSZ ? 0 : -EUCLEAN, c.plain.p);
		req.partial = true;
		try_expect(c.ctx, req, padding < TRY_BLKSZ ? 0 : -EUCLEAN, c.plain.p);
		free(src.p);
	}
	close_case(&c);
}

static void bytes_behind_the_stream(void **state)
{
	struct codec_case c = open_case(state, samples_text(3000));

	for (size_t more = 1; more < 70; more++) {
		struct bytes src = samples_zeros(c.stream.len + more);
		struct codec_request req = try_request(c.alg, src, c.plain.len);

		memcpy(src.p, c.stream.p, c.stream.len);
		try_expect(c.ctx, req, -EUCLEAN, NULL);
		req.partial = true;
		try_expect(c.ctx, req, 0, c.plain.p);
		free(src.p);
	}
	close_case(&c);
}

static void context_survives_damage(void **state)
{
	struct codec_case c = open_case(state, samples_text(50000));

	for (size_t round = 0; round < 200; round++) {
		struct codec_request req = try_request(c.alg, c.pcluster, c.plain.len);
		struct try_outcome out;

		/* The decoder stops anywhere, as it pleases. */
		req.partial = round & 1;
		req.src_len -= round * 7;
		req.dst_len -= round * 5;
		out = try_decode(c.ctx, req);
		assert_true(round < 2 || out.result == -EUCLEAN || req.partial);
		try_drop(&out);
		try_expect(c.ctx, try_request(c.alg, c.pcluster, c.plain.len), 0, c.plain.p);
	}
	close_case(&c);
}

static void needs_its_announcement(void **state)
{
	static const struct codec_config none = { .zero_padding = true };
	struct codec_case c = open_case(state, samples_text(100));

	erofs_codec_ctx_free(c.ctx);
	assert_int_equal(erofs_codec_ctx_new(&none, &c.ctx), 0);
	try_expect_fault(c.ctx, try_request(c.alg, c.pcluster, c.plain.len), "declares none");
	close_case(&c);
}

static void needs_zero_padding(void **state)
{
	struct codec_case c = open_case(state, samples_text(100));
	struct codec_config bare = try_config;

	bare.zero_padding = false;
	erofs_codec_ctx_free(c.ctx);
	assert_int_equal(erofs_codec_ctx_new(&bare, &c.ctx), 0);
	try_expect_fault(c.ctx, try_request(c.alg, c.stream, c.plain.len), "without zero padding");
	close_case(&c);
}

static void contexts_share_nothing(void **state)
{
	struct codec_case c = open_case(state, samples_text(50000));
	struct codec_ctx *other;

	assert_int_equal(erofs_codec_ctx_new(&try_config, &other), 0);
	for (int round = 0; round < 3; round++) {
		try_expect(c.ctx, try_request(c.alg, c.pcluster, c.plain.len), 0, c.plain.p);
		try_expect(other, try_request(c.alg, c.pcluster, c.plain.len), 0, c.plain.p);
	}
	erofs_codec_ctx_free(other);
	try_expect(c.ctx, try_request(c.alg, c.pcluster, c.plain.len), 0, c.plain.p);
	close_case(&c);
}

/* Names are sentences: "rule_C7_lz4_" "stream_that_yields_more_is_damage". */
#define ONE(prefix, alg, text, test) { prefix #alg "_" text, test, NULL, NULL, (void *)&alg }
#define RULE(text, test)                                                    \
	ONE("rule_C7_", lz4, text, test), ONE("rule_D_", lzma, text, test), \
		ONE("rule_D_", deflate, text, test), ONE("rule_D_", zstd, text, test)
#define EACH(prefix, text, test)                                     \
	ONE(prefix, lz4, text, test), ONE(prefix, lzma, text, test), \
		ONE(prefix, deflate, text, test), ONE(prefix, zstd, text, test)
#define NOT_LZ4(text, test) \
	ONE("", lzma, text, test), ONE("", deflate, text, test), ONE("", zstd, text, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE("stream_of_the_right_length_decodes", decodes_exactly),
		RULE("stream_that_yields_more_is_damage", yields_more),
		RULE("stream_that_yields_less_is_damage_whole_and_partial", yields_less),
		RULE("partial_decoding_gives_the_beginning", partial_gives_the_beginning),
		RULE("stream_truncated_at_any_byte_of_head_or_end_is_damage", truncated_anywhere),
		RULE("stream_without_its_first_bytes_is_damage", beginning_lost),
		RULE("endless_stream_is_damage_and_stays_in_bounds", endless),
		RULE("damage_never_brings_out_old_memory", flipped_bytes),
		EACH("rule_C4_", "first_block_of_zeros_is_damage", zeros_alone),
		EACH("rule_C4_", "padding_is_shorter_than_a_block", padding_of_any_length),
		EACH("", "stream_must_end_where_the_pcluster_ends", bytes_behind_the_stream),
		EACH("", "context_works_on_after_damage", context_survives_damage),
		EACH("", "contexts_share_nothing", contexts_share_nothing),
		NOT_LZ4("data_that_the_image_does_not_declare_is_damage", needs_its_announcement),
		NOT_LZ4("data_without_zero_padding_is_damage", needs_zero_padding),
	};

	return try_run("codec", tests, sizeof(tests) / sizeof(tests[0]));
}
