// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The map header of a compressed file (format.md 9.2). */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "base/wire.h"
#include "map/map_int.h"

#define LCB_MAX_COMPACT 14u
#define WHOLE_FRAGMENT 0x80u

static int check_big(struct map *m)
{
	const struct erofs_super_info *info = &m->ino->img->super->info;
	unsigned int big = m->z.advise & (Z_ADVISE_BIG_1 | Z_ADVISE_BIG_2);

	if (big && !(info->feature_incompat & EROFS_INCOMPAT_COMPR_CFGS))
		return erofs_diag_damage(m->mb->diag, Z_HEADER, AT(m->ino->nid, 0),
					 "big pclusters in an image without that feature");
	if (m->ino->layout == LAYOUT_Z_COMPACT && big && big != (Z_ADVISE_BIG_1 | Z_ADVISE_BIG_2))
		return erofs_diag_damage(m->mb->diag, Z_HEADER, AT(m->ino->nid, 0),
					 "compact indexes with one of two big pcluster flags (advise 0x%x)",
					 m->z.advise);
	return 0;
}

static int parse_index_header(struct map *m, const uint8_t *h, uint64_t pos)
{
	const struct erofs_inode *ino = m->ino;
	bool compact = ino->layout == LAYOUT_Z_COMPACT;
	int err = check_big(m);

	if (err)
		return err;
	if (m->z.advise & Z_ADVISE_FRAGMENT) {
		m->z.has_fragment = true;
		m->z.fragment_off = bytes_le32(h);
	} else if (m->z.advise & Z_ADVISE_INLINE) {
		m->z.idata_size = bytes_le16(h + 2);
	}
	if (m->strict && (m->z.advise & Z_ADVISE_FRAGMENT) && (m->z.advise & Z_ADVISE_INLINE))
		erofs_diag_note(m->mb->diag, ODD_INDEX, AT(ino->nid, 0),
				"both an inline tail and a fragment are announced");
	if (m->strict && !m->z.has_fragment && (m->z.advise & Z_ADVISE_INLINE) && !m->z.idata_size)
		return erofs_diag_damage(m->mb->diag, Z_TAIL, AT(ino->nid, 0), "an inline tail of 0 bytes");
	if (compact && m->z.lcb > LCB_MAX_COMPACT)
		return erofs_diag_damage(m->mb->diag, Z_HEADER, AT(ino->nid, 0),
					 "compact indexes of lclusters of 2^%u bytes", m->z.lcb);
	if (compact && (m->z.advise & Z_ADVISE_COMPACTED_2B) && m->z.lcb > 12)
		return erofs_diag_damage(m->mb->diag, Z_HEADER, AT(ino->nid, 0),
					 "2-byte indexes of lclusters of 2^%u bytes", m->z.lcb);
	m->z.index_pos = pos + (compact ? 8 : 16);
	return 0;
}

int erofs_zheader_load(struct map *m)
{
	const struct erofs_inode *ino = m->ino;
	uint64_t pos = round_up_u64(ino->iend, 8);
	const uint8_t *h;
	int err = erofs_map_fetch(m, pos, 8, &h);

	if (err)
		return err;
	if (h[7] & WHOLE_FRAGMENT) {
		m->z.whole_fragment = true;
		m->z.fragment_off = bytes_le64(h) & ~(UINT64_C(1) << 63);
		return 0;
	}
	m->z.advise = bytes_le16(h + 4);
	m->z.extents = ino->layout == LAYOUT_Z_FULL && (m->z.advise & Z_ADVISE_EXTENTS);
	m->z.alg[0] = h[6] & 15;
	m->z.alg[1] = h[6] >> 4;
	m->z.lcb = ino->img->blkbits + (h[7] & 15u);
	m->z.nlcl = div_up_pow2(ino->size, m->z.lcb);
	if (!m->z.extents)
		return parse_index_header(m, h, pos);
	m->z.rec_size = 4u << (m->z.advise >> 1 & 3);
	m->z.rec_count = bytes_le32(h);
	if (m->z.rec_size >= 16)
		m->z.rec_count |= (uint64_t)bytes_le16(h + 6) << 32;
	else
		m->z.rec_count = m->z.nlcl;
	m->z.has_fragment = m->z.advise & Z_ADVISE_FRAGMENT;
	m->z.index_pos = round_up_u64(pos + 8, m->z.rec_size);
	return erofs_zextent_begin(m);
}
