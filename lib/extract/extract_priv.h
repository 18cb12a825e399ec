/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * extract: an image's tree into a folder (cli.md X1 to X13).
 *
 * A walk makes directories on the way down, mode 0700 (those that only stand above something selected, when
 * that is met), and gives them owner, mode and times when all below is done. Files are made by the worker
 * that meets them. One larger than WRITE_RANGE is cut into ranges; workers that have nothing else to do
 * join. A file has its final name only when it is whole.
 *
 * Lock order: every lock here is a leaf.
 */
#ifndef EROFS_EXTRACT_PRIV_H
#define EROFS_EXTRACT_PRIV_H

#include <stdatomic.h>

#include <erofs/extract.h>

#include "sink/sink_priv.h"
#include "walk/walk_priv.h"

/* ---- directories of the tree (dirs.c) ---- */

/* What a walk_dir's priv is. */
struct extract_dir {
	struct tree_dir	own;		/* C once made */
	struct tree_dir	*target;	/* C  where its entries go: own, or the target folder if stripped */
	atomic_int	made;		/* A  release: 0 not yet, 1 it is there, negative errno: it cannot be made */
	bool		selected;	/* C  with all below it */
	size_t		kept;		/* L  link_table.lock: names that keep it in memory beyond its time */
};	/* C constant  A atomic, order stated */

struct extract;
/* Make a directory that is only made if something below it is selected. 0, negative errno (told before). */
int erofs_extract_need_dir(struct extract *x, struct walk_dir *dir);
int erofs_extract_enter_dir(struct walk *w, struct lane *lane, struct walk_dir *dir);
void erofs_extract_leave_dir(struct walk *w, struct lane *lane, struct walk_dir *dir);
bool erofs_extract_wants(struct walk *w, struct walk_dir *dir, const struct dirent_view *de);

/* ---- things that were left out (skips.c) ---- */

enum skip {
	SKIP_DEVICE,		/* no privilege to make it */
	SKIP_OWNER,
	SKIP_XATTR_PRIV,	/* trusted.*, security.capability without privilege */
	SKIP_XATTR,		/* the target does not take it */
	SKIP_LINK,		/* copied instead of linked */
	SKIP_COUNT,
};

struct skips {
	pthread_mutex_t	lock;
	uint64_t	count[SKIP_COUNT];	/* L */
	char		*first[SKIP_COUNT];	/* L  smallest path */
	int		err[SKIP_COUNT];	/* L  why, of that one */
};	/* L lock */

void erofs_skips_init(struct skips *s);
void erofs_skips_fini(struct skips *s);
/* One thing was skipped at @dir/@name (NULL: at @dir itself). */
void erofs_skips_add(struct skips *s, enum skip kind, int err, const struct walk_dir *dir, const char *name);
/* One line per kind; returns how many things were left out. SKIP_LINK is told, but not counted. */
uint64_t erofs_skips_report(struct skips *s, struct erofs_diag *diag, bool strict);

/* ---- hard links (hardlink.c) ---- */

/* A name that waits for its inode's first name to be complete. */
struct link_name {
	struct link_name *next;
	struct walk_dir *dir;	/* kept open */
	size_t len;
	char name[];
};

struct link_group {
	struct link_group *next;	/* in its bucket */
	uint64_t nid;
	uint32_t left;			/* names of the inode that are still to come */
	bool busy;			/* the first name is being made */
	uint32_t users;			/* names that are being linked to the first one */
	struct link_name *first;	/* made */
	struct link_name *waiting;
};

#define LINK_BUCKETS 4096

/*
 * Where groups do not fit the memory limit, those from the nid @hi on are left to another walk (engine.md
 * E5). A group that was begun is completed in the same walk, wherever @hi has gone meanwhile.
 */
struct link_table {
	pthread_mutex_t	lock;
	pthread_cond_t	room;		/* a first name is made, or names need no more waiting */
	struct link_group *buckets[LINK_BUCKETS];	/* L */
	size_t		bytes, max_bytes;		/* L, C */
	uint64_t	lo, hi;		/* C during a walk, L  nids that new groups may have */
};	/* L lock  C constant once created */

enum link_claim {
	LINK_MAKE,		/* make the inode under this name, then erofs_links_made() */
	LINK_TO,		/* link to *ret_first */
	LINK_WAIT,		/* somebody else will link it */
	LINK_LATER,		/* nothing now: another walk has room for it, or had */
};

void erofs_linktab_init(struct link_table *t, size_t max_bytes);
/* Close what is still open: links that lie outside the tree that was extracted. */
void erofs_linktab_fini(struct link_table *t, struct walk *w, struct lane *lane);
/* After a walk: is another one needed? Then the table is empty and ready for it. */
bool erofs_linktab_advance(struct link_table *t, struct walk *w, struct lane *lane);
/* What is to be done with this name? enum link_claim or -ENOMEM. *ret_first stays valid until the group is complete. */
int erofs_linktab_claim(struct link_table *t, struct walk_dir *dir, const char *name, size_t len,
			const struct erofs_inode *ino, const struct link_name **ret_first);
/* The name that was claimed to be made is made, or is not. 0, -ENOMEM: nothing can be linked to it. */
int erofs_linktab_made(struct link_table *t, struct walk *w, struct lane *lane, struct walk_dir *dir,
		       const char *name, size_t len, uint64_t nid, bool made);
/*
 * A name that waited; NULL: none. If there is a first one it is to be linked to that, else it is claimed
 * to be made. Free it with erofs_linktab_free_name().
 */
struct link_name *erofs_linktab_next(struct link_table *t, uint64_t nid);
/* A name that was to be linked (LINK_TO, or by erofs_linktab_next()) is done. */
void erofs_linktab_linked(struct link_table *t, struct walk *w, struct lane *lane, uint64_t nid);
void erofs_linktab_free_name(struct walk *w, struct lane *lane, struct link_name *name);

/* ---- the run ---- */

/* How attributes are restored. */
struct restore {
	bool owner, times, xattrs;
	bool exact_modes;	/* else less @umask */
	bool keep_suid;		/* also if the owner is not restored */
	bool privileged;	/* effective uid 0 */
	bool fsync;
	mode_t umask;
	uid_t uid;		/* what new files get */
	gid_t gid;
	const char *const *xattr_include, *const *xattr_exclude;
};

struct extract {
	struct erofs_image *img;		/* C */
	struct erofs_diag *diag;		/* C */
	struct erofs_diag *quiet;		/* C  salvage: for what is tried first; else NULL */
	struct job	*job;			/* C */
	struct walk	walk;
	const struct erofs_extract_options *opt; /* C */
	struct restore	restore;		/* C */
	struct tree	tree;
	pthread_mutex_t	dirs_lock;		/* of making directories late */
	struct link_table links;
	bool		again;			/* C during a walk  only hard links that were left over */
	struct skips	skips;
	atomic_int	err;		/* A  relaxed: the first failure of the target */
	_Atomic uint64_t files, directories, symlinks, hard_links, specials, bytes, failed, damaged;	/* A  relaxed */
};	/* C constant once created  A atomic, order stated */

/* Something at @dir/@name failed: reported unless damage, counted; cancels the job with fail_fast. */
void erofs_extract_fail(struct extract *x, int err, const struct walk_dir *dir, const char *name,
			const char *what);

/* entry.c: make an entry that is no directory under @dir; the file alone if @dir is NULL (target: x->tree.root) */
void erofs_extract_entry(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de,
			 const struct erofs_inode *ino);
/*
 * The object of one name, after hard links are settled. Return: 0; negative errno (reported and counted);
 * 1 others are still at it, and whoever is last calls erofs_extract_settle().
 */
int erofs_extract_make(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
		       const struct erofs_inode *ino);
/* The name is made, or (err) could not be: count it, and see to the names that waited for it. */
void erofs_extract_settle(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
			  const struct erofs_inode *ino, int err);
struct tree_dir *erofs_extract_target(struct extract *x, const struct walk_dir *dir);

/* damaged.c: may a file that could not be read be salvaged? */
bool erofs_extract_may_salvage(const struct extract *x, int err);
/*
 * Write anew what can be read of a file, mark it, give it its size. 0, negative errno with *ret_what
 * (NULL: reported).
 */
int erofs_extract_salvage(struct extract *x, struct lane *lane, const struct erofs_inode *ino, int fd,
			  const char **ret_what);
/* With salvage, the first try to read a file is silent: its damage is told when it is salvaged. */
struct erofs_diag *erofs_extract_hush(const struct extract *x, struct lane *lane);
int erofs_extract_write_run(const struct extract *x, int fd, const struct run *run);

/* contents.c: is the file written, and counted, in ranges? */
bool erofs_extract_is_large(const struct extract *x, const struct erofs_inode *ino);
/* contents.c: write a regular file. As erofs_extract_make(). */
int erofs_extract_contents(struct extract *x, struct lane *lane, struct walk_dir *dir, const char *name,
			   const struct erofs_inode *ino);

/* ---- attributes (restore.c) ---- */

/* Where attributes go: a descriptor (files, directories), or a name in a directory (the rest). */
struct restore_at {
	int fd;			/* -1: use dir_fd and name */
	int dir_fd;
	const char *name;
	bool fresh;		/* below a directory that passes nothing on */
	mode_t mode;		/* that it was made with */
	const struct walk_dir *dir;	/* for reports: dir/name or, name NULL, dir */
	const char *report_name;
};

/* The permission bits that @ino gets. */
mode_t erofs_restore_mode(const struct restore *r, const struct erofs_inode *ino);
/* The bits to make a file with, so that nothing may have to be changed afterwards. */
mode_t erofs_restore_first_mode(const struct restore *r, const struct erofs_inode *ino, bool fresh);
/* owner, xattrs, mode, ACLs, times (X6). 0, negative errno: named in *ret_what. */
int erofs_restore(struct extract *x, struct lane *lane, const struct restore_at *at,
		  const struct erofs_inode *ino, const char **ret_what);
/* Options to rules. 0, negative errno. */
void erofs_restore_init(struct restore *r, const struct erofs_extract_options *opt);

#endif
