/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Android sparse images, version 1, as they lie in a file (cli.md R26). */
#ifndef EROFS_IMAGE_SPARSE_H
#define EROFS_IMAGE_SPARSE_H

#include "base/wire.h"

#define SPARSE_RAW 0xcac1
#define SPARSE_FILL 0xcac2
#define SPARSE_SKIP 0xcac3	/* "don't care": zeros here */
#define SPARSE_CRC32 0xcac4

struct disk_sparse {
	struct le32 magic;
	struct le16 major, minor;
	struct le16 file_hdr_sz, chunk_hdr_sz;	/* bytes, longer in later minor versions */
	struct le32 blk_sz;			/* bytes */
	struct le32 total_blks, total_chunks;
	struct le32 checksum;
};

struct disk_chunk {
	struct le16 type, reserved;
	struct le32 chunk_sz;		/* blocks */
	struct le32 total_sz;		/* bytes with the header */
	struct le32 value;		/* of fill and CRC chunks; not part of the header */
};

#define SPARSE_HEADER 28
#define SPARSE_CHUNK_HEADER 12
_Static_assert(sizeof(struct disk_sparse) == SPARSE_HEADER, "sparse header");
_Static_assert(sizeof(struct disk_chunk) == SPARSE_CHUNK_HEADER + 4, "sparse chunk header and value");

#endif
