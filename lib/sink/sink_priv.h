/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * sink: where decoded contents go. Here: a folder, by directory handles alone.
 *
 * A *tree* is the target folder; a *tree_dir* one directory below it, known by its parent, its name and
 * its identity (device and inode). Its descriptor may be closed when too many are open, and is opened
 * again through its parent: without following links, and only if it is still the same directory. So a
 * path is never walked by name, whatever the image holds or others do in the target meanwhile.
 *
 * A pinned directory stays open. Any thread may pin any directory that exists.
 *
 * Lock order: tree.lock is a leaf; no system call but close() is made while it is held.
 */
#ifndef EROFS_SINK_PRIV_H
#define EROFS_SINK_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct tree_dir {
	struct tree_dir	*up;		/* C  NULL: the target itself */
	const char	*name;		/* C  borrowed; must live as long */
	dev_t		dev;		/* C */
	ino_t		ino;		/* C */
	bool		fresh;		/* C  made by this run: holds nothing of others, no default ACL, no SGID */
	int		fd;		/* L  -1: closed for now */
	unsigned int	pins;		/* L */
	struct tree_dir	*newer, *older;	/* L  in the list of those that may be closed */
};	/* L tree.lock  C constant once created */

enum tree_temp {
	TREE_TEMP_UNKNOWN,
	TREE_TEMP_LINK,		/* O_TMPFILE, linked by descriptor */
	TREE_TEMP_PROC,		/* O_TMPFILE, linked through /proc */
	TREE_TEMP_NAME,		/* a temporary name */
};

struct tree {
	pthread_mutex_t	lock;
	struct tree_dir	root;
	struct tree_dir	*newest, *oldest;	/* L  open and not pinned */
	unsigned int	nopen, max_open;	/* L, C */
	enum tree_temp	temp;			/* L  how large files are made */
	uint64_t	next_part;		/* L  number of the next temporary name */
	bool		overwrite;		/* C */
	bool		read_only;		/* C  a folder that is only read: nothing in it is changed */
	bool		fresh;			/* C  the target was made by this run */
	struct timespec	start;			/* C  what is born later was made by this run; unless fresh */
};	/* L lock  C constant once created */

/**
 * erofs_tree_open() - open or make the target folder
 * @path:    symlinks in it are followed: it is the user's word
 * @parents: make missing parents
 * @lanes:   threads that will work in it; with RLIMIT_NOFILE it decides how many handles stay open
 * Return: 0, negative errno. erofs_tree_close() afterwards in any case.
 */
int erofs_tree_open(struct tree *tree, const char *path, bool parents, bool overwrite, unsigned int lanes);
void erofs_tree_close(struct tree *tree);

/* The same of a folder that is read: it must be there, only erofs_tree_enter() and pins are for it. */
int erofs_tree_open_source(struct tree *tree, const char *path, unsigned int lanes);

/* The folder that holds @path, for a single file as the target; @ret_name points into @path. */
int erofs_tree_open_parent(struct tree *tree, const char *path, bool parents, bool overwrite,
			   const char **ret_name);

/** erofs_tree_pin() - keep a directory open and get its descriptor; 0, negative errno */
int erofs_tree_pin(struct tree *tree, struct tree_dir *dir, int *ret_fd);
void erofs_tree_unpin(struct tree *tree, struct tree_dir *dir);

/**
 * erofs_tree_mkdir() - make a directory (0700) or take the one that is there
 * @name: borrowed for the life of @dir
 * Return: 0, -EEXIST something else is in the way, -ENOTUNIQ, negative errno.
 */
int erofs_tree_mkdir(struct tree *tree, struct tree_dir *up, const char *name, struct tree_dir *dir);
/** erofs_tree_enter() - take a directory that must be there (the target, if @up is NULL); 0, negative errno */
int erofs_tree_enter(struct tree *tree, struct tree_dir *up, const char *name, struct tree_dir *dir);
/* Forget a directory; nothing below it may be known any more. */
void erofs_tree_forget(struct tree *tree, struct tree_dir *dir);

/**
 * erofs_tree_make_room() - after -EEXIST: may the name be taken, and is it free now?
 * Only with overwrite, never for what this run made itself, never for a directory with something in it.
 * Return: 0 try again, -EEXIST, -ENOTUNIQ (this run made it: two names that are one here, X11),
 * -ENOTEMPTY, negative errno.
 */
int erofs_tree_make_room(struct tree *tree, int dir_fd, const char *name);

/* Is there such a name, and was it made by this run? */
bool erofs_tree_has_made(const struct tree *tree, int dir_fd, const char *name);

/** erofs_tree_create() - a new file for writing under its final name; descriptor or negative errno */
int erofs_tree_create(struct tree *tree, int dir_fd, const char *name, mode_t mode);

/* A file whose final name comes when it is complete. */
struct tree_part {
	int fd;
	enum tree_temp temp;
	char name[40];		/* TREE_TEMP_NAME */
};

/** erofs_tree_part_begin() - 0, negative errno */
int erofs_tree_part_begin(struct tree *tree, int dir_fd, struct tree_part *part);
/** erofs_tree_part_finish() - give it its name; 0, negative errno (then it is still to be dropped) */
int erofs_tree_part_finish(struct tree *tree, int dir_fd, struct tree_part *part, const char *name);
/* The same in one step in place of what has the name, if tree.temp was set to TREE_TEMP_NAME before it was begun. */
int erofs_tree_part_replace(int dir_fd, struct tree_part *part, const char *name);
/* Remove what there is of it. Does not close the descriptor. */
void erofs_tree_part_drop(int dir_fd, struct tree_part *part);
/* Remove what a killed run left in a directory: temporary names, if they are marked as such. */
void erofs_tree_sweep(int dir_fd);

#endif
