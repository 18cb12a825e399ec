// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Flat layouts: contiguous blocks, and a tail behind the inode (format.md 6.1, 6.2). */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "map/map_int.h"

static int map_blocks(struct map *m, uint64_t len, struct extent *ext)
{
	const struct erofs_inode *ino = m->ino;
	uint64_t pa;

	ext->la = 0;
	ext->len = len;
	ext->plen = len;
	if (ino->start_null && ino->layout == LAYOUT_PLAIN) {
		ext->kind = EXTENT_HOLE;
		ext->plen = 0;
		return 0;
	}
	ext->kind = EXTENT_RAW;
	if (!mul_ok(ino->start_blk, (uint64_t)ino->img->blksz, &pa))
		return erofs_diag_damage(m->mb->diag, EXTENT_RANGE, AT(ino->nid, 0),
					 "data begins at block %" PRIu64 ", beyond any device", ino->start_blk);
	return erofs_map_place_raw(m, 0, pa, ext);
}

static uint64_t find_tail(const struct erofs_inode *ino)
{
	return ino->layout == LAYOUT_INLINE ? (div_up_pow2(ino->size, ino->img->blkbits) - 1) << ino->img->blkbits :
					      ino->size;
}

uint64_t erofs_map_flat_resume(const struct map *m)
{
	uint64_t split = find_tail(m->ino);

	return m->next_la < split ? split : m->ino->size;
}

int erofs_map_flat_next(struct map *m, struct extent *ext)
{
	const struct erofs_inode *ino = m->ino;
	uint64_t split = find_tail(ino);

	if (m->next_la < split)
		return map_blocks(m, split, ext);
	ext->kind = EXTENT_RAW;
	ext->meta = true;
	ext->la = split;
	ext->len = ino->size - split;
	ext->plen = ext->len;
	ext->pa = ino->iend;
	return 0;
}
