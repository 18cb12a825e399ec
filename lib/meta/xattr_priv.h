/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* What the files that read xattrs share: xattr.c, xattr_prefix.c, xattr_check.c. */
#ifndef EROFS_META_XATTR_PRIV_H
#define EROFS_META_XATTR_PRIV_H

#include "disk/layout.h"
#include "meta/meta_priv.h"

#define XATTR_MAX_INDEX 6
#define XATTR_INDEX_ACL_ACCESS 2
#define XATTR_INDEX_ACL_DEFAULT 3

/* A long prefix, format.md 8.6 */
struct xattr_prefix {
	uint8_t base_index;
	uint8_t len;		/* of infix */
	char infix[DISK_XATTR_NAME_MAX];
};

struct xattr_prefixes {
	unsigned int count;
	struct xattr_prefix prefix[];
};

/* Names seen by erofs_xattr_check(); an entry counts only if its run is the current one. */
#define XATTR_SEEN_SLOTS 8192
#define XATTR_SEEN_MAX 4096	/* more names of one inode are not compared */

struct xattr_seen {
	uint64_t hash;
	uint64_t run;
};

struct xattr_iter {
	struct metabuf *mb;
	const struct erofs_inode *ino;	/* NULL: nothing to iterate */
	uint32_t filter;		/* the inode's filter word */
	uint64_t pos, end;		/* inline entries not read yet */
	unsigned int shared_count, shared_next;
	bool damaged;
	struct le32 shared[255];
	uint8_t *buf;			/* name suffix and value of the current entry */
	struct xattr_seen *seen;	/* made by the first check */
	uint64_t run;
	unsigned int seen_count;
};

/** erofs_xattr_prefix_of() - "user." and so on for base indexes 0..6; NULL if unknown */
const char *erofs_xattr_prefix_of(unsigned int base_index);

#endif
