/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Raw DEFLATE through zlib: whole pclusters where libdeflate is missing, partial ones always. Each
 * pcluster is one call straight into dst, which then serves as the window. So a distance that
 * exceeds the declared window is not seen as long as it stays within the extent, here no more than
 * in libdeflate: both read the same images.
 */
#define ZLIB_CONST
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "codec/dec.h"

static int new_inflate(const struct codec_config *config, void **ret_state,
		       struct codec_fault *fault)
{
	z_stream *z;

	if (!config->deflate_window_bits)
		return erofs_codec_damage(fault, "deflate data, but the image declares none");
	z = calloc(1, sizeof(*z));
	if (!z)
		return -ENOMEM;
	/* Negative: no header, no checksum. All else that this could complain about is excluded. */
	if (inflateInit2(z, -(int)config->deflate_window_bits) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	*ret_state = z;
	return 0;
}

static void free_inflate(void *state)
{
	inflateEnd(state);
	free(state);
}

static int describe_failure(int ret, const z_stream *z, const struct codec_request *req,
			    struct codec_fault *fault)
{
	size_t got = req->dst_len - z->avail_out;

	if (ret == Z_MEM_ERROR)
		return -ENOMEM;
	if (ret == Z_STREAM_END && !z->avail_out)
		return erofs_codec_damage(fault, "deflate stream ends after %zu of %zu bytes",
					  req->src_len - z->avail_in, req->src_len);
	if (ret == Z_STREAM_END || (z->avail_out && !z->avail_in && ret != Z_DATA_ERROR))
		return erofs_codec_damage(fault, "deflate stream yields %zu bytes, %zu wanted", got,
					  req->dst_len);
	return erofs_codec_damage(fault,
				  "deflate stream is damaged or longer than the extent "
				  "(%zu bytes in, %zu out)",
				  req->src_len, req->dst_len);
}

/*
 * zlib looks on for the end of the stream when dst is full, so Z_STREAM_END with both buffers used
 * up is the exact fit. Of a partial stream only the wanted bytes count, whatever follows them.
 */
static int decode_inflate(void *state, const struct codec_request *req, struct codec_fault *fault)
{
	z_stream *z = state;
	int ret;

	inflateReset(z);
	z->next_in = req->src;
	z->avail_in = (uInt)req->src_len;
	z->next_out = req->dst;
	z->avail_out = (uInt)req->dst_len;
	ret = inflate(z, Z_FINISH);
	if (!z->avail_out && ret != Z_MEM_ERROR &&
	    (req->partial || (ret == Z_STREAM_END && !z->avail_in)))
		return 0;
	return describe_failure(ret, z, req, fault);
}

const struct dec_ops erofs_dec_deflate = {
	.make = new_inflate,
	.decode = decode_inflate,
	.free = free_inflate,
};
