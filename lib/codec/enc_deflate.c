// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Raw DEFLATE by zlib. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "codec/enc.h"

struct deflate_encoder {
	z_stream stream;
	uint8_t *spare;
};

static void free_deflate(void *state)
{
	struct deflate_encoder *e = state;

	deflateEnd(&e->stream);
	free(e->spare);
	free(e);
}

static int make_deflate(const struct enc_config *config, void **ret_state)
{
	struct deflate_encoder *e = calloc(1, sizeof(*e));
	int window = 8;

	if (!e)
		return -ENOMEM;
	while (window < 15 && config->dict_size >> (window + 1))
		window++;
	/* zlib makes a window of 512 bytes of one of 256, without telling */
	if (window == 8)
		window = 9;
	e->spare = malloc(config->max_out + config->max_out / 4);
	if (!e->spare || deflateInit2(&e->stream, config->level, Z_DEFLATED, -window, 9,
				      Z_DEFAULT_STRATEGY) != Z_OK) {
		free(e->spare);
		free(e);
		return -ENOMEM;
	}
	*ret_state = e;
	return 0;
}

static int try_deflate(void *state, const uint8_t *src, size_t len, uint8_t *dst, size_t room)
{
	struct deflate_encoder *e = state;

	deflateReset(&e->stream);
	e->stream.next_in = (uint8_t *)src;
	e->stream.avail_in = (uInt)len;
	e->stream.next_out = dst;
	e->stream.avail_out = (uInt)room;
	if (deflate(&e->stream, Z_FINISH) != Z_STREAM_END)
		return 0;
	/* padding is found by its zeros: a stored block may begin with one, and this bit of it is unused */
	if (!dst[0])
		dst[0] = 0x08;
	return (int)(room - e->stream.avail_out);
}

static int fill_deflate(void *state, const uint8_t *src, size_t *len, uint8_t *dst, size_t room)
{
	struct deflate_encoder *e = state;
	struct enc_search search = { .try = try_deflate, .state = e, .spare = e->spare };

	return erofs_enc_search(&search, src, len, dst, room);
}

const struct enc_method erofs_enc_deflate = {
	.name = "deflate", .alg = CODEC_DEFLATE, .max_level = 9, .default_level = 1,
	.max_dict = 32768, .make = make_deflate, .fill = fill_deflate, .free = free_deflate,
};
