// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Encoded extents of 48-bit images (format.md 9.11). */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "base/wire.h"
#include "map/map_int.h"

#define PLEN_MASK 0x1fffffu
#define PLEN_PARTIAL (1u << 27)
#define PLEN_FORMAT 28

struct record {
	uint32_t word;		/* plen, flags, format */
	uint64_t pa, la;
};

static bool has_starts(const struct map *m)
{
	return m->z.rec_size >= 16;
}

static int damaged_record(struct map *m, uint64_t i, const char *what)
{
	return erofs_diag_damage(m->mb->diag, Z_RECORD, AT(m->ino->nid, m->next_la),
				 "extent record %" PRIu64 " of %" PRIu64 ": %s", i, m->z.rec_count, what);
}

/* Record size 4 keeps a running sum: pa is not set. */
static int load_record(struct map *m, uint64_t i, struct record *r)
{
	uint64_t off, pos;
	const uint8_t *p;
	int err;

	if (!mul_ok(i, (uint64_t)m->z.rec_size, &off) || !add_ok(m->z.index_pos, off, &pos) ||
	    pos > UINT64_MAX - MAP_BUF)
		return damaged_record(m, i, "beyond any image");
	err = erofs_map_fetch(m, pos, m->z.rec_size, &p);
	if (err)
		return err;
	*r = (struct record){ .word = bytes_le32(p) };
	if (m->z.rec_size >= 8)
		r->pa = bytes_le32(p + 4);
	if (!has_starts(m)) {
		r->la = i << m->z.lcb;
		return 0;
	}
	r->pa |= (uint64_t)bytes_le32(p + 8) << 32;
	r->la = bytes_le32(p + 12);
	if (m->z.rec_size == 32)
		r->la |= (uint64_t)bytes_le32(p + 16) << 32;
	return 0;
}

int erofs_zextent_start(struct map *m, uint64_t i, uint64_t *ret_la)
{
	struct record r;
	int err = load_record(m, i, &r);

	if (!err)
		*ret_la = r.la;
	return err;
}

int erofs_zextent_begin(struct map *m)
{
	const uint8_t *p;
	int err;

	if (!m->z.rec_count)
		return damaged_record(m, 0, "there is none");
	if (m->z.rec_size != 4)
		return 0;
	err = erofs_map_fetch(m, m->z.index_pos, 8, &p);
	if (err)
		return err;
	m->rec.sum = bytes_le64(p);
	m->z.index_pos += 8;
	return 0;
}

/* End of record @i's extent; checks the order. */
static int find_end(struct map *m, uint64_t i, const struct record *r, uint64_t *ret_end)
{
	struct record next;
	int err;

	*ret_end = m->ino->size;
	if (i + 1 == m->z.rec_count)
		return 0;
	err = load_record(m, i + 1, &next);
	if (err)
		return err;
	if (next.la <= r->la)
		return damaged_record(m, i + 1, "does not begin behind the one before");
	if (next.la > m->ino->size)
		return damaged_record(m, i + 1, "begins behind the end of the file");
	*ret_end = next.la;
	return 0;
}

static int fill_encoded(struct map *m, const struct record *r, struct extent *ext)
{
	unsigned int format = r->word >> PLEN_FORMAT;
	uint32_t blksz = m->ino->img->blksz;
	int err;

	ext->kind = EXTENT_ENCODED;
	ext->plen = r->word & PLEN_MASK;
	ext->partial = r->word & PLEN_PARTIAL;
	if (format) {
		err = erofs_map_algorithm(m, ext->la, format - 1, &ext->alg);
		if (err)
			return err;
	} else {
		ext->alg = CODEC_SHIFTED;
		if ((m->z.advise & Z_ADVISE_INTERLACED) && !(r->pa % blksz) && !(ext->plen % blksz)) {
			ext->alg = CODEC_INTERLACED;
			ext->interlace = (uint32_t)(ext->la & (blksz - 1));
		}
	}
	err = erofs_map_check_lengths(m, ext);
	return err ? err : erofs_map_place(m, 0, r->pa, ext->plen, ext);
}

int erofs_zextent_next(struct map *m, struct extent *ext)
{
	uint64_t i = m->rec.next, end;
	struct record r;
	int err;

	if (i >= m->z.rec_count)
		return damaged_record(m, i, "the records end before the file");
	err = load_record(m, i, &r);
	if (!err && !i && r.la)
		err = damaged_record(m, 0, "does not begin at 0");
	if (!err)
		err = find_end(m, i, &r, &end);
	if (err)
		return err;
	if (end <= r.la)
		return damaged_record(m, i, "begins behind the end of the file");
	if (m->z.rec_size == 4)
		r.pa = m->rec.sum;
	ext->la = r.la;
	ext->len = end - r.la;
	m->rec.next = i + 1;
	if (m->z.has_fragment && i + 1 == m->z.rec_count)
		return erofs_ztail_fragment(m, r.word | (m->z.rec_size == 4 ? 0 : r.pa << 32), ext);
	if (!add_ok(m->rec.sum, (uint64_t)(r.word & PLEN_MASK), &m->rec.sum))
		return damaged_record(m, i, "addresses beyond 2^64");
	if (r.word & PLEN_MASK)
		return fill_encoded(m, &r, ext);
	ext->kind = EXTENT_HOLE;
	return 0;
}

/* The last record whose start is not behind @la. */
static int search_record(struct map *m, uint64_t la, uint64_t *ret_i)
{
	uint64_t lo = 0, hi = m->z.rec_count;

	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;
		struct record r;
		int err = load_record(m, mid, &r);

		if (err)
			return err;
		if (r.la <= la)
			lo = mid;
		else
			hi = mid;
	}
	*ret_i = lo;
	return 0;
}

static int sum_up(struct map *m, uint64_t i)
{
	const uint8_t *p;
	struct record r;
	int err;

	if (i < m->rec.next) {
		err = erofs_map_fetch(m, m->z.index_pos - 8, 8, &p);
		if (err)
			return err;
		m->rec.sum = bytes_le64(p);
		m->rec.next = 0;
	}
	for (; m->rec.next < i; m->rec.next++) {
		err = load_record(m, m->rec.next, &r);
		if (err)
			return err;
		if (!add_ok(m->rec.sum, (uint64_t)(r.word & PLEN_MASK), &m->rec.sum))
			return damaged_record(m, m->rec.next, "addresses beyond 2^64");
	}
	return 0;
}

int erofs_zextent_seek(struct map *m, uint64_t la)
{
	uint64_t i = la >> m->z.lcb;
	int err = 0;

	if (has_starts(m))
		err = search_record(m, la, &i);
	else if (m->z.rec_size == 4)
		err = sum_up(m, i);
	m->rec.next = i;
	return err;
}
