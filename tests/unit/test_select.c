// SPDX-License-Identifier: GPL-2.0-or-later
/* Which names are meant: globs against a slow reference, and verdicts of whole selections. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "walk/select_priv.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* By trying all ways. Patterns of letters, '*', '?', "**" and "**" with a slash. */
static bool matches(const char *p, const char *start, const char *t)
{
	if (!*p)
		return !*t;
	if (p[0] == '*' && p[1] == '*') {
		bool part = p == start || p[-1] == '/';

		if (part && p[2] == '/') {
			if (matches(p + 3, start, t))
				return true;
			for (; *t; t++)
				if (*t == '/' && matches(p + 3, start, t + 1))
					return true;
			return false;
		}
		for (;; t++) {
			if (matches(p + 2, start, t))
				return true;
			if (!*t)
				return false;
		}
	}
	if (*p == '*') {
		for (;; t++) {
			if (matches(p + 1, start, t))
				return true;
			if (!*t || *t == '/')
				return false;
		}
	}
	if (!*t || (*p == '?' ? *t == '/' : *p != *t))
		return false;
	return matches(p + 1, start, t + 1);
}

/* The n-th word of an alphabet, by counting; false: it has empty parts. */
static bool make_word(unsigned int n, const char *letters, char *word)
{
	size_t base = strlen(letters), len = 0;

	while (n) {
		word[len++] = letters[(n - 1) % base];
		n = (unsigned int)((n - 1) / base);
	}
	word[len] = '\0';
	return len && word[0] != '/' && word[len - 1] != '/' && !strstr(word, "//");
}

static void globs_match_what_trying_all_ways_matches(void **state)
{
	char pattern[16], path[16];
	unsigned int i, j, n = 0;

	(void)state;
	for (i = 1; i < 4000; i++) {
		/* three stars in a row mean the same as two, but not to the reference */
		if (!make_word(i, "a*/?b", pattern) || strstr(pattern, "***"))
			continue;
		for (j = 1; j < 1100; j++) {
			if (!make_word(j, "ab/", path))
				continue;
			n++;
			if (erofs_glob_match(pattern, path, strlen(path)) != matches(pattern, pattern, path))
				fail_msg("'%s' and '%s'", pattern, path);
		}
	}
	assert_true(n > 100000);
}

/* What matches something below a path must be said to do so. */
static void nothing_below_a_refused_folder_would_have_matched(void **state)
{
	char pattern[16], path[16];
	unsigned int i, j;
	size_t at;

	(void)state;
	for (i = 1; i < 4000; i++) {
		if (!make_word(i, "a*/?b", pattern) || strstr(pattern, "***"))
			continue;
		for (j = 1; j < 1100; j++) {
			if (!make_word(j, "ab/", path) || !matches(pattern, pattern, path))
				continue;
			for (at = 1; path[at]; at++)
				if (path[at] == '/' && !erofs_glob_may_match_below(pattern, path, at))
					fail_msg("'%s' matches '%s', not below its first %zu", pattern, path, at);
		}
	}
	assert_false(erofs_glob_may_match_below("a/*.c", "b", 1));
	assert_false(erofs_glob_may_match_below("*", "b", 1));
}

static void brackets_and_escapes(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool match;
	} rows[] = {
		{ "[a-c]x", "bx", true }, { "[a-c]x", "dx", false }, { "[!a-c]x", "dx", true },
		{ "[^a-c]x", "bx", false }, { "[]]", "]", true }, { "[!]]", "]", false }, { "a[/]b", "a/b", false },
		{ "a[!x]b", "a/b", false }, { "\\*", "*", true }, { "\\*", "a", false }, { "[\\]]", "]", true },
		{ "[a-]", "-", true }, { "\xff*", "\xff\xfe", true }, { "**", "a/b/c", true },
		{ "a/**", "a", false }, { "a/**", "a/b", true }, { "**/x", "x", true }, { "**/x", "ax", false },
		{ "*.c", "d/e.c", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++)
		if (erofs_glob_match(rows[i].pattern, rows[i].path, strlen(rows[i].path)) != rows[i].match)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
	assert_false(erofs_glob_is_valid(""));
	assert_false(erofs_glob_is_valid("[a"));
	assert_false(erofs_glob_is_valid("a\\"));
	assert_false(erofs_glob_is_valid("[c-a]"));
	assert_false(erofs_glob_is_valid("[[:alpha:]]"));
}

static struct erofs_select *make(const char *const *members, const char *const *includes,
				 const char *const *excludes)
{
	struct erofs_select_options o = { .size = sizeof(o), .members = members, .includes = includes,
					  .excludes = excludes };
	struct erofs_select *s;

	assert_int_equal(erofs_select_new(&o, &s), 0);
	return s;
}

static enum select_verdict ask(const struct erofs_select *s, const char *path, bool inside)
{
	return erofs_select_match(s, path, strlen(path), inside);
}

static void a_member_is_exact_and_means_its_subtree(void **state)
{
	static const char *const members[] = { "/usr/bin/", "etc/./fstab", "a\\*b", NULL };
	struct erofs_select *s = make(members, NULL, NULL);

	(void)state;
	assert_int_equal(ask(s, "", false), SELECT_PARENT);
	assert_int_equal(ask(s, "usr", false), SELECT_PARENT);
	assert_int_equal(ask(s, "us", false), SELECT_NO);
	assert_int_equal(ask(s, "usr/bin", false), SELECT_YES);
	assert_int_equal(ask(s, "usr/bin2", false), SELECT_NO);
	assert_int_equal(ask(s, "usr/bin/x", true), SELECT_YES);
	assert_int_equal(ask(s, "etc/fstab", false), SELECT_YES);
	assert_string_equal(erofs_select_unmatched(s, 0), "a\\*b");
	assert_null(erofs_select_unmatched(s, 1));
	assert_int_equal(ask(s, "a*b", false), SELECT_YES);
	assert_null(erofs_select_unmatched(s, 0));
	erofs_select_free(s);
}

static void excludes_win_and_end_the_way_down(void **state)
{
	static const char *const includes[] = { "**/*.conf", NULL }, *const excludes[] = { "etc/ssl", "**/x*", NULL };
	struct erofs_select *s = make(NULL, includes, excludes);

	(void)state;
	assert_int_equal(ask(s, "etc", false), SELECT_PARENT);
	assert_int_equal(ask(s, "etc/ssl", false), SELECT_NO);
	assert_int_equal(ask(s, "etc/a.conf", false), SELECT_YES);
	assert_int_equal(ask(s, "etc/x.conf", true), SELECT_NO);
	erofs_select_free(s);
	s = make(NULL, NULL, excludes);
	assert_int_equal(ask(s, "", false), SELECT_YES);
	assert_int_equal(ask(s, "usr/xx", true), SELECT_NO);
	assert_int_equal(ask(s, "usr/y", true), SELECT_YES);
	erofs_select_free(s);
	assert_int_equal(ask(NULL, "anything", false), SELECT_YES);
}

static void a_hundred_thousand_members_are_found(void **state)
{
	enum { N = 100000 };
	char (*texts)[16] = calloc(N, sizeof(*texts));
	const char **words = calloc(N + 1, sizeof(*words));
	struct erofs_select *s;
	unsigned int i;

	(void)state;
	assert_non_null(texts);
	assert_non_null(words);
	for (i = 0; i < N; i++) {
		snprintf(texts[i], sizeof(texts[i]), "d%03u/%05u", i % 1000, i);
		words[i] = texts[i];
	}
	s = make(words, NULL, NULL);
	for (i = 0; i < N; i += 2)
		assert_int_equal(ask(s, texts[i], false), SELECT_YES);
	assert_int_equal(ask(s, "d123", false), SELECT_PARENT);
	assert_int_equal(ask(s, "d123/x", false), SELECT_NO);
	for (i = 0; i < N / 2; i++)
		assert_string_equal(erofs_select_unmatched(s, i), texts[2 * i + 1]);
	assert_null(erofs_select_unmatched(s, N / 2));
	erofs_select_free(s);
	free(texts);
	free(words);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_match_what_trying_all_ways_matches),
		cmocka_unit_test(nothing_below_a_refused_folder_would_have_matched),
		cmocka_unit_test(brackets_and_escapes),
		cmocka_unit_test(a_member_is_exact_and_means_its_subtree),
		cmocka_unit_test(excludes_win_and_end_the_way_down),
		cmocka_unit_test(a_hundred_thousand_members_are_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
