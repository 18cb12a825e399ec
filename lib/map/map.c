// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* From (inode, offset) to an extent: choice of the layout, and what all layouts share. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "map/map_int.h"

int erofs_map_fetch(struct map *m, uint64_t pos, size_t len, const uint8_t **ret)
{
	ssize_t n;

	if (pos >= m->buf_pos && range_ok(pos - m->buf_pos, len, m->buf_len)) {
		*ret = m->buf + (pos - m->buf_pos);
		return 0;
	}
	m->buf_len = 0;
	n = erofs_metabuf_peek(m->mb, m->ino->in_box, pos, m->buf, sizeof(m->buf));
	if (n < (ssize_t)len)
		return erofs_metabuf_read(m->mb, m->ino->in_box, m->ino->nid, pos, m->buf, len) ?: -EIO;
	m->buf_pos = pos;
	m->buf_len = (size_t)n;
	*ret = m->buf;
	return 0;
}

int erofs_map_place(struct map *m, unsigned int dev_id, uint64_t pa, uint64_t len, struct extent *ext)
{
	unsigned int dev;
	int err = erofs_image_resolve(m->ino->img, dev_id, pa, len, &dev, &ext->pa);

	if (!err) {
		ext->dev = (uint16_t)dev;
		return 0;
	}
	if (err != -ENODEV)
		return erofs_diag_damage(m->mb->diag, EXTENT_RANGE, AT(m->ino->nid, ext->la),
					 "%" PRIu64 " bytes at 0x%" PRIx64 " of device %u: behind its end",
					 len, pa, dev_id);
	if (dev_id >= m->ino->img->ndevs)
		return erofs_diag_damage(m->mb->diag, DEVICE_ID, AT(m->ino->nid, ext->la),
					 "device %u does not exist (the image has %u)", dev_id,
					 m->ino->img->ndevs - 1);
	ext->absent = m->absent_ok;
	if (ext->absent)
		return 0;
	return erofs_diag_fail(m->mb->diag, err, AT(m->ino->nid, ext->la),
			       "data lies on an extra device that was not given");
}

/* From where the map is to where the device ends; false: nothing of it is there. */
static bool cut_to_device(const struct map *m, unsigned int dev_id, uint64_t *pa, struct extent *ext)
{
	const struct erofs_image *img = m->ino->img;
	uint64_t skip = m->next_la - ext->la, lo = 0, hi = ext->len - skip, got;
	unsigned int dev;

	if (!add_ok(*pa, skip, pa))
		return false;
	/* the longest range that is inside: which device it is on, and where that ends, resolve knows */
	while (lo < hi) {
		uint64_t mid = hi - (hi - lo) / 2;

		if (erofs_image_resolve(img, dev_id, *pa, mid, &dev, &got))
			hi = mid - 1;
		else
			lo = mid;
	}
	if (!lo)
		return false;
	ext->cut = true;
	ext->la += skip;
	ext->len = ext->plen = lo;
	return true;
}

int erofs_map_place_raw(struct map *m, unsigned int dev_id, uint64_t pa, struct extent *ext)
{
	struct extent cut = *ext;
	unsigned int dev;
	uint64_t at = pa, got;

	if (m->salvage && erofs_image_resolve(m->ino->img, dev_id, pa, ext->len, &dev, &got) &&
	    cut_to_device(m, dev_id, &at, &cut)) {
		*ext = cut;
		pa = at;
	}
	return erofs_map_place(m, dev_id, pa, ext->len, ext);
}

int erofs_map_algorithm(struct map *m, uint64_t la, unsigned int id, uint8_t *ret_alg)
{
	const struct erofs_super_info *info = &m->ino->img->super->info;
	unsigned int announced = info->feature_incompat & EROFS_INCOMPAT_COMPR_CFGS ? info->compr_algs : 1;

	if (id > CODEC_ZSTD)
		return erofs_diag_unsupported(m->mb->diag, Z_ALGORITHM, AT(m->ino->nid, la),
					      "compression algorithm %u is unknown", id);
	if (!(announced >> id & 1))
		return erofs_diag_damage(m->mb->diag, Z_ALGORITHM, AT(m->ino->nid, la),
					 "algorithm %s is not announced in the superblock",
					 erofs_codec_name(id));
	*ret_alg = (uint8_t)id;
	return 0;
}

int erofs_map_check_lengths(struct map *m, const struct extent *ext)
{
	struct erofs_diag *diag = m->mb->diag;
	uint64_t nid = m->ino->nid;

	if (!ext->plen)
		return erofs_diag_damage(diag, EXTENT_SIZE, AT(nid, ext->la), "a pcluster of 0 bytes");
	if (ext->plen > CODEC_MAX_PLEN)
		return erofs_diag_unsupported(diag, EXTENT_SIZE, AT(nid, ext->la), "a pcluster of %" PRIu64
					      " bytes (at most %u)", ext->plen, CODEC_MAX_PLEN);
	if (ext->len > CODEC_MAX_DLEN)
		return erofs_diag_unsupported(diag, EXTENT_SIZE, AT(nid, ext->la), "a decoded extent of %"
					      PRIu64 " bytes (at most %u)", ext->len, CODEC_MAX_DLEN);
	if (ext->alg >= CODEC_SHIFTED && ext->len > ext->plen)
		return erofs_diag_damage(diag, EXTENT_SIZE, AT(nid, ext->la), "a plain pcluster of %" PRIu64
					 " bytes stands for %" PRIu64, ext->plen, ext->len);
	if (ext->alg == CODEC_INTERLACED && ext->plen != m->ino->img->blksz)
		return erofs_diag_damage(diag, EXTENT_SIZE, AT(nid, ext->la), "an interlaced pcluster of %"
					 PRIu64 " bytes (wanted one block)", ext->plen);
	return 0;
}

int erofs_map_begin(struct map *m, const struct erofs_inode *ino, struct metabuf *mb, bool strict)
{
	m->ino = ino;
	m->mb = mb;
	m->strict = strict;
	m->absent_ok = false;
	m->salvage = false;
	m->next_la = 0;
	m->buf_len = 0;
	m->buf_pos = 0;
	m->pack_pos = 0;
	memset(&m->idx, 0, sizeof(m->idx));
	memset(&m->rec, 0, sizeof(m->rec));
	memset(&m->z, 0, sizeof(m->z));
	return erofs_inode_is_compressed(ino) && ino->size ? erofs_zheader_load(m) : 0;
}

static bool is_index(const struct map *m)
{
	return erofs_inode_is_compressed(m->ino) && !m->z.whole_fragment;
}

int erofs_map_seek(struct map *m, uint64_t la)
{
	if (la >= m->ino->size)
		return -EINVAL;
	m->next_la = la;
	if (!is_index(m))
		return 0;
	return m->z.extents ? erofs_zextent_seek(m, la) : erofs_zindex_seek(m, la);
}

static int next_extent(struct map *m, struct extent *ext)
{
	switch (m->ino->layout) {
	case LAYOUT_PLAIN:
	case LAYOUT_INLINE:
		return erofs_map_flat_next(m, ext);
	case LAYOUT_CHUNK:
		return erofs_map_chunk_next(m, ext);
	}
	if (m->z.whole_fragment) {
		ext->la = 0;
		ext->len = m->ino->size;
		return erofs_ztail_fragment(m, m->z.fragment_off, ext);
	}
	return m->z.extents ? erofs_zextent_next(m, ext) : erofs_zindex_next(m, ext);
}

int erofs_map_next(struct map *m, struct extent *ret_ext)
{
	struct extent ext = { 0 };
	int err;

	if (m->next_la >= m->ino->size)
		return 0;
	err = next_extent(m, &ext);
	if (err)
		return err;
	if (!ext.len || m->next_la < ext.la || m->next_la - ext.la >= ext.len)
		return erofs_diag_damage(m->mb->diag, Z_INDEX, AT(m->ino->nid, m->next_la),
					 "the extent at %" PRIu64 " of %" PRIu64 " bytes is out of place",
					 ext.la, ext.len);
	m->next_la = ext.la + ext.len;
	*ret_ext = ext;
	return 1;
}
