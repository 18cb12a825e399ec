// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: any bytes as one pcluster. The first 8 bytes choose algorithm, partial decoding, block
 * size, interlacing and the decoded length; input and output have exactly the sizes that are announced,
 * so that AddressSanitizer sees each byte too far.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec_priv.h"
#include "fuzz.h"

#define HEAD 8
#define MAX_OUT (1u << 20)

const char *const fuzz_suffix = ".pcluster";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec_config config = { .lzma_dict_size = 64 << 10, .deflate_window_bits = 15,
				       .zstd_window_log = 20 };
	struct codec_request req = { 0 };
	struct codec_fault fault;
	struct codec_ctx *ctx;
	uint8_t *src, *dst;

	if (size <= HEAD || size - HEAD > CODEC_MAX_PLEN)
		return 0;
	req.alg = data[0] % CODEC_COUNT;
	req.partial = data[1] & 1;
	req.blksz = 512u << (data[2] % 8);
	req.interlace = (data[3] | data[4] << 8) % req.blksz;
	req.dst_len = 1 + ((size_t)data[5] | (size_t)data[6] << 8 | (size_t)(data[7] & 15) << 16);
	req.src_len = size - HEAD;
	config.zero_padding = data[1] & 2;
	src = malloc(req.src_len);
	dst = malloc(req.dst_len);
	if (src && dst && !erofs_codec_ctx_new(&config, &ctx)) {
		memcpy(src, data + HEAD, req.src_len);
		req.src = src;
		req.dst = dst;
		(void)erofs_codec_decode(ctx, &req, &fault);
		erofs_codec_ctx_free(ctx);
	}
	free(src);
	free(dst);
	return 0;
}
