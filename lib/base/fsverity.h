/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * fs-verity: the digest of a file by a tree of hashes, as linux/fsverity.h and the kernel's documentation of
 * fs-verity describe it. The bytes come in order; memory is a block for each level of the tree.
 *
 * A file may be hashed in ranges by several threads: struct verity_part takes the bytes of one, and the
 * thread that has the tree adds the parts in order.
 */
#ifndef EROFS_BASE_FSVERITY_H
#define EROFS_BASE_FSVERITY_H

#include "base/sha.h"

#define VERITY_MAX_SALT 32
#define VERITY_MIN_BLOCK 1024
#define VERITY_MAX_BLOCK 65536

struct verity_params {
	enum sha_kind kind;
	unsigned int block_bits;	/* 10..16 */
	unsigned int salt_size;
	uint8_t salt[VERITY_MAX_SALT];
};

/* Hashes blocks; belongs to one thread. */
struct verity_hasher {
	struct verity_params params;
	struct sha *sha;
	uint8_t first[128];		/* the salt, padded */
	size_t first_len;
	uint8_t zero[SHA_MAX_SIZE];	/* hash of a block of zeros */
	bool failed;			/* in the library; sticks */
};

/* 0, -ENOMEM (also: no libcrypto) */
int erofs_verity_hasher_init(struct verity_hasher *h, const struct verity_params *params);
void erofs_verity_hasher_fini(struct verity_hasher *h);

/* Bytes of a file from some place on, reduced to the hashes of its whole blocks and what is in front and behind. */
struct verity_part {
	uint64_t pos;			/* of the next byte in the file */
	uint8_t *head, *tail;		/* a block each */
	size_t head_len, tail_len;
	bool aligned;			/* a block border was passed: bytes go to hashes and tail */
	uint8_t *hashes;
	size_t count, room;
};

/* All buffers are kept from one range to the next. @pos: where the bytes begin */
void erofs_verity_part_begin(struct verity_part *p, uint64_t pos);
/* @data: NULL: zeros. 0, -ENOMEM */
int erofs_verity_part_add(struct verity_part *p, struct verity_hasher *h, const uint8_t *data, uint64_t len);
void erofs_verity_part_fini(struct verity_part *p);

#define VERITY_MAX_LEVELS 16	/* 2^63 bytes in blocks of 1024 with 16 hashes each: 53 / 4 */

struct verity_level {
	uint8_t *block;		/* hashes of the level below, made at first use */
	size_t count;		/* of them, in the block */
	uint64_t total;		/* of them, so far */
};

struct verity_tree {
	struct verity_hasher *h;	/* borrowed */
	uint64_t size;			/* bytes so far */
	uint8_t *data;			/* a block that is not whole */
	size_t data_len;
	struct verity_level levels[VERITY_MAX_LEVELS];
	bool no_memory;			/* sticks until the next begin */
};

void erofs_verity_begin(struct verity_tree *t, struct verity_hasher *h);
void erofs_verity_add(struct verity_tree *t, const uint8_t *data, size_t len);
/* Time grows with the number of levels, not with @len. */
void erofs_verity_add_zeros(struct verity_tree *t, uint64_t len);
void erofs_verity_add_part(struct verity_tree *t, const struct verity_part *p);
/* 0, -ENOMEM; -EIO: libcrypto failed */
int erofs_verity_final(struct verity_tree *t, uint8_t digest[SHA_MAX_SIZE]);
void erofs_verity_fini(struct verity_tree *t);

#endif
