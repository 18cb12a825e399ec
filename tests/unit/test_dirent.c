// SPDX-License-Identifier: GPL-2.0-or-later
/* meta: directory blocks. */
#include <errno.h>
#include <sys/stat.h>

#include "tiny.h"

/* Put a directory block together at byte 0; names end where the next begins. */
static void put_dirents(struct tiny *t, const unsigned int *nameoff, unsigned int count)
{
	unsigned int i;

	memset(t->bytes, 0, 512);
	for (i = 0; i < count; i++) {
		put64(t, 12 * i, 1000 + i);
		put16(t, 12 * i + 8, nameoff[i]);
		t->bytes[12 * i + 10] = DIRENT_REG;
	}
}

/* Names that come out, each followed by a blank. */
static const char *list(struct tiny *t, size_t valid)
{
	static char names[1000];	/* tests run one behind the other */
	struct dirent_view de;
	struct dirblk db;

	names[0] = '\0';
	if (erofs_dirblk_open(&db, 77, 8192, t->bytes, valid, t->diag))
		return names;
	while (erofs_dirblk_next(&db, &de) > 0) {
		strncat(names, de.name, de.len);
		strcat(names, " ");
	}
	assert_int_equal(db.damaged > 0, tiny_flush(t) > 0);
	return names;
}

static void entries_of_a_block_come_out_in_order(void **state)
{
	static const unsigned int offs[] = { 36, 37, 39 };
	struct tiny *t = *state;
	struct dirent_view de;
	struct dirblk db;

	put_dirents(t, offs, 3);
	memcpy(t->bytes + 36, "abbccc", 6);
	t->bytes[12 + 10] = DIRENT_LNK;
	assert_int_equal(erofs_dirblk_open(&db, 77, 8192, t->bytes, 42, t->diag), 0);
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_int_equal(de.nid, 1001);
	assert_int_equal(de.len, 2);
	assert_memory_equal(de.name, "bb", 2);
	assert_int_equal(de.type, DIRENT_LNK);
	assert_int_equal(de.off, 8192 + 12);
	assert_false(de.bad_name);
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_int_equal(de.len, 3);
	assert_int_equal(erofs_dirblk_next(&db, &de), 0);
	assert_int_equal(erofs_dirblk_next(&db, &de), 0);
	assert_int_equal(tiny_flush(t), 0);
}

static void last_name_ends_at_a_nul_or_with_the_block(void **state)
{
	static const unsigned int offs[] = { 24, 25 };
	struct tiny *t = *state;

	put_dirents(t, offs, 2);
	memcpy(t->bytes + 24, "abcd", 4);
	assert_string_equal(list(t, 28), "a bcd ");
	assert_string_equal(list(t, 512), "a bcd ");
	assert_string_equal(list(t, 26), "a b ");
	assert_string_equal(t->id, "");
}

static void names_of_255_bytes_are_the_longest(void **state)
{
	static const unsigned int offs[] = { 24, 25 };
	struct tiny *t = *state;

	put_dirents(t, offs, 2);
	memset(t->bytes + 24, 'n', 257);
	assert_int_equal(strlen(list(t, 25 + 255)), 2 + 256);
	assert_string_equal(list(t, 25 + 256), "n ");
	tiny_flush(t);
}

static void wrong_first_offsets_close_the_block(void **state)
{
	static const unsigned int wrong[] = { 0, 6, 13, 48, 60, 32760 };
	struct tiny *t = *state;
	struct dirblk db;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put_dirents(t, &wrong[i], 1);
		assert_int_equal(erofs_dirblk_open(&db, 77, 0, t->bytes, 48, t->diag), -EUCLEAN);
		tiny_expect(t, "dirent-nameoff", "first name offset");
	}
	assert_int_equal(erofs_dirblk_open(&db, 77, 0, t->bytes, 11, t->diag), -EUCLEAN);
	tiny_expect(t, "dirent-nameoff", "too few for one entry");
}

static void offsets_that_go_back_lose_two_names_only(void **state)
{
	static const unsigned int offs[] = { 60, 61, 64, 62, 66 };
	struct tiny *t = *state;

	put_dirents(t, offs, 5);
	memcpy(t->bytes + 60, "abcdefgh", 8);
	assert_string_equal(list(t, 68), "a bcd gh ");
	assert_string_equal(t->id, "dirent-nameoff");
	assert_int_equal(t->found, 2);
}

static void offsets_behind_the_block_lose_their_names_only(void **state)
{
	static const unsigned int offs[] = { 36, 4000, 40 };
	struct tiny *t = *state;

	put_dirents(t, offs, 3);
	memcpy(t->bytes + 36, "abcdef", 6);
	assert_string_equal(list(t, 42), "ef ");
	assert_int_equal(t->found, 2);
}

static void empty_names_are_left_out(void **state)
{
	static const unsigned int offs[] = { 36, 37, 37 };
	struct tiny *t = *state;

	put_dirents(t, offs, 3);
	t->bytes[36] = 'a';
	t->bytes[37] = 'c';
	assert_string_equal(list(t, 512), "a c ");
	assert_string_equal(t->id, "dirent-name");
}

static void names_with_slash_or_nul_are_marked_and_shown(void **state)
{
	static const unsigned int offs[] = { 36, 39, 42 };
	struct tiny *t = *state;
	struct dirent_view de;
	struct dirblk db;

	put_dirents(t, offs, 3);
	memcpy(t->bytes + 36, "a/b" "c\0d" "e", 7);
	assert_int_equal(erofs_dirblk_open(&db, 77, 0, t->bytes, 512, t->diag), 0);
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_true(de.bad_name);
	tiny_expect(t, "dirent-name", "\"a/b\" (nid 1000)");
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_true(de.bad_name);
	tiny_expect(t, "dirent-name", "\"c\\000d\"");
	assert_int_equal(erofs_dirblk_next(&db, &de), 1);
	assert_false(de.bad_name);
	assert_int_equal(db.damaged, 2);
}

static void types_above_seven_are_reported_and_returned(void **state)
{
	static const unsigned int offs[] = { 12 };
	struct tiny *t = *state;

	put_dirents(t, offs, 1);
	t->bytes[10] = 200;
	t->bytes[12] = 'q';
	assert_string_equal(list(t, 13), "q ");
	assert_string_equal(t->id, "dirent-type");
}

static void dirent_types_follow_modes(void **state)
{
	(void)state;
	assert_int_equal(erofs_dirent_type(S_IFREG | 0644), DIRENT_REG);
	assert_int_equal(erofs_dirent_type(S_IFDIR), DIRENT_DIR);
	assert_int_equal(erofs_dirent_type(S_IFCHR), DIRENT_CHR);
	assert_int_equal(erofs_dirent_type(S_IFBLK), DIRENT_BLK);
	assert_int_equal(erofs_dirent_type(S_IFIFO), DIRENT_FIFO);
	assert_int_equal(erofs_dirent_type(S_IFSOCK), DIRENT_SOCK);
	assert_int_equal(erofs_dirent_type(S_IFLNK), DIRENT_LNK);
	assert_int_equal(erofs_dirent_type(0644), DIRENT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(entries_of_a_block_come_out_in_order),
		tiny_test(last_name_ends_at_a_nul_or_with_the_block),
		tiny_test(names_of_255_bytes_are_the_longest),
		tiny_test(wrong_first_offsets_close_the_block),
		tiny_test(offsets_that_go_back_lose_two_names_only),
		tiny_test(offsets_behind_the_block_lose_their_names_only),
		tiny_test(empty_names_are_left_out),
		tiny_test(names_with_slash_or_nul_are_marked_and_shown),
		tiny_test(types_above_seven_are_reported_and_returned),
		cmocka_unit_test(dirent_types_follow_modes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dirent", tests, NULL, NULL);
}
