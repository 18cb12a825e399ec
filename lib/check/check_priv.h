/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * check: what only the whole image shows: pclusters that disagree or overlap, link counts, and which
 * files a damaged pcluster belongs to. What one object or one directory shows is checked by meta, map
 * and walk, which this room only has to run over everything.
 *
 * A check is a number of passes, each a walk over the tree by all workers. A pass covers a window of
 * nids and one of addresses, as large as the memory allows: nearly always one pass covers everything.
 * After each the owner brings the references to stored data into physical order, judges them and has
 * them decoded. If ranges turned out damaged, one more walk finds whose they are (blame.c); another one
 * gives findings their paths (names.c).
 *
 * Lock order: every lock here is a leaf.
 */
#ifndef EROFS_CHECK_PRIV_H
#define EROFS_CHECK_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <erofs/check.h>

#include "walk/walk_priv.h"

/* ---- names and link counts (links.c) ---- */

enum links_answer {
	LINKS_NEW,		/* the first name of this inode */
	LINKS_SEEN,
	LINKS_OUTSIDE,		/* of another pass's window */
};

struct link_slot {
	uint64_t nid;
	uint32_t names;		/* seen so far, 0: a free slot */
	uint32_t nlink;		/* as the inode says */
};

#define LINK_SHARDS 32		/* two workers meet in one once in 32 times: with one lock for all, half of
				 * the walk was spent waiting for it */

struct link_shard {
	pthread_mutex_t	lock;
	struct link_slot *slots;	/* L  open addressing */
	size_t		nslots, nused;	/* L */
} __attribute__((aligned(64)));		/* a cache line, which the neighbours are not to fight for */

struct links {
	size_t		max_slots;	/* C  of one shard */
	uint64_t	lo;		/* C  during a pass: first nid of the window */
	_Atomic uint64_t hi;		/* A  relaxed: its end; sinks while a shard is full */
	struct link_shard shards[LINK_SHARDS];
};	/* L shard's lock  C constant once created  A atomic, order stated */

/* @bytes: at most this much memory. 0, -ENOMEM. */
int erofs_links_init(struct links *l, size_t bytes);
void erofs_links_fini(struct links *l);
/* A name of @nid was seen. Any thread. */
enum links_answer erofs_links_add(struct links *l, uint64_t nid, uint32_t nlink);
/* Report inodes of the window whose link count is not their number of names. */
void erofs_links_report(struct links *l, const struct erofs_image *img, struct erofs_diag *diag);
/* Go to the next window; false: there is none. */
bool erofs_links_advance(struct links *l);
void erofs_links_clear(struct links *l);

/* ---- references to stored data (refs.c, merge.c) ---- */

struct refs {
	struct pcref *refs;
	size_t count, room;
};

struct ref_window {
	uint64_t lo;			/* C  during a pass */
	_Atomic size_t spare;		/* A  relaxed: references that lanes may still make room for */
	_Atomic uint64_t hi;		/* A  relaxed: sinks while a lane is full */
};

/* Note one reference, if it lies in the window. One lane's refs; 0, -ENOMEM. */
int erofs_refs_add(struct refs *r, struct ref_window *win, const struct pcref *ref);
/* By address, then by word, the longest reference first. */
void erofs_refs_sort(struct refs *r);

/* What all lanes sorted, as one list without doubles. */
struct ref_stream {
	const struct refs *lanes;
	size_t *at;		/* of each lane */
	unsigned int nlanes;
	uint64_t hi;		/* references from there on are for another pass */
	struct pcref last;
	bool has_last;
};

/* 0, -ENOMEM. Borrows the lanes. */
int erofs_refs_stream_begin(struct ref_stream *s, const struct refs *lanes, unsigned int nlanes, uint64_t hi);
bool erofs_refs_stream_next(struct ref_stream *s, struct pcref *ret_ref);
void erofs_refs_stream_end(struct ref_stream *s);

/* One reference per pcluster out of a sorted list: conflicts and overlaps become damage. */
struct merger {
	struct check *check;
	struct pcref pending;
	bool has;
	uint64_t raw_end;	/* plain data up to here will be read */
};

/* Put the next one in. true: *ret_out is one that is complete. */
bool erofs_merge_put(struct merger *m, const struct pcref *ref, struct pcref *ret_out);
bool erofs_merge_end(struct merger *m, struct pcref *ret_out);

/* ---- damaged ranges (damage.c) ---- */

#define DAMAGE_MAX 1000		/* engine.md E5: as many as findings are kept */
#define DAMAGE_TEXT 128

struct damage {
	uint64_t addr, len;	/* linear addresses */
	enum erofs_finding_id id;
	int err;
	char text[DAMAGE_TEXT];
};

struct damage_list {
	pthread_mutex_t	lock;
	struct damage	*list;		/* L  by address, then id and text; the first DAMAGE_MAX */
	size_t		count;		/* L */
	uint64_t	dropped;	/* L */
};	/* L lock, only while damage is added */

int erofs_damage_init(struct damage_list *d);
void erofs_damage_fini(struct damage_list *d);
/* Any thread. @text is copied. */
void erofs_damage_add(struct damage_list *d, uint64_t addr, uint64_t len, enum erofs_finding_id id, int err,
		      const char *text);

/* ---- the check ---- */

struct check_lane {
	struct refs refs;
	uint64_t inodes, directories, files;
	uint64_t decoded_bytes;		/* sizes of files, directories, symlinks */
	uint64_t stored_bytes;		/* of their data, shared or not; holes count as data */
};

struct check {
	struct erofs_image *img;	/* C */
	struct erofs_engine *eng;	/* C */
	struct erofs_diag *diag;	/* C */
	struct job	*job;		/* C */
	bool		data, digests, subtree;	/* C */
	unsigned int	pass;		/* C  during a pass; 0: the first */
	struct links	links;
	struct ref_window window;
	size_t		max_refs;	/* C  of all lanes together */
	struct damage_list damage;
	struct check_lane *lanes;	/* one each, of that lane's thread; the owner's between passes */
	unsigned int	nlanes;		/* C */
	/* the owner's */
	uint64_t	packed_broken;	/* where the packed file can't be mapped any more, UINT64_MAX: nowhere */
	uint64_t	last_addr, last_end;	/* pcluster that reaches furthest */
	uint64_t	pclusters;
};	/* C constant once created */

/* One inode of any type but a directory, by one of its names. */
void erofs_check_visit(struct check *c, struct lane *lane, const struct erofs_inode *ino);
void erofs_check_visit_dir(struct check *c, struct lane *lane, const struct erofs_inode *ino);
/* Compare a regular file's contents with its recorded digest, if it has one. Reports. */
void erofs_check_digest(struct check *c, struct lane *lane, const struct erofs_inode *ino);
/* The packed file and the metabox. */
void erofs_check_visit_special(struct check *c, struct lane *lane);
/* Report the files that damaged ranges belong to. 0, -ECANCELED, -ENOMEM. */
int erofs_check_blame(struct check *c, const struct erofs_inode *start);

#endif
