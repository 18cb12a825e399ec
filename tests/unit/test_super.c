// SPDX-License-Identifier: GPL-2.0-or-later
/* meta: the superblock, its records and the device table. */
#include <errno.h>

#include "tiny.h"

#define COMPAT 8
#define INCOMPAT 80
#define ALGS 84

/* CRC-32C bit by bit, as format.md 2.2 says it. */
static uint32_t slow_sum(const uint8_t *p, size_t len)
{
	uint32_t crc = 0xffffffff;
	size_t i;
	int bit;

	for (i = 0; i < len; i++) {
		crc ^= p[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return crc;
}

static void plain_superblock_fields_come_out(void **state)
{
	struct tiny *t = *state;
	struct erofs_super_info info;

	put64(t, TINY_SUPER + 16, 77);
	put64(t, TINY_SUPER + 24, (uint64_t)-5);
	put32(t, TINY_SUPER + 32, 123456789);
	put32(t, TINY_SUPER + 40, 1);
	put32(t, TINY_SUPER + 44, 2);
	memset(t->bytes + TINY_SUPER + 48, 0xab, 16);
	memcpy(t->bytes + TINY_SUPER + 64, "sixteen letters!", 16);
	put16(t, TINY_SUPER + ALGS, 1234);
	assert_int_equal(tiny_open(t), 0);
	erofs_image_super(t->img, &info);
	assert_int_equal(info.block_size, 4096);
	assert_int_equal(info.super_size, 128);
	assert_int_equal(info.blocks, 4);
	assert_int_equal(info.root_nid, 36);
	assert_int_equal(info.inodes, 77);
	assert_int_equal(info.build_time, -5);
	assert_int_equal(info.build_time_nsec, 123456789);
	assert_int_equal(info.meta_block, 1);
	assert_int_equal(info.xattr_block, 2);
	assert_int_equal(info.uuid[15], 0xab);
	assert_string_equal(info.volume_name, "sixteen letters!");
	assert_int_equal(info.checksum_ok, -1);
	assert_int_equal(info.lz4_max_distance, 1234);
	assert_int_equal(t->img->super->codec.lz4_max_distance, 1234);
	assert_int_equal(t->img->super->meta_base, 4096);
	assert_int_equal(t->img->super->xattr_base, 8192);
	assert_int_equal(t->img->super->ishare_prefix, -1);
	assert_int_equal(tiny_flush(t), 0);
}

static void long_form_of_48_bit_images_comes_out(void **state)
{
	struct tiny *t = *state;

	put32(t, TINY_SUPER + INCOMPAT, 0x80);
	put64(t, TINY_SUPER + 24, 1000);
	put32(t, TINY_SUPER + 108, 234);
	put64(t, TINY_SUPER + 112, UINT64_C(0x1234567890));
	assert_int_equal(tiny_open(t), 0);
	assert_true(t->img->super->info.root_nid == UINT64_C(0x1234567890));
	assert_true(t->img->super->info.blocks == (UINT64_C(36) << 32 | 4));
	assert_int_equal(t->img->super->info.build_time, 1234);
}

static void short_form_of_48_bit_images_keeps_the_two_byte_root(void **state)
{
	struct tiny *t = *state;

	put32(t, TINY_SUPER + INCOMPAT, 0x80);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.root_nid, 36);
	assert_int_equal(t->img->super->info.blocks, 4);
}

static void short_files_are_no_images(void **state)
{
	static const size_t sizes[] = { 0, 1024, 1100, 1151 };
	struct tiny *t = *state;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		t->size = sizes[i];
		assert_int_equal(tiny_open(t), -EINVAL);
		tiny_expect(t, "sb-magic", "too few for a superblock");
	}
	t->size = 1152;
	assert_int_equal(tiny_open(t), 0);
}

static void wrong_magic_is_no_image(void **state)
{
	struct tiny *t = *state;

	t->bytes[TINY_SUPER]++;
	assert_int_equal(tiny_open(t), -EINVAL);
	tiny_expect(t, "sb-magic", "0xe0f5e1e3");
}

static void block_sizes_from_512_to_64k_open_and_others_do_not(void **state)
{
	struct tiny *t = *state;
	unsigned int bits;

	for (bits = 0; bits < 256; bits++) {
		int err = bits < 9 ? -EUCLEAN : bits > 16 ? -EOPNOTSUPP : 0;

		t->bytes[TINY_SUPER + 12] = (uint8_t)bits;
		assert_int_equal(tiny_open(t), err);
		if (err)
			tiny_expect(t, "sb-blksz", "block size bits");
		else
			assert_int_equal(t->img->blksz, 1 << bits);
	}
}

static void directory_blocks_of_another_size_are_refused(void **state)
{
	struct tiny *t = *state;

	t->bytes[TINY_SUPER + 90] = 4;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-blksz", "directory block bits are 4");
}

static void sum_image(struct tiny *t, unsigned int bits, size_t len)
{
	t->bytes[TINY_SUPER + 12] = (uint8_t)bits;
	put32(t, TINY_SUPER + COMPAT, 1);
	put32(t, TINY_SUPER + 4, 0);
	t->bytes[TINY_SUPER + len - 1] = 0x55;	/* in */
	t->bytes[TINY_SUPER + len] = 0x55;	/* not in */
	put32(t, TINY_SUPER + 4, slow_sum(t->bytes + TINY_SUPER, len));
}

static void checksum_covers_the_right_bytes_for_each_block_size(void **state)
{
	static const struct {
		unsigned int bits;
		size_t len;
	} rows[] = { { 9, 512 }, { 10, 1024 }, { 11, 1024 }, { 12, 3072 }, { 16, 64512 } };
	struct tiny *t = *state;
	size_t i;

	t->size = 128 * 1024;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sum_image(t, rows[i].bits, rows[i].len);
		assert_int_equal(tiny_open(t), 0);
		assert_int_equal(t->img->super->info.checksum_ok, 1);
		t->bytes[TINY_SUPER + rows[i].len] ^= 1;
		assert_int_equal(tiny_open(t), 0);
		t->bytes[TINY_SUPER + rows[i].len - 1] ^= 1;
		assert_int_equal(tiny_open(t), -EUCLEAN);
		tiny_expect(t, "sb-checksum", "wrong superblock checksum");
	}
}

static void wrong_checksum_is_only_remembered_when_asked_to_ignore_it(void **state)
{
	struct tiny *t = *state;

	sum_image(t, 12, 3072);
	t->bytes[TINY_SUPER + 4] ^= 1;
	t->options.ignore_checksum = 1;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.checksum_ok, 0);
	t->options.ignore_checksum = 0;
	t->options.super_only = 1;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.checksum_ok, 0);
	assert_int_equal(tiny_flush(t), 0);
}

static void checksum_of_a_block_that_is_cut_off_is_damage(void **state)
{
	struct tiny *t = *state;

	sum_image(t, 12, 3072);
	t->size = 4095;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-checksum", "3071 of 3072 bytes");
}

static void unknown_incompatible_bits_are_named(void **state)
{
	struct tiny *t = *state;

	put32(t, TINY_SUPER + INCOMPAT, 0x40000200);
	assert_int_equal(tiny_open(t), -EOPNOTSUPP);
	tiny_expect(t, "sb-feature", "unknown incompatible feature bits 0x40000200");
	put32(t, TINY_SUPER + INCOMPAT, 0);
	put32(t, TINY_SUPER + COMPAT, 0x40000000);
	assert_int_equal(tiny_open(t), 0);
}

static void extension_slots_are_limited(void **state)
{
	struct tiny *t = *state;

	t->bytes[TINY_SUPER + 13] = 184;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.super_size, 3072);
	t->bytes[TINY_SUPER + 13] = 185;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-field", "185 superblock extension slots");
}

static void metabox_needs_a_slot_and_a_nid_outside_of_itself(void **state)
{
	struct tiny *t = *state;

	put32(t, TINY_SUPER + INCOMPAT, 0x100);
	put64(t, TINY_SUPER + 128, 50);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-special", "without a superblock extension slot");
	t->bytes[TINY_SUPER + 13] = 1;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.metabox_nid, 50);
	put64(t, TINY_SUPER + 128, UINT64_C(1) << 63);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-special", "lies in the metabox");
	put64(t, TINY_SUPER + 128, 0);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-special", "is none");
}

static void packed_nid_counts_only_with_fragments(void **state)
{
	struct tiny *t = *state;

	put64(t, TINY_SUPER + 96, (UINT64_C(1) << 63) + 1);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->info.packed_nid, 0);
	put32(t, TINY_SUPER + INCOMPAT, 0x20);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-special", "packed nid 0x8000000000000001");
}

/* Superblock of an image with one record at 1152. */
static void put_record(struct tiny *t, unsigned int alg, unsigned int len)
{
	put32(t, TINY_SUPER + INCOMPAT, 2);
	put16(t, TINY_SUPER + ALGS, 1u << alg);
	memset(t->bytes + 1152, 0, 32);
	put16(t, 1152, len);
}

static void lz4_record_is_read_and_limited(void **state)
{
	struct tiny *t = *state;

	put_record(t, 0, 14);
	put16(t, 1154, 4096);
	put16(t, 1156, 256);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.lz4_max_distance, 4096);
	assert_int_equal(t->img->super->lz4_max_pcluster_blks, 256);
	put16(t, 1156, 257);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-config", "257 blocks");
}

static void lzma_record_is_read_and_limited(void **state)
{
	static const uint32_t wrong[] = { 0, 4095, (8 << 20) + 1, 0xffffffff };
	struct tiny *t = *state;
	size_t i;

	put_record(t, 1, 14);
	put32(t, 1154, 8 << 20);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.lzma_dict_size, 8 << 20);
	put16(t, 1158, 1);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-config", "LZMA format 1");
	put16(t, 1158, 0);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put32(t, 1154, wrong[i]);
		assert_int_equal(tiny_open(t), -EUCLEAN);
		tiny_expect(t, "sb-config", "LZMA dictionary");
	}
}

static void deflate_record_is_read_and_limited(void **state)
{
	struct tiny *t = *state;

	put_record(t, 2, 6);
	t->bytes[1154] = 12;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.deflate_window_bits, 12);
	t->bytes[1154] = 0;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.deflate_window_bits, 15);
	t->bytes[1154] = 16;
	assert_int_equal(tiny_open(t), -EOPNOTSUPP);
	tiny_expect(t, "sb-config", "window bits 16");
}

static void zstd_record_is_read_and_limited(void **state)
{
	struct tiny *t = *state;

	put_record(t, 3, 6);
	t->bytes[1155] = 10;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.zstd_window_log, 20);
	t->bytes[1155] = 11;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-config", "window log 21");
	t->bytes[1154] = 1;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-config", "Zstandard format 1");
}

static void records_follow_each_other_aligned_and_may_be_longer(void **state)
{
	struct tiny *t = *state;

	put_record(t, 0, 17);	/* ends at 1171 */
	put16(t, TINY_SUPER + ALGS, 1 | 8);
	put16(t, 1172, 6);
	t->bytes[1175] = 3;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->codec.zstd_window_log, 13);
	assert_int_equal(t->img->super->info.compr_algs, 9);
}

static void records_of_wrong_length_are_damage(void **state)
{
	static const unsigned int lengths[] = { 0, 13, 65535 };
	struct tiny *t = *state;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		put_record(t, 0, lengths[i]);
		assert_int_equal(tiny_open(t), -EUCLEAN);
		tiny_expect(t, "sb-config", "LZ4 record");
	}
}

static void unknown_algorithms_are_named(void **state)
{
	struct tiny *t = *state;

	put_record(t, 0, 14);
	put16(t, TINY_SUPER + ALGS, 0x8201);
	assert_int_equal(tiny_open(t), -EOPNOTSUPP);
	tiny_expect(t, "sb-config", "unknown compression algorithms 0x8200");
}

static void put_devices(struct tiny *t, unsigned int count, unsigned int slotoff)
{
	put32(t, TINY_SUPER + INCOMPAT, 8);
	put16(t, TINY_SUPER + 86, count);
	put16(t, TINY_SUPER + 88, slotoff);
}

static void device_slots_come_out_and_missing_files_are_no_error(void **state)
{
	struct tiny *t = *state;

	put_devices(t, 2, 10);
	put32(t, 1280 + 64, 7);
	put32(t, 1280 + 68, 100);
	put16(t, 1280 + 72, 1);			/* not a 48-bit image: ignored */
	put32(t, 1408 + 64, 9);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->ndevs, 3);
	assert_int_equal(t->img->devs[0].blocks, 4);
	assert_int_equal(t->img->devs[1].blocks, 7);
	assert_int_equal(t->img->devs[1].uniaddr, 100 * 4096);
	assert_null(t->img->devs[1].src);
	assert_int_equal(t->img->devs[2].blocks, 9);
	assert_int_equal(t->img->super->dev_mask, 3);
	put32(t, TINY_SUPER + INCOMPAT, 0x88);
	assert_int_equal(tiny_open(t), 0);
	assert_true(t->img->devs[1].blocks == (UINT64_C(1) << 32) + 7);
}

static void device_mask_is_the_smallest_that_holds_all_ids(void **state)
{
	static const unsigned int counts[][2] = {
		{ 1, 1 }, { 2, 3 }, { 3, 3 }, { 4, 7 }, { 7, 7 }, { 8, 15 },
	};
	struct tiny *t = *state;
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		put_devices(t, counts[i][0], 16);
		assert_int_equal(tiny_open(t), 0);
		assert_int_equal(t->img->super->dev_mask, counts[i][1]);
	}
}

static void device_table_beyond_the_image_is_damage(void **state)
{
	struct tiny *t = *state;

	put_devices(t, 65535, 9);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-device", "65535 extra devices");
	put_devices(t, 1, 65535);
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-device", "behind the end of the image");
}

static void more_devices_than_slots_are_the_callers_fault(void **state)
{
	static const char *const devices[] = { "/dev/null" };
	struct tiny *t = *state;

	t->options.devices = devices;
	t->options.device_count = 1;
	assert_int_equal(tiny_open(t), -EINVAL);
	tiny_expect(t, "", "1 extra devices given, the image has 0");
	t->options.super_only = 1;
	assert_int_equal(tiny_open(t), 0);
}

static void digest_prefix_must_exist(void **state)
{
	struct tiny *t = *state;

	put32(t, TINY_SUPER + COMPAT, 0x20);
	put32(t, TINY_SUPER + INCOMPAT, 0x40);
	t->bytes[TINY_SUPER + 91] = 2;
	t->bytes[TINY_SUPER + 105] = 1;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(t->img->super->ishare_prefix, 1);
	t->bytes[TINY_SUPER + 105] = 2;
	assert_int_equal(tiny_open(t), -EUCLEAN);
	tiny_expect(t, "sb-field", "long prefix 2");
}

static void truncated_images_open_and_fail_the_size_check(void **state)
{
	struct tiny *t = *state;

	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_super_check_size(t->img, t->diag), 0);
	t->size = 16383;
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_super_check_size(t->img, t->diag), -EUCLEAN);
	tiny_expect(t, "sb-size", "16383 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(plain_superblock_fields_come_out),
		tiny_test(long_form_of_48_bit_images_comes_out),
		tiny_test(short_form_of_48_bit_images_keeps_the_two_byte_root),
		tiny_test(short_files_are_no_images),
		tiny_test(wrong_magic_is_no_image),
		tiny_test(block_sizes_from_512_to_64k_open_and_others_do_not),
		tiny_test(directory_blocks_of_another_size_are_refused),
		tiny_test(checksum_covers_the_right_bytes_for_each_block_size),
		tiny_test(wrong_checksum_is_only_remembered_when_asked_to_ignore_it),
		tiny_test(checksum_of_a_block_that_is_cut_off_is_damage),
		tiny_test(unknown_incompatible_bits_are_named),
		tiny_test(extension_slots_are_limited),
		tiny_test(metabox_needs_a_slot_and_a_nid_outside_of_itself),
		tiny_test(packed_nid_counts_only_with_fragments),
		tiny_test(lz4_record_is_read_and_limited),
		tiny_test(lzma_record_is_read_and_limited),
		tiny_test(deflate_record_is_read_and_limited),
		tiny_test(zstd_record_is_read_and_limited),
		tiny_test(records_follow_each_other_aligned_and_may_be_longer),
		tiny_test(records_of_wrong_length_are_damage),
		tiny_test(unknown_algorithms_are_named),
		tiny_test(device_slots_come_out_and_missing_files_are_no_error),
		tiny_test(device_mask_is_the_smallest_that_holds_all_ids),
		tiny_test(device_table_beyond_the_image_is_damage),
		tiny_test(more_devices_than_slots_are_the_callers_fault),
		tiny_test(digest_prefix_must_exist),
		tiny_test(truncated_images_open_and_fail_the_size_check),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("super", tests, NULL, NULL);
}
