// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Zstandard frames by libzstd: no checksum, no content size, a window that the image declares. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "codec/enc.h"

struct zstd_encoder {
	ZSTD_CCtx *ctx;
	uint8_t *spare;
};

static void free_zstd(void *state)
{
	struct zstd_encoder *e = state;

	ZSTD_freeCCtx(e->ctx);
	free(e->spare);
	free(e);
}

static int make_zstd(const struct enc_config *config, void **ret_state)
{
	struct zstd_encoder *e = calloc(1, sizeof(*e));
	int window = 0;

	if (!e)
		return -ENOMEM;
	while (config->dict_size >> (window + 1))
		window++;
	e->ctx = ZSTD_createCCtx();
	e->spare = malloc(config->max_out + config->max_out / 4);
	if (!e->ctx || !e->spare) {
		free_zstd(e);
		return -ENOMEM;
	}
	ZSTD_CCtx_setParameter(e->ctx, ZSTD_c_compressionLevel, config->level);
	ZSTD_CCtx_setParameter(e->ctx, ZSTD_c_windowLog, window);
	ZSTD_CCtx_setParameter(e->ctx, ZSTD_c_contentSizeFlag, 0);
	*ret_state = e;
	return 0;
}

static int try_zstd(void *state, const uint8_t *src, size_t len, uint8_t *dst, size_t room)
{
	struct zstd_encoder *e = state;
	size_t got = ZSTD_compress2(e->ctx, dst, room, src, len);

	return ZSTD_isError(got) ? 0 : (int)got;
}

static int fill_zstd(void *state, const uint8_t *src, size_t *len, uint8_t *dst, size_t room)
{
	struct zstd_encoder *e = state;
	struct enc_search search = { .try = try_zstd, .state = e, .spare = e->spare };

	return erofs_enc_search(&search, src, len, dst, room);
}

const struct enc_method erofs_enc_zstd = {
	.name = "zstd", .alg = CODEC_ZSTD, .max_level = 22, .default_level = 3,
	.max_dict = UINT32_C(1) << 20, .make = make_zstd, .fill = fill_zstd, .free = free_zstd,
};
