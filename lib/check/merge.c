// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * One reference per pcluster (engine.md E1). References that are not partial must agree with each other
 * and none may want more; length, algorithm and layout of one address must be the same for all.
 * Plain data may be shared in any way: chunks are deduplicated, and nothing in it can be contradicted.
 */
#include <stdio.h>

#include "base/checked.h"
#include "check/check_priv.h"

static void add_conflict(struct check *c, const struct pcref *r, const char *text)
{
	erofs_damage_add(&c->damage, r->addr, pcref_plen(r), EROFS_FINDING_EXTENT_KEY, -117, text);
}

static bool is_plain(const struct pcref *r)
{
	return pcref_alg(r) >= CODEC_SHIFTED;
}

/* Fold @r into @kept, which has the same address and is at least as long. */
static void fold(struct check *c, struct pcref *kept, const struct pcref *r)
{
	char text[DAMAGE_TEXT];

	if (pcref_plen(r) != pcref_plen(kept) || pcref_alg(r) != pcref_alg(kept)) {
		snprintf(text, sizeof(text), "is used as %u bytes of %s and as %u bytes of %s",
			 (unsigned int)pcref_plen(kept), erofs_codec_name(pcref_alg(kept)),
			 (unsigned int)pcref_plen(r), erofs_codec_name(pcref_alg(r)));
		add_conflict(c, kept, text);
		return;
	}
	if (is_plain(r) || pcref_partial(r))
		return;
	if (pcref_dlen(r) == pcref_dlen(kept)) {
		kept->word = r->word;	/* exact now, if it was not */
		return;
	}
	snprintf(text, sizeof(text), "stands for %u bytes in one place and for %u in another",
		 pcref_dlen(r), pcref_dlen(kept));
	add_conflict(c, kept, text);
	kept->word = r->word;
}

static void check_overlap(struct check *c, const struct pcref *r)
{
	uint64_t end = r->addr + pcref_plen(r);
	char text[DAMAGE_TEXT];

	if (r->addr < c->last_end && r->addr != c->last_addr) {
		snprintf(text, sizeof(text), "overlaps the pcluster that begins %llu bytes before it",
			 (unsigned long long)(r->addr - c->last_addr));
		erofs_damage_add(&c->damage, r->addr, min_u64(c->last_end, end) - r->addr,
				 EROFS_FINDING_EXTENT_OVERLAP, -117, text);
	}
	if (end > c->last_end) {
		c->last_end = end;
		c->last_addr = r->addr;
	}
}

static void count(struct check *c, const struct pcref *r, uint64_t *raw_end)
{
	uint64_t end = r->addr + pcref_plen(r);

	if (!pcref_is_raw(r))
		c->pclusters++;
	else if (end > *raw_end)
		*raw_end = end;
}

/* Leave out what an earlier raw reference has read already. */
static bool trim_raw(struct pcref *r, uint64_t raw_end)
{
	uint64_t len = pcref_plen(r);

	if (r->addr >= raw_end)
		return true;
	if (r->addr + len <= raw_end)
		return false;
	r->word = PCREF_RAW | (r->addr + len - raw_end);
	r->addr = raw_end;
	return true;
}

bool erofs_merge_put(struct merger *m, const struct pcref *ref, struct pcref *ret_out)
{
	bool had = m->has, raw = pcref_is_raw(ref);
	struct pcref r = *ref;

	if (raw && !trim_raw(&r, m->raw_end))
		return false;
	if (had && !raw && m->pending.addr == r.addr && !pcref_is_raw(&m->pending)) {
		fold(m->check, &m->pending, &r);
		return false;
	}
	*ret_out = m->pending;
	if (!raw)
		check_overlap(m->check, &r);
	count(m->check, &r, &m->raw_end);
	m->pending = r;
	m->has = true;
	return had;
}

bool erofs_merge_end(struct merger *m, struct pcref *ret_out)
{
	bool had = m->has;

	*ret_out = m->pending;
	m->has = false;
	return had;
}
