// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Compressed files with damaged indexes or records. Heads are taken for what they say, wherever the scan
 * begins; distances are not used. In a compact pack, addresses count from its beginning: what is behind
 * a wrong count is not trusted.
 */
#include <errno.h>

#include "base/checked.h"
#include "map/map_int.h"

enum index_state {
	INDEX_GOOD,
	INDEX_BAD,		/* was read, and means nothing */
	INDEX_UNREAD,
};

static bool is_wrong_count(const struct map *m, unsigned int k)
{
	const struct z_lcluster *lc = &m->pack[k];

	return lc->is_cblkcnt && (!(m->z.advise & (Z_ADVISE_BIG_1 | Z_ADVISE_BIG_2)) || !lc->cblkcnt ||
				  (uint64_t)lc->cblkcnt << m->ino->img->blkbits > CODEC_MAX_PLEN ||
				  (k && m->pack[k - 1].type == Z_NONHEAD));
}

/* Does a wrong count stand in front of the slot that was loaded last? */
static bool is_misplaced(const struct map *m, const struct z_lcluster *lc)
{
	unsigned int k;

	for (k = 0; k < 16; k++) {
		const struct z_lcluster *p = &m->pack[k];

		if (p->type == lc->type && p->blk == lc->blk && p->ofs == lc->ofs && p->d0 == lc->d0)
			return false;
		if (is_wrong_count(m, k))
			return true;
	}
	return false;
}

/* Return: enum index_state, -ENOMEM. */
static int load_index(struct map *m, uint64_t lcn, struct z_lcluster *lc)
{
	bool compact = m->ino->layout == LAYOUT_Z_COMPACT;
	int err = compact ? erofs_zindex_load_compact(m, lcn, lc) : erofs_zindex_load_full(m, lcn, lc);

	if (err)
		return err == -ENOMEM ? err : INDEX_UNREAD;
	if (lc->type != Z_NONHEAD && lc->ofs >= UINT64_C(1) << m->z.lcb) {
		(void)erofs_zindex_load(m, lcn, lc);	/* says so */
		return INDEX_BAD;
	}
	return compact && lc->type != Z_NONHEAD && is_misplaced(m, lc) ? INDEX_BAD : INDEX_GOOD;
}

static uint64_t start_of(const struct map *m, uint64_t lcn, const struct z_lcluster *lc)
{
	return (lcn << m->z.lcb) + lc->ofs;
}

/* The head of the extent that holds @la. Return: 1, 0 it cannot be told, -ENOMEM. */
static int find_head(struct map *m, uint64_t la, uint64_t *ret_lcn, struct z_lcluster *lc)
{
	uint64_t lcn = la >> m->z.lcb, n;

	for (n = 0; n <= (CODEC_MAX_DLEN >> m->z.lcb) + 1; n++, lcn--) {
		int r = load_index(m, lcn, lc);

		if (r)
			return r < 0 ? r : 0;
		if (lc->type != Z_NONHEAD && start_of(m, lcn, lc) <= la) {
			*ret_lcn = lcn;
			return 1;
		}
		if (!lcn)
			break;
	}
	return 0;
}

/* All is lost from @la to the next head. Return: 0, -ENOMEM. */
static int lose_to_head(struct map *m, uint64_t la, struct extent *ext)
{
	uint64_t lcn = la >> m->z.lcb, tries = 0;
	struct z_lcluster lc;

	*ext = (struct extent){ .la = la, .len = m->ino->size - la };
	while (lcn < m->z.nlcl && tries < SALVAGE_TRIES) {
		int r = load_index(m, lcn, &lc);

		if (r < 0)
			return r;
		if (r == INDEX_UNREAD) {
			tries++;
			lcn = round_down_u64(lcn + 16, 16);
			continue;
		}
		if (!r && lc.type != Z_NONHEAD && start_of(m, lcn, &lc) > la) {
			ext->len = min_u64(start_of(m, lcn, &lc), m->ino->size) - la;
			break;
		}
		lcn++;
	}
	return 0;
}

/* Where the extent ends whose head is set. Return: 1, 0 it cannot be told, -ENOMEM. */
static int find_end(struct map *m, struct z_span *span, bool *ret_cut, bool *ret_bad)
{
	uint64_t lcn, last = m->idx.head_lcn + (CODEC_MAX_DLEN >> m->z.lcb) + 1;

	span->nblks = 1;
	*ret_cut = *ret_bad = false;
	for (lcn = m->idx.head_lcn + 1; lcn < m->z.nlcl && lcn <= last; lcn++) {
		struct z_lcluster lc;
		int r = load_index(m, lcn, &lc);

		if (r < 0)
			return r;
		if (r) {
			*ret_cut = true;
			span->end = lcn << m->z.lcb;
			return 1;
		}
		if (lc.type != Z_NONHEAD) {
			span->end = min_u64(start_of(m, lcn, &lc), m->ino->size);
			return 1;
		}
		if (lcn == m->idx.head_lcn + 1)
			*ret_bad = erofs_zindex_read_count(m, lcn, &lc, span);
	}
	span->end = m->ino->size;
	return lcn == m->z.nlcl;
}

int erofs_zindex_salvage(struct map *m, uint64_t la, struct extent *ret_ext)
{
	struct z_span span = { 0 };
	struct extent ext = { 0 };
	struct z_lcluster lc;
	bool cut, bad;
	uint64_t lcn;
	int r = find_head(m, la, &lcn, &lc);

	if (r > 0) {
		erofs_zindex_set_head(m, lcn, &lc);
		r = find_end(m, &span, &cut, &bad);
	}
	if (r < 0)
		return r;
	if (!r || la >= span.end) {
		erofs_diag_damage(m->mb->diag, Z_INDEX, AT(m->ino->nid, la),
				  "the extent cannot be found among the indexes");
		return lose_to_head(m, la, ret_ext);
	}
	ext.la = start_of(m, lcn, &lc);
	ext.len = span.end - ext.la;
	r = bad ? -EUCLEAN : erofs_zindex_fill(m, &span, &ext);
	if (r == -ENOMEM)
		return r;
	if (r) {
		*ret_ext = (struct extent){ .la = la, .len = span.end - la };
		return 0;
	}
	ext.cut |= cut;
	ext.partial |= cut;
	*ret_ext = ext;
	return 1;
}

/* ---- records ---- */

/* Where the first record from @i on that begins behind @la begins. */
static uint64_t next_start(struct map *m, uint64_t i, uint64_t la)
{
	unsigned int tries;
	uint64_t start;

	for (tries = 0; tries < SALVAGE_TRIES && i < m->z.rec_count; tries++, i++)
		if (!erofs_zextent_start(m, i, &start) && start > la && start < m->ino->size)
			return start;
	return m->ino->size;
}

int erofs_zextent_salvage(struct map *m, uint64_t la, struct extent *ret_ext)
{
	struct extent ext = { 0 };
	uint64_t i, start, end = m->ino->size;
	int err = erofs_zextent_seek(m, la);

	if (err == -ENOMEM)
		return err;
	if (!err) {
		i = m->rec.next;
		err = erofs_zextent_next(m, &ext);
		if (!err && la >= ext.la && la - ext.la < ext.len) {
			*ret_ext = ext;
			return 1;
		}
		/* sizes are summed up to addresses: behind one that is wrong nothing can be found */
		if (m->z.rec_size != 4 || ext.plen <= CODEC_MAX_PLEN)
			end = next_start(m, erofs_zextent_start(m, i, &start) || start > la ? i : i + 1, la);
	}
	*ret_ext = (struct extent){ .la = la, .len = end - la };
	return err == -ENOMEM ? err : 0;
}
