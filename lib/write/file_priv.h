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
	uint8_t *whole;			/* len bytes as they were read, for the digest of a file in segments */
	uint8_t sha[32];		/* of a whole file; complete with its last segment */
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

/* ---- digests of contents (digests.c), where somebody wants them; 0, -ENOMEM, -EIO (reported) ---- */

/* Is it a segment of a file that is hashed? Then the owner needs its bytes. Any lane. */
bool erofs_digest_is_chained(const struct writer *w, const struct item *it);
/* Hash a file that is no more than this item. Any lane. */
int erofs_digest_whole(const struct writer *w, struct zlane *z, struct item *it, const uint8_t *data);
/* Hash a segment of a larger one; give the inode the attribute that waits for it. Owner, in order. */
int erofs_digest_take(struct writer *w, struct item *it);
/* For the manifest: it is complete, and its inode has its place. Owner. */
int erofs_digest_keep(struct writer *w, const struct item *it);

#endif
