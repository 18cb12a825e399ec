/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* A set of nids, for walks on one thread that enter each directory once. One owner, no locks. */
#ifndef EROFS_WALK_SEEN_H
#define EROFS_WALK_SEEN_H

#include <stddef.h>
#include <stdint.h>

struct seen {
	uint64_t *slots;	/* nid + 1, open addressing; 0: free */
	size_t used, room;	/* room is a power of two */
};

/* Return: 1 new, 0 it was in the set, -ENOMEM. */
int erofs_seen_add(struct seen *s, uint64_t nid);
void erofs_seen_fini(struct seen *s);

#endif
