/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Plain pclusters: bytes stored verbatim (shifted), or rotated within their block (interlaced). */
#include <string.h>

#include "codec/dec.h"

static int decode_shifted(void *state, const struct codec_request *req, struct codec_fault *fault)
{
	(void)state;
	if (req->dst_len > req->src_len)
		return erofs_codec_damage(fault, "plain pcluster of %zu bytes, %zu wanted",
					  req->src_len, req->dst_len);
	memcpy(req->dst, req->src, req->dst_len);
	return 0;
}

/*
 * format.md 9.8: the byte of file offset o lies at o mod blksz, so that the pages of a page cache
 * need no shift; what would reach over the end of the block goes on at its beginning.
 */
static int decode_interlaced(void *state, const struct codec_request *req,
			     struct codec_fault *fault)
{
	size_t at, first;

	(void)state;
	if (req->src_len != req->blksz)
		return erofs_codec_damage(fault, "interlaced pcluster of %zu bytes, a block has %u",
					  req->src_len, (unsigned int)req->blksz);
	if (req->dst_len > req->src_len)
		return erofs_codec_damage(fault, "interlaced pcluster of %zu bytes, %zu wanted",
					  req->src_len, req->dst_len);
	at = req->interlace % req->blksz;
	first = req->src_len - at;
	if (first > req->dst_len)
		first = req->dst_len;
	memcpy(req->dst, req->src + at, first);
	memcpy(req->dst + first, req->src, req->dst_len - first);
	return 0;
}

const struct dec_ops erofs_dec_shifted = { .decode = decode_shifted };
const struct dec_ops erofs_dec_interlaced = { .decode = decode_interlaced };
