/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* write: what the workers make of files (fill_file.c), and the owner puts into the image (put_file.c). */
#ifndef EROFS_WRITE_FILE_PRIV_H
#define EROFS_WRITE_FILE_PRIV_H

#include "write/write_priv.h"

#define BATCH_ITEMS 64

enum how { HOW_NOTHING, HOW_RAW, HOW_CODED, HOW_FRAGMENT, HOW_CHUNKS };

/* A file, or a segment of one. */
struct item {
	struct node *node;
	uint64_t off;
	uint32_t len;
	bool first, last;
	bool compress;
	struct zparams params;
	/* filled in by a worker */
	enum how how;
	struct zout out;
	uint8_t *raw;			/* len bytes; of coded files the bytes of the fragment */
	uint32_t hash;			/* of a fragment */
	uint32_t *prints;		/* of chunks */
};

struct batch {
	struct parcel parcel;		/* first member */
	struct writer *w;
	uint64_t bytes;
	uint32_t serial;
	int err;
	size_t count;
	struct item items[BATCH_ITEMS];
};

/* Read and compress what a batch has. Any lane; errors are left in the batch. */
void erofs_batch_fill(struct lane *lane, struct parcel *parcel);
/* May the last @tail bytes lie beside the inode? */
bool erofs_takes_tail(const struct writer *w, const struct node *node, size_t tail);

#endif
