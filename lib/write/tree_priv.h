/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * write: trees that come as a list of paths, in any order and with replacements (tar; merged images).
 *
 * A name is a node. An inode of several names is a node too, which has no name until the tree is finished:
 * all its names link to it, so any of them can be replaced without harm to the others. What is replaced
 * moves to the grave, whose children are those that are not in the tree.
 */
#ifndef EROFS_TREE_PRIV_H
#define EROFS_TREE_PRIV_H

#include "write/write_priv.h"

struct tree {
	struct writer *w;
	struct node *root, *grave;	/* the root is taken by who finishes the tree */
	struct node **heads;		/* names by hash of folder and name */
	size_t count, room;
	uint32_t arrivals;
};

/* A root that nothing is known of yet. 0, -ENOMEM. */
int erofs_tree_init(struct tree *t, struct writer *w);
void erofs_tree_fini(struct tree *t);

/*
 * The node of a path; "" and "." components do not count, ".." is refused. With @make a missing one is
 * made, with mode 0, and the folders above it. 0; -ENOENT without @make; -EINVAL, -ENAMETOOLONG, -ENOTDIR
 * (all three reported); -ENOMEM.
 */
int erofs_tree_find(struct tree *t, const char *path, bool make, struct node **ret);
/* The child of a folder; made if it is missing, with mode 0. 0, -ENOMEM. */
int erofs_tree_child(struct tree *t, struct node *dir, const char *name, size_t len, struct node **ret);
/* The folder loses what came before this arrival (see node->ino), with all below it. 0, -ENOMEM. */
int erofs_tree_bury(struct tree *t, struct node *dir, uint32_t arrival);
/* The node becomes something of this type, whatever it was. A folder that stays one keeps what is in it. */
int erofs_tree_reset(struct tree *t, struct node *node, uint32_t mode);
/* @node becomes another name of what @target is; a copy if links are not wanted. 0, -ENOMEM. */
int erofs_tree_link(struct tree *t, struct node *node, struct node *target);

/*
 * Sort names, drop those that are excluded, give inodes of several names a first one, apply what the
 * options say of overlays, and list the folders of w->feed.root, and the order of contents.
 */
int erofs_tree_finish(struct writer *w, bool by_arrival);

/* Append to the list of folders. 0, -ENOMEM. */
int erofs_tree_add_dir(struct writer *w, struct node *dir);

/* The tree becomes that of the feed, and is finished. */
int erofs_tree_take(struct tree *t, bool by_arrival);

/* Take those that @is_dropped out of the folder, with all below them. The order stays. */
void erofs_tree_drop(struct node *dir, bool (*is_dropped)(const struct node *child, void *priv), void *priv);

/*
 * overlay.c: what the options say of overlays in one folder, sorted by name. What is to go is marked as
 * excluded, and the order may be lost.
 */
int erofs_overlay_apply(struct writer *w, struct node *dir);

#endif
