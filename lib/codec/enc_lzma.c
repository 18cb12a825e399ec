// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* MicroLZMA by liblzma, whose encoder stops by itself where the output is full. */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "codec/enc.h"

/*
 * Without a level: 6 with matches that are good enough from 32 bytes on, where 6 itself asks for 64. Pclusters of
 * 64 KiB: 0.90 of the time and 1.005 of the size on sources in C, 0.75 and 1.001 on programs.
 */
#define OWN_PRESET 6
#define OWN_NICE_LEN 32

struct lzma_encoder {
	lzma_stream stream;
	lzma_options_lzma options;
};

static void free_lzma(void *state)
{
	struct lzma_encoder *e = state;

	lzma_end(&e->stream);
	free(e);
}

static int make_lzma(const struct enc_config *config, void **ret_state)
{
	static const lzma_stream empty = LZMA_STREAM_INIT;
	bool own = config->level == ENC_LEVEL_OWN;
	uint32_t preset = own ? OWN_PRESET : (uint32_t)config->level;
	struct lzma_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->stream = empty;
	if (preset >= 100)
		preset = (preset - 100) | LZMA_PRESET_EXTREME;
	if (lzma_lzma_preset(&e->options, preset)) {
		free_lzma(e);
		return -EINVAL;
	}
	if (own)
		e->options.nice_len = OWN_NICE_LEN;
	e->options.dict_size = config->dict_size;
	*ret_state = e;
	return 0;
}

static int fill_lzma(void *state, const uint8_t *src, size_t *len, uint8_t *dst, size_t room)
{
	struct lzma_encoder *e = state;
	lzma_stream *s = &e->stream;
	lzma_ret ret = lzma_microlzma_encoder(s, &e->options);

	if (ret != LZMA_OK)
		return ret == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
	s->next_in = src;
	s->avail_in = *len;
	s->next_out = dst;
	s->avail_out = room;
	ret = lzma_code(s, LZMA_FINISH);
	if (ret == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (ret != LZMA_STREAM_END)
		return 0;	/* the room is too small for anything */
	*len = (size_t)s->total_in;
	return (int)s->total_out;
}

const struct enc_method erofs_enc_lzma = {
	.name = "lzma", .alg = CODEC_LZMA, .max_level = 9,
	.default_level = ENC_LEVEL_OWN,
	.more_levels = 100, .max_more = 109, .max_dict = UINT32_C(8) << 20,
	.make = make_lzma, .fill = fill_lzma, .free = free_lzma,
};
