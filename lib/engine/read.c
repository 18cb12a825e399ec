// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Random reads of file contents through map, decoders and cache. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "engine/lane_priv.h"

#define META_READ (UINT32_C(64) << 10)	/* raw reads up to this long go through the metadata cache */

int erofs_lane_read_raw(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			uint64_t skip, uint8_t *dst, size_t len)
{
	int err;

	if (ext->meta)
		return erofs_metabuf_read(&lane->mb, ino->in_box, ino->nid, ext->pa + skip, dst, len);
	/* directory blocks lie among the inodes they name */
	if (!ext->dev && len <= META_READ && (ino->mode & 0170000) == 0040000)
		return erofs_metabuf_read(&lane->mb, false, ino->nid, ext->pa + skip, dst, len);
	err = erofs_image_read(lane->img, ext->dev, ext->pa + skip, dst, len);
	return err ? erofs_lane_report_read(lane, ino, ext->la + skip, ext->dev, ext->pa + skip, err) : 0;
}

/* [skip, skip + len) of an ENCODED extent through the cache. */
static int read_cached(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
		       uint64_t skip, uint8_t *dst, size_t len)
{
	struct dentry *d;
	bool fill;
	int err = erofs_dcache_get(lane->cache, ino->nid, ext->la, (size_t)ext->len, &d, &fill);

	if (err == -ENOMEM)
		return erofs_diag_fail(lane->diag, err, AT(ino->nid, ext->la), "no memory for the cache");
	if (err)
		return err;
	if (fill) {
		err = erofs_lane_decode(lane, ino, ext, d->data, (size_t)ext->len);
		erofs_dcache_filled(lane->cache, d, err);
		if (err)
			return err;
	}
	memcpy(dst, d->data + skip, len);
	erofs_dcache_put(lane->cache, d);
	return 0;
}

static int read_encoded(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			uint64_t skip, uint8_t *dst, size_t len)
{
	const struct super *super = lane->img->super;
	int err;

	if (!skip && len == ext->len)
		return erofs_lane_decode(lane, ino, ext, dst, len);
	if (lane->cache && (ino == super->packed || ino == super->metabox))
		return read_cached(lane, ino, ext, skip, dst, len);
	err = erofs_lane_reserve(lane, (size_t)(skip + len));
	if (!err)
		err = erofs_lane_decode(lane, ino, ext, lane->out, (size_t)(skip + len));
	if (!err)
		memcpy(dst, lane->out + skip, len);
	return err;
}

int erofs_lane_read_extent(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			   uint64_t skip, uint8_t *dst, size_t len)
{
	switch (ext->kind) {
	case EXTENT_HOLE:
		memset(dst, 0, len);
		return 0;
	case EXTENT_RAW:
		return erofs_lane_read_raw(lane, ino, ext, skip, dst, len);
	case EXTENT_ENCODED:
		return read_encoded(lane, ino, ext, skip, dst, len);
	case EXTENT_FRAGMENT:
		return erofs_lane_read_fragment(lane, ino, ext, skip, dst, len);
	}
	return -EINVAL;
}

static int read_mapped(struct lane *lane, const struct erofs_inode *ino, uint64_t off, uint8_t *dst,
		       size_t len)
{
	struct map map;
	int err = erofs_map_begin(&map, ino, &lane->mb, false);

	if (!err && off)
		err = erofs_map_seek(&map, off);
	while (!err && len) {
		struct extent ext;
		uint64_t skip;
		size_t n;

		err = erofs_map_next(&map, &ext);
		if (err <= 0)
			return err ? err : -EINVAL;
		skip = off - ext.la;
		n = (size_t)min_u64(len, ext.len - skip);
		err = erofs_lane_read_extent(lane, ino, &ext, skip, dst, n);
		off += n;
		dst += n;
		len -= n;
	}
	return err;
}

int erofs_lane_read_special(struct lane *lane, const struct erofs_inode *ino, uint64_t off, uint8_t *dst,
			    size_t len)
{
	if (!ino)
		return -EINVAL;
	return read_mapped(lane, ino, off, dst, len);
}

int erofs_lane_read_fragment(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			     uint64_t skip, uint8_t *dst, size_t len)
{
	int err = erofs_lane_read_special(lane, lane->img->super->packed, ext->pa + skip, dst, len);

	/* the cause stands with the packed file; whose data it is, only we know */
	if (err == -EUCLEAN)
		erofs_diag_damage(lane->diag, DATA_DECODE, AT(ino->nid, ext->la),
				  "its %" PRIu64 " bytes at %" PRIu64 " of the packed file cannot be read",
				  ext->len, ext->pa);
	return err;
}

int erofs_lane_read(struct lane *lane, const struct erofs_inode *ino, uint64_t off, void *buf, size_t len)
{
	if (!range_ok(off, len, ino->size))
		return -EINVAL;
	return len ? read_mapped(lane, ino, off, buf, len) : 0;
}
