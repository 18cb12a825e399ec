// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Compact lcluster indexes: packs of 2 or 16 slots around one block address (format.md 9.4). */
#include "base/checked.h"
#include "base/wire.h"
#include "map/map_int.h"

#define CBLKCNT 0x800u

/* Where the entry of @lcn nominally lies, and the size and slots of its pack. */
static uint64_t find_entry(const struct map *m, uint64_t lcn, unsigned int *ret_pack, unsigned int *ret_slot)
{
	uint64_t base = m->z.index_pos, pos;
	uint64_t n4a = ((32 - base % 32) / 4) % 8, n2 = 0;

	if ((m->z.advise & Z_ADVISE_COMPACTED_2B) && n4a < m->z.nlcl)
		n2 = round_down_u64(m->z.nlcl - n4a, 16);
	if (!n2)
		n4a = m->z.nlcl;
	*ret_pack = 8;
	*ret_slot = 4;
	if (lcn < n4a)
		return base + 4 * lcn;
	pos = base + 4 * n4a;
	if (lcn >= n4a + n2)
		return pos + 2 * n2 + 4 * (lcn - n4a - n2);
	*ret_pack = 32;
	*ret_slot = 2;
	return pos + 2 * (lcn - n4a);
}

static void parse_slot(const struct map *m, const uint8_t *p, unsigned int k, unsigned int bits, bool last,
		       struct z_lcluster *lc)
{
	unsigned int lobits = m->z.lcb > 12 ? m->z.lcb : 12, at = k * bits;
	uint32_t raw, lo;

	/* a slot of 14 or 16 bits touches three bytes at most; the base behind the slots is never passed */
	raw = (uint32_t)p[at / 8] | (uint32_t)p[at / 8 + 1] << 8 | (uint32_t)p[at / 8 + 2] << 16;
	raw = raw >> at % 8 & ((1u << bits) - 1);
	lo = raw & ((1u << lobits) - 1);
	*lc = (struct z_lcluster){ .type = (uint8_t)(raw >> lobits & 3) };
	if (lc->type != Z_NONHEAD) {
		lc->ofs = lo;
	} else if (lo & CBLKCNT) {
		lc->is_cblkcnt = true;
		lc->cblkcnt = (uint16_t)(lo & ~CBLKCNT);
		lc->d0 = 1;
	} else if (last) {
		lc->last_slot = true;
		lc->d1 = (uint16_t)lo;
	} else {
		lc->d0 = (uint16_t)lo;
	}
}

/* Addresses: counted from base, by heads (one block each) or by the CBLKCNT behind them. */
static void assign_blocks(struct map *m, unsigned int slots, uint64_t base)
{
	bool big = m->z.advise & Z_ADVISE_BIG_1;
	uint64_t blk = base;
	unsigned int k;

	for (k = 0; k < slots; k++) {
		struct z_lcluster *lc = &m->pack[k];

		if (lc->type != Z_NONHEAD) {
			lc->blk = big ? blk : ++blk;
			if (big && !(k + 1 < slots && m->pack[k + 1].is_cblkcnt))
				blk++;
		} else if (big && lc->is_cblkcnt) {
			blk += lc->cblkcnt;
		}
	}
}

/* delta[0] of the last slot is derived from its neighbour. */
static void derive_delta(struct map *m, unsigned int slots)
{
	struct z_lcluster *last = &m->pack[slots - 1], *prev = last - 1;

	if (!last->last_slot)
		return;
	if (prev->type != Z_NONHEAD)
		last->d0 = 1;
	else if (prev->is_cblkcnt)
		last->d0 = 2;
	else
		last->d0 = (uint16_t)(prev->d0 + 1);
}

int erofs_zindex_load_compact(struct map *m, uint64_t lcn, struct z_lcluster *lc)
{
	unsigned int size, slot, slots, bits, k;
	uint64_t pos = find_entry(m, lcn, &size, &slot), start = round_down_u64(pos, size);
	const uint8_t *p;
	int err;

	if (m->pack_pos != start) {
		err = erofs_map_fetch(m, start, size, &p);
		if (err)
			return err;
		slots = size / slot;
		bits = size == 8 ? 16 : 14;
		for (k = 0; k < slots; k++)
			parse_slot(m, p, k, bits, k == slots - 1, &m->pack[k]);
		assign_blocks(m, slots, bytes_le32(p + size - 4));
		derive_delta(m, slots);
		m->pack_pos = start;
	}
	*lc = m->pack[(pos - start) / slot];
	return 0;
}
