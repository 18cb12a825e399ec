// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The tree of nodes that a source fills. Knows nothing of images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/foreign.h"

struct node *erofs_node_new(const char *name, size_t len)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->name = strndup(name, len);
	if (!node->name) {
		free(node);
		return NULL;
	}
	node->nlink = 1;
	return node;
}

int erofs_node_insert(struct node *dir, struct node *child)
{
	uint32_t n = dir->nchildren;

	/* grows at powers of two */
	if (!(n & (n - 1))) {
		struct node **grown = realloc(dir->children, (n ? 2 * (size_t)n : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		dir->children = grown;
	}
	dir->children[dir->nchildren++] = child;
	child->parent = dir;
	return 0;
}

struct node *erofs_node_add(struct node *dir, const char *name, size_t len)
{
	struct node *node = erofs_node_new(name, len);

	if (node && erofs_node_insert(dir, node)) {
		erofs_node_free(node);
		return NULL;
	}
	return node;
}

static void free_one(struct node *node)
{
	erofs_foreign_free(node);
	free(node->children);
	free(node->xattrs);
	free(node->name);
	free(node->target);
	free(node);
}

/* Without recursion: trees are as deep as their makers like. */
void erofs_node_free(struct node *root)
{
	struct node *node = root;

	while (node) {
		struct node *parent = node == root ? NULL : node->parent;

		if (node->nchildren) {
			node = node->children[--node->nchildren];
			continue;
		}
		free_one(node);
		node = parent;
	}
}

char *erofs_node_path(const struct node *node)
{
	const struct node *n;
	size_t len = 0;
	char *path, *at;

	for (n = node; n->parent; n = n->parent)
		len += strlen(n->name) + 1;
	path = malloc(len + 1);
	if (!path)
		return NULL;
	at = path + len;
	*at = 0;
	for (n = node; n->parent; n = n->parent) {
		size_t part = strlen(n->name);

		if (n != node)
			*--at = '/';
		at -= part;
		memcpy(at, n->name, part);
	}
	memmove(path, at, strlen(at) + 1);
	return path;
}

uint32_t erofs_node_rdev(uint32_t major, uint32_t minor)
{
	major &= 0xfff;
	minor &= 0xfffff;
	return (minor & 0xff) | major << 8 | (minor & ~UINT32_C(0xff)) << 12;
}
