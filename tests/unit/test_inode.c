// SPDX-License-Identifier: GPL-2.0-or-later
/* meta: metadata reads and inodes. */
#include <errno.h>
#include <sys/stat.h>

#include "tiny.h"

#define NID 100			/* of the inode that tests load: byte 3200 */
#define POS (NID * 32)
#define BOX (UINT64_C(1) << 63)

static void put_compact(struct tiny *t, unsigned int format, unsigned int mode, uint32_t size)
{
	memset(t->bytes + POS, 0, 64);
	put16(t, POS, format);
	put16(t, POS + 4, mode);
	put16(t, POS + 6, 1);
	put32(t, POS + 8, size);
}

static void put_extended(struct tiny *t, unsigned int layout, unsigned int mode, uint64_t size)
{
	memset(t->bytes + POS, 0, 64);
	put16(t, POS, 1 | layout << 1);
	put16(t, POS + 4, mode);
	put64(t, POS + 8, size);
	put32(t, POS + 44, 1);
}

static int load(struct tiny *t, struct erofs_inode *ino)
{
	assert_int_equal(tiny_open(t), 0);
	return erofs_inode_load(&t->mb, NID, ino);
}

static void expect_damage(struct tiny *t, int err, const char *id, const char *words)
{
	struct erofs_inode ino;

	assert_int_equal(load(t, &ino), err);
	tiny_expect(t, id, words);
}

static void reads_cross_pages_and_stop_at_the_end(void **state)
{
	struct tiny *t = *state;
	uint8_t buf[6000];
	size_t i;

	t->size = 200 * 1024 + 5;
	for (i = 2048; i < t->size; i++)
		t->bytes[i] = (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(tiny_open(t), 0);
	for (i = 4000; i + sizeof(buf) <= t->size; i += 3333) {
		assert_int_equal(erofs_metabuf_read(&t->mb, false, 1, i, buf, sizeof(buf)), 0);
		assert_memory_equal(buf, t->bytes + i, sizeof(buf));
	}
	assert_int_equal(erofs_metabuf_read(&t->mb, false, 1, t->size - 5, buf, 5), 0);
	assert_memory_equal(buf, t->bytes + t->size - 5, 5);
	assert_int_equal(erofs_metabuf_read(&t->mb, false, 1, t->size, buf, 0), 0);
	assert_int_equal(erofs_metabuf_peek(&t->mb, false, t->size - 5, buf, 10), 5);
	assert_int_equal(erofs_metabuf_peek(&t->mb, false, t->size, buf, 10), 0);
	assert_int_equal(erofs_metabuf_peek(&t->mb, false, UINT64_MAX, buf, 10), 0);
	assert_int_equal(tiny_flush(t), 0);
}

static void reads_behind_the_end_are_damage(void **state)
{
	static const uint64_t offs[] = { 16381, 16384, UINT64_MAX - 1, UINT64_MAX };
	struct tiny *t = *state;
	uint8_t buf[4];
	size_t i;

	assert_int_equal(tiny_open(t), 0);
	for (i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
		assert_int_equal(erofs_metabuf_read(&t->mb, false, 9, offs[i], buf, 4), -EUCLEAN);
		tiny_expect(t, "meta-range", "behind the end of the image (16384 bytes)");
	}
	assert_int_equal(erofs_metabuf_read(&t->mb, true, 9, 0, buf, 4), -EUCLEAN);
	tiny_expect(t, "meta-range", "behind the end of the metabox (0 bytes)");
}

static int read_box(void *arg, uint64_t off, void *buf, size_t len)
{
	memcpy(buf, (const uint8_t *)arg + off, len);
	return 0;
}

/* Pretend that the metabox file is the bytes from 8192 on. */
static void attach_box(struct tiny *t, uint64_t size)
{
	t->img->super->metabox = calloc(1, sizeof(struct erofs_inode));
	assert_non_null(t->img->super->metabox);
	t->img->super->metabox->size = size;
	t->mb.late.arg = t->bytes + 8192;
	t->mb.late.read_metabox = read_box;
}

static void inodes_in_the_metabox_count_from_its_beginning(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put32(t, TINY_SUPER + 80, 0x100);
	put32(t, TINY_SUPER + 40, 1);		/* not added for metabox nids */
	t->bytes[TINY_SUPER + 13] = 1;
	put64(t, TINY_SUPER + 128, 50);
	put16(t, 8192 + 32 + 4, S_IFREG | 0600);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, BOX + 1, &ino), -EUCLEAN);
	tiny_expect(t, "inode-nid", "behind the end of the metabox (0 bytes)");
	attach_box(t, 64);
	assert_int_equal(erofs_inode_load(&t->mb, BOX + 1, &ino), 0);
	assert_true(ino.in_box);
	assert_int_equal(ino.pos, 32);
	assert_int_equal(ino.mode, S_IFREG | 0600);
	assert_int_equal(erofs_inode_load(&t->mb, BOX + 2, &ino), -EUCLEAN);
	tiny_expect(t, "inode-nid", "behind the end of the metabox (64 bytes)");
}

static void nids_that_lead_nowhere_are_damage(void **state)
{
	static const uint64_t nids[] = { 512, UINT64_C(1) << 59, BOX - 1 };
	struct tiny *t = *state;
	struct erofs_inode ino;
	size_t i;

	assert_int_equal(tiny_open(t), 0);
	for (i = 0; i < sizeof(nids) / sizeof(nids[0]); i++) {
		assert_int_equal(erofs_inode_load(&t->mb, nids[i], &ino), -EUCLEAN);
		tiny_expect(t, "inode-nid", "behind the end of the image");
	}
	assert_int_equal(erofs_inode_load(&t->mb, UINT64_MAX, &ino), -EUCLEAN);
	tiny_expect(t, "inode-nid", "in the metabox, and the image has none");
}

static void compact_inode_fields_come_out(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put64(t, TINY_SUPER + 24, 1700000000);
	put32(t, TINY_SUPER + 32, 500);
	put_compact(t, 0, S_IFREG | 04755, 5000);
	put16(t, POS + 6, 3);
	put32(t, POS + 12, 99);			/* counts without 48BIT too, as Linux 6.15 and later show it */
	put32(t, POS + 16, 2);
	put16(t, POS + 24, 65535);
	put16(t, POS + 26, 7);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.mode, S_IFREG | 04755);
	assert_int_equal(ino.nlink, 3);
	assert_int_equal(ino.size, 5000);
	assert_int_equal(ino.start_blk, 2);
	assert_int_equal(ino.uid, 65535);
	assert_int_equal(ino.gid, 7);
	assert_int_equal(ino.mtime, 1700000099);
	assert_int_equal(ino.mtime_nsec, 500);
	assert_int_equal(ino.iend, POS + 32);
	assert_false(ino.extended || ino.start_null || ino.in_box);
	assert_int_equal(tiny_flush(t), 0);
}

static void compact_times_of_48_bit_images_count_from_the_epoch(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put32(t, TINY_SUPER + 80, 0x80);
	put64(t, TINY_SUPER + 24, (uint64_t)-10);
	put_compact(t, 0, S_IFREG, 0);
	put32(t, POS + 12, 0xffffffff);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.mtime == INT64_C(0xffffffff) - 10);
}

static void bit_4_of_a_compact_file_makes_the_link_count_an_address(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 0x10, S_IFREG, 1);
	put16(t, POS + 6, 0x1234);
	put32(t, POS + 16, 5);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.nlink, 1);
	assert_true(ino.start_blk == UINT64_C(0x123400000005));
	assert_false(ino.dot_omitted);
}

static void bit_4_of_a_directory_means_no_dot_entry(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 0x10, S_IFDIR | 0755, 100);
	put16(t, POS + 6, 9);
	put32(t, POS + 16, 1);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.dot_omitted);
	assert_int_equal(ino.nlink, 9);
	assert_int_equal(ino.start_blk, 1);
}

static void holes_of_flat_files_are_as_wide_as_their_address(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 0, S_IFREG, 4096);
	put32(t, POS + 16, 0xffffffff);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.start_null);
	put16(t, POS, 0x10);
	assert_int_equal(load(t, &ino), 0);
	assert_false(ino.start_null);
	put16(t, POS + 6, 0xffff);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.start_null);
	put_extended(t, LAYOUT_PLAIN, S_IFREG, 4096);
	put32(t, POS + 16, 0xffffffff);
	assert_int_equal(load(t, &ino), 0);
	assert_false(ino.start_null);
	put16(t, POS + 6, 0xffff);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.start_null);
}

static void extended_inode_fields_come_out(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put64(t, TINY_SUPER + 24, 1700000000);	/* not for extended ones */
	put_extended(t, LAYOUT_PLAIN, S_IFREG | 0644, INT64_MAX);
	put32(t, POS + 16, 7);
	put16(t, POS + 6, 1);
	put32(t, POS + 24, 0xfffffffe);
	put32(t, POS + 28, 70000);
	put64(t, POS + 32, (uint64_t)-3);
	put32(t, POS + 40, 999999999);
	put32(t, POS + 44, 70001);
	assert_int_equal(load(t, &ino), 0);
	assert_true(ino.extended);
	assert_true(ino.size == INT64_MAX);
	assert_true(ino.start_blk == (UINT64_C(1) << 32 | 7));
	assert_true(ino.uid == 0xfffffffe);
	assert_int_equal(ino.gid, 70000);
	assert_int_equal(ino.mtime, -3);
	assert_int_equal(ino.mtime_nsec, 999999999);
	assert_int_equal(ino.nlink, 70001);
	assert_int_equal(ino.iend, POS + 64);
}

static void inodes_may_cross_pages(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put16(t, 4064, 1);
	put16(t, 4068, S_IFREG);
	put32(t, 4064 + 44, 12);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, 127, &ino), 0);
	assert_int_equal(ino.nlink, 12);
}

static void device_numbers_have_12_and_20_bits(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 0, S_IFCHR | 0600, 0);
	put32(t, POS + 16, 0xffffffff);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.rdev_major, 4095);
	assert_int_equal(ino.rdev_minor, 1048575);
	put_compact(t, 0, S_IFBLK | 0600, 0);
	put32(t, POS + 16, 0x34 | 8 << 8 | 0x12 << 20);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.rdev_major, 8);
	assert_int_equal(ino.rdev_minor, 0x1234);
}

static void special_files_with_a_size_or_layout_are_odd_but_load(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 3 << 1, S_IFIFO, 5);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.size, 0);
	assert_int_equal(ino.layout, LAYOUT_PLAIN);
	tiny_expect(t, "odd-inode", "size (5)");
	assert_int_equal(t->severity, EROFS_SEV_WARNING);
}

static void unknown_formats_and_layouts_are_unsupported(void **state)
{
	struct tiny *t = *state;
	unsigned int layout;

	for (layout = 5; layout < 8; layout++) {
		put_compact(t, layout << 1, S_IFREG, 0);
		expect_damage(t, -EOPNOTSUPP, "inode-format", "unknown data layout");
	}
	put_compact(t, 0x20, S_IFREG, 0);
	expect_damage(t, -EOPNOTSUPP, "inode-format", "unknown inode format 0x20");
	put_compact(t, 0x8000, S_IFREG, 0);
	expect_damage(t, -EOPNOTSUPP, "inode-format", "unknown inode format 0x8000");
}

static void file_types_outside_the_seven_are_damage(void **state)
{
	struct tiny *t = *state;

	put_compact(t, 0, 0, 0);
	expect_damage(t, -EUCLEAN, "inode-mode", "inode is no EROFS inode (mode 0)");
	put_compact(t, 0, 0170644, 0);
	expect_damage(t, -EUCLEAN, "inode-mode", "0170644");
	put_compact(t, 0, 0644, 0);
	expect_damage(t, -EUCLEAN, "inode-mode", "0644");
}

static void sizes_that_cannot_be_are_damage(void **state)
{
	struct tiny *t = *state;

	put_extended(t, LAYOUT_PLAIN, S_IFREG, UINT64_C(1) << 63);
	expect_damage(t, -EUCLEAN, "inode-size", "negative");
	put_compact(t, 0, S_IFLNK | 0777, 0);
	expect_damage(t, -EUCLEAN, "symlink-target", "of 0 bytes");
	put_compact(t, 0, S_IFLNK | 0777, 4096);
	expect_damage(t, -EUCLEAN, "symlink-target", "of 4096 bytes");
	put_compact(t, 0, S_IFDIR | 0755, 11);
	expect_damage(t, -EUCLEAN, "dir-size", "11 bytes");
	put_compact(t, 0, S_IFDIR | 0755, 16385);
	expect_damage(t, -EUCLEAN, "inode-size", "larger than the image");
}

static void inline_tails_stay_in_their_block(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	/* the tail begins at byte 3232 and has 864 bytes to the block's end */
	put_compact(t, LAYOUT_INLINE << 1, S_IFREG, 864);
	assert_int_equal(load(t, &ino), 0);
	put_compact(t, LAYOUT_INLINE << 1, S_IFREG, 4096 + 864);
	assert_int_equal(load(t, &ino), 0);
	put_compact(t, LAYOUT_INLINE << 1, S_IFREG, 0);
	assert_int_equal(load(t, &ino), 0);
	put_compact(t, LAYOUT_INLINE << 1, S_IFREG, 865);
	expect_damage(t, -EUCLEAN, "inode-inline", "865 bytes");
	put_compact(t, LAYOUT_INLINE << 1, S_IFREG, 8192);
	expect_damage(t, -EUCLEAN, "inode-inline", "4096 bytes");
}

static void xattr_areas_move_the_tail_and_stay_in_the_image(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, 0, S_IFREG, 1);
	put16(t, POS + 2, 3);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.xattr_pos, POS + 32);
	assert_int_equal(ino.xattr_size, 20);
	assert_int_equal(ino.iend, POS + 52);
	put16(t, POS + 2, 65535);
	expect_damage(t, -EUCLEAN, "xattr-area", "262148 bytes");
}

static void chunk_formats_are_checked(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_compact(t, LAYOUT_CHUNK << 1, S_IFREG, 1);
	put32(t, POS + 16, 0x6c);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.chunk_format, 0x6c);
	assert_int_equal(tiny_flush(t), 0);
	put32(t, POS + 16, 0x40);
	assert_int_equal(load(t, &ino), 0);
	tiny_expect(t, "odd-inode", "without chunk indexes");
	put32(t, POS + 16, 0x80);
	expect_damage(t, -EOPNOTSUPP, "inode-chunk-format", "0x80");
}

static void flat_data_may_not_wrap_the_address_space(void **state)
{
	struct tiny *t = *state;

	t->bytes[TINY_SUPER + 12] = 16;
	put_extended(t, LAYOUT_PLAIN, S_IFREG, INT64_MAX);
	put16(t, POS + 6, 0xffff);
	expect_damage(t, -EUCLEAN, "extent-range", "more than 2^64");
}

static void too_many_nanoseconds_are_odd_and_become_none(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;

	put_extended(t, LAYOUT_PLAIN, S_IFREG, 0);
	put32(t, POS + 40, 1000000000);
	assert_int_equal(load(t, &ino), 0);
	assert_int_equal(ino.mtime_nsec, 0);
	tiny_expect(t, "odd-inode", "1000000000 nanoseconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(reads_cross_pages_and_stop_at_the_end),
		tiny_test(reads_behind_the_end_are_damage),
		tiny_test(inodes_in_the_metabox_count_from_its_beginning),
		tiny_test(nids_that_lead_nowhere_are_damage),
		tiny_test(compact_inode_fields_come_out),
		tiny_test(compact_times_of_48_bit_images_count_from_the_epoch),
		tiny_test(bit_4_of_a_compact_file_makes_the_link_count_an_address),
		tiny_test(bit_4_of_a_directory_means_no_dot_entry),
		tiny_test(holes_of_flat_files_are_as_wide_as_their_address),
		tiny_test(extended_inode_fields_come_out),
		tiny_test(inodes_may_cross_pages),
		tiny_test(device_numbers_have_12_and_20_bits),
		tiny_test(special_files_with_a_size_or_layout_are_odd_but_load),
		tiny_test(unknown_formats_and_layouts_are_unsupported),
		tiny_test(file_types_outside_the_seven_are_damage),
		tiny_test(sizes_that_cannot_be_are_damage),
		tiny_test(inline_tails_stay_in_their_block),
		tiny_test(xattr_areas_move_the_tail_and_stay_in_the_image),
		tiny_test(chunk_formats_are_checked),
		tiny_test(flat_data_may_not_wrap_the_address_space),
		tiny_test(too_many_nanoseconds_are_odd_and_become_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("inode", tests, NULL, NULL);
}
