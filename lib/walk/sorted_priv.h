/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The names below a start in path order, one at a time, for results whose order must not depend on
 * workers: depth first, a directory before what is below it, entries in byte order of their names.
 *
 * EROFS keeps entries in that order, so nothing is sorted: where it is violated (reported) they come as
 * stored. Bad names never come out, nor a name that stands twice in a row. Everything that directories
 * can show is checked and reported, as by a strict walk. A directory is entered once: by the name whose
 * directory its ".." leads to, else by the first one. Memory is bounded by depth, and by the directories
 * entered (half of erofs_job_state_bytes()).
 */
#ifndef EROFS_SORTED_PRIV_H
#define EROFS_SORTED_PRIV_H

#include "walk/select_priv.h"
#include "walk/walk_priv.h"

#define SORTED_MAX_PATH (UINT32_C(1) << 20)	/* bytes; PATH_MAX is 4096 */

struct sorted_entry {
	const char *path;	/* relative to the start, no slash in front, terminated; "" is the start */
	size_t len;
	uint64_t nid;
	unsigned int type;	/* as the directory says (DIRENT_…) */
	bool has_ino;		/* false only with flags */
	struct erofs_inode ino;
	enum select_verdict verdict;	/* SELECT_PARENT: stands above something that is selected */
	uint64_t parent_nid;	/* of the directory that names it; of the start itself: its own */
	uint64_t off;		/* bytes in that directory where its entry is; of the start and parents: not set */
};

struct sorted;

/* Inodes are loaded of directories that are to be entered, and of nothing else. */
#define SORTED_NO_INODES 1
/* For lists: names come out twice if they stand twice, and though their inodes cannot be loaded or entered;
 * what does not touch names ("." and "..", link counts) is not checked. */
#define SORTED_NAMES 2
/* Only the start and its own entries. */
#define SORTED_ONE_LEVEL 4

/**
 * erofs_sorted_new() - begin at @start, which may be of any type
 * @sel: what comes out, NULL: everything. It is asked before an inode is loaded. A directory that is no
 *       more than the parent of a selected name comes out when the first one below it is found.
 * Owner of the job only; uses lane 0. Return: 0, -ENOMEM. Free with erofs_sorted_free().
 */
int erofs_sorted_new(struct job *job, const struct erofs_inode *start, const struct erofs_select *sel,
		     unsigned int flags, struct erofs_diag *diag, struct sorted **ret);
void erofs_sorted_free(struct sorted *s);

/**
 * erofs_sorted_next() - the next name; valid until the next call
 * Damage on the way is reported and passed over: see erofs_sorted_damaged().
 * Return: 1, 0 at the end, -ECANCELED, -ENOMEM (reported).
 */
int erofs_sorted_next(struct sorted *s, const struct sorted_entry **ret_entry);

/* Was something passed over so far: a name, a directory or a part of one? */
bool erofs_sorted_damaged(const struct sorted *s);

#endif
