/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* The inside of a lane: for the engine room's own files. */
#ifndef EROFS_ENGINE_LANE_PRIV_H
#define EROFS_ENGINE_LANE_PRIV_H

#include "engine/engine_priv.h"
#include "engine/fragcache.h"
#include "engine/lz4_request.h"
#include "engine/lz4_ring.h"

/*
 * Input window: pclusters are read in pieces of LANE_READ bytes while access is sequential, since one
 * pread of 256 KiB from the page cache costs about as much as six of 4 KiB.
 */
#define LANE_IN (UINT32_C(1) << 20)		/* room: the largest pcluster */
#define LANE_READ (UINT32_C(256) << 10)
#define LANE_READ_RANDOM (UINT32_C(16) << 10)
#define LANE_CACHE (UINT32_C(8) << 20)		/* bytes of own_cache */

struct lane {
	struct job *job;		/* NULL outside jobs */
	struct erofs_image *img;
	struct erofs_diag *diag;
	unsigned int index;
	struct metabuf mb;
	struct codec_ctx *codec;
	struct xattr_iter *xattrs;	/* made at first use */
	struct dcache *cache;		/* borrowed, or own_cache; NULL: nothing to cache */
	struct dcache *own_cache;	/* of a lane outside jobs */
	struct pages *pages;		/* borrowed, NULL: no memory object */
	struct pagepool pool;
	struct lz4_ring ring;
	bool kernel_policy;		/* pages are taken and given back per request (B4) */
	struct lz4_pages by_pages;
	struct page **out_pages;	/* kernel policy: of one request, NULL all */
	uint8_t *in;			/* LANE_IN bytes, made at first use */
	unsigned int in_dev;
	uint64_t in_pa, in_len;		/* what the window holds */
	uint8_t *tail;			/* one block: inline pclusters, made at first use */
	uint8_t *out;			/* decoded bytes */
	size_t out_room;
	void *slot;
	uint64_t pclusters, bytes_in, bytes_out;	/* decoded by this lane */
	uint64_t done_inodes, done_bytes;	/* progress that the engine was not told yet */
};

/* Bytes [pa, pa + len) of a device, len <= LANE_IN; valid until the next fetch. 0, -EIO… not reported. */
int erofs_lane_fetch(struct lane *lane, unsigned int dev, uint64_t pa, size_t len, const uint8_t **ret);

/* At least @size bytes of output room; contents up to the old size are kept. */
int erofs_lane_reserve(struct lane *lane, size_t size);

/*
 * Decode @len bytes (<= ext->len: from the beginning) of an ENCODED extent to @dst.
 * Faults are reported at (ino->nid, ext->la).
 */
int erofs_lane_decode(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
		      uint8_t *dst, size_t len);

/* Copy bytes of the packed or metabox file, through the cache. */
int erofs_lane_read_special(struct lane *lane, const struct erofs_inode *ino, uint64_t off, uint8_t *dst,
			    size_t len);

/* The same of a FRAGMENT extent, @skip bytes into it; also reports whose data cannot be read. */
int erofs_lane_read_fragment(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			     uint64_t skip, uint8_t *dst, size_t len);

/* Read raw bytes of an extent; @skip bytes into it. Reports. */
int erofs_lane_read_raw(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			uint64_t skip, uint8_t *dst, size_t len);

/* [skip, skip + len) of an extent of any kind, through caches. */
int erofs_lane_read_extent(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			   uint64_t skip, uint8_t *dst, size_t len);

/* Report that bytes of a device could not be read. Returns err (-ERANGE becomes -EUCLEAN). */
int erofs_lane_report_read(struct lane *lane, const struct erofs_inode *ino, uint64_t la, unsigned int dev,
			   uint64_t pa, int err);

/* Tell the engine what was counted. */
void erofs_lane_tell(struct lane *lane);

int erofs_lane_make(struct erofs_image *img, struct dcache *cache, struct pages *pages,
		    struct erofs_diag *diag, struct lane **ret_lane);

#endif
