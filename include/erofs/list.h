/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* list: the names below a directory, in path order; from an inode number to its path. */
#ifndef EROFS_LIST_H
#define EROFS_LIST_H

#include <erofs/engine.h>
#include <erofs/image.h>
#include <erofs/inode.h>
#include <erofs/select.h>

EROFS_BEGIN_DECLS

struct erofs_list_options {
	size_t size;			/* sizeof(struct erofs_list_options) */
	uint64_t nid;			/* the directory to start at; */
	int has_nid;			/* 0: the root directory */
	int one_level;			/* only the entries of the start itself */
	int stat;			/* load inodes: @stat and @target of the names are set */
	const struct erofs_select *select;	/* what is handed out, NULL: everything */
};

struct erofs_name {
	const char *path;		/* from the start, no slash in front, terminated; valid in the call */
	size_t len;
	uint64_t nid;
	unsigned int type;		/* as the directory says: format.md 7.1 */
	const struct erofs_stat *stat;	/* NULL if not asked for */
	const char *target;		/* of a symlink, not terminated; NULL: no symlink, or not asked for */
	size_t target_len;
};

/* Takes a name. Return: 0 to go on, other values end the listing and are returned by it. */
typedef int (*erofs_list_fn)(void *priv, const struct erofs_name *name);

/**
 * erofs_list() - hand out the names below a directory
 * Depth first, a directory before what is below it, entries as stored: in byte order in a sound image.
 * "." and ".." are left out, so is the start. Each directory is entered once, by the name whose directory
 * its ".." leads to if there is one; other names that lead to it are handed out, and reported. Memory is
 * bounded whatever the image (--max-memory). Calls come from the calling thread; @fn must not run @eng.
 * Without @stat only the inodes of directories are read.
 * Return: 0; what @fn returned; -ENOTDIR; -EUCLEAN some of it could not be read (reported, the rest was
 * handed out); -ECANCELED; -ENOMEM.
 */
EROFS_API int erofs_list(struct erofs_image *img, struct erofs_engine *eng,
			 const struct erofs_list_options *options, erofs_list_fn fn, void *priv,
			 struct erofs_diag *diag);

/**
 * erofs_path_of() - first path (in stored order) that leads to @nid; free() it
 * Return: 0; -ENOENT; -EUCLEAN it was not found where the tree can be read; -ECANCELED; -ENOMEM.
 */
EROFS_API int erofs_path_of(struct erofs_image *img, struct erofs_engine *eng, uint64_t nid,
			    struct erofs_diag *diag, char **ret_path);

EROFS_END_DECLS

#endif
