// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Layers. Archives of layers say with names that begin with ".wh." what a layer hides of those below it
 * (aufs, OCI); overlayfs says it with devices 0:0 and an attribute of folders.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "write/tree_priv.h"

#define MARK ".wh."
#define OWN_MARK ".wh..wh."		/* aufs's own files */
#define OPAQUE_MARK ".wh..wh..opq"
#define OPAQUE "trusted.overlay.opaque"
#define ORIGIN "trusted.overlay.origin"

static bool is_opaque_name(const char *name)
{
	return !strcmp(name, OPAQUE);
}

static bool is_overlay_name(const char *name)
{
	return !strncmp(name, "trusted.overlay.", 16);
}

/* These two are written whatever is asked of attributes: without them a layer says something else. */
static int make_opaque(struct writer *w, struct node *dir)
{
	erofs_xattr_drop(dir, is_opaque_name);
	return erofs_xattr_add(w, dir, OPAQUE, "y", 1);
}

/*
 * Overlayfs looks for whiteouts in folders that are merged or have an origin. In one that is in this layer
 * alone it would show them, as names that cannot be opened or removed.
 */
static int add_origin(struct writer *w, struct node *dir)
{
	char name[XATTR_ITEM_NAME];
	uint32_t i;

	for (i = 0; i < dir->nxattrs; i++) {
		erofs_xattr_name(dir->xattrs[i], name);
		if (!strcmp(name, ORIGIN))
			return 0;
	}
	return erofs_xattr_add(w, dir, ORIGIN, "", 0);
}

static int compare_key(const void *key, const void *child)
{
	return strcmp(key, (*(const struct node *const *)child)->name);
}

static struct node *find_child(const struct node *dir, const char *name)
{
	struct node **found = bsearch(name, dir->children, dir->nchildren, sizeof(*dir->children), compare_key);

	return found ? *found : NULL;
}

static bool is_any(const struct node *child, void *priv)
{
	(void)child;
	(void)priv;
	return true;
}

static void make_whiteout(struct node *node)
{
	const struct node *inode = node->link ? node->link : node;

	node->uid = inode->uid;
	node->gid = inode->gid;
	node->mtime = inode->mtime;
	node->mtime_nsec = inode->mtime_nsec;
	erofs_tree_drop(node, is_any, NULL);
	erofs_xattr_drop(node, NULL);
	node->link = NULL;
	node->mode = S_IFCHR;
	node->size = 0;
	node->rdev = 0;
	memmove(node->name, node->name + strlen(MARK), strlen(node->name + strlen(MARK)) + 1);
}

/* What stands beside its own whiteout is new: it hides what is below it as a whole. */
static int convert_one(struct writer *w, struct node *dir, struct node *child, bool *ret_whiteout)
{
	struct node *beside;

	*ret_whiteout = false;
	if (!strncmp(child->name, OWN_MARK, strlen(OWN_MARK))) {
		child->excluded = true;
		return strcmp(child->name, OPAQUE_MARK) ? 0 : make_opaque(w, dir);
	}
	if (strncmp(child->name, MARK, strlen(MARK)) || !child->name[strlen(MARK)])
		return 0;
	beside = find_child(dir, child->name + strlen(MARK));
	if (!beside) {
		*ret_whiteout = true;
		return 0;
	}
	child->excluded = true;
	return S_ISDIR(beside->mode) ? make_opaque(w, beside) : 0;
}

/* Names change last: they are in order until then. */
static int convert(struct writer *w, struct node *dir)
{
	auto_free bool *whiteouts = calloc(dir->nchildren + 1, sizeof(*whiteouts));
	bool has_whiteout = false;
	uint32_t i;
	int err;

	if (!whiteouts)
		return -ENOMEM;
	for (i = 0; i < dir->nchildren; i++) {
		err = convert_one(w, dir, dir->children[i], &whiteouts[i]);
		if (err)
			return err;
		has_whiteout |= whiteouts[i];
	}
	for (i = 0; i < dir->nchildren; i++)
		if (whiteouts[i])
			make_whiteout(dir->children[i]);
	return has_whiteout ? add_origin(w, dir) : 0;
}

static void strip(struct node *dir)
{
	uint32_t i;

	erofs_xattr_drop(dir, is_overlay_name);
	for (i = 0; i < dir->nchildren; i++) {
		struct node *child = dir->children[i], *inode = child->link ? child->link : child;

		if (S_ISCHR(inode->mode) && !inode->rdev)
			child->excluded = true;
		else if (!S_ISDIR(child->mode))
			erofs_xattr_drop(inode, is_overlay_name);
	}
}

int erofs_overlay_apply(struct writer *w, struct node *dir)
{
	int err = w->o->aufs ? convert(w, dir) : 0;

	if (!err && w->o->ovlfs_strip)
		strip(dir);
	return err;
}
