// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Chunk-based files: block map and indexes, holes, neighbours merged (format.md 6.3). */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "base/wire.h"
#include "map/map_int.h"

#define CHUNK_BITS 0x1fu
#define CHUNK_INDEXES 0x20u
#define CHUNK_48BIT 0x40u
#define MERGE_MAX 65536		/* entries read by one call: a caller can cancel in between */

struct chunk {
	bool hole;
	unsigned int dev_id;
	uint64_t blk;
};

static int load_chunk(struct map *m, uint64_t i, struct chunk *c)
{
	const struct erofs_inode *ino = m->ino;
	bool indexes = ino->chunk_format & CHUNK_INDEXES;
	size_t size = indexes ? 8 : 4;
	uint64_t pos = round_up_u64(ino->iend, size), off;
	const uint8_t *p;
	int err;

	if (!mul_ok(i, (uint64_t)size, &off) || !add_ok(pos, off, &pos))
		return erofs_diag_damage(m->mb->diag, EXTENT_RANGE, AT(ino->nid, m->next_la),
					 "chunk %" PRIu64 " has no entry: the map would be too long", i);
	err = erofs_map_fetch(m, pos, size, &p);
	if (err)
		return err;
	if (!indexes) {
		c->blk = bytes_le32(p);
		c->hole = c->blk == UINT32_MAX;
		c->dev_id = 0;
		return 0;
	}
	c->dev_id = bytes_le16(p + 2) & ino->img->super->dev_mask;
	c->blk = bytes_le32(p + 4);
	c->hole = c->blk == UINT32_MAX;
	if (ino->chunk_format & CHUNK_48BIT) {
		c->blk |= (uint64_t)bytes_le16(p) << 32;
		c->hole = c->blk == (UINT64_C(1) << 48) - 1;
	}
	return 0;
}

/* Byte range of chunk @i, clipped at the end of the file. */
static void chunk_range(const struct map *m, uint64_t i, unsigned int bits, struct extent *ext)
{
	ext->la = i << bits;
	ext->len = m->ino->size - ext->la;
	if (bits < 63)
		ext->len = min_u64(ext->len, UINT64_C(1) << bits);
}

static int place_chunk(struct map *m, const struct chunk *c, struct extent *ext)
{
	uint64_t pa;

	ext->kind = c->hole ? EXTENT_HOLE : EXTENT_RAW;
	ext->plen = c->hole ? 0 : ext->len;
	if (c->hole)
		return 0;
	if (!mul_ok(c->blk, (uint64_t)m->ino->img->blksz, &pa))
		return erofs_diag_damage(m->mb->diag, EXTENT_RANGE, AT(m->ino->nid, ext->la),
					 "chunk at block %" PRIu64 ", beyond any device", c->blk);
	return erofs_map_place_raw(m, c->dev_id, pa, ext);
}

/* Lengthen @ext by the chunks behind it while they go on where it ends. */
static int merge_chunks(struct map *m, uint64_t i, unsigned int bits, struct extent *ext)
{
	unsigned int n;

	for (n = 0; n < MERGE_MAX && ext->la + ext->len < m->ino->size; n++) {
		struct extent next = { 0 };
		struct chunk c;
		int err = load_chunk(m, ++i, &c);

		if (err)
			return err;
		if (c.hole != (ext->kind == EXTENT_HOLE))
			return 0;
		chunk_range(m, i, bits, &next);
		if (!c.hole) {
			/* what lies out of range is reported when it is the next extent's turn */
			uint64_t pa;
			unsigned int dev;

			if (!mul_ok(c.blk, (uint64_t)m->ino->img->blksz, &pa) ||
			    erofs_image_resolve(m->ino->img, c.dev_id, pa, next.len, &dev, &next.pa) ||
			    dev != ext->dev || next.pa != ext->pa + ext->len)
				return 0;
			ext->plen += next.len;
		}
		ext->len += next.len;
	}
	return 0;
}

int erofs_map_chunk_next(struct map *m, struct extent *ext)
{
	unsigned int bits = m->ino->img->blkbits + (m->ino->chunk_format & CHUNK_BITS);
	uint64_t i = bits < 63 ? m->next_la >> bits : 0;
	struct chunk c;
	int err = load_chunk(m, i, &c);

	if (err)
		return err;
	chunk_range(m, i, bits, ext);
	err = place_chunk(m, &c, ext);
	if (err || ext->cut)
		return err;
	return merge_chunks(m, i, bits, ext);
}

uint64_t erofs_map_chunk_resume(struct map *m)
{
	unsigned int bits = m->ino->img->blkbits + (m->ino->chunk_format & CHUNK_BITS);
	uint64_t entry = m->ino->chunk_format & CHUNK_INDEXES ? 8 : 4, i, n, first;
	struct chunk c;

	if (bits >= 63)
		return m->ino->size;
	first = i = m->next_la >> bits;
	for (n = 0; n < SALVAGE_TRIES && i <= (m->ino->size - 1) >> bits; n++) {
		if (!load_chunk(m, i, &c))	/* where it leads to is what is wrong */
			return i == first ? min_u64((i + 1) << bits, m->ino->size) : i << bits;
		i = round_down_u64(i + m->ino->img->blksz / entry, m->ino->img->blksz / entry);
	}
	return m->ino->size;
}
