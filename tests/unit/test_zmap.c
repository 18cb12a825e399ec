// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps of compressed files: lists of extents become full, compact and encoded maps, which the reader of
 * fsck.erofs must find to be these extents again, without a note.
 */
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

/* ---- tests ---- */

static void extents_end_on_borders_and_a_byte_off(void **state)
{
	int first, second;

	EACH_BITS(i) {
		unsigned int bits = all_bits[i];
		uint32_t blksz = 1u << bits;

		for (first = -1; first <= 1; first++) {
			for (second = -1; second <= 1; second++) {
				struct list *l = begin(bits);

				l->want = usual(bits);
				coded(l, 3 * blksz + (uint32_t)first, 1);
				coded(l, 2 * blksz + (uint32_t)second, 1);
				coded(l, 5 * blksz - (uint32_t)first, 1);
				coded(l, 2 * blksz, 1);
				try_list(*state, l);
			}
		}
	}
}

static void files_of_one_extent(void **state)
{
	EACH_BITS(i) {
		unsigned int bits = all_bits[i];
		uint32_t blksz = 1u << bits, sizes[] = { 1, blksz - 1, blksz, blksz + 1, 2 * blksz, 40 * blksz + 7 };
		size_t k;

		for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			struct list *l = begin(bits);

			l->want = usual(bits);
			coded(l, sizes[k], 1);
			try_list(*state, l);
		}
	}
}

static void pclusters_of_several_blocks(void **state)
{
	EACH_BITS(i) {
		unsigned int bits = all_bits[i];
		uint32_t blksz = 1u << bits;
		struct list *l = begin(bits);

		l->want = usual(bits);
		coded(l, 9 * blksz + 1, 4);
		coded(l, 2 * blksz - 1, 1);
		plain(l, blksz);
		coded(l, 4 * blksz, 3);
		plain(l, blksz);
		plain(l, blksz);
		coded(l, 30 * blksz + 3, 16);
		coded(l, 3 * blksz + 5, 2);
		try_list(*state, l);
	}
}

static void runs_of_plain_blocks(void **state)
{
	static const unsigned int runs[] = { 1, 2, 15, 16, 17, 40 };

	EACH_BITS(i) {
		unsigned int bits = all_bits[i], k, n;
		uint32_t blksz = 1u << bits, last[] = { 1, blksz - 1, blksz };

		for (k = 0; k < sizeof(runs) / sizeof(*runs); k++) {
			struct list *l = begin(bits);

			/* the image has not so many blocks of 64 KiB */
			if (bits == 16 && runs[k] > 20) {
				free(l);
				continue;
			}
			l->want = usual(bits);
			coded(l, 3 * blksz + 77, 1);
			for (n = 0; n < runs[k]; n++)
				plain(l, blksz);
			coded(l, 2 * blksz + 1, 1);
			plain(l, blksz);
			plain(l, last[k % 3]);
			try_list(*state, l);
		}
	}
}

static void extents_of_more_lclusters_than_distances_count(void **state)
{
	struct list *l = begin(12);

	coded(l, UINT32_C(12) << 20, 200);
	coded(l, 2048 * 4096 + 1, 1);
	coded(l, 2047 * 4096, 7);
	coded(l, 2049 * 4096 - 1, 1);
	plain(l, 11);
	try_list(*state, l);
	l = begin(9);
	coded(l, 5000 * 512 + 100, 1);
	coded(l, 5000 * 512, 1);
	try_list(*state, l);
}

static void tails_in_the_packed_file(void **state)
{
	static const uint64_t offsets[] = { 0, 12345, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(5) << 32) + 99 };

	EACH_BITS(i) {
		unsigned int bits = all_bits[i];
		uint32_t blksz = 1u << bits, lens[] = { 1, blksz - 1, blksz, 3 * blksz + 1 };
		size_t k;

		for (k = 0; k < 20; k++) {
			struct list *l = begin(bits);

			l->want = offsets[k % 5] > UINT32_MAX ? FULL : usual(bits);
			coded(l, 4 * blksz + (k & 1), 1 + (k & 2));
			if (k & 4)
				plain(l, blksz);
			fragment(l, lens[k / 5], offsets[k % 5]);
			try_list(*state, l);
		}
	}
}

static void tails_beside_the_inode(void **state)
{
	EACH_BITS(i) {
		unsigned int bits = all_bits[i], k;
		uint32_t blksz = 1u << bits, lens[] = { 1, blksz - 1, blksz, blksz + 1, 6 * blksz };

		for (k = 0; k < 10; k++) {
			struct list *l = begin(bits);
			uint32_t len = lens[k % 5];

			l->want = usual(bits);
			if (k >= 5)
				coded(l, 7 * blksz - 1, k & 1 ? 1 : 3);
			if (len < blksz / 2)
				beside(l, ZEXT_PLAIN, len, len);
			else
				beside(l, ZEXT_CODED, len, 17 + 13 * k);
			try_list(*state, l);
		}
	}
}

static void twins_in_compact_indexes_where_addresses_can_be_told(void **state)
{
	uint64_t data = DATA >> 12;
	struct list *l = begin(12);

	/* one head in each pair of lclusters */
	coded(l, 4 * 4096, 1);
	twin(l, 4 * 4096, 1, 100);
	coded(l, 4 * 4096, 1);
	twin(l, 4 * 4096, 1, data);
	try_list(*state, l);

	/* heads side by side, and the second is not where the first one's blocks end */
	l = begin(12);
	l->want = FULL;
	plain(l, 4096);
	twin(l, 4 * 4096, 1, 100);
	coded(l, 4 * 4096, 1);
	try_list(*state, l);

	/* the same, but it is there */
	l = begin(12);
	twin(l, 4096, 1, data + 7);
	twin(l, 4 * 4096, 1, data + 8);
	coded(l, 4 * 4096, 1);
	try_list(*state, l);

	/* a count and the next head in one pair */
	l = begin(12);
	l->want = FULL;
	coded(l, 5 * 4096, 2);
	coded(l, 2 * 4096, 2);
	twin(l, 4 * 4096, 2, 100);
	coded(l, 4 * 4096, 3);
	plain(l, 4096);
	twin(l, 9 * 4096, 1, 50);
	try_list(*state, l);
}

static void twins_of_the_packed_file_count_from_its_begin(void **state)
{
	struct list *l = begin(12);

	l->twin_base = DATA >> 12;
	coded(l, 4 * 4096, 3);
	coded(l, 4 * 4096, 2);
	twin(l, 4 * 4096, 3, 0);
	twin(l, 4 * 4096, 2, 3);
	coded(l, 3 * 4096 + 9, 1);
	try_list(*state, l);
}

static void parts_of_pclusters_take_full_indexes(void **state)
{
	EACH_BITS(i) {
		unsigned int bits = all_bits[i];
		uint32_t blksz = 1u << bits;
		struct list *l = begin(bits);

		l->want = FULL;
		coded(l, 4 * blksz, 1);
		twin(l, 3 * blksz + 100, 1, DATA >> bits)->partial = true;
		coded(l, 4 * blksz, 2);
		twin(l, 2 * blksz, 2, (DATA >> bits) + 1)->partial = true;
		plain(l, 3);
		try_list(*state, l);
	}
}

static void files_beyond_4_gib_in_encoded_extents(void **state)
{
	struct list *l = begin(12);
	unsigned int i;

	for (i = 0; i < 400; i++) {
		if (i % 5)
			twin(l, UINT32_C(12) << 20, 2, (DATA >> 12) + i % 3);
		else
			coded(l, (UINT32_C(12) << 20) - i, 2);
	}
	plain(l, 4096);
	fragment(l, 77, (UINT64_C(3) << 32) + 5);
	assert_true(l->size > UINT32_MAX);
	/* a full map of it has no room in this image */
	try_form(*state, l, &(struct form){ .head = 64, .encoded = true });
	free(l);
}

static void files_that_are_a_fragment_as_a_whole(void **state)
{
	static const uint64_t offsets[] = { 0, 4095, UINT64_C(1) << 33 };
	struct tiny *t = *state;
	struct list *l = begin(12);
	struct erofs_inode ino;
	size_t i;

	for (i = 0; i < 6; i++) {
		l->count = 0;
		l->size = 0;
		fragment(l, 9000, offsets[i % 3]);
		put_super(t, 12, 4096);
		put_inode(t, FIRST_NID * 32, 32, i < 3 ? FULL : COMPACT, l->size, 0);
		erofs_zmap_whole_fragment(l->fragment, t->bytes + FIRST_NID * 32 + 32);
		load(t, FIRST_NID, &ino);
		expect_list(t, l, &ino, 0);
	}
	free(l);
}

/* ---- by chance ---- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

static void draw_extent(struct list *l, uint64_t *seed, uint32_t most, bool twins)
{
	uint32_t blksz = 1u << l->bits, blocks = 1 + draw(seed, most), kind = draw(seed, 8);

	if (kind < 2) {
		plain(l, blksz);
	} else if (kind == 2 && twins) {
		struct zext *e = twin(l, blksz * blocks + 1 + draw(seed, 9 * blksz), blocks,
				      (DATA >> l->bits) + draw(seed, 8));

		e->partial = draw(seed, 4) == 0;
	} else {
		coded(l, blksz * blocks + 1 + draw(seed, draw(seed, 2) ? blksz : 20 * blksz), blocks);
	}
}

static void lists_by_chance(void **state)
{
	uint64_t seed = 7;
	unsigned int n, i;

	for (n = 0; n < 120; n++) {
		unsigned int bits = all_bits[n % 6], count = 1 + draw(&seed, 40);
		struct list *l = begin(bits);
		uint32_t most = n % 4 ? 5 : 1, blksz = 1u << bits, tail = draw(&seed, 4);

		l->want = n % 5 ? usual(bits) : 0;
		for (i = 0; i < count && (l->blocks + 6) << bits < SIZE - DATA; i++)
			draw_extent(l, &seed, most, n % 5 == 0);
		if (tail == 0)
			fragment(l, 1 + draw(&seed, 3 * blksz), draw(&seed, 1u << 30));
		else if (tail == 1)
			beside(l, ZEXT_CODED, 1 + draw(&seed, 2 * blksz), 1 + draw(&seed, blksz / 2));
		else if (tail == 2)
			plain(l, 1 + draw(&seed, blksz));
		try_list(*state, l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(files_of_one_extent),
		tiny_test(extents_end_on_borders_and_a_byte_off),
		tiny_test(pclusters_of_several_blocks),
		tiny_test(runs_of_plain_blocks),
		tiny_test(extents_of_more_lclusters_than_distances_count),
		tiny_test(tails_in_the_packed_file),
		tiny_test(tails_beside_the_inode),
		tiny_test(twins_in_compact_indexes_where_addresses_can_be_told),
		tiny_test(twins_of_the_packed_file_count_from_its_begin),
		tiny_test(parts_of_pclusters_take_full_indexes),
		tiny_test(files_beyond_4_gib_in_encoded_extents),
		tiny_test(files_that_are_a_fragment_as_a_whole),
		tiny_test(lists_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
