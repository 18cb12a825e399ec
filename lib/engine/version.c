// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What this build is and can decode. */
#include "config.h"

#include <erofs/version.h>

#include "codec/codec_priv.h"

const char *erofs_version(void)
{
	return PACKAGE_VERSION;
}

/* All sixteen sets of codecs, as constants: no buffer to fill and none to guard. */
const char *erofs_codec_list(void)
{
	static const char *const lists[16] = {
		"", "lz4", "lzma", "lz4, lzma", "deflate", "lz4, deflate", "lzma, deflate",
		"lz4, lzma, deflate", "zstd", "lz4, zstd", "lzma, zstd", "lz4, lzma, zstd",
		"deflate, zstd", "lz4, deflate, zstd", "lzma, deflate, zstd",
		"lz4, lzma, deflate, zstd",
	};
	unsigned int alg, set = 0;

	for (alg = CODEC_LZ4; alg <= CODEC_ZSTD; alg++)
		if (erofs_codec_is_built(alg))
			set |= 1u << alg;
	return lists[set];
}
