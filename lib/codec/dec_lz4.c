/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * LZ4 blocks without a frame. liblz4 keeps no state. It knows no window smaller than 64 KiB, so a
 * stream that breaks the declared max_distance is not seen here (engine.md C3).
 */
#include <lz4.h>

#include "codec/dec.h"

/* LZ4_decompress_safe fails unless the stream ends with the last byte of src and fits into dst. */
static int decode_whole(const struct codec_request *req, struct codec_fault *fault)
{
	int len = LZ4_decompress_safe((const char *)req->src, (char *)req->dst, (int)req->src_len,
				      (int)req->dst_len);

	if (len < 0)
		return erofs_codec_damage(fault,
					  "lz4 stream is damaged or longer than the extent "
					  "(%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	if ((size_t)len != req->dst_len)
		return erofs_codec_damage(fault, "lz4 stream yields %d bytes, %zu wanted", len,
					  req->dst_len);
	return 0;
}

/* Read a length of the sequence at *pos: four bits of its token, more bytes if they are all set. */
static bool read_length(const uint8_t **pos, const uint8_t *end, unsigned int bits, size_t *ret_len)
{
	size_t len = bits;
	uint8_t more = UINT8_MAX;

	while (bits == 15 && more == UINT8_MAX) {
		if (*pos == end)
			return false;
		more = *(*pos)++;
		len += more;
	}
	*ret_len = len;
	return true;
}

/*
 * Does a match refer back 0 bytes before @want bytes are out? The format forbids it, yet the
 * partial decoder of liblz4 1.9 copies such a match onto itself: what was in dst before comes out,
 * and the call succeeds. The zeros behind a stream without padding are a row of such matches, so
 * this is how a stream that ends too early is found there. No sum overflows: each byte adds at most
 * 255. Whole streams need no such pass: the decoder turns such matches into zeros there, which a
 * wrong distance could do as well.
 */
static bool has_null_match(const uint8_t *pos, size_t len, size_t want)
{
	const uint8_t *end = pos + len;
	size_t literals, match, done = 0;

	while (pos < end) {
		unsigned int token = *pos++;

		if (!read_length(&pos, end, token >> 4, &literals))
			return false;
		done += literals;
		if (done >= want || literals + 2 > (size_t)(end - pos))
			return false;
		pos += literals;
		if (!pos[0] && !pos[1])
			return true;
		pos += 2;
		if (!read_length(&pos, end, token & 15, &match))
			return false;
		done += match + 4;
		if (done >= want)
			return false;
	}
	return false;
}

static int decode_partial(const struct codec_request *req, struct codec_fault *fault)
{
	int len;

	if (has_null_match(req->src, req->src_len, req->dst_len))
		return erofs_codec_damage(fault,
					  "lz4 stream ends or refers back 0 bytes before "
					  "%zu bytes are out (%zu in)",
					  req->dst_len, req->src_len);
	len = LZ4_decompress_safe_partial((const char *)req->src, (char *)req->dst,
					  (int)req->src_len, (int)req->dst_len, (int)req->dst_len);
	if (len < 0)
		return erofs_codec_damage(fault, "lz4 stream is damaged (%zu bytes in, %zu out)",
					  req->src_len, req->dst_len);
	if ((size_t)len != req->dst_len)
		return erofs_codec_damage(fault, "lz4 stream yields %d bytes, %zu wanted", len,
					  req->dst_len);
	return 0;
}

static int decode_lz4(void *state, const struct codec_request *req, struct codec_fault *fault)
{
	(void)state;
	return req->partial ? decode_partial(req, fault) : decode_whole(req, fault);
}

const struct dec_ops erofs_dec_lz4 = { .decode = decode_lz4 };
