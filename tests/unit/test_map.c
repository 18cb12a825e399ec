// SPDX-License-Identifier: GPL-2.0-or-later
/* map: worked examples of format.md 9.5, chunks, holes, addresses out of range. */
#include <errno.h>
#include <sys/stat.h>

#include "map/map_priv.h"
#include "tiny.h"

#define NID 39			/* byte 0x4e0, as in the worked examples */
#define POS (NID * 32)
#define CHUNKED 0x4

static void put_hex(struct tiny *t, size_t off, const char *hex)
{
	unsigned int v, n;

	for (; sscanf(hex, " %2x%n", &v, &n) == 1; hex += n)
		t->bytes[off++] = (uint8_t)v;
}

static void put_inode(struct tiny *t, unsigned int layout, uint32_t size, uint32_t u)
{
	memset(t->bytes + POS, 0, 32);
	put16(t, POS, layout << 1);
	put16(t, POS + 4, S_IFREG | 0644);
	put16(t, POS + 6, 1);
	put32(t, POS + 8, size);
	put32(t, POS + 16, u);
}

static void put_extended(struct tiny *t, unsigned int layout, uint64_t size, uint32_t u)
{
	memset(t->bytes + POS, 0, 64);
	put16(t, POS, 1 | layout << 1);
	put16(t, POS + 4, S_IFREG | 0644);
	put64(t, POS + 8, size);
	put32(t, POS + 16, u);
	put32(t, POS + 44, 1);
}

static void open_inode(struct tiny *t, struct erofs_inode *ino)
{
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID, ino), 0);
}

struct want {
	uint64_t la, pa, plen;
};

/* Forward: exactly these heads; by seek: every offset leads into the extent that holds it. */
static void expect_extents(struct tiny *t, const struct erofs_inode *ino, const struct want *want, size_t count)
{
	struct extent ext;
	struct map map;
	uint64_t la;
	size_t i;

	assert_int_equal(erofs_map_begin(&map, ino, &t->mb, true), 0);
	for (i = 0; i < count; i++) {
		uint64_t end = i + 1 < count ? want[i + 1].la : ino->size;

		assert_int_equal(erofs_map_next(&map, &ext), 1);
		assert_int_equal(ext.la, want[i].la);
		assert_int_equal(ext.len, end - want[i].la);
		assert_int_equal(ext.kind == EXTENT_HOLE, !want[i].plen);
		if (ext.kind == EXTENT_HOLE)
			continue;
		assert_int_equal(ext.pa, want[i].pa);
		assert_int_equal(ext.plen, want[i].plen);
	}
	assert_int_equal(erofs_map_next(&map, &ext), 0);
	for (la = 0, i = 0; la < ino->size; la += 61) {
		while (i + 1 < count && want[i + 1].la <= la)
			i++;
		assert_int_equal(erofs_map_begin(&map, ino, &t->mb, false), 0);
		assert_int_equal(erofs_map_seek(&map, la), 0);
		assert_int_equal(erofs_map_next(&map, &ext), 1);
		assert_true(ext.la <= la && la < ext.la + ext.len);
		if (ext.kind == EXTENT_HOLE)
			continue;
		/* raw data may begin at any chunk, a pcluster only at its head */
		if (ext.kind == EXTENT_ENCODED)
			assert_int_equal(ext.la, want[i].la);
		assert_int_equal(ext.pa - want[i].pa, ext.la - want[i].la);
	}
}

static void compact_indexes_of_one_block_pclusters(void **state)
{
	/* slots 2 to 14 of the 2B pack are read off by hand: heads at 1, 3, 4, 6, 7, 9, 10, 12, 13 */
	struct tiny *t = *state;
	struct erofs_inode ino;
	struct extent ext;
	struct map map;
	static const struct { uint64_t la, blk; } heads[] = {
		{ 0, 1 }, { 6512, 2 }, { 12978, 3 }, { 19511, 4 }, { 26130, 5 }, { 32627, 6 },
	};
	uint64_t end = 0, blk = 0;
	size_t i;

	t->size = 25 * 4096;
	put32(t, TINY_SUPER + 36, 25);
	put32(t, TINY_SUPER + 80, EROFS_INCOMPAT_ZERO_PADDING);
	put_inode(t, LAYOUT_Z_COMPACT, 90000, 0);
	put_hex(t, 0x500, "00000000 01000000 0010701900000000 0120b21202000000 371c012003000000"
		"12d6dc170082650120c954ca05801f56f317008e6501e0ac94be413e04000000");
	open_inode(t, &ino);
	assert_int_equal(erofs_map_begin(&map, &ino, &t->mb, true), 0);
	for (i = 0; erofs_map_next(&map, &ext) == 1; i++) {
		assert_int_equal(ext.kind, EXTENT_ENCODED);
		assert_int_equal(ext.la, end);
		assert_int_equal(ext.plen, 4096);
		assert_int_equal(ext.pa, (blk + 1) * 4096);
		if (i < sizeof(heads) / sizeof(*heads)) {
			assert_int_equal(ext.la, heads[i].la);
			assert_int_equal(ext.pa, heads[i].blk * 4096);
		}
		end = ext.la + ext.len;
		blk++;
	}
	assert_int_equal(end, 90000);
	assert_int_equal(tiny_flush(t), 0);
}

static void compact_indexes_of_big_pclusters(void **state)
{
	static const struct want want[] = {
		{ 0, 4096, 16384 }, { 33895, 5 * 4096, 16384 }, { 65782, 9 * 4096, 16384 },
	};
	struct tiny *t = *state;
	struct erofs_inode ino;

	t->size = 25 * 4096;
	put32(t, TINY_SUPER + 36, 25);
	put32(t, TINY_SUPER + 80, EROFS_INCOMPAT_ZERO_PADDING | EROFS_INCOMPAT_COMPR_CFGS);
	put16(t, TINY_SUPER + 84, 1);			/* LZ4 */
	put16(t, TINY_SUPER + 128, 14);			/* its record */
	put16(t, TINY_SUPER + 132, 4);			/* pclusters of 4 blocks at most */
	/* the header of the example lies at 0x520: the same file, one inode slot further */
	put_inode(t, LAYOUT_Z_COMPACT, 90000, 0);
	memmove(t->bytes + POS + 32, t->bytes + POS, 32);
	put_hex(t, 0x520, "00000000 07000000 0010042801000000 0220052005000000 0420032005000000"
		"06e001784611a002e0004800168006e001680f11a002e0004800423e05000000");
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID + 1, &ino), 0);
	expect_extents(t, &ino, want, 3);
	assert_int_equal(tiny_flush(t), 0);
}

static void neighbouring_chunks_are_one_extent(void **state)
{
	static const struct want want[] = { { 0, 8192, 8192 }, { 8192, 0, 0 }, { 16384, 4096, 3000 } };
	struct tiny *t = *state;
	struct erofs_inode ino;

	put32(t, TINY_SUPER + 80, CHUNKED);
	put_inode(t, LAYOUT_CHUNK, 16384 + 3000, 0);
	put32(t, POS + 32, 2);
	put32(t, POS + 36, 3);
	put32(t, POS + 40, 0xffffffff);
	put32(t, POS + 44, 0xffffffff);
	put32(t, POS + 48, 1);
	open_inode(t, &ino);
	expect_extents(t, &ino, want, 3);
}

static void a_null_chunk_of_exabytes_is_one_hole(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;
	struct extent ext;
	struct map map;

	put32(t, TINY_SUPER + 80, CHUNKED);
	put_extended(t, LAYOUT_CHUNK, UINT64_C(1) << 43, 0x1f);
	put32(t, POS + 64, 0xffffffff);
	open_inode(t, &ino);
	assert_int_equal(erofs_map_begin(&map, &ino, &t->mb, true), 0);
	assert_int_equal(erofs_map_next(&map, &ext), 1);
	assert_int_equal(ext.kind, EXTENT_HOLE);
	assert_int_equal(ext.len, UINT64_C(1) << 43);
	assert_int_equal(erofs_map_next(&map, &ext), 0);
	assert_int_equal(erofs_map_begin(&map, &ino, &t->mb, true), 0);
	assert_int_equal(erofs_map_seek(&map, (UINT64_C(1) << 43) - 1), 0);
	assert_int_equal(erofs_map_next(&map, &ext), 1);
	assert_int_equal(ext.kind, EXTENT_HOLE);
}

/* Iterate until the end or an error, which is returned. */
static int walk(struct tiny *t, const struct erofs_inode *ino)
{
	struct extent ext;
	struct map map;
	int r = erofs_map_begin(&map, ino, &t->mb, true);

	while (!r && (r = erofs_map_next(&map, &ext)) > 0)
		r = 0;
	return r;
}

static void addresses_behind_the_device_are_damage(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put32(t, TINY_SUPER + 80, CHUNKED);
	put_inode(t, LAYOUT_CHUNK, 8192, 0);
	put32(t, POS + 32, 3);
	put32(t, POS + 36, 4);
	open_inode(t, &ino);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	tiny_expect(t, "extent-range", "");
	put_inode(t, LAYOUT_PLAIN, 8192, 3);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID, &ino), 0);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	tiny_expect(t, "extent-range", "");
}

static void devices_that_there_are_none_of_are_damage(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put32(t, TINY_SUPER + 80, CHUNKED | EROFS_INCOMPAT_DEVICE_TABLE);
	put16(t, TINY_SUPER + 86, 2);		/* slots, at 2 * 128 */
	put16(t, TINY_SUPER + 88, 2);
	put32(t, 256 + 64, 1);
	put32(t, 384 + 64, 1);
	put32(t, 256 + 68, 100);		/* not in the image's own file */
	put32(t, 384 + 68, 101);
	put_inode(t, LAYOUT_CHUNK, 4096, 0x20);
	put16(t, POS + 34, 3);			/* of a mask of 2 bits */
	put32(t, POS + 36, 0);
	open_inode(t, &ino);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	tiny_expect(t, "device-id", "");
	put16(t, POS + 34, 2);			/* is there, but was not given */
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID, &ino), 0);
	assert_int_equal(walk(t, &ino), -ENODEV);
}

/* A file with full indexes: @lcl entries of (type, ofs, low, high) behind the header. */
static void put_full(struct tiny *t, uint32_t size, const unsigned int lcl[][4], size_t count)
{
	size_t i, at = POS + 32 + 16;

	put32(t, TINY_SUPER + 80, EROFS_INCOMPAT_ZERO_PADDING);
	put_inode(t, LAYOUT_Z_FULL, size, 0);
	memset(t->bytes + POS + 32, 0, 16);
	for (i = 0; i < count; i++, at += 8) {
		put16(t, at, lcl[i][0]);
		put16(t, at + 2, lcl[i][1]);
		put16(t, at + 4, lcl[i][2]);
		put16(t, at + 6, lcl[i][3]);
	}
}

static void full_indexes_and_what_is_wrong_with_them(void **state)
{
	static const unsigned int good[][4] = { { 1, 0, 1, 0 }, { 2, 0, 1, 1 }, { 1, 100, 2, 0 } };
	static const unsigned int far_back[][4] = { { 2, 0, 1, 0 }, { 1, 0, 1, 0 } };
	static const unsigned int behind[][4] = { { 1, 0, 9, 0 } };
	static const struct want want[] = { { 0, 4096, 4096 }, { 8292, 8192, 4096 } };
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_full(t, 12000, good, 3);
	open_inode(t, &ino);
	expect_extents(t, &ino, want, 2);
	assert_int_equal(tiny_flush(t), 0);
	put_full(t, 8000, far_back, 2);
	open_inode(t, &ino);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	assert_true(tiny_flush(t) >= 1);
	put_full(t, 4000, behind, 1);
	open_inode(t, &ino);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	tiny_expect(t, "extent-range", "");
}

static void algorithms_that_the_image_does_not_have_are_damage(void **state)
{
	static const unsigned int one[][4] = { { 1, 0, 1, 0 } };
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_full(t, 4000, one, 1);
	t->bytes[POS + 32 + 6] = 2;	/* DEFLATE, and no announcement of it */
	open_inode(t, &ino);
	assert_int_equal(walk(t, &ino), -EUCLEAN);
	tiny_expect(t, "z-algorithm", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(compact_indexes_of_one_block_pclusters),
		tiny_test(compact_indexes_of_big_pclusters),
		tiny_test(neighbouring_chunks_are_one_extent),
		tiny_test(a_null_chunk_of_exabytes_is_one_hole),
		tiny_test(addresses_behind_the_device_are_damage),
		tiny_test(devices_that_there_are_none_of_are_damage),
		tiny_test(full_indexes_and_what_is_wrong_with_them),
		tiny_test(algorithms_that_the_image_does_not_have_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
