// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Paths to nids: erofs_lookup(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <erofs/inode.h>

#include "base/cleanup.h"
#include "walk/walk_priv.h"

static void close_inode(struct erofs_inode **ino)
{
	erofs_inode_close(*ino);
}

static void close_dir(struct erofs_dir **dir)
{
	erofs_dir_close(*dir);
}

/* The entry @name of directory @dir_nid. */
static int find_entry(struct erofs_image *img, uint64_t dir_nid, const char *name, size_t len,
		      struct erofs_diag *diag, uint64_t *ret_nid)
{
	auto_call(close_inode) struct erofs_inode *ino = NULL;
	auto_call(close_dir) struct erofs_dir *dir = NULL;
	struct erofs_entry de;
	int r = erofs_inode_open(img, dir_nid, diag, &ino);

	if (!r)
		r = erofs_dir_open(ino, diag, &dir);
	if (r)
		return r;
	while ((r = erofs_dir_next(dir, &de)) > 0)
		if (de.len == len && !memcmp(de.name, name, len)) {
			*ret_nid = de.nid;
			return 0;
		}
	return r ? r : -ENOENT;
}

int erofs_lookup(struct erofs_image *img, const char *path, struct erofs_diag *diag, uint64_t *ret_nid)
{
	/* the ancestors, for "..": no path has more parts than half its bytes */
	size_t depth = 0;
	auto_free uint64_t *nids = malloc((strlen(path) / 2 + 2) * sizeof(*nids));
	int err = 0;

	if (!nids)
		return -ENOMEM;
	nids[0] = img->super->info.root_nid;
	while (!err && *path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2)) {
			depth -= depth > 0;
		} else if (len && !(len == 1 && *path == '.')) {
			err = find_entry(img, nids[depth], path, len, diag, &nids[depth + 1]);
			depth++;
		}
		path += len + (path[len] == '/');
	}
	if (!err)
		*ret_nid = nids[depth];
	return err;
}
