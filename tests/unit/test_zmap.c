// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps of compressed files: lists of extents become full, compact and encoded maps, which the reader of
 * fsck.erofs must find to be these extents again, without a note.
 */
#include "zlists.h"

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
