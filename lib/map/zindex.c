// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * From lcluster indexes to extents, forward: each index is loaded once, an extent ends where the next
 * head begins. Distances between indexes are not needed for that; they are checked when strict, and
 * followed only by seeks.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "map/map_int.h"

#define DELTA_MAX 2047u

int erofs_zindex_load(struct map *m, uint64_t lcn, struct z_lcluster *lc)
{
	int err = m->ino->layout == LAYOUT_Z_COMPACT ? erofs_zindex_load_compact(m, lcn, lc) :
						       erofs_zindex_load_full(m, lcn, lc);

	if (err || lc->type == Z_NONHEAD || lc->ofs < UINT64_C(1) << m->z.lcb)
		return err;
	return erofs_diag_damage(m->mb->diag, Z_INDEX, AT(m->ino->nid, lcn << m->z.lcb),
				 "index %" PRIu64 ": offset %u in an lcluster of %u bytes", lcn, lc->ofs,
				 1u << m->z.lcb);
}

uint64_t erofs_zindex_end(const struct map *m)
{
	uint64_t nl = m->z.nlcl, base = m->z.index_pos, n4a, n2 = 0;

	if (m->ino->layout == LAYOUT_Z_FULL)
		return base + 8 * nl;
	n4a = ((32 - base % 32) / 4) % 8;
	if ((m->z.advise & Z_ADVISE_COMPACTED_2B) && n4a < nl)
		n2 = round_down_u64(nl - n4a, 16);
	if (!n2)
		return base + 4 * round_up_u64(nl, 2);
	return base + 4 * n4a + 2 * n2 + 4 * round_up_u64(nl - n4a - n2, 2);
}

static bool has_big(const struct map *m, unsigned int head_type)
{
	return m->z.advise & (head_type == Z_HEAD1 ? Z_ADVISE_BIG_1 : Z_ADVISE_BIG_2);
}

static int damaged_index(struct map *m, uint64_t lcn, enum erofs_finding_id id, const char *what)
{
	return erofs_diag_report(m->mb->diag, id, -EUCLEAN, AT(m->ino->nid, lcn << m->z.lcb),
				 "index %" PRIu64 ": %s", lcn, what);
}

void erofs_zindex_set_head(struct map *m, uint64_t lcn, const struct z_lcluster *lc)
{
	m->idx.have_head = true;
	m->idx.head_lcn = lcn;
	m->idx.head_type = lc->type;
	m->idx.head_ofs = lc->ofs;
	m->idx.head_blk = lc->blk;
	m->idx.head_partial = lc->partial;
}

static int load_first(struct map *m)
{
	struct z_lcluster lc;
	int err = erofs_zindex_load(m, 0, &lc);

	if (err)
		return err;
	if (lc.type == Z_NONHEAD || lc.ofs)
		return damaged_index(m, 0, EROFS_FINDING_Z_INDEX, "the file does not begin with an extent");
	erofs_zindex_set_head(m, 0, &lc);
	return 0;
}

/* What format.md 14 asks of the distances of a non-head. */
static int check_nonhead(struct map *m, uint64_t lcn, const struct z_lcluster *lc)
{
	uint64_t back = lcn - m->idx.head_lcn;

	if (lc->is_cblkcnt)
		return back == 1 ? 0 : damaged_index(m, lcn, EROFS_FINDING_Z_CBLKCNT,
						     "a block count that follows no head");
	if (!lc->d0)
		return damaged_index(m, lcn, EROFS_FINDING_Z_DELTA, "distance 0 to the head");
	if (lc->d0 != back && !(back > DELTA_MAX && lc->d0 <= back && lc->d0 >= DELTA_MAX))
		return erofs_diag_damage(m->mb->diag, Z_DELTA, AT(m->ino->nid, lcn << m->z.lcb), "index %"
					 PRIu64 ": distance %u to the head (wanted %" PRIu64 ")", lcn, lc->d0,
					 back);
	return 0;
}

/* delta[1] of index @lcn against the place of the next head (or the end), when strict. */
static void check_forward(struct map *m, uint64_t lcn, unsigned int d1, uint64_t next)
{
	uint64_t ahead = next - lcn;

	if (d1 == ahead || (ahead > DELTA_MAX && d1 >= DELTA_MAX && d1 <= ahead))
		return;
	erofs_diag_note(m->mb->diag, ODD_INDEX, AT(m->ino->nid, lcn << m->z.lcb), "index %" PRIu64
			": distance %u to the next head (wanted %" PRIu64 ")", lcn, d1, ahead);
}

/* The first index behind the head tells how many blocks its pcluster has (format.md 9.6). */
int erofs_zindex_read_count(struct map *m, uint64_t lcn, const struct z_lcluster *lc, struct z_span *span)
{
	bool flagged = m->z.advise & (Z_ADVISE_BIG_1 | Z_ADVISE_BIG_2);

	span->has_nonhead = true;
	if (!lc->is_cblkcnt)
		return 0;
	if (!flagged)
		return damaged_index(m, lcn, EROFS_FINDING_Z_CBLKCNT, "a block count without big pclusters");
	/* mkfs.erofs 1.9.4 counts 0 blocks for a tail fragment, which has no pcluster */
	span->zero_count = !lc->cblkcnt;
	span->has_count = true;
	if (has_big(m, m->idx.head_type))
		span->nblks = lc->cblkcnt;
	return 0;
}

/* Scan from behind the head to the next head; the map's head becomes that one. */
static int scan_span(struct map *m, struct z_span *span, bool *ret_has_next, struct z_lcluster *next,
		     uint64_t *ret_lcn)
{
	uint64_t lcn, d1_lcn = 0;
	unsigned int d1 = 0;
	int err;

	*ret_has_next = false;
	span->end = m->ino->size;
	span->nblks = 1;
	for (lcn = m->idx.head_lcn + 1; lcn < m->z.nlcl; lcn++) {
		err = erofs_zindex_load(m, lcn, next);
		if (err)
			return err;
		if (next->type != Z_NONHEAD) {
			*ret_has_next = true;
			*ret_lcn = lcn;
			span->end = min_u64((lcn << m->z.lcb) + next->ofs, m->ino->size);
			break;
		}
		if (lcn == m->idx.head_lcn + 1) {
			err = erofs_zindex_read_count(m, lcn, next, span);
			if (err)
				return err;
		}
		if (m->strict)
			err = check_nonhead(m, lcn, next);
		if (err)
			return err;
		if (!d1_lcn && !next->is_cblkcnt && (m->ino->layout == LAYOUT_Z_FULL || next->last_slot)) {
			d1_lcn = lcn;
			d1 = next->d1;
		}
	}
	if (m->strict && d1_lcn)
		check_forward(m, d1_lcn, d1, lcn);
	return 0;
}

static int choose_algorithm(struct map *m, struct extent *ext)
{
	if (m->idx.head_type != Z_PLAIN)
		return erofs_map_algorithm(m, ext->la, m->z.alg[m->idx.head_type == Z_HEAD2], &ext->alg);
	ext->alg = CODEC_SHIFTED;
	if (m->z.advise & Z_ADVISE_INTERLACED) {
		ext->alg = CODEC_INTERLACED;
		ext->interlace = (uint32_t)(ext->la & (m->ino->img->blksz - 1));
	}
	return 0;
}

int erofs_zindex_fill(struct map *m, const struct z_span *span, struct extent *ext)
{
	bool tail = span->end == m->ino->size;
	uint64_t high = m->ino->layout == LAYOUT_Z_FULL ? m->idx.head_blk << 32 : 0, pa;
	int err;

	if (tail && m->z.has_fragment)
		return erofs_ztail_fragment(m, m->z.fragment_off | high, ext);
	if (span->zero_count)
		return damaged_index(m, m->idx.head_lcn, EROFS_FINDING_Z_CBLKCNT, "a pcluster of 0 blocks");
	ext->kind = EXTENT_ENCODED;
	ext->partial = m->idx.head_partial;
	err = choose_algorithm(m, ext);
	if (err)
		return err;
	if (m->strict && span->has_nonhead && !span->has_count && has_big(m, m->idx.head_type))
		return damaged_index(m, m->idx.head_lcn, EROFS_FINDING_Z_CBLKCNT,
				     "its pcluster's block count is missing");
	if (tail && m->z.idata_size) {
		err = erofs_ztail_inline(m, ext);
		return err ? err : erofs_map_check_lengths(m, ext);
	}
	ext->plen = span->nblks << m->ino->img->blkbits;
	err = erofs_map_check_lengths(m, ext);
	if (err)
		return err;
	if (!mul_ok(m->idx.head_blk, (uint64_t)m->ino->img->blksz, &pa))
		return -EUCLEAN;
	return erofs_map_place(m, 0, pa, ext->plen, ext);
}

int erofs_zindex_next(struct map *m, struct extent *ext)
{
	struct z_lcluster next;
	struct z_span span = { 0 };
	bool has_next;
	uint64_t lcn = 0;
	int err = m->idx.have_head ? 0 : load_first(m);

	if (!err)
		err = scan_span(m, &span, &has_next, &next, &lcn);
	if (err)
		return err;
	ext->la = (m->idx.head_lcn << m->z.lcb) + m->idx.head_ofs;
	if (span.end <= ext->la)
		return damaged_index(m, m->idx.head_lcn, EROFS_FINDING_Z_INDEX, "an extent of no length");
	ext->len = span.end - ext->la;
	err = erofs_zindex_fill(m, &span, ext);
	if (has_next)
		erofs_zindex_set_head(m, lcn, &next);
	return err;
}

/* Follow distances back to the head in front of @lcn. */
static int look_back(struct map *m, uint64_t lcn, uint64_t back, struct z_lcluster *lc, uint64_t *ret_lcn)
{
	int err;

	do {
		if (!back || back > lcn)
			return damaged_index(m, lcn, EROFS_FINDING_Z_DELTA,
					     back ? "distance to before the file" : "distance 0 to the head");
		lcn -= back;
		err = erofs_zindex_load(m, lcn, lc);
		if (err)
			return err;
		back = lc->d0;
	} while (lc->type == Z_NONHEAD);
	*ret_lcn = lcn;
	return 0;
}

int erofs_zindex_seek(struct map *m, uint64_t la)
{
	uint64_t lcn = la >> m->z.lcb;
	struct z_lcluster lc;
	int err = erofs_zindex_load(m, lcn, &lc);

	if (err)
		return err;
	if (lc.type == Z_NONHEAD)
		err = look_back(m, lcn, lc.d0, &lc, &lcn);
	else if (lc.ofs > (la & ((UINT64_C(1) << m->z.lcb) - 1)))
		err = look_back(m, lcn, 1, &lc, &lcn);
	if (!err)
		erofs_zindex_set_head(m, lcn, &lc);
	return err;
}
