// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Raw DEFLATE by libdeflate, whose window is always 32 KiB. */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "codec/enc.h"

struct libdeflate_encoder {
	struct libdeflate_compressor *compressor;
	uint8_t *spare;
};

static void free_libdeflate(void *state)
{
	struct libdeflate_encoder *e = state;

	libdeflate_free_compressor(e->compressor);
	free(e->spare);
	free(e);
}

static int make_libdeflate(const struct enc_config *config, void **ret_state)
{
	struct libdeflate_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->compressor = libdeflate_alloc_compressor(config->level);
	e->spare = malloc(config->max_out + config->max_out / 4);
	if (!e->compressor || !e->spare) {
		free_libdeflate(e);
		return -ENOMEM;
	}
	*ret_state = e;
	return 0;
}

static int try_libdeflate(void *state, const uint8_t *src, size_t len, uint8_t *dst, size_t room)
{
	struct libdeflate_encoder *e = state;
	size_t got = libdeflate_deflate_compress(e->compressor, src, len, dst, room);

	/* padding is found by its zeros: a stored block may begin with one, and this bit of it is unused */
	if (got && !dst[0])
		dst[0] = 0x08;
	return (int)got;
}

static int fill_libdeflate(void *state, const uint8_t *src, size_t *len, uint8_t *dst, size_t room)
{
	struct libdeflate_encoder *e = state;
	struct enc_search search = { .try = try_libdeflate, .state = e, .spare = e->spare };

	return erofs_enc_search(&search, src, len, dst, room);
}

const struct enc_method erofs_enc_libdeflate = {
	.name = "libdeflate", .alg = CODEC_DEFLATE, .max_level = 12, .default_level = 1,
	.make = make_libdeflate, .fill = fill_libdeflate, .free = free_libdeflate,
};
