/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * write: from a source to an image.
 *
 * 1. A *source* (input_dir.c, input_tar.c) fills a tree of nodes with all metadata, before anything is written. Another
 *    input (a tar stream) does the same: it makes nodes with erofs_node_new() and erofs_node_insert(), adds
 *    attributes with erofs_xattr_add(), and hands out contents through feed_ops. Nothing else in
 *    this room knows where nodes come from.
 * 2. The plan (plan.c): order of names, links, owners and times as the options want them, which attributes
 *    are shared, sizes of directories. Positions of directories come first, the root's before all.
 * 3. Contents (put_file.c, z_priv.h) and the inodes of files, in the order of the tree.
 * 4. Directories, whose nids are known now, the packed file, and last the superblock.
 * 5. If wanted the image is read back and compared with the tree (read_back.c), before it gets its name.
 *
 * One thread, the owner, does all of this but reading and compressing contents, which the workers do in
 * batches (engine/flight.h); there are no locks.
 */
#ifndef EROFS_WRITE_PRIV_H
#define EROFS_WRITE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <erofs/write.h>

#include "base/checked.h"
#include "base/table.h"
#include "base/cleanup.h"
#include "diag/diag_priv.h"
#include "disk/layout.h"
#include "engine/flight.h"
#include "write/z_priv.h"

/* ---- nodes (node.c) ---- */

struct xattr_item;

struct node {
	struct node *parent;		/* NULL: the root, and the packed file */
	struct node *link;		/* another name of this inode; NULL: this is it */
	struct node **children;		/* directories; sorted by name in bytes by the plan */
	struct xattr_item **xattrs;	/* sorted by the plan: shared ones first */
	char *name;			/* "" of the root */
	char *target;			/* symlinks, size bytes */
	uint64_t size;			/* regular files, symlinks, directories (set by the plan) */
	int64_t mtime;
	uint64_t nid;			/* where its inode is, once it is */
	uint32_t mtime_nsec;
	uint32_t mode;			/* type and permissions */
	uint32_t uid, gid;
	uint32_t nlink;
	uint32_t rdev;			/* as on disk; devices */
	uint32_t nchildren, nxattrs, nshared;
	uint32_t ino;			/* serial number */
	bool extended:1;		/* 64 bytes */
	bool excluded:1;		/* and all below it; the source drops it when the tree is complete */
	bool apart:1;			/* an inode of several names, see tree_priv.h */
	bool promised:1;		/* one of the attributes waits for the digest of the contents */
	uint16_t xattr_room;		/* least size of attributes, in units of 4 bytes */
	uint64_t block;			/* directories: first full block */
	uint64_t key;			/* for the source's own use */
	struct foreign *foreign;	/* regular files: contents lie on extra devices, see foreign.h */
	struct node *peer;		/* of its hash class in the table of names */
};

/* Where the bytes of a regular file are: @size of them in @fd from @off on. */
struct contents {
	int fd;
	bool owned;			/* close it */
	uint64_t off;
	uint64_t stamp;			/* if owned: of when the tree was read */
};

/* Changes with the time of a file. */
static inline uint64_t contents_stamp(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
}

struct feed;

struct feed_ops {
	/* Any thread. 0, negative errno (reported). */
	int (*open)(struct feed *src, const struct node *node, struct contents *ret);
	void (*free)(struct feed *src);
};

struct feed {
	const struct feed_ops *ops;
	struct node *root;
	void *priv;
};

struct writer;

/* A node without a parent. @name is copied. NULL: no memory. */
struct node *erofs_node_new(const char *name, size_t len);
/* Give @dir another child. 0, -ENOMEM. The tree frees it. */
int erofs_node_insert(struct node *dir, struct node *child);
/* Both in one: a new child. NULL: no memory. */
struct node *erofs_node_add(struct node *dir, const char *name, size_t len);
/* A whole tree. NULL is fine. */
void erofs_node_free(struct node *root);
/* The path from the root, "a/b"; "" of the root. NULL: no memory; free() it. */
char *erofs_node_path(const struct node *node);
/* Device number as it is on disk. */
uint32_t erofs_node_rdev(uint32_t major, uint32_t minor);

/* ---- names that are left out (exclude.c) ---- */

struct exclude;

/* 0, -EINVAL an expression is wrong (reported), -ENOMEM. */
int erofs_exclude_new(const struct erofs_write_options *o, struct erofs_diag *diag, struct exclude **ret);
void erofs_exclude_free(struct exclude *ex);
bool erofs_exclude_has(const struct exclude *ex, const char *path);
/* Mark a node that is left out. 0, -ENOMEM. */
int erofs_exclude_node(const struct writer *w, struct node *node);

/* ---- attributes (put_xattr.c) ---- */

struct xattr_prefix {
	const char *infix;		/* borrowed from the options; with the base name in front, what it stands for */
	size_t len;
	uint8_t base;
};

/* xattr_extra.c */
int erofs_prefixes_take(struct writer *w);	/* those of the options; 0, -EINVAL (reported), -ENOMEM */
int erofs_prefixes_put(struct writer *w);
/* Of the contents of each regular file, if the options want it. Before attributes are shared. */
int erofs_digests_add(struct writer *w);

struct xattr_item {
	struct xattr_item *next;	/* of its hash class */
	uint64_t hash;
	uint32_t id;			/* if shared: position in units of 4 bytes */
	uint32_t refs;			/* inodes */
	bool shared;
	bool promised;			/* of one inode; its value ends with what will be known when that is put */
	uint8_t index, name_len;
	uint8_t disk_index, infix_len;	/* with a long prefix: it, and the bytes of the suffix that it stands for */
	uint16_t value_len;
	uint8_t bytes[];		/* suffix and value */
};

/*
 * Add one attribute to a node. Names outside the namespaces of the format are left out with a warning.
 * 0, -ENOMEM, -E2BIG (reported).
 */
int erofs_xattr_add(struct writer *w, struct node *node, const char *name, const void *value, size_t len);
/* The full name. */
#define XATTR_ITEM_NAME (32 + DISK_XATTR_NAME_MAX)
void erofs_xattr_name(const struct xattr_item *x, char name[XATTR_ITEM_NAME]);
/* Take away those that @is_dropped, given their full name; NULL: all. */
void erofs_xattr_drop(struct node *node, bool (*is_dropped)(const char *name));
/* Add all of @from, which is another node. 0, -ENOMEM. */
int erofs_xattr_copy(struct node *to, const struct node *from);
/* Index and suffix of a name; 0: none of the format. */
uint8_t erofs_xattr_split(const char *name, const char **ret_suffix);
/* Take away all of this name; there may be several. */
void erofs_xattr_remove(struct node *node, const struct xattr_prefix *name);
/* The same, and put one in their place. 0, -ENOMEM. */
int erofs_xattr_replace(struct writer *w, struct node *node, const struct xattr_prefix *name, const void *value,
			size_t len);
/* The same with a value of which the last bytes come later; it is not shared. 0, -ENOMEM. */
int erofs_xattr_promise(struct writer *w, struct node *node, const struct xattr_prefix *name, const void *value,
			size_t len);
/* They are there. Before the inode is put. */
void erofs_xattr_fulfil(struct node *node, const void *end, size_t len);
/* Decide which are shared. After the last erofs_xattr_add(). */
void erofs_xattr_share(struct writer *w);
/* Order within a node, once that is decided. */
void erofs_xattr_order(struct node *node);
/* Write the shared ones; their ids are known then. */
int erofs_xattr_put_shared(struct writer *w);
size_t erofs_xattr_size(const struct node *node);
void erofs_xattr_fill(const struct writer *w, const struct node *node, uint8_t *dst);
void erofs_xattr_fini(struct writer *w);

/* ---- the output (image_out.c) ---- */

struct output {
	const char *name;		/* as the user said it */
	int fd;
	uint64_t start;			/* what is written counts from there */
	char *path;			/* symlinks resolved */
	char *temp;			/* NULL: in place */
	bool regular;
	uint64_t end;			/* bytes written so far reach to here */
};

int erofs_output_open(struct writer *w, struct output *out, const char *name, uint64_t start);
/* All of it is written: give it its size, so that it can be read. */
int erofs_output_finish(struct writer *w, struct output *out, uint64_t size);
/* Flush if asked for, give it its name. */
int erofs_output_commit(struct writer *w, struct output *out);
/* What was written in place is not to be: it looks like no image any more. */
void erofs_output_spoil(struct output *out);
/* Remove what is not finished. */
void erofs_output_drop(struct output *out);
int erofs_output_put(struct writer *w, struct output *out, const void *buf, size_t len, uint64_t off);
int erofs_output_read(struct writer *w, struct output *out, void *buf, size_t len, uint64_t off);
/* Into the image. */
int erofs_output_write(struct writer *w, const void *buf, size_t len, uint64_t off);
/* Where what gets the name of the image is, and can be read. */
struct output *erofs_output_named(struct writer *w);
const char *erofs_output_path(struct writer *w);

/* sparse_out.c: an Android sparse image */
int erofs_sparse_check(struct writer *w);	/* the options; 0, -EINVAL (reported) */
int erofs_sparse_open(struct writer *w);
/* The image is complete: copy it. */
int erofs_sparse_put(struct writer *w);

/* ---- space (space.c) ---- */

/* Free room within blocks of metadata, by size, so that small inodes fill what larger ones left. */
struct gaps {
	uint64_t *at;
	size_t count, room;
};

struct space {
	unsigned int blkbits;
	uint64_t next;			/* first block that is free */
	uint64_t meta_blocks;
	struct gaps *gaps;		/* by length in units of 32 bytes */
};

int erofs_space_init(struct space *s, unsigned int blkbits);
void erofs_space_fini(struct space *s);
uint64_t erofs_space_blocks(struct space *s, uint64_t count);
/*
 * Room for @size bytes of metadata, of which the last @tail lie within one block, and the byte in front
 * of them in the same. @tail is at most a block less 64, or @size at most a block. 0, -ENOMEM.
 */
int erofs_space_meta(struct space *s, uint64_t size, uint64_t tail, uint64_t *ret_pos);
/* [pos, end) lies in one block and is free. */
int erofs_space_give(struct space *s, uint64_t pos, uint64_t end);

/* ---- putting things into the image ---- */

struct body {
	unsigned int layout;
	uint32_t u;			/* i_u */
	const uint8_t *map;
	size_t map_len, map_align;
	const uint8_t *tail;
	size_t tail_len;
};

/* put_inode.c */
size_t erofs_inode_head(const struct node *node);	/* core and attributes */
int erofs_inode_put(struct writer *w, struct node *node, const struct body *body);
int erofs_inode_put_at(struct writer *w, const struct node *node, const struct body *body, uint64_t pos);
/* Decide between compact and extended. 0, -EOVERFLOW, -E2BIG (reported). */
int erofs_inode_choose(struct writer *w, struct node *node);

/* put_dir.c */
uint64_t erofs_dir_size(const struct writer *w, const struct node *dir);
int erofs_dir_place(struct writer *w, struct node *dir);
int erofs_dir_put(struct writer *w, struct node *dir);

/* put_file.c */
int erofs_files_begin(struct writer *w);
/* The inode has its place when all are put, not before. */
int erofs_file_put(struct writer *w, struct node *node);
int erofs_files_end(struct writer *w);
/* Gives the engine back. More than once is fine. */
void erofs_files_fini(struct writer *w);

struct batch;
struct packed;

/* The file whose segments are being put into the image. */
struct filestate {
	uint64_t block, blocks;		/* first, so many */
	uint64_t fragment;		/* offset in the packed file */
	struct zout out;		/* all extents so far */
};

/* chunks.c: files in chunks, of which equal ones are stored once (format.md 6.3) */
int erofs_chunks_check(struct writer *w);	/* the options; 0, -EINVAL (reported) */
int erofs_chunks_begin(struct writer *w);
void erofs_chunks_fini(struct writer *w);
/* What chunks are found by, 0 of zeros; free() it. Any thread. */
int erofs_chunks_print(const struct writer *w, const uint8_t *data, size_t len, uint32_t **ret);
/* Part of a file, whole chunks but for its end: the inode comes with its last. Owner, in order. */
int erofs_chunks_put(struct writer *w, struct node *node, uint64_t off, const uint8_t *data, size_t len,
		     const uint32_t *prints);
/* The data device is complete. */
int erofs_chunks_end(struct writer *w);

/* put_super.c */
int erofs_super_put(struct writer *w);

/* read_back.c: what the image says is what the tree and its source do. 0; -EUCLEAN differences; negative errno */
int erofs_read_back(struct writer *w);
int erofs_read_back_open(struct writer *w, struct erofs_image **ret);

/* manifest.c: 0, negative errno (reported) */
int erofs_manifest_put(struct writer *w);

/* digests.c: of what passes through the workers, for it and for attributes; more in file_priv.h */
struct digests;
int erofs_digests_begin(struct writer *w);	/* 0, -ENOMEM */
void erofs_digests_fini(struct writer *w);
/* SHA-256 of the contents of the inode there, for the manifest; NULL: not known */
const uint8_t *erofs_digest_find(const struct writer *w, uint64_t nid);

/* plan.c */
int erofs_plan(struct writer *w);

/* input_dir.c */
int erofs_input_dir(struct writer *w, const char *path, struct feed *ret);

/* input_images.c */
int erofs_input_images(struct writer *w, struct feed *ret);
/* That of the first image. 0, negative errno (reported). */
int erofs_images_block_size(const struct writer *w, uint32_t *ret);

/* input_tar.c */
int erofs_input_tar(struct writer *w, const char *path, struct feed *ret);

/* ---- one run ---- */

struct writer {
	const struct erofs_write_options *o;	/* C */
	struct erofs_engine *eng;		/* C */
	struct erofs_diag *diag;		/* C */
	unsigned int blkbits;			/* C */
	uint32_t blksz;				/* C */
	int64_t build_time;			/* C */
	uint64_t super_end;			/* C  bytes; the device table follows */
	struct device *devices;
	unsigned int ndevices;
	struct exclude *exclude;		/* C */
	struct feed feed;
	struct output out, blob;		/* the image; the device of chunks, if it has a name */
	struct output sparse;			/* if wanted: what gets the name, while @out has none */
	struct chunks *chunks;			/* NULL: files are not in chunks */
	struct space space;
	struct xattr_item **xattr_heads;	/* hash table */
	size_t xattr_nheads, xattr_count;
	struct xattr_prefix *prefixes;		/* C */
	unsigned int nprefixes, digest_prefix;	/* C */
	uint32_t prefix_start;			/* of the table, in units of 4 bytes */
	bool prefixes_packed;			/* in the packed file */
	struct node **dirs;			/* all directories, parents first */
	size_t ndirs, dirs_room;
	struct node **files;			/* all others in the order of contents; NULL: the tree's */
	size_t nfiles;
	uint32_t ninodes;
	uint8_t uuid[16];
	struct zconfig z;			/* C */
	bool fragments, packs;			/* C  of files into the packed file; there is one */
	struct job *job;
	struct flight *flight;
	struct batch *batch;			/* being gathered */
	struct filestate file;
	struct packed *packed;
	uint64_t packed_nid;			/* 0: none */
	struct table known_fragments;
	struct twins *twins;			/* of files; NULL: not wanted */
	uint32_t serial;			/* of the next batch */
	struct digests *digests;		/* of contents; NULL: not wanted */
	uint64_t deduplicated;			/* bytes */
	bool has_compressed, has_beside, has_twins, has_chunks; /* features in use */
	struct erofs_compare_result verified;
	struct erofs_write_result counts;	/* of kinds and bytes, nothing else */
	uint64_t ahead_inodes, ahead_bytes;	/* of contents that the workers will read */
	struct {
		dev_t dev;
		ino_t ino;
	} outs[2];				/* the outputs as they were before, or are */
	unsigned int nouts;
};	/* C constant once the source is read */

bool erofs_write_is_cancelled(const struct writer *w);
/* Make *fd an unlinked file, if it is none yet. 0, negative errno (reported). */
int erofs_write_temp(struct writer *w, int *fd);

#endif
