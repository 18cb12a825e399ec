/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See codec_try.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec_try.h"

#define GUARD 32 /* bytes on both sides of dst */

const struct codec_config try_config = {
	.zero_padding = true,
	.lzma_dict_size = SAMPLES_LZMA_DICT,
	.deflate_window_bits = 15,
	.zstd_window_log = SAMPLES_ZSTD_WINDOW_LOG,
};

struct codec_request try_request(enum codec_alg alg, struct bytes src, size_t dst_len)
{
	struct codec_request req = { 0 };

	req.alg = alg;
	req.src = src.p;
	req.src_len = src.len;
	req.dst_len = dst_len;
	req.blksz = TRY_BLKSZ;
	return req;
}

struct bytes try_pad(struct bytes stream, size_t align)
{
	size_t len = (stream.len + align - 1) / align * align;
	struct bytes pcluster = samples_zeros(len);

	memcpy(pcluster.p + len - stream.len, stream.p, stream.len);
	return pcluster;
}

/* Guards are for builds without a sanitizer; with one, the copy without them is what counts. */
static struct try_outcome decode_over(struct codec_ctx *ctx, struct codec_request req, int fill)
{
	size_t size = req.dst_len + 2 * GUARD;
	uint8_t *guarded = malloc(size);
	struct try_outcome out = { .dst = malloc(req.dst_len) };

	assert_non_null(guarded);
	assert_non_null(out.dst);
	memset(guarded, fill, size);
	memset(out.dst, fill, req.dst_len);
	memset(out.fault.text, 0, sizeof(out.fault.text));

	req.dst = guarded + GUARD;
	out.result = erofs_codec_decode(ctx, &req, &out.fault);
	for (size_t i = 0; i < GUARD; i++) {
		assert_int_equal(guarded[i], fill);
		assert_int_equal(guarded[size - 1 - i], fill);
	}
	req.dst = out.dst;
	assert_int_equal(erofs_codec_decode(ctx, &req, &out.fault), out.result);
	if (!out.result)
		assert_memory_equal(out.dst, guarded + GUARD, req.dst_len);
	else
		assert_true(strlen(out.fault.text) > 10);
	free(guarded);
	return out;
}

void try_drop(struct try_outcome *out)
{
	free(out->dst);
}

struct try_outcome try_decode(struct codec_ctx *ctx, struct codec_request req)
{
	struct try_outcome out = decode_over(ctx, req, 0xaa);
	struct try_outcome again = decode_over(ctx, req, 0x55);

	assert_int_equal(out.result, again.result);
	if (!out.result)
		assert_memory_equal(out.dst, again.dst, req.dst_len);
	else
		assert_string_equal(out.fault.text, again.fault.text);
	try_drop(&again);
	return out;
}

void try_expect(struct codec_ctx *ctx, struct codec_request req, int result, const uint8_t *plain)
{
	struct try_outcome out = try_decode(ctx, req);

	if (out.result != result)
		print_error("# %zu bytes in, %zu out: %s\n", req.src_len, req.dst_len,
			    out.result ? out.fault.text : "decodes");
	assert_int_equal(out.result, result);
	if (!result)
		assert_memory_equal(out.dst, plain, req.dst_len);
	try_drop(&out);
}

void try_expect_fault(struct codec_ctx *ctx, struct codec_request req, const char *text)
{
	struct try_outcome out = try_decode(ctx, req);

	assert_int_equal(out.result, -EUCLEAN);
	if (!strstr(out.fault.text, text))
		fail_msg("\"%s\" does not contain \"%s\"", out.fault.text, text);
	try_drop(&out);
}

int try_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest *built = calloc(count, sizeof(*built));
	unsigned int missing = 0;
	size_t nr = 0;
	int failed;

	if (!built)
		return EXIT_FAILURE;
	for (size_t i = 0; i < count; i++) {
		const enum codec_alg *alg = tests[i].initial_state;

		if (!alg || erofs_codec_is_built(*alg))
			built[nr++] = tests[i];
		else
			missing |= 1U << *alg;
	}
	for (unsigned int alg = 0; alg < CODEC_COUNT; alg++) {
		if (missing >> alg & 1)
			printf("# tests of %s left out: this build has no such decoder\n",
			       erofs_codec_name(alg));
	}
	fflush(stdout);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = nr ? _cmocka_run_group_tests(name, built, nr, NULL, NULL) : 0;
	if (!nr)
		puts("1..0 # SKIP this build has no codec");
	free(built);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
