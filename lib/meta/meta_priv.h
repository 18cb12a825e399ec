/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * meta: metadata bytes to checked structs: superblock, inodes, directory blocks, xattrs.
 *
 * Everything that one object alone can show is checked here, once; nobody behind this room checks it
 * again or sees disk/layout.h. What takes several objects (link counts, cycles, overlaps) is check's.
 *
 * struct metabuf belongs to one thread. struct super, struct xattr_prefixes and struct erofs_inode are
 * constant once made and may be read by any thread.
 */
#ifndef EROFS_META_PRIV_H
#define EROFS_META_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/codec_priv.h"
#include "diag/diag_priv.h"
#include "image/image_priv.h"

/* ---- superblock (super.c) ---- */

struct super {
	struct erofs_super_info info;
	uint64_t meta_base;		/* byte address of nid 0 */
	uint64_t xattr_base;		/* byte address of shared xattr id 0, in its container */
	bool xattr_in_box;		/* SHARED_EA_IN_METABOX */
	bool xattr_filter;		/* filter words are valid */
	int64_t epoch;
	uint32_t fixed_nsec;
	unsigned int prefix_count;	/* long xattr prefixes */
	uint64_t prefix_pos;		/* byte position of the table in its container */
	uint16_t dev_mask;		/* mask of device ids in chunk indexes */
	uint32_t lz4_max_pcluster_blks;	/* 0: not said */
	int ishare_prefix;		/* long prefix of content digests, -1: none */
	struct codec_config codec;
	struct erofs_inode *packed;	/* NULL: none; loaded by erofs_open() */
	struct erofs_inode *metabox;	/* NULL: none */
};

/**
 * erofs_super_find() - look for the one image in the file, and set where the primary device begins
 * Return: 0; -EINVAL there is none; -ENOTUNIQ several, all named; -ENOMEM, errno of read; reported.
 */
int erofs_super_find(struct erofs_image *img, struct erofs_diag *diag);

/**
 * erofs_super_load() - read and check the superblock, its records and the device table
 * @options: never NULL; with super_only a wrong checksum is a warning and devices are not opened
 * Fills img->super, blkbits, blksz, devs, and opens the extra devices. Checks in the order of format.md 2.7.
 * Errors are chosen for exit codes (cli.md 3): wrong magic -EINVAL; unknown feature or algorithm
 * -EOPNOTSUPP (named: the bit or its number); file too short for a superblock -EINVAL; block size above
 * 64 KiB -EOPNOTSUPP; other faults -EUCLEAN; more devices than slots -EINVAL.
 * A missing extra device is no error here: decoding its data is (devs[i].src stays NULL).
 */
int erofs_super_load(struct erofs_image *img, const struct erofs_open_options *options,
		     struct erofs_diag *diag);

/**
 * erofs_super_check_size() - is the primary file as long as the superblock says?
 * For checks: a truncated image opens, since most of it may be readable.
 * Return: 0, -EUCLEAN (SB_SIZE reported).
 */
int erofs_super_check_size(const struct erofs_image *img, struct erofs_diag *diag);

/** erofs_super_free() - free img->super and img->prefixes */
void erofs_super_free(struct erofs_image *img);

/* ---- metadata reads (metabuf.c) ---- */

/* Filled in by the engine, which can decode: reads of the metabox file and of the packed file. */
struct meta_late {
	void *arg;
	int (*read_metabox)(void *arg, uint64_t off, void *buf, size_t len);
	int (*read_packed)(void *arg, uint64_t off, void *buf, size_t len);
};

#define METABUF_BITS 12
/*
 * 4 KiB each, 4 MiB: directories, their inodes and the indexes of files lie in several places that a walk
 * goes through side by side. With 256 KiB the walk of the linux tree read its 80 MB of metadata three times.
 */
#define METABUF_SLOTS 1024
/* For readers that jump, which touch few pages twice: fresh memory costs as much as reading into it. */
#define METABUF_JUMP_SLOTS 256

struct metabuf {
	struct erofs_image *img;
	struct erofs_diag *diag;	/* may be NULL */
	struct meta_late late;
	bool jumps;			/* the reader does: a page at a time, not those beside it */
	unsigned int mask;		/* slots in use - 1 */
	uint8_t *mem;			/* METABUF_SLOTS << METABUF_BITS bytes */
	uint64_t tag[METABUF_SLOTS];	/* page number + 1, 0: empty */
	uint32_t valid[METABUF_SLOTS];	/* bytes */
};

int erofs_metabuf_init(struct metabuf *mb, struct erofs_image *img, struct erofs_diag *diag);
void erofs_metabuf_fini(struct metabuf *mb);
/*
 * From now on it is used for reads here and there, for names alone: of the linux tree that took 12.5 ms, with
 * 4 MiB 14.8, and with neighbouring pages 19.5.
 */
void erofs_metabuf_jump(struct metabuf *mb);

/**
 * erofs_metabuf_read() - copy @len bytes of metadata
 * @in_box: false: primary device; true: metabox file (through mb->late)
 * @nid:    whose metadata it is, for the report
 * Return: 0; -EUCLEAN behind the end of the container (META_RANGE reported); -EIO… (reported).
 */
int erofs_metabuf_read(struct metabuf *mb, bool in_box, uint64_t nid, uint64_t off, void *buf, size_t len);

/**
 * erofs_metabuf_peek() - the same without reports and for as many bytes as there are
 * Return: bytes copied (0 at or behind the end), negative errno.
 */
ssize_t erofs_metabuf_peek(struct metabuf *mb, bool in_box, uint64_t off, void *buf, size_t len);

/* erofs_metabuf_end() - bytes of the container: primary device, or metabox file (0: there is none) */
uint64_t erofs_metabuf_end(const struct metabuf *mb, bool in_box);

/* ---- inodes (inode.c) ---- */

enum {
	LAYOUT_PLAIN,
	LAYOUT_Z_FULL,
	LAYOUT_INLINE,
	LAYOUT_Z_COMPACT,
	LAYOUT_CHUNK,
};

#define NID_BOX (UINT64_C(1) << 63)

struct erofs_inode {
	struct erofs_image *img;
	uint64_t nid;
	uint64_t pos;		/* byte position of the core in its container */
	uint64_t iend;		/* first byte behind core and xattr area, same container */
	uint64_t size;		/* bytes, at most 2^63 - 1 */
	uint64_t start_blk;	/* flat layouts: first block; compressed: informational block count */
	bool start_null;	/* flat plain: the whole file is a hole; inline: never used */
	bool in_box;		/* the container is the metabox file */
	bool extended;
	bool dot_omitted;	/* directories */
	uint8_t layout;		/* LAYOUT_*, 0 for special files whatever the image says */
	uint16_t mode;		/* type and permission bits */
	uint16_t chunk_format;	/* LAYOUT_CHUNK: checked, 0x7f at most */
	uint32_t nlink, uid, gid;
	uint32_t rdev_major, rdev_minor;
	int64_t mtime;
	uint32_t mtime_nsec;
	uint64_t xattr_pos;	/* container position of the xattr area */
	uint32_t xattr_size;	/* bytes, 0: none */
};

/**
 * erofs_inode_load() - read and check one inode
 * Checked: nid range and bit 63, i_format, mode type, layout, size (2^63 and up; special files 0 as a
 * note ODD_INODE), symlink size 1..4095, directory size > 0 and at most what the image could hold,
 * inode + xattr area inside the container, inline tail in one block (6.2), chunk format bits,
 * mtime_nsec < 10^9, flat range overflow. Damage is reported at (nid, image offset of the inode).
 * Return: 0, -EUCLEAN, -EOPNOTSUPP (layout or format of the future, reported), -EIO, -ENOMEM.
 */
int erofs_inode_load(struct metabuf *mb, uint64_t nid, struct erofs_inode *ret_ino);

/* Where an inode that was loaded before lies in its container: for reports. */
uint64_t erofs_inode_pos(const struct erofs_image *img, uint64_t nid);

static inline bool erofs_inode_is_compressed(const struct erofs_inode *ino)
{
	return ino->layout == LAYOUT_Z_FULL || ino->layout == LAYOUT_Z_COMPACT;
}

/* ---- directory blocks (dirent.c) ---- */

enum {
	DIRENT_UNKNOWN, DIRENT_REG, DIRENT_DIR, DIRENT_CHR, DIRENT_BLK, DIRENT_FIFO, DIRENT_SOCK,
	DIRENT_LNK,
};

struct dirent_view {
	uint64_t nid;
	const char *name;	/* into the block, not terminated */
	unsigned int len;	/* 1..255 */
	uint8_t type;		/* DIRENT_*, or larger: damage already reported by the iterator */
	bool bad_name;		/* contains '/' or NUL: reported; must not be created */
	uint64_t off;		/* byte offset of the dirent in the directory */
};

struct dirblk {
	const uint8_t *data;
	size_t valid;		/* bytes of the block before the directory's end */
	uint64_t base;		/* byte offset of the block in the directory */
	uint64_t nid;		/* of the directory */
	struct erofs_diag *diag;
	unsigned int count, next;
	unsigned int damaged;	/* entries reported so far, with or without @diag */
	size_t name_end;	/* internal: names may not begin in front of it */
	size_t clean_end;	/* internal: in front of it no name has a slash or NUL */
};

/**
 * erofs_dirblk_open() - check a directory block's head
 * @data:  the block's bytes, borrowed until iteration ends
 * Return: 0; -EUCLEAN: nameoff[0] is wrong, nothing in the block can be read (reported).
 */
int erofs_dirblk_open(struct dirblk *db, uint64_t nid, uint64_t base, const void *data, size_t valid,
		      struct erofs_diag *diag);

/**
 * erofs_dirblk_next() - next entry
 * Entries with a broken name offset or length are reported and skipped; the block goes on.
 * Names with '/' or NUL and types above 7 are reported and returned (bad_name, type).
 * Return: 1 an entry, 0 the end. After the end *@db tells with db->diag what was reported.
 */
int erofs_dirblk_next(struct dirblk *db, struct dirent_view *ret_de);

/* DIRENT_* for the type bits of a mode */
unsigned int erofs_dirent_type(uint16_t mode);

/* ---- xattrs (xattr.c) ---- */

#define XATTR_NAME_SIZE 800	/* prefix, infix, suffix and a NUL */

struct xattr_view {
	char name[XATTR_NAME_SIZE];	/* full name, terminated; "" in the hidden namespace */
	size_t name_len;
	uint8_t base_index;	/* 0 (hidden), 1..6 */
	const uint8_t *value;	/* into the iterator's buffer, valid until the next call */
	size_t size;		/* bytes, may be 0 */
	bool shared;
	bool hidden;		/* index 0: not listed */
	bool is_digest;		/* the content digest (format.md 8.8) */
	const char *base_name;	/* the name without its base prefix: what the filter hashes */
};

struct xattr_iter;		/* heap object, belongs to one thread; 64 KiB buffer */

int erofs_xattr_iter_new(struct metabuf *mb, struct xattr_iter **ret_it);
void erofs_xattr_iter_free(struct xattr_iter *it);

/**
 * erofs_xattr_begin() - start over the attributes of @ino
 * Return: 0 (also if there are none), -EUCLEAN header or area is wrong (reported), -EIO, …
 */
int erofs_xattr_begin(struct xattr_iter *it, const struct erofs_inode *ino);

/**
 * erofs_xattr_next() - next attribute: inline entries first, then shared ones in array order
 * Unknown indexes and prefixes out of range are reported and skipped, filler entries are skipped.
 * A broken inline entry ends the inline part; a broken shared id is reported and the next one tried: so
 * healthy attributes still come out. *@it counts what was damaged: erofs_xattr_damage().
 * Return: 1, 0 at the end, negative errno when nothing more can be read.
 */
int erofs_xattr_next(struct xattr_iter *it, struct xattr_view *ret_xa);

/** erofs_xattr_damage() - was anything reported since erofs_xattr_begin()? 0 or -EUCLEAN */
int erofs_xattr_damage(const struct xattr_iter *it);

/** erofs_xattr_check() - iterate and check all of format.md 8 and 14.16: filter bits, ACLs, duplicates */
int erofs_xattr_check(struct xattr_iter *it, const struct erofs_inode *ino);

/**
 * erofs_xattr_load_prefixes() - load the long prefixes into img->prefixes (format.md 8.6)
 * Return: 0 (also without any), -EUCLEAN (SB_PREFIX reported), …
 */
int erofs_xattr_load_prefixes(struct metabuf *mb);

#endif
