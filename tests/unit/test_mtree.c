// SPDX-License-Identifier: GPL-2.0-or-later
/* Lines, words, escapes and keywords of mtree(5); which path of a group of hard links came first. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "verify/mtree.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct mtree_line lines_of(const char *text, size_t len)
{
	return (struct mtree_line){ .file = fmemopen((void *)(uintptr_t)text, len, "r") };
}

static void close_lines(struct mtree_line *l)
{
	fclose(l->file);
	erofs_tarbuf_free(&l->text);
}

static void lines_are_joined_and_numbered_where_they_begin(void **state)
{
	static const char text[] = "#mtree \\\n\n  \t\na \\\n  type=file\\\nb\\134\\\\\nc \\\n";
	static const struct {
		const char *text;
		uint64_t number;
	} wanted[] = { { "#mtree \\", 1 }, { "a    type=file b\\134\\\\", 4 }, { "c  ", 7 } };
	struct mtree_line l = lines_of(text, sizeof(text) - 1);
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(wanted); i++) {
		assert_int_equal(erofs_mtree_next(&l), 1);
		assert_string_equal((const char *)l.text.data, wanted[i].text);
		assert_int_equal(l.number, wanted[i].number);
	}
	assert_int_equal(erofs_mtree_next(&l), 0);
	close_lines(&l);
}

static void a_line_of_many_pieces_is_whole_and_one_without_end_is_refused(void **state)
{
	size_t len = MTREE_MAX_LINE + 20000;
	char *text = malloc(len);
	struct mtree_line l;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	text[12287] = '\n';
	l = lines_of(text, len);
	assert_int_equal(erofs_mtree_next(&l), 1);
	assert_int_equal(l.text.len, 12287);
	assert_int_equal(erofs_mtree_next(&l), -EOVERFLOW);
	close_lines(&l);
	free(text);
}

static void a_nul_in_a_line_is_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
		{ "a type\0=file\nb\n", 16 },
		/* in the last line, which has no end */
		{ "#mtree\n\0", 8 }, { "#mtree\na type=file\0", 19 }, { "#mtree\na type=file\0 mode=0777", 29 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mtree_line l = lines_of(cases[i].text, cases[i].len);

		if (i)
			assert_int_equal(erofs_mtree_next(&l), 1);
		assert_int_equal(erofs_mtree_next(&l), -EINVAL);
		close_lines(&l);
	}
}

static void escapes_are_octal_or_of_c(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "a\\040b", "a b" }, { "\\134\\377", "\\\377" }, { "a\\sb\\tc\\n", "a b\tc\n" },
		{ "\\\\\\#\\*", "\\#*" },
		{ "plain", "plain" }, { "\\0401", " 1" }, { "\\q", NULL }, { "a\\", NULL }, { "\\40", NULL },
		{ "\\400", NULL }, { "\\M-a", NULL },
	};
	char buf[32];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(cases); i++) {
		ssize_t len;

		strcpy(buf, cases[i].text);
		len = erofs_mtree_unescape(buf);
		if (!cases[i].wanted) {
			assert_int_equal(len, -EINVAL);
			continue;
		}
		assert_int_equal(len, strlen(cases[i].wanted));
		assert_string_equal(buf, cases[i].wanted);
	}
}

static int take(struct mtree_facts *f, const char *word)
{
	char buf[256];
	const char *why;

	strcpy(buf, word);
	return erofs_mtree_take(f, buf, &why);
}

static void keywords_say_what_is_recorded(void **state)
{
	struct mtree_facts f = { 0 };

	(void)state;
	assert_int_equal(take(&f, "type=char"), 0);
	assert_int_equal(take(&f, "mode=04755"), 0);
	assert_int_equal(f.w.mode, S_IFCHR | 04755);
	assert_int_equal(take(&f, "uid=4294967295"), 0);
	assert_int_equal(f.w.uid, UINT32_MAX);
	assert_int_equal(take(&f, "time=-7.000000009"), 0);
	assert_int_equal(f.w.mtime, -7);
	assert_int_equal(f.w.mtime_nsec, 9);
	/* what stands behind the point is a number, not a fraction */
	assert_int_equal(take(&f, "time=1.5"), 0);
	assert_int_equal(f.w.mtime_nsec, 5);
	assert_int_equal(f.w.has, EROFS_COMPARE_TYPE | EROFS_COMPARE_MODE | EROFS_COMPARE_UID | EROFS_COMPARE_TIME);
	assert_int_equal(erofs_mtree_unset(&f, "uid"), 0);
	assert_int_equal(f.w.has, EROFS_COMPARE_TYPE | EROFS_COMPARE_MODE | EROFS_COMPARE_TIME);
	assert_int_equal(take(&f, "md5=anything"), 0);
	assert_int_equal(take(&f, "optional"), 0);
	assert_true(f.optional);
	assert_int_equal(erofs_mtree_unset(&f, "all"), 0);
	assert_int_equal(f.w.has, 0);
	assert_false(f.optional);
}

static void devices_are_spelled_in_several_ways(void **state)
{
	static const char *const good[] = { "device=native,8,300", "device=8,300", "device=linux,8,300",
					    "device=freebsd,8,300" };
	static const char *const bad[] = { "device=", "device=native,8", "device=plan9,8,1", "device=8,300,1",
					   "device=native,8,x", "device=averylongname,8,1", "device=1x" };
	struct mtree_facts f = { 0 };
	char word[40];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(good); i++) {
		f.w.major = f.w.minor = 0;
		assert_int_equal(take(&f, good[i]), 0);
		assert_int_equal(f.w.major, 8);
		assert_int_equal(f.w.minor, 300);
	}
	snprintf(word, sizeof(word), "device=0x%llx", (unsigned long long)makedev(300, 70000));
	assert_int_equal(take(&f, word), 0);
	assert_int_equal(f.w.major, 300);
	assert_int_equal(f.w.minor, 70000);
	for (i = 0; i < COUNT(bad); i++)
		assert_int_equal(take(&f, bad[i]), -EINVAL);
}

static void the_first_path_of_a_group_is_kept_until_all_were_seen(void **state)
{
	struct link_groups g = { .max_bytes = 4096 };
	uint64_t a[2] = { 1, 2 }, b[2] = { 2, 1 };
	char *first, name[64];
	unsigned int i;
	int err = 0;

	(void)state;
	assert_int_equal(erofs_groups_take(&g, a, 1, "alone", 5, &first), 0);
	assert_null(first);
	assert_int_equal(g.bytes, 0);
	assert_int_equal(erofs_groups_take(&g, a, 2, "one", 3, &first), 0);
	assert_null(first);
	assert_int_equal(erofs_groups_take(&g, b, 2, "other", 5, &first), 0);
	assert_null(first);
	assert_int_equal(erofs_groups_take(&g, a, 2, "two", 3, &first), 0);
	assert_string_equal(first, "one");
	free(first);
	assert_int_equal(erofs_groups_take(&g, b, 2, "another", 7, &first), 0);
	assert_string_equal(first, "other");
	free(first);
	assert_int_equal(g.bytes, 0);
	/* memory is bounded */
	for (i = 0; i < 1000 && !err; i++) {
		snprintf(name, sizeof(name), "a path of some length %u", i);
		a[0] = i;
		err = erofs_groups_take(&g, a, 0, name, strlen(name), &first);
		assert_true(g.bytes <= g.max_bytes);
	}
	assert_int_equal(err, -ENOMEM);
	erofs_groups_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_joined_and_numbered_where_they_begin),
		cmocka_unit_test(a_line_of_many_pieces_is_whole_and_one_without_end_is_refused),
		cmocka_unit_test(a_nul_in_a_line_is_refused),
		cmocka_unit_test(escapes_are_octal_or_of_c),
		cmocka_unit_test(keywords_say_what_is_recorded),
		cmocka_unit_test(devices_are_spelled_in_several_ways),
		cmocka_unit_test(the_first_path_of_a_group_is_kept_until_all_were_seen),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
