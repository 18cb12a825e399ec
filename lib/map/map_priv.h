/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * map: (inode, byte offset) to an extent, for all layouts.
 *
 * struct map belongs to one thread and borrows inode and metabuf. It walks forward cheaply: an index
 * or record is read once, in pieces of MAP_BUF bytes, and allocates nothing.
 */
#ifndef EROFS_MAP_PRIV_H
#define EROFS_MAP_PRIV_H

#include "meta/meta_priv.h"

enum extent_kind {
	EXTENT_HOLE,		/* zeros */
	EXTENT_RAW,		/* bytes as they are: pa and len */
	EXTENT_ENCODED,		/* one pcluster: pa, plen, alg */
	EXTENT_FRAGMENT,	/* len bytes at pa of the packed file */
};

struct extent {
	enum extent_kind kind;
	bool meta;		/* RAW, ENCODED: pa counts in the inode's container (inline tail) */
	bool partial;		/* ENCODED: the stream may decode to more than len (PARTIAL_REF) */
	bool cut;		/* more of it should be there, but is not (erofs_map_salvage()) */
	bool absent;		/* RAW, ENCODED: on a device that was not given (map.absent_ok) */
	uint8_t alg;		/* ENCODED: enum codec_alg, known and announced in the superblock */
	uint16_t dev;		/* RAW, ENCODED without meta: index into img->devs */
	uint32_t interlace;	/* CODEC_INTERLACED: la modulo block size */
	uint64_t la;		/* byte offset in the file */
	uint64_t len;		/* decoded bytes; ENCODED: at most CODEC_MAX_DLEN */
	uint64_t pa;		/* byte position on the device, in the container or in the packed file */
	uint64_t plen;		/* stored bytes; ENCODED: 1..CODEC_MAX_PLEN; RAW: = len */
};

#define MAP_BUF 512

/* Fields of a compressed file's map header (format.md 9.2), checked. */
struct z_header {
	uint16_t advise;
	uint8_t alg[2];			/* HEAD1, HEAD2: raw nibbles */
	unsigned int lcb;		/* log2 of the lcluster size */
	bool whole_fragment;
	bool has_fragment;		/* tail fragment */
	uint64_t fragment_off;		/* whole: all of it; tail: low 32 bits until the tail head is known */
	uint16_t idata_size;		/* 0: no inline tail */
	uint64_t nlcl;			/* lclusters of the file */
	uint64_t index_pos;		/* container position of the first index, pack or record */
	/* encoded extents */
	bool extents;
	unsigned int rec_size;		/* 4, 8, 16, 32 */
	uint64_t rec_count;
};

/* One lcluster index, either form. */
struct z_lcluster {
	uint8_t type;			/* Z_PLAIN ... Z_HEAD2 */
	bool partial;			/* heads: PARTIAL_REF */
	bool is_cblkcnt;		/* non-heads: cblkcnt is valid, delta[0] is 1 */
	bool last_slot;			/* compact: d1 is valid, d0 is derived */
	uint32_t ofs;			/* heads: where the extent starts in the lcluster */
	uint64_t blk;			/* heads: first block of the pcluster */
	uint16_t cblkcnt;		/* blocks */
	uint16_t d0, d1;		/* non-heads */
};

enum { Z_PLAIN, Z_HEAD1, Z_NONHEAD, Z_HEAD2 };

struct map {
	const struct erofs_inode *ino;
	struct metabuf *mb;
	bool strict;			/* report what readers tolerate and format.md 14 forbids */
	bool absent_ok;			/* data on devices that were not given is no fault; set after begin */
	bool salvage;			/* extents are cut to what there is of them */
	uint64_t next_la;		/* where erofs_map_next() goes on */
	struct z_header z;
	/* everything below belongs to the layout's own file in this room */
	struct {
		uint64_t lcn;		/* where loading goes on */
		uint64_t head_lcn;	/* head of the extent that comes next */
		uint64_t head_blk;
		uint32_t head_ofs;
		uint8_t head_type;
		bool head_partial;
		bool have_head;
	} idx;
	struct {
		uint64_t next;		/* record that comes next */
		uint64_t sum;		/* record size 4: address of that record */
	} rec;
	uint64_t buf_pos;		/* container position of what buf holds */
	size_t buf_len;			/* bytes of it */
	uint8_t buf[MAP_BUF];
	uint64_t pack_pos;		/* compact: the pack that is decoded, 0: none */
	struct z_lcluster pack[16];
};

/**
 * erofs_map_begin() - start mapping a regular file, directory or symlink at offset 0
 * @strict: see above; findings are reported either way when they make a read fail
 * Return: 0, -EUCLEAN (reported), -EOPNOTSUPP (reported), -EIO…
 */
int erofs_map_begin(struct map *m, const struct erofs_inode *ino, struct metabuf *mb, bool strict);

/**
 * erofs_map_seek() - let erofs_map_next() return the extent that holds byte @la (< size)
 * Return: 0, negative errno.
 */
int erofs_map_seek(struct map *m, uint64_t la);

/**
 * erofs_map_next() - the next extent
 * Extents come in order, without gaps, each longer than 0, none longer than CODEC_MAX_DLEN if ENCODED.
 * Neighbouring chunks and holes are merged where they are contiguous on one device, so that a file of
 * 2^62 bytes with one null chunk is one extent. Every address was checked against its device (the file
 * that was opened, not what the slot claims) and every fragment against the packed file's size.
 * Damage is reported at (nid, offset in the file).
 * Return: 1, 0 at the end of the file, -EUCLEAN, -ENODEV (device missing, reported), -EOPNOTSUPP, -EIO.
 * After an error the map cannot go on.
 */
int erofs_map_next(struct map *m, struct extent *ret_ext);

/**
 * erofs_map_salvage() - what is at byte @la (< size), as far as a damaged map tells
 * Any number of times, in any order, after a good begin; does not mix with seek and next. Trusts no
 * distance between indexes, and takes heads for what they say. An extent whose end is unknown is cut
 * where the damage begins, one that goes beyond its device where that ends: decoded partially.
 * Return: 1 an extent that holds @la; 0 the bytes from @la on, as many as ret_ext->len says, are lost
 * (reported); -ENOMEM.
 */
int erofs_map_salvage(struct map *m, uint64_t la, struct extent *ret_ext);

#endif
