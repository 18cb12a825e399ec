/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * MicroLZMA: an LZMA1 stream without header and end marker.
 *
 * liblzma decodes into a dictionary of its own and copies from there; the dictionary has
 * config.lzma_dict_size bytes (rounded up to 4 KiB and a multiple of 16), is allocated by the first
 * pcluster and used again by all others. Matches that reach behind it are damage. So one context
 * costs the dictionary that the image declares plus some 30 KiB.
 */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "codec/dec.h"

struct lzma_state {
	lzma_stream stream;
	uint32_t dict_size;
};

static int new_lzma(const struct codec_config *config, void **ret_state, struct codec_fault *fault)
{
	static const lzma_stream empty = LZMA_STREAM_INIT;
	struct lzma_state *state;

	if (!config->lzma_dict_size)
		return erofs_codec_damage(fault, "lzma data, but the image declares none");
	state = malloc(sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->stream = empty;
	state->dict_size = config->lzma_dict_size;
	*ret_state = state;
	return 0;
}

static void free_lzma(void *opaque)
{
	struct lzma_state *state = opaque;

	lzma_end(&state->stream);
	free(state);
}

static int describe_failure(lzma_ret ret, size_t got, const struct codec_request *req,
			    struct codec_fault *fault)
{
	if (ret == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (ret == LZMA_OPTIONS_ERROR)
		return erofs_codec_damage(fault, "lzma stream has impossible properties (0x%02x)",
					  (uint8_t)~req->src[0]);
	if (got == req->dst_len)
		return erofs_codec_damage(fault,
					  "lzma stream is damaged or longer than the extent "
					  "(%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	if (ret == LZMA_BUF_ERROR)
		return erofs_codec_damage(fault, "lzma stream yields %zu bytes, %zu wanted", got,
					  req->dst_len);
	return erofs_codec_damage(fault, "lzma stream is damaged (%zu bytes in, %zu out) after %zu",
				  req->src_len, req->dst_len, got);
}

static int decode_lzma(void *opaque, const struct codec_request *req, struct codec_fault *fault)
{
	struct lzma_state *state = opaque;
	lzma_stream *stream = &state->stream;
	lzma_ret ret = lzma_microlzma_decoder(stream, req->src_len, req->dst_len, !req->partial,
					      state->dict_size);

	if (ret == LZMA_OK) {
		stream->next_in = req->src;
		stream->avail_in = req->src_len;
		stream->next_out = req->dst;
		stream->avail_out = req->dst_len;
		/* Ends: without progress it is LZMA_BUF_ERROR. */
		do {
			ret = lzma_code(stream, LZMA_FINISH);
		} while (ret == LZMA_OK);
	} else {
		stream->avail_out = req->dst_len;
	}
	if (ret == LZMA_STREAM_END && !stream->avail_out)
		return 0;
	return describe_failure(ret, req->dst_len - stream->avail_out, req, fault);
}

const struct dec_ops erofs_dec_lzma = {
	.make = new_lzma,
	.decode = decode_lzma,
	.free = free_lzma,
};
