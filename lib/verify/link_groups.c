// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which path of a group came first: kept until the link count says that all were seen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verify/verify_priv.h"

static struct link_group **find_group(struct link_groups *g, const uint64_t key[2])
{
	uint64_t hash = (key[0] ^ key[1] * UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9e3779b97f4a7c15);
	struct link_group **at = &g->buckets[(hash >> 32) % GROUP_BUCKETS];

	while (*at && ((*at)->key[0] != key[0] || (*at)->key[1] != key[1]))
		at = &(*at)->next;
	return at;
}

static struct link_group *make_group(struct link_groups *g, const uint64_t key[2], uint64_t nlink, const char *path,
				     size_t len)
{
	size_t size = sizeof(struct link_group) + len + 1;
	struct link_group *l = g->bytes + size <= g->max_bytes ? malloc(size) : NULL;

	if (!l)
		return NULL;
	l->next = NULL;
	l->key[0] = key[0];
	l->key[1] = key[1];
	l->left = nlink;
	l->len = len;
	memcpy(l->path, path, len);
	l->path[len] = '\0';
	g->bytes += size;
	return l;
}

int erofs_groups_take(struct link_groups *g, const uint64_t key[2], uint64_t nlink, const char *path, size_t len,
		      char **ret_first)
{
	struct link_group **at, *l;

	*ret_first = NULL;
	if (nlink == 1)
		return 0;
	at = find_group(g, key);
	l = *at;
	if (!l) {
		l = make_group(g, key, nlink, path, len);
		if (!l)
			return -ENOMEM;
		*at = l;
	} else {
		*ret_first = strdup(l->path);
		if (!*ret_first)
			return -ENOMEM;
	}
	if (l->left && !--l->left) {
		*at = l->next;
		g->bytes -= sizeof(*l) + l->len + 1;
		free(l);
	}
	return 0;
}

void erofs_groups_fini(struct link_groups *g)
{
	size_t i;

	for (i = 0; i < GROUP_BUCKETS; i++)
		while (g->buckets[i]) {
			struct link_group *l = g->buckets[i];

			g->buckets[i] = l->next;
			free(l);
		}
}
