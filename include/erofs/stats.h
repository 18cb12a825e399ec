/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* stats: what is in an image, in numbers. */
#ifndef EROFS_STATS_H
#define EROFS_STATS_H

#include <erofs/engine.h>
#include <erofs/image.h>

EROFS_BEGIN_DECLS

#define EROFS_SIZE_CLASSES 17	/* class 0: below 1 KiB, n: from 2^(n-1) KiB, the last one has no end */
#define EROFS_SUFFIXES 10	/* names of erofs_suffix_name(), the last one stands for all others */

/* Names are counted, not inodes: a hard link counts twice, its size too. */
struct erofs_statistics {
	uint64_t types[8];		/* by format.md 7.1: 0 unknown, 1 file, 2 directory, … */
	uint64_t compressed, uncompressed;	/* names by layout, the packed file included */
	uint64_t original_bytes;	/* of regular files */
	uint64_t stored_bytes;		/* of regular files and the packed file */
	uint64_t original_sizes[EROFS_SIZE_CLASSES];	/* regular files */
	uint64_t stored_sizes[EROFS_SIZE_CLASSES];	/* regular files and the packed file */
	uint64_t suffixes[EROFS_SUFFIXES];	/* regular files */
};

/** erofs_suffix_name() - ".txt", …, "others"; NULL behind the last */
EROFS_API const char *erofs_suffix_name(unsigned int index);

/**
 * erofs_count_tree() - walk the whole tree and count
 * Return: 0; -EUCLEAN some of it could not be read (reported); -ECANCELED, -ENOMEM.
 */
EROFS_API int erofs_count_tree(struct erofs_image *img, struct erofs_engine *eng, struct erofs_diag *diag,
			       struct erofs_statistics *ret_statistics);

EROFS_END_DECLS

#endif
