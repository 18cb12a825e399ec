/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* The walk's inside: what has been entered, what was put aside, the strict checks. */
#ifndef EROFS_WALK_INT_H
#define EROFS_WALK_INT_H

#include <pthread.h>

#include "walk/walk_priv.h"

/* A directory entry whose directory does not name us as its parent. */
struct stray {
	struct stray *next;
	struct walk_dir *dir;	/* the parent, kept open */
	struct erofs_inode ino;
	char *path;		/* for sorting */
	uint64_t off;		/* of the entry in the parent */
	unsigned int len;
	char name[256];
};

#define WALK_MAX_STRAYS 1024	/* more are damage beyond use: reported, not entered */

struct walk_state {
	pthread_mutex_t	lock;
	uint64_t	*slots;		/* L  nid + 1 of each directory entered, open addressing */
	size_t		nslots;		/* L  a power of two */
	size_t		nused;		/* L */
	size_t		max_slots;	/* C */
	struct stray	*strays;	/* L */
	unsigned int	nstrays;	/* L */
	atomic_bool	out_of_memory;
};	/* L lock  C constant once created */

int erofs_walk_state_new(struct walk *w);
void erofs_walk_state_free(struct walk *w);

/* Note that a directory is entered. false: it was already, or there is no memory (reported). */
bool erofs_walk_mark(struct walk *w, uint64_t nid);

/* The stray with the smallest path, or NULL; its parent is still kept open. */
struct stray *erofs_walk_next_stray(struct walk *w);

/* May this subdirectory be entered now? Checks cycles, depth, ".."; reports; puts strays aside. */
bool erofs_walk_may_enter(struct walk *w, struct lane *lane, struct walk_dir *dir,
			  const struct dirent_view *de, const struct erofs_inode *ino);

/* The nid behind ".." in the first block of a directory. -ENODATA: none there. */
int erofs_walk_find_parent(struct walk *w, struct lane *lane, const struct erofs_inode *ino,
			   uint64_t *ret_nid);

/* Strict: @dir's entry @de leads to a directory that is an ancestor, or was entered by another way. */
void erofs_walk_report_again(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);

void erofs_walk_check_type(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			   const struct erofs_inode *ino);
void erofs_walk_check_order(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			    const char *prev, unsigned int prev_len);
void erofs_walk_check_dots(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);
void erofs_walk_check_left(struct walk *w, struct walk_dir *dir);

/* Last name of a directory block into @buf (256 bytes); 0: it has none. */
unsigned int erofs_walk_last_name(struct walk *w, struct lane *lane, const struct walk_dir *dir,
				  uint64_t blk, char *buf);

#endif
