/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Digests of files as lines of text: for --digest and --to-mtree.
 *
 * SHA of one file is one worker's. For fs-verity alone a file above SUMS_RANGE is cut into ranges; the
 * owner adds their hashes to the file's tree as they come.
 */
#ifndef EROFS_SUMS_PRIV_H
#define EROFS_SUMS_PRIV_H

#include <erofs/digest.h>

#include "archive/archive_priv.h"
#include "base/fsverity.h"

#define SUMS_RANGE (UINT64_C(4) << 20)	/* as extraction cuts files */
#define SUMS_KNOWN 4096			/* digests kept for further names of an inode */
/* More is not given to SHA, which would take half a day; fs-verity skips holes. */
#define SUMS_MAX_BYTES (UINT64_C(1) << 46)

/* Digests of an inode. */
struct sums_value {
	uint64_t nid;
	bool has_sha, has_verity;
	uint8_t sha[SHA_MAX_SIZE], verity[SHA_MAX_SIZE];
};

/* SHA-256 of the contents at @nid, from whoever knows it; NULL: it is to be computed. Owner. */
typedef const uint8_t *(*sums_find_fn)(void *arg, uint64_t nid);

/* One entry of a pack. */
struct sums_item {
	struct erofs_inode ino;
	size_t path, path_len;	/* in names */
	bool known;		/* the value is there before it is filled */
	bool failed;		/* contents or target cannot be read */
	struct sums_value value;
};

struct sums_pack {
	struct pack pack;	/* a range is one of items[0] */
	struct sums_item *items;
	size_t count, room;
	uint64_t contents;	/* bytes that its items have to be hashed for */
	uint64_t zeros;		/* the range is a hole of so many bytes, and has no part */
	struct verity_part part;
	struct tarbuf comments;	/* of one item */
};

/* What a worker needs to hash; made at first use. */
struct sums_lane {
	struct sha *sha;
	struct verity_hasher hasher;
	struct verity_tree tree;
};

struct sums {
	struct archive archive;
	bool mtree, xattrs, want_sha, want_verity;
	enum sha_kind kind;		/* of the plain digest */
	struct verity_params params;
	struct sums_lane *lanes;	/* by index; each its worker's */
	unsigned int nlanes;
	struct erofs_digest_result *res;	/* from here on the owner's alone */
	struct verity_tree tree;	/* of the large file that is being put together */
	bool broken;			/* it lacks something */
	bool links_full;		/* names of hard links are no longer counted */
	struct sums_value *known;	/* by nid modulo SUMS_KNOWN */
	sums_find_fn find;		/* NULL: there are no others */
	void *find_arg;
};

/* erofs_to_mtree() with digests that somebody has already; not used where fs-verity is wanted too. */
int erofs_sums_to_mtree(struct erofs_image *img, struct erofs_engine *eng,
			const struct erofs_mtree_options *options, sums_find_fn find, void *find_arg,
			struct erofs_diag *diag, struct erofs_digest_result *ret_result);
/* archive_ops.fill */
void erofs_sums_fill(struct archive *a, struct lane *lane, struct pack *pack);
/* 0, -ENOMEM */
int erofs_sums_lane_init(const struct sums *s, struct sums_lane *l);
void erofs_sums_lane_fini(struct sums_lane *l);

/* ---- lines (sums_line.c): 0, -ENOMEM ---- */

int erofs_sums_digest_line(const struct sums *s, struct tarbuf *out, const char *path,
			   const struct sums_item *item);
/* @target: of a symlink, NULL: not known */
int erofs_sums_mtree_line(struct tarbuf *out, const char *path, const struct sums_item *item, const char *target);
/* "#erofs: PATH xattr.NAME=HEX", with @name NULL "#erofs: PATH fsverity=HEX" */
int erofs_sums_comment(struct tarbuf *out, const char *path, size_t len, const char *name, const uint8_t *value,
		       size_t size);
/* Append the lines of @from to @out, sorted by their bytes. */
int erofs_sums_sorted(struct tarbuf *out, const struct tarbuf *from);

#endif
