// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Maps of compressed files (format.md 9.2 to 9.4, 9.11). The pclusters of a file lie one behind the other, so
 * addresses follow from lengths. Blocks are lclusters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/write_priv.h"

#define ADVISE_2B 0x01u
#define ADVISE_EXTENTS 0x01u
#define ADVISE_BIG_1 0x02u
#define ADVISE_BIG_2 0x04u
#define ADVISE_INLINE 0x08u
#define ADVISE_FRAGMENT 0x20u

#define PARTIAL_REF 0x8000u		/* di_advise */
#define PLEN_PARTIAL (UINT32_C(1) << 27)

#define TYPE_PLAIN 0u
#define TYPE_HEAD1 1u
#define TYPE_NONHEAD 2u

#define COUNT_MARK 0x800u		/* the value is a number of blocks */
#define MAX_DELTA 2047u
#define MAX_COMPACT_BITS 14u
#define MAX_2B_BITS 12u

/* One lcluster. */
struct lcl {
	unsigned int type;
	bool head, counts;		/* a head; holds the number of blocks of the head before it */
	bool end;			/* a head at the end of the file: no extent */
	uint32_t ofs;			/* heads: where in the lcluster */
	uint32_t back, forth;		/* others: lclusters to the head, to the next head */
	uint32_t blocks;		/* of the extent's pcluster */
	uint64_t addr;			/* of the extent's pcluster */
	bool placed;			/* and it is read from there */
};

struct cursor {
	const struct zmap *m;
	unsigned int bits;
	bool big;
	size_t next;			/* extent that has not begun yet */
	uint64_t at, la;		/* lcluster; where extent @next begins */
	uint64_t head, next_head;	/* lclusters */
	uint64_t addr, next_addr;
	const struct zext *ext;		/* began last */
};

static uint32_t blocks_of(const struct zext *e, unsigned int bits)
{
	return e->beside ? 1 : erofs_zext_blocks(e, bits);
}

static uint32_t own_blocks(const struct zext *e, unsigned int bits)
{
	return e->twin ? 0 : erofs_zext_blocks(e, bits);
}

static void begin_extent(struct cursor *c, struct lcl *l)
{
	uint64_t size = c->m->size, blksz = UINT64_C(1) << c->bits;

	c->ext = &c->m->ext[c->next++];
	l->type = c->ext->kind == ZEXT_PLAIN ? TYPE_PLAIN : TYPE_HEAD1;
	l->head = true;
	l->ofs = (uint32_t)(c->la & (blksz - 1));
	c->head = c->at;
	c->la += c->ext->dlen;
	c->addr = c->ext->twin ? c->m->twin_base + c->ext->block : c->next_addr;
	c->next_addr += own_blocks(c->ext, c->bits);
	/* at the end of the file: the terminator, or where one would be */
	c->next_head = c->la < size ? c->la >> c->bits : div_up_pow2(size, c->bits) - (size % blksz != 0);
}

static void next_lcl(struct cursor *c, struct lcl *l)
{
	uint64_t size = c->m->size;

	*l = (struct lcl){ .type = TYPE_NONHEAD };
	if (c->next < c->m->count && c->la >> c->bits == c->at) {
		begin_extent(c, l);
	} else if (size >> c->bits == c->at) {
		l->type = TYPE_PLAIN;
		l->head = l->end = true;
		l->ofs = (uint32_t)(size & ((UINT64_C(1) << c->bits) - 1));
	} else {
		l->back = (uint32_t)(c->at - c->head);
		l->forth = (uint32_t)(c->next_head - c->at);
		l->counts = c->big && l->back == 1 && c->ext->kind != ZEXT_FRAGMENT;
	}
	l->addr = c->addr;
	l->blocks = c->ext ? blocks_of(c->ext, c->bits) : 0;
	l->placed = c->ext && !c->ext->beside && c->ext->kind != ZEXT_FRAGMENT;
	c->at++;
}

static struct cursor start(const struct zmap *m, unsigned int bits, bool big)
{
	return (struct cursor){ .m = m, .bits = bits, .big = big, .next_addr = m->block, .addr = m->block };
}

/* ---- header ---- */

struct shape {
	unsigned int advise;
	bool big, fragment, beside, twins, partial;
	uint64_t blocks, nlcl;
};

static struct shape look(const struct writer *w, const struct zmap *m)
{
	struct shape s = { .nlcl = div_up_pow2(m->size, w->blkbits) };
	size_t i;

	for (i = 0; i < m->count; i++) {
		const struct zext *e = &m->ext[i];
		uint32_t n = blocks_of(e, w->blkbits);

		s.big |= n > 1;
		s.blocks += own_blocks(e, w->blkbits);
		s.twins |= e->twin;
		s.partial |= e->partial;
		s.fragment |= e->kind == ZEXT_FRAGMENT;
		s.beside |= e->beside;
	}
	if (s.beside)
		s.advise |= ADVISE_INLINE;
	if (s.fragment)
		s.advise |= ADVISE_FRAGMENT;
	return s;
}

/* @advise: of the form, beside those of the shape */
static void fill_header(const struct zmap *m, const struct shape *s, unsigned int advise, uint8_t *dst)
{
	struct disk_map_header *h = (struct disk_map_header *)dst;

	if (s->fragment)
		h->h_fragmentoff = le32_of((uint32_t)m->fragment);
	else if (s->beside)
		h->h_fragmentoff = le32_of(m->ext[m->count - 1].plen << 16);
	h->h_advise = le16_of((uint16_t)(s->advise | advise));
	h->h_algorithmtype = (uint8_t)m->alg;
}

/* ---- full indexes ---- */

static uint8_t *make_full(const struct writer *w, const struct zmap *m, const struct shape *s, size_t *ret_len)
{
	size_t len = 16 + (size_t)s->nlcl * sizeof(struct disk_full_index);
	struct cursor c = start(m, w->blkbits, s->big);
	uint8_t *map = calloc(1, len);
	struct disk_full_index *d;
	struct lcl l;
	uint64_t i;

	if (!map)
		return NULL;
	fill_header(m, s, s->big ? ADVISE_BIG_1 : 0, map);
	d = (struct disk_full_index *)(map + 16);
	for (i = 0; i < s->nlcl; i++, d++) {
		next_lcl(&c, &l);
		d->di_advise = le16_of((uint16_t)(l.type | (l.head && !l.end && c.ext->partial ? PARTIAL_REF : 0)));
		if (l.head) {
			uint64_t addr = c.ext->kind == ZEXT_FRAGMENT ? m->fragment >> 32 : l.addr;

			d->di_clusterofs = le16_of((uint16_t)l.ofs);
			d->di_u = le32_of(l.end ? 0 : (uint32_t)addr);
		} else {
			uint32_t back = l.counts ? COUNT_MARK | l.blocks : (uint32_t)min_u64(l.back, MAX_DELTA);

			d->di_u = le32_of(back | (uint32_t)min_u64(l.forth, UINT16_MAX) << 16);
		}
	}
	*ret_len = len;
	return map;
}

/* ---- compact indexes ---- */

struct pack {
	unsigned int bytes, slots, width, lobits;
	bool big;
};

static uint32_t slot_value(const struct lcl *l, bool last)
{
	if (l->head)
		return l->ofs;
	if (l->counts)
		return COUNT_MARK | l->blocks;
	return (uint32_t)min_u64(last ? l->forth : l->back, MAX_DELTA);
}

static uint32_t base_of(const struct pack *p, const struct lcl *l, unsigned int count)
{
	unsigned int i;

	if (p->big && l[0].counts)
		return (uint32_t)l[0].addr;
	for (i = 0; i < count && !l[i].head; i++)
		;
	/* without a head it is not used */
	if (i == count)
		i = 0;
	return (uint32_t)l[i].addr - !p->big;
}

/* Do all addresses follow from that of the first? Those of twins need not. */
static bool base_holds(const struct pack *p, const struct lcl *l, unsigned int count)
{
	bool known = p->big && l[0].counts;
	uint64_t next = l[0].addr + l[0].blocks;
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!l[i].head || l[i].end || !l[i].placed)
			continue;
		if (known && l[i].addr != next)
			return false;
		known = true;
		next = l[i].addr + l[i].blocks;
	}
	return true;
}

/* The next slots of a file that has @left more. false: they cannot be put so. */
static bool fill_pack(const struct pack *p, struct cursor *c, uint64_t left, uint8_t *dst)
{
	unsigned int count = (unsigned int)min_u64(left, p->slots), i, at;
	struct lcl l[16];

	for (i = 0; i < count; i++) {
		uint32_t v;

		next_lcl(c, &l[i]);
		v = slot_value(&l[i], i + 1 == p->slots) | l[i].type << p->lobits;
		for (at = i * p->width; v; at++, v >>= 1)
			dst[at / 8] |= (uint8_t)((v & 1) << at % 8);
	}
	put_le32(dst + p->bytes - 4, base_of(p, l, count));
	return base_holds(p, l, count);
}

/* 0, -ENOMEM, -ERANGE: only full indexes can say it. */
static int make_compact(const struct writer *w, const struct zmap *m, const struct shape *s, uint8_t **ret,
			size_t *ret_len)
{
	unsigned int lobits = w->blkbits < 12 ? 12 : w->blkbits, advise = s->big ? ADVISE_BIG_1 | ADVISE_BIG_2 : 0;
	const struct pack four = { 8, 2, 16, lobits, s->big }, two = { 32, 16, 14, lobits, s->big };
	uint64_t ebase = round_up_u64(m->head, 8) + sizeof(struct disk_map_header), done = 0;
	uint64_t n4a = (32 - ebase % 32) / 4 % 8, n2 = 0, len;
	struct cursor c = start(m, w->blkbits, s->big);
	auto_free uint8_t *map = NULL;
	uint8_t *at;

	/* sixteen with one address: there is none for twins */
	if (w->blkbits <= MAX_2B_BITS && !s->twins) {
		advise |= ADVISE_2B;
		n2 = n4a < s->nlcl ? round_down_u64(s->nlcl - n4a, 16) : 0;
	}
	len = sizeof(struct disk_map_header) + 2 * n2 + 4 * round_up_u64(s->nlcl - n2, 2);
	map = calloc(1, (size_t)len);
	if (!map)
		return -ENOMEM;
	fill_header(m, s, advise, map);
	at = map + sizeof(struct disk_map_header);
	while (done < s->nlcl) {
		bool is_two = n2 && done >= n4a && done < n4a + n2;
		const struct pack *p = is_two ? &two : &four;

		if (!fill_pack(p, &c, s->nlcl - done, at))
			return -ERANGE;
		done += p->slots;
		at += p->bytes;
	}
	*ret_len = (size_t)len;
	*ret = steal(map);
	return 0;
}

/* ---- encoded extents, of 16 bytes: every length and any address ---- */

static uint8_t *make_encoded(const struct writer *w, const struct zmap *m, const struct shape *s, size_t *ret_len)
{
	size_t size = m->size > UINT32_MAX ? 32 : 16;
	/* records are aligned to their size */
	size_t from = (size_t)round_up_u64(m->head, 8), first = (size_t)round_up_u64(from + 8, size) - from;
	size_t len = first + m->count * size, i;
	uint64_t la = 0, pa = m->block << w->blkbits;
	uint8_t *map = calloc(1, len);
	struct disk_map_header *h = (struct disk_map_header *)map;

	if (!map)
		return NULL;
	h->h_fragmentoff = le32_of((uint32_t)m->count);
	h->h_advise = le16_of((uint16_t)(s->advise | ADVISE_EXTENTS | (size == 32 ? 3u : 2u) << 1));
	h->h_algorithmtype = (uint8_t)(m->count >> 32);
	h->h_clusterbits = (uint8_t)(m->count >> 40);
	for (i = 0; i < m->count; i++) {
		const struct zext *e = &m->ext[i];
		uint64_t stored = (uint64_t)blocks_of(e, w->blkbits) << w->blkbits;
		uint32_t word = (uint32_t)(e->kind == ZEXT_CODED ? stored | (m->alg + 1) << 28 : stored);
		uint64_t addr = e->twin ? (m->twin_base + e->block) << w->blkbits : pa;
		uint8_t *d = map + first + i * size;

		if (e->partial)
			word |= PLEN_PARTIAL;
		if (e->kind == ZEXT_FRAGMENT) {
			word = (uint32_t)m->fragment;
			addr = m->fragment >> 32;
		}
		put_le32(d, word);
		put_le32(d + 4, (uint32_t)addr);
		put_le32(d + 8, (uint32_t)(addr >> 32));
		put_le32(d + 12, (uint32_t)la);
		if (size == 32)
			put_le32(d + 16, (uint32_t)(la >> 32));
		la += e->dlen;
		pa += (uint64_t)own_blocks(e, w->blkbits) << w->blkbits;
	}
	*ret_len = len;
	return map;
}

int erofs_zmap_make(const struct writer *w, const struct zmap *m, struct body *body)
{
	const struct shape s = look(w, m);
	bool compact = !m->encoded && !m->legacy && !s.partial && w->blkbits <= MAX_COMPACT_BITS &&
		       m->fragment <= UINT32_MAX;
	uint8_t *map = NULL;
	size_t len = 0;
	int err;

	if (compact) {
		err = make_compact(w, m, &s, &map, &len);
		if (err && err != -ERANGE)
			return err;
	}
	body->layout = map ? 3 : 1;
	if (!map)
		map = m->encoded ? make_encoded(w, m, &s, &len) : make_full(w, m, &s, &len);
	if (!map)
		return -ENOMEM;
	body->u = (uint32_t)s.blocks;
	body->map = map;
	body->map_len = len;
	body->map_align = 8;
	return 0;
}

uint64_t erofs_zmap_estimate(const struct writer *w, uint64_t size)
{
	return 16 + div_up_pow2(size, w->blkbits) * (w->blkbits <= MAX_2B_BITS ? 2 : 4);
}

uint64_t erofs_zmap_partial_costs(const struct writer *w, uint64_t size)
{
	if (w->o->legacy_compress || w->o->encoded_extents || w->blkbits > MAX_COMPACT_BITS)
		return 0;
	return div_up_pow2(size, w->blkbits) * (sizeof(struct disk_full_index) - 4);
}

void erofs_zmap_whole_fragment(uint64_t offset, uint8_t dst[16])
{
	memset(dst, 0, 16);
	put_le64(dst, offset | UINT64_C(1) << 63);
}
