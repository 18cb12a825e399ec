// SPDX-License-Identifier: GPL-2.0-or-later
/* cli: the JSON writer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/json.h"

struct memory {
	struct cli_json j;
	FILE *file;
	char *text;
	size_t size;
};

static void begin(struct memory *m, uint32_t lines)
{
	m->file = open_memstream(&m->text, &m->size);
	assert_non_null(m->file);
	erofs_json_init(&m->j, m->file, lines);
}

static void wants(struct memory *m, const char *wanted)
{
	assert_int_equal(fclose(m->file), 0);
	assert_string_equal(m->text, wanted);
	free(m->text);
}

static void values_lines_and_nesting(void **state)
{
	struct memory m;

	(void)state;
	begin(&m, 1 << 1 | 1 << 2);
	erofs_json_object(&m.j, NULL);
	erofs_json_unsigned(&m.j, "a", UINT64_MAX);
	erofs_json_signed(&m.j, "b", INT64_MIN);
	erofs_json_array(&m.j, "list");
	erofs_json_object(&m.j, NULL);
	erofs_json_bool(&m.j, "c", true);
	erofs_json_null(&m.j, "d");
	erofs_json_end(&m.j);
	erofs_json_real(&m.j, NULL, 1.25);
	erofs_json_end(&m.j);
	erofs_json_array(&m.j, "none");
	erofs_json_end(&m.j);
	erofs_json_nid(&m.j, "nid", UINT64_C(1) << 63);
	erofs_json_real(&m.j, "nan", NAN);
	erofs_json_end(&m.j);
	wants(&m, "{\n  \"a\": 18446744073709551615,\n  \"b\": -9223372036854775808,\n  \"list\": [\n"
		  "    {\"c\": true, \"d\": null},\n    1.2\n  ],\n  \"none\": [],\n"
		  "  \"nid\": \"9223372036854775808\",\n  \"nan\": null\n}\n");
}

static void one_object_a_line(void **state)
{
	struct memory m;

	(void)state;
	begin(&m, 0);
	erofs_json_object(&m.j, NULL);
	erofs_json_text(&m.j, "a", "x");
	erofs_json_end(&m.j);
	erofs_json_object(&m.j, NULL);
	erofs_json_text(&m.j, "a", NULL);
	erofs_json_text(&m.j, "b", "");
	erofs_json_end(&m.j);
	wants(&m, "{\"a\": \"x\"}\n{\"a\": null, \"b\": \"\"}\n");
}

static void rule_R18_nothing_drives_a_terminal(void **state)
{
	struct memory m;

	(void)state;
	begin(&m, 0);
	erofs_json_array(&m.j, NULL);
	erofs_json_text(&m.j, NULL, "\"\\/\x01\x1b\n\x7f\xc2\x9b\xe2\x80\xae");
	erofs_json_text(&m.j, NULL, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	erofs_json_end(&m.j);
	wants(&m, "[\"\\\"\\\\/\\u0001\\u001b\\u000a\\u007f\\u009b\\u202e\", "
		  "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"]\n");
}

static void bytes_that_are_no_utf8(void **state)
{
	struct memory m;

	(void)state;
	begin(&m, 0);
	erofs_json_object(&m.j, NULL);
	erofs_json_bytes(&m.j, "a", "\xff", 1);
	erofs_json_bytes(&m.j, "b", "x\xc0\x80", 3);
	erofs_json_bytes(&m.j, "c", "ab\xed\xa0\x80", 5);
	erofs_json_bytes(&m.j, "d", "\xe2\x82", 2);
	erofs_json_bytes(&m.j, "e", "fine\0 too", 9);
	erofs_json_bytes(&m.j, "f", NULL, 0);
	erofs_json_text(&m.j, "g", "\xf5\x80");
	erofs_json_end(&m.j);
	wants(&m, "{\"a\": \"\xef\xbf\xbd\", \"a_base64\": \"/w==\", "
		  "\"b\": \"x\xef\xbf\xbd\xef\xbf\xbd\", \"b_base64\": \"eMCA\", "
		  "\"c\": \"ab\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\", \"c_base64\": \"YWLtoIA=\", "
		  "\"d\": \"\xef\xbf\xbd\xef\xbf\xbd\", \"d_base64\": \"4oI=\", "
		  "\"e\": \"fine\\u0000 too\", \"f\": null, \"g\": \"\xef\xbf\xbd\xef\xbf\xbd\"}\n");
}

static void rule_R19_times_are_utc(void **state)
{
	struct memory m;

	(void)state;
	setenv("TZ", "XYZ-5", 1);
	begin(&m, 0);
	erofs_json_array(&m.j, NULL);
	erofs_json_time(&m.j, NULL, 1700000000, 5);
	erofs_json_time(&m.j, NULL, -1, 999999999);
	erofs_json_time(&m.j, NULL, INT64_C(253402300800), 0);
	erofs_json_time(&m.j, NULL, INT64_MIN, 0);
	erofs_json_end(&m.j);
	wants(&m, "[{\"time\": \"2023-11-14T22:13:20.000000005Z\", \"sec\": 1700000000, \"nsec\": 5}, "
		  "{\"time\": \"1969-12-31T23:59:59.999999999Z\", \"sec\": -1, \"nsec\": 999999999}, "
		  "{\"time\": null, \"sec\": 253402300800, \"nsec\": 0}, "
		  "{\"time\": null, \"sec\": -9223372036854775808, \"nsec\": 0}]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_lines_and_nesting),
		cmocka_unit_test(one_object_a_line),
		cmocka_unit_test(rule_R18_nothing_drives_a_terminal),
		cmocka_unit_test(bytes_that_are_no_utf8),
		cmocka_unit_test(rule_R19_times_are_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
