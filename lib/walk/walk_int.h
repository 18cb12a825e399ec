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
	uint64_t	start;		/* C  nid */
	size_t		bytes, max_bytes;	/* L, C  of walk_dir.subs */
	struct stray	*strays;	/* L */
	unsigned int	nstrays;	/* L */
	uint64_t	*entered;	/* nids of strays that were entered: written by the owner while nobody walks */
	unsigned int	nentered;
	uint64_t	blocks_left;	/* O  that may be read to find out whether strays were entered before */
	atomic_bool	out_of_memory;
};	/* L lock  C constant once created  A atomic, order stated  O owner thread only */

int erofs_walk_state_new(struct walk *w, uint64_t start);
void erofs_walk_state_free(struct walk *w);

/* Forget the subdirectories of a directory that is left. */
void erofs_walk_forget_subs(struct walk *w, struct walk_dir *dir);

/* Note that a subdirectory is entered from its parent. false: it was already, or no memory (reported). */
bool erofs_walk_mark_sub(struct walk *w, struct walk_dir *dir, uint64_t nid);

/*
 * Note that a directory whose ".." leads elsewhere is entered. false: it was already (mark: by whatever
 * way; note: the caller knows that its parent did not), or there are too many. Owner only, while nobody walks.
 */
bool erofs_walk_mark_stray(struct walk *w, struct lane *lane, const struct erofs_inode *ino);
bool erofs_walk_note_stray(struct walk *w, uint64_t nid);

/* The stray with the smallest path, or NULL; its parent is still kept open. */
struct stray *erofs_walk_next_stray(struct walk *w);

/* May this subdirectory be entered now? Checks cycles, depth, ".."; reports; puts strays aside. */
bool erofs_walk_may_enter(struct walk *w, struct lane *lane, struct walk_dir *dir,
			  const struct dirent_view *de, const struct erofs_inode *ino);

/* The nid behind ".." in the first block of a directory. -ENODATA: none there. */
int erofs_walk_find_parent(struct walk *w, struct lane *lane, const struct erofs_inode *ino,
			   uint64_t *ret_nid);

/*
 * Does the directory @nid, which is loaded into @ret_ino, have an entry for @child? What can't be read has
 * not, nor what would take too long to read. Owner only, while nobody walks.
 */
bool erofs_walk_has_child(struct walk *w, struct lane *lane, uint64_t nid, uint64_t child,
			  struct erofs_inode *ret_ino);

/* Strict: @dir's entry @de leads to a directory that is an ancestor, or was entered by another way. */
void erofs_walk_report_again(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);

void erofs_walk_check_type(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			   const struct erofs_inode *ino);
/* Is the name behind @prev (NULL: none)? Negative: yes; 0: it is the same; positive: it is in front. */
int erofs_walk_check_order(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			   const char *prev, unsigned int prev_len);
void erofs_walk_check_dots(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);
void erofs_walk_check_left(struct walk *w, struct walk_dir *dir);

/* Last name of a directory block into @buf (256 bytes); 0: it has none. */
unsigned int erofs_walk_last_name(struct walk *w, struct lane *lane, const struct walk_dir *dir,
				  uint64_t blk, char *buf);

#endif
