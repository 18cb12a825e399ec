/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Zstandard: exactly one frame without a dictionary. The frame header is read here, since the
 * library's single-pass decoder takes what an image must not have: skippable frames, several
 * frames, frames of zstd before 1.0, windows above the limit. Its layout: RFC 8878, 3.1.1.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/wire.h"
#include "codec/dec.h"

#define FRAME_MAGIC UINT32_C(0xfd2fb528)

struct zstd_state {
	ZSTD_DCtx *dctx;
	uint64_t window_max; /* bytes */
};

struct frame {
	uint64_t window;  /* bytes */
	uint64_t content; /* decoded bytes, if has_content */
	bool has_content;
};

static int new_zstd(const struct codec_config *config, void **ret_state, struct codec_fault *fault)
{
	struct zstd_state *state;

	if (!config->zstd_window_log)
		return erofs_codec_damage(fault, "zstd data, but the image declares none");
	state = malloc(sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->window_max = UINT64_C(1) << config->zstd_window_log;
	state->dctx = ZSTD_createDCtx();
	if (!state->dctx) {
		free(state);
		return -ENOMEM;
	}
	/* check_frame() has refused such frames before, and says the numbers. */
	ZSTD_DCtx_setParameter(state->dctx, ZSTD_d_windowLogMax, config->zstd_window_log);
	*ret_state = state;
	return 0;
}

static void free_zstd(void *opaque)
{
	struct zstd_state *state = opaque;

	ZSTD_freeDCtx(state->dctx);
	free(state);
}

static uint64_t get_le(const uint8_t *p, unsigned int size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | p[size];
	return value;
}

/* Return: 0, or -EUCLEAN with the fault described. */
static int read_header(const uint8_t *src, size_t len, struct frame *frame,
		       struct codec_fault *fault)
{
	static const uint8_t dict_sizes[4] = { 0, 1, 2, 4 }, content_sizes[4] = { 0, 2, 4, 8 };
	unsigned int descriptor, dict_size, content_size;
	bool single; /* no window of its own: the content is one segment */

	if (len < 5 || bytes_le32(src) != FRAME_MAGIC)
		return erofs_codec_damage(fault, "no zstd frame begins here (%zu bytes in)", len);
	descriptor = src[4];
	single = descriptor & 0x20;
	dict_size = dict_sizes[descriptor & 3];
	content_size = content_sizes[descriptor >> 6];
	if (single && !content_size)
		content_size = 1;
	src += 5;
	len -= 5;
	if (len < !single + dict_size + content_size)
		return erofs_codec_damage(fault, "zstd frame header is cut off");
	if (descriptor & 8)
		return erofs_codec_damage(fault, "zstd frame header has its reserved bit set");
	if (!single) {
		frame->window = UINT64_C(1) << (10 + (*src >> 3));
		frame->window += frame->window / 8 * (*src & 7);
		src++;
	}
	if (get_le(src, dict_size))
		return erofs_codec_damage(fault, "zstd frame needs dictionary %u",
					  (unsigned int)get_le(src, dict_size));
	frame->has_content = content_size;
	frame->content = get_le(src + dict_size, content_size) + (content_size == 2 ? 256 : 0);
	if (single)
		frame->window = frame->content;
	return 0;
}

static int check_frame(const struct zstd_state *state, const struct codec_request *req,
		       struct codec_fault *fault)
{
	struct frame frame = { 0 };
	int err = read_header(req->src, req->src_len, &frame, fault);

	if (err)
		return err;
	if (frame.window > state->window_max)
		return erofs_codec_damage(fault,
					  "zstd frame has a window of %llu bytes, %llu allowed",
					  (unsigned long long)frame.window,
					  (unsigned long long)state->window_max);
	if (frame.has_content &&
	    (req->partial ? frame.content < req->dst_len : frame.content != req->dst_len))
		return erofs_codec_damage(fault, "zstd stream yields %llu bytes, %zu wanted",
					  (unsigned long long)frame.content, req->dst_len);
	return 0;
}

static int describe_error(size_t result, const struct codec_request *req, struct codec_fault *fault)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_dstSize_tooSmall:
		return erofs_codec_damage(fault,
					  "zstd stream is longer than the extent "
					  "(%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	case ZSTD_error_srcSize_wrong:
		return erofs_codec_damage(fault, "zstd stream is cut off (%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	default:
		return erofs_codec_damage(fault, "zstd stream is damaged (%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	}
}

/* Straight into dst, which is the window too: the library allocates nothing. */
static int decode_whole(struct zstd_state *state, const struct codec_request *req,
			struct codec_fault *fault)
{
	size_t result = ZSTD_findFrameCompressedSize(req->src, req->src_len);

	if (!ZSTD_isError(result) && result != req->src_len)
		return erofs_codec_damage(fault, "zstd stream ends after %zu of %zu bytes", result,
					  req->src_len);
	if (!ZSTD_isError(result))
		result = ZSTD_decompressDCtx(state->dctx, req->dst, req->dst_len, req->src,
					     req->src_len);
	if (ZSTD_isError(result))
		return describe_error(result, req, fault);
	if (result != req->dst_len)
		return erofs_codec_damage(fault, "zstd stream yields %zu bytes, %zu wanted", result,
					  req->dst_len);
	return 0;
}

/*
 * Only the streaming decoder can stop early. It decodes into a window of its own, which it keeps
 * for later frames; check_frame() has made sure that this is no larger than the image declares.
 */
static int decode_partial(struct zstd_state *state, const struct codec_request *req,
			  struct codec_fault *fault)
{
	ZSTD_inBuffer in = { .src = req->src, .size = req->src_len };
	ZSTD_outBuffer out = { .dst = req->dst, .size = req->dst_len };
	size_t result;

	ZSTD_DCtx_reset(state->dctx, ZSTD_reset_session_only);
	do {
		result = ZSTD_decompressStream(state->dctx, &out, &in);
		if (out.pos == out.size && !ZSTD_isError(result))
			return 0;
		if (ZSTD_isError(result))
			return describe_error(result, req, fault);
		/* Not at the end of dst: all that the input so far can give has been written. */
	} while (result && in.pos < in.size);
	return erofs_codec_damage(fault, "zstd stream yields %zu bytes, %zu wanted", out.pos,
				  req->dst_len);
}

static int decode_zstd(void *opaque, const struct codec_request *req, struct codec_fault *fault)
{
	struct zstd_state *state = opaque;
	int err = check_frame(state, req, fault);

	if (err)
		return err;
	return req->partial ? decode_partial(state, req, fault) : decode_whole(state, req, fault);
}

const struct dec_ops erofs_dec_zstd = {
	.make = new_zstd,
	.decode = decode_zstd,
	.free = free_zstd,
};
