/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * verify: an image against what it was made of.
 *
 * A *source* (source_dir.c, source_mtree.c, source_tar.c) names what is wanted, in an order of its own, and
 * tells what it records of each name: struct wanted. It knows nothing of the image. Its add function is called
 * by the job's owner; names go into parcels. Workers let the source tell what is wanted (gather), compare, and
 * write differences down; the owner hands them out in the order of the names.
 *
 * Names of the source are looked up in the image (image_names.c), which marks them; what is left without a mark
 * at the end is too much.
 *
 * Writers bring a source of their own (write/read_back.c), to which erofs_compare_with() leads.
 */
#ifndef EROFS_VERIFY_PRIV_H
#define EROFS_VERIFY_PRIV_H

#include <erofs/verify.h>

#include "base/hostattr.h"
#include "base/fsverity.h"
#include "base/sha.h"
#include "engine/flight.h"
#include "sink/sink_priv.h"
#include "sink/tar_head.h"
#include "walk/sorted_priv.h"

#define COMPARE_XATTRS (EROFS_COMPARE_ACL | EROFS_COMPARE_CAPS | EROFS_COMPARE_LABEL | EROFS_COMPARE_XATTR)

/*
 * Bytes of contents in a parcel, and of a range of a file: 1 MiB is 0.4 ms of LZ4; to set a range up (a seek in
 * the map, an open) takes some 15 us.
 */
#define COMPARE_BATCH (UINT32_C(1) << 20)
#define COMPARE_ITEMS 256
#define COMPARE_PIECE (UINT32_C(256) << 10)	/* of the source at a time: stays in the cache of the core */

/* ---- what a source records ---- */

struct wanted_xattr {
	size_t name, value, size;	/* offsets in the buffer it came with; name is terminated */
	bool met;
};

/* EROFS_COMPARE_… bits in @has say what the source records. */
struct wanted {
	unsigned int has;
	uint32_t mode;			/* type and permissions; each only if it is recorded */
	uint32_t uid, gid, major, minor;
	uint64_t size;
	int64_t mtime;
	uint32_t mtime_nsec;
	bool only_seconds;		/* nanoseconds are not recorded */
	bool is_image;			/* it is the image itself, which cannot be in itself */
	size_t target, target_len;	/* of a symlink, in the buffer */
	/* hard links: paths with the same group are one inode; nlink 1: it has no other path, 0: not known */
	uint64_t group[2];
	uint64_t nlink;
	bool is_link;			/* or: the path it is linked to stands at @link_to, as "/a/b", terminated */
	size_t link_to;
	size_t xattrs, nxattrs;		/* array of wanted_xattr, in the buffer */
	size_t data, data_len;		/* contents, or a range of them, in the buffer */
	bool has_zeros;			/* the range is zeros, and has no bytes in the buffer */
	/* digests of the contents */
	bool has_sha256, has_sha512, has_verity;
	uint8_t sha256[SHA256_SIZE], sha512[SHA_MAX_SIZE], verity[SHA256_SIZE];
};

struct compare;
struct compare_item;
struct compare_parcel;
struct compare_lane;

struct compare_source {
	/*
	 * Any worker. Fill @w and what it refers to (l->base), and have the contents at hand: l->fd or l->data.
	 * 0; negative errno (reported): only whether the name is there can be compared.
	 */
	int (*gather)(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
		      const struct compare_item *item, struct wanted *w);
	/* Add all names: erofs_compare_add(). Owner. 0, negative errno (reported). */
	int (*run)(struct compare *c);
	/* An item is in a parcel, and the parcel is gone. Owner; may be NULL. */
	void (*hold)(struct compare *c, struct compare_item *item);
	void (*drop)(struct compare *c, struct compare_item *item);
	/* A worker is done with a parcel; may be NULL. */
	void (*settle)(struct compare *c, struct compare_lane *l);
	void (*free)(struct compare *c);	/* may be NULL */
	bool hides_trusted;		/* trusted.* attributes are not for us to see */
	bool in_ranges;			/* contents of large files can be compared in parts */
	void *priv;
};

/* ---- parcels ---- */

struct src_dir;

struct compare_item {
	size_t path, path_len;		/* in names; terminated */
	bool is_there;			/* in the image */
	bool again;			/* the name came before */
	bool optional;			/* need not be */
	bool ignore;			/* what is below it does not matter */
	bool in_ranges;			/* contents follow in parcels of their own */
	bool is_other;			/* type or size differ: contents are not compared */
	bool no_data;			/* contents are not compared */
	unsigned int kind;		/* DIRENT_…, as far as the source knows before it looks */
	struct erofs_inode ino;		/* if it is there */
	bool broken;			/* its inode cannot be read (reported) */
	struct src_dir *dir;		/* source_dir.c */
	const void *own;		/* of a source outside of this room */
	size_t record;			/* other sources: struct wanted, in facts */
	/* what the worker found out */
	bool is_linkable;		/* same type on both sides, no directory */
	uint64_t group[2], nlink;
	size_t link_to;			/* in facts, with a slash in front, terminated; 0: none */
};

struct compare_parcel {
	struct parcel parcel;
	struct compare_parcel *spare;
	struct tarbuf names, facts, notes;
	struct compare_item *items;
	size_t count, room;
	bool is_range, last;		/* [from, to) of items[0] */
	bool hashes;			/* of which only hashes are wanted */
	uint64_t from, to;
	uint64_t zeros;			/* digests: a hole of so many bytes */
	uint64_t la;			/* digests: of the first byte in part */
	struct verity_part part;
	uint64_t bytes;			/* compared */
	bool damaged;			/* of the image, reported */
	bool failed;			/* of the source, reported */
	int err;			/* no memory */
};

/* A difference in notes: this, then key, found and wanted, each terminated. */
struct compare_note {
	size_t item, len;
};

/* ---- a worker's own ---- */

struct compare_lane {
	struct compare *c;
	struct lane *lane;
	struct tarbuf buf;
	const uint8_t *base;		/* what offsets in struct wanted count from */
	struct tree_dir *folder;	/* source_dir.c: pinned while its items come one after another; NULL: none */
	int folder_fd;
	int fd;				/* contents, -1: none */
	bool keep_fd;			/* it is not ours to close */
	uint64_t fd_off;		/* where they begin in it */
	const uint8_t *data;		/* contents in memory, if not NULL */
	size_t data_len;
	uint8_t *piece;			/* COMPARE_PIECE bytes of the source */
	uint8_t *whole;			/* COMPARE_BATCH bytes of the image */
	struct hostattr_list attributes;
	struct sha *sha256, *sha512;
	struct verity_hasher hasher;
	struct verity_tree tree;
};

/* ---- names of the image (image_names.c) ---- */

struct image_names;

/* 0, -ENOMEM. @max_bytes: of marks */
int erofs_imgnames_new(struct job *job, const struct erofs_inode *start, struct erofs_diag *diag, size_t max_bytes,
		       struct image_names **ret);
void erofs_imgnames_free(struct image_names *n);

/**
 * erofs_imgnames_find() - find a path and mark it, and the directories it goes through
 * @path: relative, without "." and ".." and double slashes; "" is the start
 * @ret_again: it was found before
 * Return: 1 found, 0 it is not there, negative errno: no memory, or -EUCLEAN (reported): it cannot be told.
 */
int erofs_imgnames_find(struct image_names *n, const char *path, size_t len, uint64_t *ret_nid, bool *ret_again);
/* Was the entry at @off of directory @dir_nid found? */
bool erofs_imgnames_is_marked(const struct image_names *n, uint64_t dir_nid, uint64_t off);

/* ---- link groups (link_groups.c) ---- */

struct link_group {
	struct link_group *next;
	uint64_t key[2];
	uint64_t left;			/* names still to come; 0: not known */
	size_t len;
	char path[];
};

#define GROUP_BUCKETS 4096

/* First paths of groups some of whose names are still to come. */
struct link_groups {
	struct link_group *buckets[GROUP_BUCKETS];
	size_t bytes, max_bytes;
};

/**
 * erofs_groups_take() - a path of a group was met
 * @nlink: paths that there are, 0: not known
 * @ret_first: the first one, free() it; NULL: this is it
 * Return: 0, -ENOMEM: more than the limit holds.
 */
int erofs_groups_take(struct link_groups *g, const uint64_t key[2], uint64_t nlink, const char *path, size_t len,
		      char **ret_first);
void erofs_groups_fini(struct link_groups *g);

/* ---- the run (compare.c, deliver.c) ---- */

struct compare {
	struct erofs_image *img;		/* C */
	struct erofs_engine *eng;		/* C */
	const struct erofs_compare_options *opt;	/* C */
	struct erofs_diag *diag;		/* C */
	struct erofs_compare_result *res;	/* O */
	unsigned int what;			/* C */
	struct compare_source source;		/* C */
	struct job *job;			/* C */
	struct flight flight;			/* O */
	struct compare_lane *lanes;		/* C  each its worker's */
	struct image_names *names;		/* O */
	struct link_groups in_source, in_image;	/* O */
	struct compare_parcel *open, *spares;	/* O */
	size_t open_bytes;			/* O  contents in open */
	uint64_t *ignored;			/* O  nids of directories below which nothing is compared */
	size_t nignored;
	/* O  the file whose ranges come in */
	bool large_told, large_lost, large_other;
	struct verity_tree tree;
	bool damaged, failed;			/* O */
};	/* C constant while workers run  O owner thread only */

/*
 * erofs_compare() with a source of the caller's: @open sets c->source, to be freed also after an error of it.
 * @options: kind and source are not looked at
 */
int erofs_compare_with(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_compare_options *options,
		       int (*open)(struct compare *c, void *arg), void *arg, struct erofs_diag *diag,
		       struct erofs_compare_result *ret_result);

/**
 * erofs_compare_add() - compare a name. Owner.
 * @item: what the source knows; the rest is filled in
 * @path: relative, "" is the start
 * @w:    what is recorded, with offsets in @buf; both are copied. NULL: gather will know
 * Return: 0, negative errno (reported).
 */
int erofs_compare_add(struct compare *c, const struct compare_item *item, const char *path, size_t len,
		      const struct wanted *w, const struct tarbuf *buf);
/* The same in steps, for who wants to know what the image has of it; and a range of its contents, in @w. */
int erofs_compare_look(struct compare *c, struct compare_item *item, const char *path, size_t len);
int erofs_compare_put(struct compare *c, const struct compare_item *item, const char *path, size_t len,
		      const struct wanted *w, const struct tarbuf *buf);
int erofs_compare_send_range(struct compare *c, const struct compare_item *item, const char *path, size_t len,
			     const struct wanted *w, const struct tarbuf *buf, uint64_t from, uint64_t to);
/* Add the parts of @name to a path, which stays terminated. 0, -EINVAL: "..", -ENOMEM. */
int erofs_compare_make_path(struct tarbuf *path, const char *name);
/* Can EROFS store an attribute of this name? */
bool erofs_compare_is_storable(const char *name);
int erofs_compare_no_memory(const struct compare *c);

/* The flight's: differences go out, parcels come back (deliver.c). */
int erofs_compare_deliver(void *arg, struct parcel *parcel);
void erofs_compare_release(void *arg, struct parcel *parcel);
void erofs_compare_tell(struct compare *c, const struct erofs_difference *d);
/* NULL: no memory. */
struct compare_parcel *erofs_compare_new_parcel(struct compare *c);
void erofs_compare_free_parcel(struct compare_parcel *p);

/* ---- what workers do (compare_item.c, compare_xattr.c, compare_data.c) ---- */

/* The fill of the flight. */
void erofs_compare_fill(struct lane *lane, struct parcel *parcel);
/* Write a difference down; @found and @wanted are escaped. */
void erofs_compare_note(struct compare_parcel *p, size_t item, const char *key, const char *found,
			const char *wanted);
void erofs_compare_xattrs(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w);
/* EROFS_COMPARE_… bit of an attribute. */
unsigned int erofs_compare_xattr_kind(const char *name);
/* Contents of a file that fits a parcel, of the same size on both sides. */
void erofs_compare_data(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w);
void erofs_compare_range(struct compare_lane *l, struct compare_parcel *p, const struct wanted *w);
void erofs_compare_lane_fini(struct compare_lane *l);

/* Contents against the digests that are recorded (compare_digest.c). */
void erofs_compare_digests(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w);
/* A range of a file whose fs-verity digest is recorded: to the hashes of its blocks. */
void erofs_compare_hash_range(struct compare_lane *l, struct compare_parcel *p);
/* The owner adds the ranges in order; the last one decides. 0, negative errno (reported). */
int erofs_compare_add_hashes(struct compare *c, struct compare_parcel *p);

/* The gather of sources whose records come with the items. */
int erofs_record_gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
			const struct compare_item *item, struct wanted *w);

/* "regular", … */
const char *erofs_compare_type(uint32_t mode);
const char *erofs_compare_dirent(unsigned int type);

/* ---- sources: 0, negative errno (reported) ---- */

int erofs_source_dir(struct compare *c);
int erofs_source_mtree(struct compare *c);
int erofs_source_tar(struct compare *c);

#endif
