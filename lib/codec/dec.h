/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The rows of the codec table: one struct dec_ops per decoder, filled in by dec_*.c. Only codec.c
 * knows which of them this build has; a decoder file is compiled only if its library is there.
 */
#ifndef EROFS_CODEC_DEC_H
#define EROFS_CODEC_DEC_H

#include "codec/codec_priv.h"

/*
 * A decoder gets a request whose padding is gone: src is the first byte of the stream, src_len what
 * is left of the pcluster. It reads nothing else, writes dst[0..dst_len) only, and answers 0 only
 * if each of these bytes came from the stream. @make may be NULL: nothing to keep between calls.
 */
struct dec_ops {
	int (*make)(const struct codec_config *config, void **ret_state, struct codec_fault *fault);
	int (*decode)(void *state, const struct codec_request *req, struct codec_fault *fault);
	void (*free)(void *state); /* NULL if @make is */
};

extern const struct dec_ops erofs_dec_lz4;
extern const struct dec_ops erofs_dec_lzma;
extern const struct dec_ops erofs_dec_deflate;	  /* zlib: whole and partial */
extern const struct dec_ops erofs_dec_libdeflate; /* hands on what is partial */
extern const struct dec_ops erofs_dec_zstd;
extern const struct dec_ops erofs_dec_shifted;
extern const struct dec_ops erofs_dec_interlaced;

/** erofs_codec_damage() - describe damage; returns -EUCLEAN, so that it can stand behind return */
int erofs_codec_damage(struct codec_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
