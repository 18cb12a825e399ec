// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What can be decided once the source is read: owners, times, attributes, sizes and places of directories. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "write/write_priv.h"

static void set_owner(const struct erofs_write_options *o, struct node *node)
{
	node->uid = o->force_uid ? *o->force_uid : node->uid + o->uid_offset;
	node->gid = o->force_gid ? *o->force_gid : node->gid + o->gid_offset;
}

static void count_inode(struct writer *w, const struct node *node)
{
	struct erofs_write_result *counts = &w->counts;

	if (!S_ISDIR(node->mode) && !node->foreign) {
		w->ahead_inodes++;
		w->ahead_bytes += S_ISREG(node->mode) ? node->size : 0;
	}
	switch (node->mode & S_IFMT) {
	case S_IFREG:
		counts->files++;
		counts->bytes += node->size;
		break;
	case S_IFDIR: counts->directories++; break;
	case S_IFLNK: counts->symlinks++; break;
	default: counts->specials++;
	}
}

static int plan_inode(struct writer *w, struct node *node)
{
	set_owner(w->o, node);
	if (w->o->all_time || w->o->inodes == EROFS_WRITE_INODES_COMPACT) {
		node->mtime = w->build_time;
		node->mtime_nsec = 0;
	}
	node->ino = ++w->ninodes;
	count_inode(w, node);
	erofs_xattr_order(node);
	if (S_ISDIR(node->mode))
		node->size = erofs_dir_size(w, node);
	return erofs_inode_choose(w, node);
}

static int compare_names(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int plan_dir(struct writer *w, struct node *dir)
{
	uint32_t i;
	int err;

	dir->nlink = 2;
	if (dir->nchildren)
		qsort(dir->children, dir->nchildren, sizeof(*dir->children), compare_names);
	for (i = 0; i < dir->nchildren; i++) {
		dir->nlink += S_ISDIR(dir->children[i]->mode);
		w->counts.hard_links += dir->children[i]->link != NULL;
	}
	err = plan_inode(w, dir);
	for (i = 0; !err && i < dir->nchildren; i++)
		if (!S_ISDIR(dir->children[i]->mode) && !dir->children[i]->link)
			err = plan_inode(w, dir->children[i]);
	return err;
}

/* The root comes first: its nid has 16 bits. */
int erofs_plan(struct writer *w)
{
	size_t i;
	int err = erofs_digests_add(w);

	/* more than the header: that alone would say that attributes are not supported (format.md 8.1) */
	if (w->o->root_xattr_room)
		w->feed.root->xattr_room = (uint16_t)max_u64(4, ((uint64_t)w->o->root_xattr_room + 3) / 4);
	/* what is shared decides the size of every inode with attributes */
	erofs_xattr_share(w);
	for (i = 0; !err && i < w->ndirs; i++)
		err = plan_dir(w, w->dirs[i]);
	if (!err)
		err = erofs_dir_place(w, w->feed.root);
	if (!err && w->xattr_count)
		err = erofs_xattr_put_shared(w);
	for (i = 1; !err && i < w->ndirs; i++)
		err = erofs_dir_place(w, w->dirs[i]);
	return err;
}
