// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * One inode: from a nid to a checked struct erofs_inode (format.md 5). What needs the file's map
 * (extents, chunks, indexes) is map's; what needs other inodes (link counts) is check's.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "diag/diag_priv.h"
#include "disk/layout.h"
#include "meta/meta_priv.h"

#define NSEC_PER_SEC 1000000000u

/* Both on-disk forms in host order, before anything but the format was looked at. */
struct raw_inode {
	uint16_t format, icount, mode, nb;
	uint64_t size;
	uint32_t u, uid, gid, nlink, nsec;
	int64_t mtime;
	uint32_t core;		/* bytes */
	bool nb_is_high;	/* nb is bits 47..32 of u, not a link count */
};

/* Container and position of the core; the shorter core must lie inside. */
static int locate_inode(struct metabuf *mb, struct erofs_inode *ino)
{
	const struct super *sb = mb->img->super;
	uint64_t slot = ino->nid & ~NID_BOX, end;

	ino->in_box = ino->nid & NID_BOX;
	if (ino->in_box && !(sb->info.feature_incompat & EROFS_INCOMPAT_METABOX))
		return erofs_diag_damage(mb->diag, INODE_NID, AT(ino->nid, erofs_inode_pos(mb->img, ino->nid)),
					 "inode number 0x%" PRIx64
					 " is in the metabox, and the image has none", ino->nid);
	end = erofs_metabuf_end(mb, ino->in_box);
	if (!mul_ok(slot, UINT64_C(1) << DISK_NID_SHIFT, &ino->pos) ||
	    !add_ok(ino->pos, ino->in_box ? 0 : sb->meta_base, &ino->pos) ||
	    !range_ok(ino->pos, sizeof(struct disk_inode_compact), end))
		return erofs_diag_damage(mb->diag, INODE_NID, AT(ino->nid, erofs_inode_pos(mb->img, ino->nid)),
					 "inode number 0x%" PRIx64 " is behind the end of the %s (%"
					 PRIu64 " bytes)", ino->nid,
					 ino->in_box ? "metabox" : "image", end);
	return 0;
}

static void decode_compact(const struct super *sb, const struct disk_inode_compact *c,
			   struct raw_inode *raw)
{
	bool is_dir = S_ISDIR(raw->mode);

	raw->core = sizeof(*c);
	raw->size = le32_get(c->i_size);
	raw->u = le32_get(c->i_u);
	raw->uid = le16_get(c->i_uid);
	raw->gid = le16_get(c->i_gid);
	raw->nb_is_high = !is_dir && raw->format & DISK_INODE_BIT4;
	raw->nlink = raw->nb_is_high ? 1 : raw->nb;
	/* without 48BIT the field should be 0; Linux 6.15 and later add it all the same (format.md 2.6) */
	raw->mtime = (int64_t)((uint64_t)sb->epoch + le32_get(c->i_mtime));
	raw->nsec = sb->fixed_nsec;
}

static void decode_extended(const struct disk_inode_extended *x, struct raw_inode *raw)
{
	raw->core = sizeof(*x);
	raw->size = le64_get(x->i_size);
	raw->u = le32_get(x->i_u);
	raw->uid = le32_get(x->i_uid);
	raw->gid = le32_get(x->i_gid);
	raw->nlink = le32_get(x->i_nlink);
	raw->mtime = (int64_t)le64_get(x->i_mtime);
	raw->nsec = le32_get(x->i_mtime_nsec);
	raw->nb_is_high = true;
}

static int read_core(struct metabuf *mb, const struct erofs_inode *ino, struct raw_inode *raw)
{
	union {
		struct disk_inode_compact c;
		struct disk_inode_extended x;
	} core;
	int err = erofs_metabuf_read(mb, ino->in_box, ino->nid, ino->pos, &core.c, sizeof(core.c));

	if (err)
		return err;
	raw->format = le16_get(core.c.i_format);
	raw->icount = le16_get(core.c.i_xattr_icount);
	raw->mode = le16_get(core.c.i_mode);
	raw->nb = le16_get(core.c.i_nb);
	if (!(raw->format & DISK_INODE_EXTENDED)) {
		decode_compact(mb->img->super, &core.c, raw);
		return 0;
	}
	err = erofs_metabuf_read(mb, ino->in_box, ino->nid, ino->pos, &core.x, sizeof(core.x));
	if (err)
		return err;
	decode_extended(&core.x, raw);
	return 0;
}

static int check_format(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	unsigned int layout = raw->format >> DISK_INODE_LAYOUT_SHIFT & DISK_INODE_LAYOUT_MASK;

	if (raw->format & ~DISK_INODE_FORMAT_ALL)
		return erofs_diag_unsupported(mb->diag, INODE_FORMAT, AT(ino->nid, ino->pos),
					      "unknown inode format 0x%x", raw->format);
	if (layout > LAYOUT_CHUNK)
		return erofs_diag_unsupported(mb->diag, INODE_FORMAT, AT(ino->nid, ino->pos),
					      "unknown data layout %u", layout);
	ino->extended = raw->format & DISK_INODE_EXTENDED;
	ino->layout = (uint8_t)layout;
	return 0;
}

static bool is_special(uint16_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode) || S_ISFIFO(mode) || S_ISSOCK(mode);
}

static int check_mode(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	if (is_special(raw->mode) || S_ISREG(raw->mode) || S_ISDIR(raw->mode) ||
	    S_ISLNK(raw->mode)) {
		ino->mode = raw->mode;
		return 0;
	}
	if (!raw->mode)
		return erofs_diag_damage(mb->diag, INODE_MODE, AT(ino->nid, ino->pos),
					 "inode is no EROFS inode (mode 0)");
	return erofs_diag_damage(mb->diag, INODE_MODE, AT(ino->nid, ino->pos),
				 "unknown file type in mode 0%o", raw->mode);
}

/* Bytes that all devices could hold, whether they were given or not. */
static uint64_t capacity(const struct erofs_image *img)
{
	uint64_t sum = img->devs[0].size;
	unsigned int i;

	for (i = 1; i < img->ndevs; i++) {
		uint64_t bytes = max_u64(img->devs[i].blocks << img->blkbits, img->devs[i].size);

		if (!add_ok(sum, bytes, &sum))
			return UINT64_MAX;
	}
	return sum;
}

static int check_dir_size(struct metabuf *mb, const struct erofs_inode *ino)
{
	if (ino->size < sizeof(struct disk_dirent))
		return erofs_diag_damage(mb->diag, DIR_SIZE, AT(ino->nid, ino->pos),
					 "directory of %" PRIu64 " bytes: too few for one entry",
					 ino->size);
	if (ino->layout != LAYOUT_PLAIN && ino->layout != LAYOUT_INLINE)
		return 0;
	if (ino->size > capacity(mb->img))
		return erofs_diag_damage(mb->diag, INODE_SIZE, AT(ino->nid, ino->pos),
					 "directory of %" PRIu64
					 " bytes, not compressed: larger than the image (%" PRIu64
					 " bytes)", ino->size, capacity(mb->img));
	return 0;
}

static int check_size(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	ino->size = raw->size;
	if (is_special(ino->mode)) {
		if (raw->size)
			erofs_diag_note(mb->diag, ODD_INODE, AT(ino->nid, ino->pos),
					"special file with a size (%" PRIu64 ")", raw->size);
		ino->size = 0;
		ino->layout = LAYOUT_PLAIN;
		return 0;
	}
	if (raw->size > INT64_MAX)
		return erofs_diag_damage(mb->diag, INODE_SIZE, AT(ino->nid, ino->pos),
					 "size 0x%" PRIx64 " is negative", raw->size);
	if (S_ISLNK(ino->mode) && (!raw->size || raw->size > DISK_SYMLINK_MAX))
		return erofs_diag_damage(mb->diag, SYMLINK_TARGET, AT(ino->nid, ino->pos),
					 "symbolic link of %" PRIu64 " bytes (wanted 1 to %d)",
					 raw->size, DISK_SYMLINK_MAX);
	if (S_ISDIR(ino->mode))
		return check_dir_size(mb, ino);
	return 0;
}

/* Xattr area and the end of both, format.md 5.6 and 8.1. */
static int place_xattrs(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	uint64_t end = erofs_metabuf_end(mb, ino->in_box);

	ino->xattr_pos = ino->pos + raw->core;	/* read, so inside the container */
	if (raw->icount)
		ino->xattr_size = (uint32_t)sizeof(struct disk_xattr_header) +
				  (raw->icount - 1u) * DISK_XATTR_ALIGN;
	if (!range_ok(ino->xattr_pos, ino->xattr_size, end))
		return erofs_diag_damage(mb->diag, XATTR_AREA, AT(ino->nid, ino->xattr_pos),
					 "xattr area of %" PRIu32
					 " bytes: behind the end of the %s (%" PRIu64 " bytes)",
					 ino->xattr_size, ino->in_box ? "metabox" : "image", end);
	ino->iend = ino->xattr_pos + ino->xattr_size;
	return 0;
}

/* The last block's bytes lie at iend and may not cross a block, format.md 6.2. */
static int check_tail(struct metabuf *mb, const struct erofs_inode *ino)
{
	uint32_t bs = mb->img->blksz;
	uint32_t tail = (uint32_t)((ino->size - 1) & (bs - 1)) + 1;
	uint32_t at = (uint32_t)(ino->iend & (bs - 1));

	if (tail <= bs - at)
		return 0;
	return erofs_diag_damage(mb->diag, INODE_INLINE, AT(ino->nid, ino->iend),
				 "inline tail of %" PRIu32 " bytes, %" PRIu32
				 " bytes into its block: crosses the block's end (%" PRIu32 ")",
				 tail, at, bs);
}

static int decode_flat(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	uint64_t null = raw->nb_is_high ? DISK_NULL_BLK48 : DISK_NULL_BLK32, end;

	ino->start_null = ino->layout == LAYOUT_PLAIN && ino->start_blk == null;
	if (!ino->size)
		return 0;
	if (ino->layout == LAYOUT_INLINE) {
		int err = check_tail(mb, ino);

		if (err || ino->size <= mb->img->blksz)
			return err;
	}
	if (!ino->start_null && !add_ok(ino->start_blk << mb->img->blkbits, ino->size, &end))
		return erofs_diag_damage(mb->diag, EXTENT_RANGE, AT(ino->nid, ino->pos),
					 "data begins at block %" PRIu64 ", and is %" PRIu64
					 " bytes: more than 2^64", ino->start_blk, ino->size);
	return 0;
}

static int decode_chunk(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	uint16_t format = (uint16_t)raw->u;

	if (format & ~DISK_CHUNK_ALL)
		return erofs_diag_unsupported(mb->diag, INODE_CHUNK, AT(ino->nid, ino->pos),
					      "unknown chunk format 0x%x", format);
	if (format & DISK_CHUNK_48BIT && !(format & DISK_CHUNK_INDEXES))
		erofs_diag_note(mb->diag, ODD_INODE, AT(ino->nid, ino->pos),
				"48-bit chunk addresses without chunk indexes (chunk format 0x%x)",
				format);
	ino->chunk_format = format;
	return 0;
}

/* i_u by file type and layout, format.md 5.5. */
static int decode_u(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	if (S_ISCHR(ino->mode) || S_ISBLK(ino->mode)) {
		ino->rdev_major = raw->u >> 8 & 0xfff;
		ino->rdev_minor = (raw->u & 0xff) | (raw->u >> 12 & 0xfff00);
		return 0;
	}
	if (is_special(ino->mode))
		return 0;
	if (ino->layout == LAYOUT_CHUNK)
		return decode_chunk(mb, ino, raw);
	ino->start_blk = raw->u;
	if (raw->nb_is_high)
		ino->start_blk |= (uint64_t)raw->nb << 32;
	if (erofs_inode_is_compressed(ino))
		return 0;
	return decode_flat(mb, ino, raw);
}

static void decode_owner(struct metabuf *mb, struct erofs_inode *ino, const struct raw_inode *raw)
{
	ino->uid = raw->uid;
	ino->gid = raw->gid;
	ino->nlink = raw->nlink;
	ino->mtime = raw->mtime;
	ino->mtime_nsec = raw->nsec;
	ino->dot_omitted = S_ISDIR(ino->mode) && raw->format & DISK_INODE_BIT4;
	if (raw->nsec < NSEC_PER_SEC)
		return;
	erofs_diag_note(mb->diag, ODD_INODE, AT(ino->nid, ino->pos),
			"time with %" PRIu32 " nanoseconds (at most 999999999)", raw->nsec);
	ino->mtime_nsec = 0;
}

uint64_t erofs_inode_pos(const struct erofs_image *img, uint64_t nid)
{
	return nid & NID_BOX ? (nid & ~NID_BOX) << DISK_NID_SHIFT :
			       (nid << DISK_NID_SHIFT) + img->super->meta_base;
}

int erofs_inode_load(struct metabuf *mb, uint64_t nid, struct erofs_inode *ret_ino)
{
	struct erofs_inode ino = { .img = mb->img, .nid = nid };
	struct raw_inode raw;
	int err;

	err = locate_inode(mb, &ino);
	if (err)
		return err;
	err = read_core(mb, &ino, &raw);
	if (err)
		return err;
	err = check_format(mb, &ino, &raw);
	if (err)
		return err;
	err = check_mode(mb, &ino, &raw);
	if (err)
		return err;
	err = check_size(mb, &ino, &raw);
	if (err)
		return err;
	err = place_xattrs(mb, &ino, &raw);
	if (err)
		return err;
	err = decode_u(mb, &ino, &raw);
	if (err)
		return err;
	decode_owner(mb, &ino, &raw);
	*ret_ino = ino;
	return 0;
}
