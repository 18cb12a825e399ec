/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Raw DEFLATE through libdeflate, which is faster than zlib but decodes whole streams only. Partial
 * pclusters go to dec_deflate.c, whose state is made when the first one comes.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "codec/dec.h"

struct libdeflate_state {
	struct libdeflate_decompressor *whole;
	void *partial;		    /* state of erofs_dec_deflate, or NULL */
	struct codec_config config; /* to make it */
};

static int new_libdeflate(const struct codec_config *config, void **ret_state,
			  struct codec_fault *fault)
{
	struct libdeflate_state *state;

	if (!config->deflate_window_bits)
		return erofs_codec_damage(fault, "deflate data, but the image declares none");
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->whole = libdeflate_alloc_decompressor();
	if (!state->whole) {
		free(state);
		return -ENOMEM;
	}
	state->config = *config;
	*ret_state = state;
	return 0;
}

static void free_libdeflate(void *opaque)
{
	struct libdeflate_state *state = opaque;

	libdeflate_free_decompressor(state->whole);
	if (state->partial)
		erofs_dec_deflate.free(state->partial);
	free(state);
}

static int decode_partial(struct libdeflate_state *state, const struct codec_request *req,
			  struct codec_fault *fault)
{
	if (!state->partial) {
		int err = erofs_dec_deflate.make(&state->config, &state->partial, fault);

		if (err)
			return err;
	}
	return erofs_dec_deflate.decode(state->partial, req, fault);
}

static int decode_libdeflate(void *opaque, const struct codec_request *req,
			     struct codec_fault *fault)
{
	struct libdeflate_state *state = opaque;
	size_t used, got;

	if (req->partial)
		return decode_partial(state, req, fault);
	switch (libdeflate_deflate_decompress_ex(state->whole, req->src, req->src_len, req->dst,
						 req->dst_len, &used, &got)) {
	case LIBDEFLATE_SUCCESS:
		break;
	case LIBDEFLATE_INSUFFICIENT_SPACE:
		return erofs_codec_damage(fault,
					  "deflate stream is longer than the extent "
					  "(%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	default:
		return erofs_codec_damage(fault,
					  "deflate stream is damaged "
					  "(%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	}
	if (got != req->dst_len)
		return erofs_codec_damage(fault, "deflate stream yields %zu bytes, %zu wanted", got,
					  req->dst_len);
	if (used != req->src_len)
		return erofs_codec_damage(fault, "deflate stream ends after %zu of %zu bytes", used,
					  req->src_len);
	return 0;
}

const struct dec_ops erofs_dec_libdeflate = {
	.make = new_libdeflate,
	.decode = decode_libdeflate,
	.free = free_libdeflate,
};
