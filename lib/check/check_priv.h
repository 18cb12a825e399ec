/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * check: what only the whole image shows: pclusters that disagree or overlap, link counts, and which
 * files a damaged pcluster belongs to. What one object or one directory shows is checked by meta, map
 * and walk, which this room only has to run over everything.
 *
 * A check is a number of passes, each a walk over the tree by all workers:
 *   1. everything that meta, map and walk check; names are counted, references to stored data collected.
 *      Once per window of nids; one window unless there are too many inodes for the memory bound.
 *   2. further windows of physical address, for what the collector could not hold.
 *   3. only if ranges of the image turned out bad: which files lie there?
 *   4. only if there are findings: paths for their nids.
 * Between passes the owner judges the window's references in physical order and has them decoded.
 *
 * Lock order: every lock here is a leaf.
 */
#ifndef EROFS_CHECK_PRIV_H
#define EROFS_CHECK_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <erofs/check.h>

#include "walk/walk_priv.h"

#define CHECK_LINE 64	/* bytes of a cache line: what lanes write lies apart */

/* ---- references in bounded memory (check_sort.c, check_collect.c) ---- */

/* Ascending address, then descending word. In place, no recursion, fast where runs are sorted already. */
void erofs_pcref_sort(struct pcref *refs, size_t count);

/*
 * All references to one address, reduced to what decides: each field is a minimum or maximum, so
 * groups can be merged in any order, from any lanes, before or after windows were cut.
 */
struct group {
	uint64_t addr;
	bool has_raw, has_exact, has_partial;
	uint64_t raw_len;		/* bytes of the longest raw reference */
	uint64_t exact_max, exact_min;	/* words of references that are not partial; equal unless they disagree */
	uint64_t partial_long;		/* word of the longest partial reference */
	uint64_t partial_max, partial_min;	/* words with the extreme stored lengths and algorithms */
};

#define GROUP_REFS 6	/* references that a group is stored as, at most */

void erofs_group_init(struct group *g, const struct pcref *ref);
void erofs_group_add(struct group *g, uint64_t word);
/* The references that stand for the group, sorted; returns how many. */
unsigned int erofs_group_refs(const struct group *g, struct pcref refs[GROUP_REFS]);

/* One lane's references. */
struct shelf {
	struct pcref	*refs;		/* O */
	size_t		count, room;	/* O */
	uint64_t	bound;		/* O  collector.bound when refs were last purged by it */
	size_t		next;		/* O  while draining: first one not yet handed out */
} __attribute__((aligned(CHECK_LINE)));

struct collector {
	uint64_t	lo;		/* C  during a pass: first address of the window */
	_Atomic uint64_t bound;		/* A  relaxed: end of the window; sinks while shelves run full */
	atomic_size_t	spare;		/* A  relaxed: references that may still be made room for */
	size_t		step;		/* C  references by which a shelf grows; the first step is always there */
	unsigned int	nshelves;	/* C */
	struct shelf	*shelves;	/* C */
};	/* O the lane's thread, the owner between passes  C constant  A atomic, order stated */

/* @bytes: for all shelves together. 0, -ENOMEM. */
int erofs_collector_init(struct collector *col, unsigned int nshelves, size_t bytes);
void erofs_collector_fini(struct collector *col);
/* 0, -ENOMEM. References outside the window are dropped; where there is no room, the window shrinks. */
int erofs_collector_add(struct collector *col, unsigned int shelf, uint64_t addr, uint64_t word);
/* Before draining, once for every shelf, by any thread: sort, leave out what fell out of the window. */
void erofs_collector_sort(struct collector *col, unsigned int shelf);
/* The next group of the window by address; false at the end. */
bool erofs_collector_next(struct collector *col, struct group *ret_group);
/* Forget this window and go to the next. false: there is none. */
bool erofs_collector_advance(struct collector *col);

/* ---- names and link counts (check_links.c) ---- */

struct link_slot {
	uint64_t key;		/* nid + 1, 0: free */
	uint32_t names;		/* seen so far */
	uint32_t nlink;		/* as the inode says */
};

struct link_shard {
	pthread_mutex_t	lock;
	struct link_slot *slots;	/* L  open addressing */
	size_t		nslots, nused;	/* L */
} __attribute__((aligned(CHECK_LINE)));

#define LINK_SHARDS 64		/* two workers meet in one shard once in 64 times */

struct links {
	uint64_t	lo;		/* C  during a pass: first nid of the window */
	_Atomic uint64_t hi;		/* A  relaxed: end of the window, sinks while shards run full */
	size_t		max_slots;	/* C  of one shard */
	struct link_shard shards[LINK_SHARDS];
};	/* L lock  C constant  A atomic, order stated */

enum link_result {
	LINK_FIRST,		/* the first name of this inode */
	LINK_AGAIN,
	LINK_OUTSIDE,		/* not in this window */
};

/* Nids that were counted and then fell out of the window: another pass counts them again. */
struct link_evicted {
	uint64_t *nids;		/* free() it */
	size_t count;
};

int erofs_links_init(struct links *links, size_t bytes);
void erofs_links_fini(struct links *links);
/* Begin a pass: forget all, the window begins at @lo. */
void erofs_links_begin(struct links *links, uint64_t lo);
/* A name was seen. @ev is filled if inodes had to go; the caller frees it. enum link_result, -ENOMEM. */
int erofs_links_add(struct links *links, uint64_t nid, uint32_t nlink, struct link_evicted *ev);
/* UINT64_MAX: the window was the last one; else the next one's @lo. */
uint64_t erofs_links_end(const struct links *links);
/* Report inodes with more names than links; with @complete (all directories were read) also with fewer. */
void erofs_links_report(struct links *links, bool complete, struct erofs_diag *diag);

/* ---- bad ranges of the image (check_fault.c) ---- */

struct fault {
	uint64_t addr, end;	/* linear addresses */
	uint64_t max_end;	/* of this one and all in front of it; set by erofs_faults_seal() */
	enum erofs_finding_id id;
	int err;
	char text[208];
};

#define FAULTS_KEEP 1000	/* engine.md E5 */

struct faults {
	pthread_mutex_t	lock;
	struct fault	*list;		/* L  sorted by address, then the rest */
	size_t		count;		/* L */
	uint64_t	dropped;	/* L  further up in the image than those kept */
};	/* L lock, only to add */

int erofs_faults_init(struct faults *faults);
void erofs_faults_fini(struct faults *faults);
/* Any thread. @fault is copied; the first FAULTS_KEEP by address stay. */
void erofs_faults_add(struct faults *faults, const struct fault *fault);
/* All are in: from now on they may be looked for, by any number of threads. */
void erofs_faults_seal(struct faults *faults);
/* Faults that touch [addr, end), last one first: @at is SIZE_MAX at first. Index, or SIZE_MAX: no more. */
size_t erofs_faults_find(const struct faults *faults, uint64_t addr, uint64_t end, size_t at);

/* ---- the check ---- */

enum check_pass {
	PASS_CHECK,		/* everything */
	PASS_COLLECT,		/* only references, for a further window of addresses */
	PASS_FAULTS,		/* which extents touch bad ranges? */
};

struct check_lane {
	uint64_t inodes, directories, files;
	uint64_t decoded_bytes;		/* sizes of regular files */
	uint64_t inline_bytes;		/* stored among the metadata */
	uint64_t pclusters;		/* inline ones decoded */
} __attribute__((aligned(CHECK_LINE)));

/* A range of the packed file that cannot be trusted. */
struct packed_range {
	uint64_t la, end;
	size_t fault;		/* index into faults, SIZE_MAX: found while mapping or in the inline tail */
};

#define PACKED_RANGES 4096	/* where there are more, the last one reaches to the end of the file */

struct check {
	struct erofs_image *img;	/* C */
	struct erofs_engine *eng;	/* C */
	struct erofs_diag *diag;	/* C */
	bool		data, subtree;	/* C */
	uint64_t	start_nid;	/* C */
	enum check_pass	pass;		/* C  during a pass */
	bool		again;		/* C  during a pass: not the first one of its kind */
	struct job	*job;		/* C  during a pass */
	struct check_lane *lanes;	/* O  one each */
	unsigned int	nlanes;		/* C */
	struct collector refs;
	struct links	links;
	struct faults	faults;
	atomic_bool	incomplete;	/* A  relaxed: some directory could not be read in full */
	atomic_int	err;		/* A  relaxed: first failure of the world */
	/* what the judge carries from window to window: owner only */
	uint64_t	enc_addr, enc_plen, enc_end;	/* pcluster that reaches furthest, and its end */
	uint64_t	raw_addr, raw_end;		/* the same of raw data */
	uint64_t	stored_bytes, pclusters;
	struct pcref	*batch;		/* owner  to be decoded */
	size_t		nbatch;
	/* the packed file: written by the one work that checks it */
	bool		packed_bad;
	uint64_t	packed_bad_la, packed_bad_end;
	struct packed_range *packed;	/* C  in PASS_FAULTS, sorted */
	size_t		npacked;
};	/* O owner thread only  C constant  A atomic, order stated */

/* The first failure that is not the image's fault is kept; cancels the job. */
void erofs_check_fail(struct check *c, int err);
static inline struct check_lane *erofs_check_lane(struct check *c, struct lane *lane)
{
	return &c->lanes[erofs_lane_index(lane)];
}

/* check.c: one walk over everything. @diag: NULL where all was reported before. 0, negative errno. */
int erofs_check_run_pass(struct check *c, enum check_pass pass, bool again);

/* check_super.c */
void erofs_check_super(const struct erofs_image *img, struct erofs_diag *diag);

/* check_inode.c: one inode in one of the passes that look at extents' places */
void erofs_check_inode(struct check *c, struct lane *lane, const struct erofs_inode *ino);
void erofs_check_collect(struct check *c, struct lane *lane, const struct erofs_inode *ino);

/* check_extent.c: judge a window of references, decode what is to be decoded */
int erofs_check_window(struct check *c);
/* The request that a group stands for; *ret_conflict: its references disagree. */
uint64_t erofs_check_merge(const struct group *g, bool *ret_conflict);

/* check_names.c */
int erofs_check_name_faults(struct check *c);
void erofs_check_find_faults(struct check *c, struct lane *lane, const struct erofs_inode *ino);

#endif
