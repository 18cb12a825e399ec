/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * walk: every directory entry below a start, in parallel, in bounded memory.
 *
 * A directory is scanned by one worker block by block; while others are hungry, subdirectories and the
 * second halves of large directories are given away, otherwise the worker goes depth first itself, on
 * a stack of frames (no recursion). A directory inode is entered once; a second way to it is reported
 * (strict) and not followed, so cycles and exponential trees end. Depth is limited to WALK_MAX_DEPTH.
 *
 * That takes no memory for the whole tree (engine.md E5): a directory is entered from the one that its ".."
 * names, so only second names in the same directory have to be noticed, and what it has is forgotten when
 * it is left. Directories whose ".." leads elsewhere are damage: a bounded number waits for the end.
 *
 * With @strict everything that directories can show is checked and reported: order and names across
 * blocks, types against inodes, "." and "..", link counts of directories, cycles, second parents.
 * Without it only what makes entries unreadable is reported.
 * Entries with bad names ('/', NUL, empty, "." and ".." in the wrong place) never reach a visitor.
 */
#ifndef EROFS_WALK_PRIV_H
#define EROFS_WALK_PRIV_H

#include <stdatomic.h>

#include "engine/engine_priv.h"

#define WALK_MAX_DEPTH 65536	/* 8 MiB of struct walk_dir at the deepest; PATH_MAX allows 2048 */

struct walk;

/* A directory that was entered. Lives until left and no longer held. */
struct walk_dir {
	struct walk_dir	*up;		/* C  NULL for the start */
	struct erofs_inode ino;		/* C */
	atomic_uint	open;		/* A  scans and children going on, acq_rel; 0: left */
	atomic_uint	held;		/* A  erofs_walk_hold(), one for being open, one per child; acq_rel */
	atomic_uint	subdirs;	/* A  relaxed until left */
	atomic_uint	dots;		/* A  "." seen, relaxed until left */
	atomic_uint	dotdots;	/* A  ".." seen, relaxed until left */
	atomic_bool	broken;		/* A  some block or entry could not be read */
	uint64_t	*subs;		/* L  walk_state.lock: nid + 1 of subdirectories, open addressing */
	size_t		nslots, nused;	/* L  of subs; a power of two */
	unsigned int	depth;		/* C  0 for the start */
	void		*priv;		/* the visitor's; set by enter() */
	unsigned int	len;		/* C  of name; 0 for the start */
	char		name[];		/* C  terminated as well */
};	/* C constant once created  A atomic, order stated */

struct walk_ops {
	/*
	 * A directory is entered, before its entries are visited; its parents are open.
	 * 0: scan it; -ENODATA: skip it silently; other errors: skip it, reported by the visitor.
	 */
	int (*enter)(struct walk *w, struct lane *lane, struct walk_dir *dir);
	/* Is an entry of interest? Asked before its inode is loaded; "." and ".." are not asked for. */
	bool (*wanted)(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);
	/* An entry that is no directory. @ino lives on the caller's stack. */
	void (*entry)(struct walk *w, struct lane *lane, struct walk_dir *dir,
		      const struct dirent_view *de, const struct erofs_inode *ino);
	/* An entry whose inode could not be loaded (reported). */
	void (*broken)(struct walk *w, struct lane *lane, struct walk_dir *dir,
		       const struct dirent_view *de);
	/* All below @dir is done: by whichever worker was last. Not called if enter() failed. */
	void (*leave)(struct walk *w, struct lane *lane, struct walk_dir *dir);
};	/* each may be NULL */

struct walk {
	struct job *job;
	struct erofs_diag *diag;
	const struct walk_ops *ops;
	void *arg;		/* the visitor's */
	bool strict;
	bool path;		/* visitors make system calls on paths */
	struct walk_state *state;	/* private */
};

/**
 * erofs_walk_run() - walk the tree below @start (a directory), wait until it is done
 * @w: job, diag, ops, arg, strict are set by the caller
 * Must be called by the owner of the job. Visitors run on many lanes at a time.
 * Return: 0; -ECANCELED; -ENOMEM. Damage is in diag.
 */
int erofs_walk_run(struct walk *w, const struct erofs_inode *start);

/* Keep @dir from being left (files in flight) / from being freed (names for hard links). */
void erofs_walk_keep_open(struct walk_dir *dir);
void erofs_walk_close(struct walk *w, struct lane *lane, struct walk_dir *dir);
void erofs_walk_hold(struct walk_dir *dir);
void erofs_walk_drop(struct walk_dir *dir);

/**
 * erofs_walk_path() - "/a/b/name" of an entry below the start; free() it
 * @name: may be NULL for the directory itself
 * Return: NULL if there is no memory.
 */
char *erofs_walk_path(const struct walk_dir *dir, const char *name, size_t len);

#endif
