/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * write: regular files that become chunk-based (format.md 6.3): those whose contents are not in the image but
 * on extra devices, in a tar archive that is appended later, or in the images that are merged; and those
 * whose contents chunks.c puts into chunks.
 */
#ifndef EROFS_WRITE_FOREIGN_H
#define EROFS_WRITE_FOREIGN_H

#include "write/write_priv.h"

/* What lies between pieces is a hole. */
struct piece {
	uint64_t la, len;		/* bytes of the file; la at a block */
	uint64_t pa;			/* byte on the device, at a block */
	unsigned int dev;		/* 1: the first; 0: the image */
};

struct foreign {
	size_t count, room;
	struct piece *pieces;		/* in order; neighbours that can be one are */
};

struct device {
	char tag[65];
	uint64_t blocks;
};

/* Add a piece behind all others; those of a hole are not added. 0, -ENOMEM. */
int erofs_foreign_add(struct node *node, const struct piece *piece);
/* All of the file is a hole, until pieces come. 0, -ENOMEM. */
int erofs_foreign_init(struct node *node);
int erofs_foreign_copy(struct node *to, const struct node *from);
void erofs_foreign_free(struct node *node);

/* Write the inode. 0, negative errno (reported). */
int erofs_foreign_put(struct writer *w, struct node *node);

/* Another device. 0, -E2BIG (reported), -ENOMEM. */
int erofs_device_add(struct writer *w, const char *tag, uint64_t blocks);
/* Bytes that the table of so many devices takes from the end of the superblock on, with what lies between. */
uint64_t erofs_device_room(uint64_t super_end, unsigned int count);
/* Write the table; its place in units of its entries is known then. */
int erofs_device_put(struct writer *w);

#endif
