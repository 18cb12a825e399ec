// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* First names of hard links: kept until the link count says that all names were seen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive_priv.h"

static struct arch_link **find(struct arch_links *t, uint64_t nid)
{
	struct arch_link **at = &t->buckets[(nid * UINT64_C(0x9e3779b97f4a7c15) >> 32) % ARCH_LINK_BUCKETS];

	while (*at && (*at)->nid != nid)
		at = &(*at)->next;
	return at;
}

int erofs_archlinks_claim(struct arch_links *t, const struct erofs_inode *ino, const char *path, size_t len,
			  const struct arch_link **ret_first)
{
	struct arch_link **at = find(t, ino->nid), *l = *at;
	size_t size = sizeof(*l) + len + 1;

	if (!l) {
		l = size <= t->max_bytes - t->bytes ? malloc(size) : NULL;
		if (!l)
			return -ENOMEM;
		l->next = NULL;
		l->nid = ino->nid;
		l->left = ino->nlink;
		l->len = len;
		memcpy(l->path, path, len);
		l->path[len] = '\0';
		*at = l;
		t->bytes += size;
		*ret_first = NULL;
		return 0;
	}
	*ret_first = l;
	return 0;
}

void erofs_archlinks_seen(struct arch_links *t, uint64_t nid)
{
	struct arch_link **at = find(t, nid), *l = *at;

	if (!l || (l->left && --l->left))
		return;
	*at = l->next;
	t->bytes -= sizeof(*l) + l->len + 1;
	free(l);
}

void erofs_archlinks_fini(struct arch_links *t)
{
	size_t i;

	for (i = 0; i < ARCH_LINK_BUCKETS; i++)
		while (t->buckets[i]) {
			struct arch_link *l = t->buckets[i];

			t->buckets[i] = l->next;
			free(l);
		}
}
