// SPDX-License-Identifier: GPL-2.0-or-later
/* check: link counts and references in windows, merging, the list of damage. */
#include "tiny.h"

#include "check/check_priv.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* Count names over as many passes as it takes. Return: the passes; in *ret_whole the inodes counted in full. */
static unsigned int count_links(size_t bytes, unsigned int inodes, unsigned int names, uint64_t *ret_whole)
{
	unsigned int passes = 0, i, shard;
	uint64_t whole = 0;
	struct links links;

	assert_int_equal(erofs_links_init(&links, bytes), 0);
	do {
		for (i = 0; i < inodes * names; i++) {
			uint64_t nid = (uint64_t)(i % inodes) * 7919 % 1000003;

			(void)erofs_links_add(&links, nid, names);
		}
		passes++;
		for (shard = 0; shard < LINK_SHARDS; shard++)
			for (i = 0; i < links.shards[shard].nslots; i++) {
				const struct link_slot *slot = &links.shards[shard].slots[i];

				if (slot->names && slot->nid < atomic_load(&links.hi)) {
					assert_int_equal(slot->names, names);
					whole++;
				}
			}
		if (!erofs_links_advance(&links))
			break;
		erofs_links_clear(&links);
	} while (passes < 1000);
	erofs_links_fini(&links);
	*ret_whole = whole;
	return passes;
}

static void rule_E5_names_are_counted_in_windows_that_fit(void **state)
{
	uint64_t whole;

	(void)state;
	assert_int_equal(count_links(1 << 20, 5000, 3, &whole), 1);
	assert_int_equal(whole, 5000);
	/* 64 slots a shard: several passes, and nothing is lost or counted twice */
	assert_true(count_links(1, 5000, 3, &whole) > 2);
	assert_int_equal(whole, 5000);
}

static void wrong_link_counts_are_reported(void **state)
{
	struct tiny *t = *state;
	struct links links;
	unsigned int i;

	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_links_init(&links, 1 << 16), 0);
	for (i = 0; i < 3; i++)
		(void)erofs_links_add(&links, 40, 2);
	(void)erofs_links_add(&links, 41, 1);
	erofs_links_report(&links, t->img, t->diag);
	tiny_expect(t, "inode-nlink", "link count is 2, 3 names");
	assert_int_equal(t->found, 1);
	erofs_links_fini(&links);
}

/* All references below the window's end must come out once, in order. Return: how many. */
static size_t collect(struct refs lanes[2], struct ref_window *win, const struct pcref *all, size_t count)
{
	struct ref_stream stream;
	struct pcref ref;
	uint64_t last = 0;
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		assert_int_equal(erofs_refs_add(&lanes[i % 2], win, &all[i]), 0);
	erofs_refs_sort(&lanes[0]);
	erofs_refs_sort(&lanes[1]);
	assert_int_equal(erofs_refs_stream_begin(&stream, lanes, 2, atomic_load(&win->hi)), 0);
	for (; erofs_refs_stream_next(&stream, &ref); n++) {
		assert_true(!n || last < ref.addr);
		last = ref.addr;
	}
	erofs_refs_stream_end(&stream);
	free(lanes[0].refs);
	free(lanes[1].refs);
	return n;
}

static void rule_E5_references_come_out_once_over_all_windows(void **state)
{
	enum { COUNT = 20000 };
	struct pcref *all = calloc(COUNT, sizeof(*all));
	struct ref_window win = { 0 };
	uint64_t seed = 1, hi;
	size_t seen = 0, passes = 0, i, distinct = 0;

	(void)state;
	assert_non_null(all);
	for (i = 0; i < COUNT; i++) {
		/* every address twice, in both lanes, in no order */
		all[i].addr = i / 2 * 4096 ^ (i / 2 % 7 << 30);
		all[i].word = pcref_pack(0, false, 4096, 8192);
	}
	distinct = COUNT / 2;
	for (i = COUNT - 1; i; i--) {
		size_t j = next_random(&seed) % (i + 1);
		struct pcref swap = all[i];

		all[i] = all[j];
		all[j] = swap;
	}
	atomic_init(&win.hi, UINT64_MAX);
	do {
		struct refs lanes[2] = { { 0 }, { 0 } };

		atomic_store(&win.spare, 1000);

		seen += collect(lanes, &win, all, COUNT);
		hi = atomic_load(&win.hi);
		assert_true(hi > win.lo);
		win.lo = hi;
		atomic_store(&win.hi, UINT64_MAX);
		passes++;
	} while (hi != UINT64_MAX && passes < 1000);
	assert_int_equal(seen, distinct);
	assert_true(passes > 5);
	free(all);
}

/* Merge a list made of (addr, alg, partial, plen, dlen); returns the number of damages. */
struct ref_words {
	uint64_t addr;
	unsigned int alg;
	bool partial;
	uint64_t plen, dlen;
};

static size_t merge(const struct ref_words *w, size_t count, struct pcref *ret_first, size_t *ret_count,
		    enum erofs_finding_id *ret_id)
{
	struct check c = { .packed_broken = UINT64_MAX };
	struct refs all = { .refs = calloc(count, sizeof(*all.refs)), .count = count };
	struct merger merger = { .check = &c };
	struct pcref *out = calloc(count + 1, sizeof(*out));
	size_t i, n = 0, faults;

	assert_non_null(out);
	assert_non_null(all.refs);
	for (i = 0; i < count; i++) {
		all.refs[i].addr = w[i].addr;
		all.refs[i].word = w[i].alg == 99 ? PCREF_RAW | w[i].plen :
				   pcref_pack(w[i].alg, w[i].partial, w[i].plen, w[i].dlen);
	}
	erofs_refs_sort(&all);
	assert_int_equal(erofs_damage_init(&c.damage), 0);
	for (i = 0; i < count; i++)
		n += erofs_merge_put(&merger, &all.refs[i], &out[n]);
	n += erofs_merge_end(&merger, &out[n]);
	faults = c.damage.count;
	*ret_id = faults ? c.damage.list[0].id : EROFS_FINDING_FAIL;
	*ret_first = out[0];
	*ret_count = n;
	erofs_damage_fini(&c.damage);
	free(all.refs);
	free(out);
	return faults;
}

static void rule_E1_references_that_agree_are_one(void **state)
{
	static const struct ref_words w[] = {
		{ 4096, 0, true, 4096, 5000 }, { 4096, 0, false, 4096, 9000 }, { 4096, 0, true, 4096, 9000 },
	};
	enum erofs_finding_id id;
	struct pcref first;
	size_t count;

	(void)state;
	assert_int_equal(merge(w, 3, &first, &count, &id), 0);
	assert_int_equal(count, 1);
	assert_int_equal(pcref_dlen(&first), 9000);
	assert_false(pcref_partial(&first));
}

static void rule_E1_references_that_contradict_are_damage(void **state)
{
	static const struct ref_words longer[] = {
		{ 4096, 0, true, 4096, 9000 }, { 4096, 0, false, 4096, 5000 },
	};
	static const struct ref_words other_size[] = {
		{ 4096, 0, false, 4096, 5000 }, { 4096, 0, false, 8192, 5000 },
	};
	static const struct ref_words other_alg[] = {
		{ 4096, 0, false, 4096, 5000 }, { 4096, 1, false, 4096, 5000 },
	};
	enum erofs_finding_id id;
	struct pcref first;
	size_t count;

	(void)state;
	assert_int_equal(merge(longer, 2, &first, &count, &id), 1);
	assert_int_equal(id, EROFS_FINDING_EXTENT_KEY);
	assert_int_equal(merge(other_size, 2, &first, &count, &id), 1);
	assert_int_equal(id, EROFS_FINDING_EXTENT_KEY);
	assert_int_equal(merge(other_alg, 2, &first, &count, &id), 1);
	assert_int_equal(id, EROFS_FINDING_EXTENT_KEY);
}

static void rule_E1_pclusters_that_overlap_are_damage(void **state)
{
	static const struct ref_words w[] = {
		{ 4096, 0, false, 16384, 30000 }, { 8192, 0, false, 4096, 5000 },
	};
	static const struct ref_words beside[] = {
		{ 4096, 0, false, 4096, 30000 }, { 8192, 0, false, 4096, 5000 },
	};
	enum erofs_finding_id id;
	struct pcref first;
	size_t count;

	(void)state;
	assert_int_equal(merge(w, 2, &first, &count, &id), 1);
	assert_int_equal(id, EROFS_FINDING_EXTENT_OVERLAP);
	assert_int_equal(merge(beside, 2, &first, &count, &id), 0);
	assert_int_equal(count, 2);
}

static void rule_E1_plain_data_may_be_shared_in_any_way_and_is_read_once(void **state)
{
	static const struct ref_words w[] = {
		{ 4096, 99, false, 8192, 0 }, { 8192, 99, false, 8192, 0 }, { 4096, 99, false, 100, 0 },
	};
	enum erofs_finding_id id;
	struct pcref first;
	size_t count;

	(void)state;
	assert_int_equal(merge(w, 3, &first, &count, &id), 0);
	assert_int_equal(count, 2);
	assert_int_equal(pcref_plen(&first), 8192);
}

static void rule_E5_of_too_much_damage_the_first_by_address_is_kept(void **state)
{
	struct damage_list d;
	uint64_t i;

	(void)state;
	assert_int_equal(erofs_damage_init(&d), 0);
	for (i = 0; i < 3 * DAMAGE_MAX; i++)
		erofs_damage_add(&d, (i * 7919 % (3 * DAMAGE_MAX)) * 4096, 4096, EROFS_FINDING_DATA_DECODE, -117,
				 "broken");
	erofs_damage_add(&d, 0, 4096, EROFS_FINDING_DATA_DECODE, -117, "broken");	/* known */
	assert_int_equal(d.count, DAMAGE_MAX);
	assert_int_equal(d.dropped, 2 * DAMAGE_MAX);
	for (i = 0; i < DAMAGE_MAX; i++)
		assert_int_equal(d.list[i].addr, i * 4096);
	erofs_damage_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_E5_names_are_counted_in_windows_that_fit),
		tiny_test(wrong_link_counts_are_reported),
		cmocka_unit_test(rule_E5_references_come_out_once_over_all_windows),
		cmocka_unit_test(rule_E1_references_that_agree_are_one),
		cmocka_unit_test(rule_E1_references_that_contradict_are_damage),
		cmocka_unit_test(rule_E1_pclusters_that_overlap_are_damage),
		cmocka_unit_test(rule_E1_plain_data_may_be_shared_in_any_way_and_is_read_once),
		cmocka_unit_test(rule_E5_of_too_much_damage_the_first_by_address_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
