/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of extents, each made into maps of all forms and read back: try_list(). The map stands in a small image
 * behind its inode, at every place that a pack of indexes can begin at.
 */
#ifndef TESTS_ZLISTS_H
#define TESTS_ZLISTS_H

#include <errno.h>
#include <sys/stat.h>

#include "map/map_priv.h"
#include "tiny.h"
#include "write/write_priv.h"

#define SIZE (4u << 20)			/* of the image */
#define DATA (2u << 20)			/* where its pclusters begin; maps are in front */
#define FIRST_NID 40u			/* behind superblock and configuration */
#define MOST 1024u			/* extents */
#define FULL 1u				/* layouts of the format */
#define COMPACT 3u
#define PACKED_SIZE (UINT64_C(1) << 40)

struct list {
	struct zext ext[MOST];
	size_t count;
	uint64_t size, fragment, blocks;
	uint64_t twin_base;		/* 0: addresses are those of the image */
	unsigned int bits;
	unsigned int want;		/* layout; 0: whatever comes */
};

struct form {
	bool legacy, encoded;
	size_t head;			/* of the inode */
};

static struct list *begin(unsigned int bits)
{
	struct list *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->bits = bits;
	l->want = COMPACT;
	return l;
}

static struct zext *add(struct list *l, unsigned int kind, uint64_t dlen, uint32_t plen)
{
	struct zext *e = &l->ext[l->count++];

	assert_true(l->count <= MOST);
	*e = (struct zext){ .kind = (uint8_t)kind, .dlen = (uint32_t)dlen, .plen = plen };
	l->size += dlen;
	return e;
}

static void coded(struct list *l, uint64_t dlen, uint32_t blocks)
{
	add(l, ZEXT_CODED, dlen, (blocks << l->bits) - 5);
	l->blocks += blocks;
}

static void plain(struct list *l, uint32_t dlen)
{
	add(l, ZEXT_PLAIN, dlen, dlen);
	l->blocks++;
}

static void fragment(struct list *l, uint32_t dlen, uint64_t offset)
{
	add(l, ZEXT_FRAGMENT, dlen, 0);
	l->fragment = offset;
}

static void beside(struct list *l, unsigned int kind, uint32_t dlen, uint32_t plen)
{
	add(l, kind, dlen, plen)->beside = true;
}

/* @block: counts from twin_base, or is the image's */
static struct zext *twin(struct list *l, uint64_t dlen, uint32_t blocks, uint64_t block)
{
	struct zext *e = add(l, ZEXT_CODED, dlen, blocks << l->bits);

	e->twin = true;
	e->block = block;
	return e;
}

/* ---- the image around the map ---- */

/* @used: bytes in front of the data */
static void put_super(struct tiny *t, unsigned int bits, size_t used)
{
	assert_true(used < DATA);
	t->size = used;
	t->hole = SIZE - used;
	free(t->bytes);
	t->bytes = calloc(1, used);
	assert_non_null(t->bytes);
	put32(t, TINY_SUPER, 0xe0f5e1e2);
	t->bytes[TINY_SUPER + 12] = (uint8_t)bits;
	put16(t, TINY_SUPER + 14, 36);
	put32(t, TINY_SUPER + 36, SIZE >> bits);
	put32(t, TINY_SUPER + 80, EROFS_INCOMPAT_ZERO_PADDING | EROFS_INCOMPAT_COMPR_CFGS |
		     EROFS_INCOMPAT_ZTAILPACKING | EROFS_INCOMPAT_FRAGMENTS);
	put16(t, TINY_SUPER + 84, 1);			/* LZ4 */
	put16(t, TINY_SUPER + 128, 14);			/* its record */
	put16(t, TINY_SUPER + 132, bits < 12 ? 256 : (1u << 20) >> bits);	/* blocks of the largest pcluster */
}

/* heads of 32 and 64 bytes are those of the two forms of inodes; others have attributes behind the smaller */
static void put_inode(struct tiny *t, uint64_t pos, size_t head, unsigned int layout, uint64_t size, uint32_t u)
{
	bool extended = head == 64;

	put16(t, pos, layout << 1 | extended);
	put16(t, pos + 4, S_IFREG | 0644);
	put32(t, pos + 8, (uint32_t)size);
	put32(t, pos + 16, u);
	if (extended) {
		put64(t, pos + 8, size);
		put32(t, pos + 44, 1);
		return;
	}
	put16(t, pos + 6, 1);
	if (head > 32)
		put16(t, pos + 2, (unsigned int)(head - 32 - 12) / 4 + 1);
}

static void load(struct tiny *t, uint64_t nid, struct erofs_inode *ino)
{
	struct erofs_inode *packed = calloc(1, sizeof(*packed));

	if (tiny_open(t)) {
		tiny_flush(t);
		fail_msg("%s: %s", t->id, t->text);
	}
	assert_non_null(packed);
	packed->size = PACKED_SIZE;
	assert_null(t->img->super->packed);
	t->img->super->packed = packed;
	assert_int_equal(erofs_inode_load(&t->mb, nid, ino), 0);
}

/* ---- what must come out ---- */

static void expect_extent(const struct list *l, size_t i, uint64_t la, uint64_t block, uint64_t tail,
			  const struct extent *got)
{
	const struct zext *e = &l->ext[i];
	uint64_t blksz = UINT64_C(1) << l->bits;

	assert_int_equal(got->la, la);
	assert_int_equal(got->len, e->dlen);
	if (e->kind == ZEXT_FRAGMENT) {
		assert_int_equal(got->kind, EXTENT_FRAGMENT);
		assert_int_equal(got->pa, l->fragment);
		return;
	}
	assert_int_equal(got->kind, EXTENT_ENCODED);
	assert_int_equal(got->alg, e->kind == ZEXT_PLAIN ? CODEC_SHIFTED : CODEC_LZ4);
	assert_int_equal(got->partial, e->partial);
	assert_int_equal(got->meta, e->beside);
	if (e->beside) {
		assert_int_equal(got->pa, tail);
		assert_int_equal(got->plen, e->plen);
		return;
	}
	assert_int_equal(got->plen, (e->plen + blksz - 1) / blksz * blksz);
	assert_int_equal(got->pa, (e->twin ? l->twin_base + e->block : block) * blksz);
}

/* Both ways to an extent: the next one, and by an offset in it. */
static void expect_list(struct tiny *t, const struct list *l, const struct erofs_inode *ino, uint64_t tail)
{
	uint64_t la = 0, block = DATA >> l->bits;
	struct map map, seek;
	struct extent ext;
	size_t i, k;

	assert_int_equal(erofs_map_begin(&map, ino, &t->mb, true), 0);
	assert_int_equal(erofs_map_begin(&seek, ino, &t->mb, true), 0);
	for (i = 0; i < l->count; i++) {
		const struct zext *e = &l->ext[i];
		uint64_t within[] = { 0, 1, e->dlen / 2, e->dlen - 1 };

		assert_int_equal(erofs_map_next(&map, &ext), 1);
		expect_extent(l, i, la, block, tail, &ext);
		for (k = 0; k < 4 && within[k] < e->dlen; k++) {
			assert_int_equal(erofs_map_seek(&seek, la + within[k]), 0);
			assert_int_equal(erofs_map_next(&seek, &ext), 1);
			expect_extent(l, i, la, block, tail, &ext);
		}
		la += e->dlen;
		if (!e->twin && !e->beside && e->kind != ZEXT_FRAGMENT)
			block += (e->plen + (UINT64_C(1) << l->bits) - 1) >> l->bits;
	}
	assert_int_equal(erofs_map_next(&map, &ext), 0);
	assert_int_equal(tiny_flush(t), 0);
}

/* Where the tail, if there is one, does not cross its block. */
static uint64_t choose_nid(const struct list *l, size_t len)
{
	const struct zext *last = &l->ext[l->count - 1];
	uint64_t nid = FIRST_NID, blksz = UINT64_C(1) << l->bits;

	while (last->beside && (nid * 32 + len) % blksz + last->plen > blksz)
		nid++;
	return nid;
}

static void try_form(struct tiny *t, const struct list *l, const struct form *f)
{
	struct zmap m = { .ext = l->ext, .count = l->count, .size = l->size, .block = DATA >> l->bits,
			  .twin_base = l->twin_base, .fragment = l->fragment, .head = f->head, .alg = CODEC_LZ4,
			  .legacy = f->legacy, .encoded = f->encoded };
	size_t start = (f->head + 7) / 8 * 8;
	struct writer *w = calloc(1, sizeof(*w));
	struct body body = { 0 };
	struct erofs_inode ino;
	uint64_t nid;

	assert_non_null(w);
	w->blkbits = l->bits;
	w->blksz = 1u << l->bits;
	assert_int_equal(erofs_zmap_make(w, &m, &body), 0);
	free(w);
	if (f->legacy || f->encoded)
		assert_int_equal(body.layout, FULL);
	else if (l->want)
		assert_int_equal(body.layout, l->want);
	assert_int_equal(body.u, l->blocks);
	assert_int_equal(body.map_align, 8);
	assert_true(l->blocks << l->bits <= SIZE - DATA);
	nid = choose_nid(l, start + body.map_len);
	put_super(t, l->bits, nid * 32 + start + body.map_len);
	put_inode(t, nid * 32, f->head, body.layout, l->size, body.u);
	memcpy(t->bytes + nid * 32 + start, body.map, body.map_len);
	load(t, nid, &ino);
	expect_list(t, l, &ino, nid * 32 + start + body.map_len);
	free((void *)body.map);
}

/* As many places of the map as there are in 32 bytes: packs of sixteen begin where these do. */
static void try_list(struct tiny *t, struct list *l)
{
	static const size_t heads[] = { 32, 64, 44, 52, 60 };
	bool tail = l->ext[l->count - 1].beside;
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		if (l->size > UINT32_MAX && heads[i] != 64)
			continue;
		try_form(t, l, &(struct form){ .head = heads[i] });
		try_form(t, l, &(struct form){ .head = heads[i], .legacy = true });
		/* mkfs.erofs puts nothing beside inodes in 48-bit images */
		if (!tail)
			try_form(t, l, &(struct form){ .head = heads[i], .encoded = true });
	}
	free(l);
}

static const unsigned int all_bits[] = { 9, 10, 12, 13, 14, 16 };
#define EACH_BITS(i) for (size_t i = 0; i < sizeof(all_bits) / sizeof(*all_bits); i++)

static unsigned int usual(unsigned int bits)
{
	return bits <= 14 ? COMPACT : FULL;
}

#endif
