// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Full lcluster indexes: eight bytes each (format.md 9.3). */
#include "base/wire.h"
#include "map/map_int.h"

#define PARTIAL_REF 0x8000u
#define CBLKCNT 0x800u

int erofs_zindex_load_full(struct map *m, uint64_t lcn, struct z_lcluster *lc)
{
	const uint8_t *p;
	unsigned int advise;
	int err = erofs_map_fetch(m, m->z.index_pos + 8 * lcn, 8, &p);

	if (err)
		return err;
	advise = bytes_le16(p);
	*lc = (struct z_lcluster){ .type = advise & 3 };
	if (lc->type != Z_NONHEAD) {
		lc->partial = advise & PARTIAL_REF;
		lc->ofs = bytes_le16(p + 2);
		lc->blk = bytes_le32(p + 4);
		return 0;
	}
	lc->d0 = bytes_le16(p + 4);
	lc->d1 = bytes_le16(p + 6);
	if (lc->d0 & CBLKCNT) {
		lc->is_cblkcnt = true;
		lc->cblkcnt = (uint16_t)(lc->d0 & ~CBLKCNT);
		lc->d0 = 1;
	}
	return 0;
}
