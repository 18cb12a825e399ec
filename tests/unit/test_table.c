// SPDX-License-Identifier: GPL-2.0-or-later
/* base: tables by hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/table.h"

struct entry {
	uint32_t number, more[2];
};

#define COUNT 5000u		/* grows several times */
#define KINDS 7u

static void entries_of_a_hash_come_youngest_first_and_none_else(void **state)
{
	struct table t = { .size = sizeof(struct entry) };
	uint32_t i, at, kind;
	struct entry *e;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		/* classes are shared: the low bits of all hashes are the same */
		e = erofs_table_add(&t, i % KINDS << 20);
		assert_non_null(e);
		assert_int_equal(e->number, 0);
		assert_int_equal(e->more[1], 0);
		*e = (struct entry){ i, { 1, 1 } };
	}
	assert_int_equal(t.count, COUNT);
	for (kind = 0; kind < KINDS; kind++) {
		uint32_t wanted = COUNT - 1 - (COUNT - 1 - kind) % KINDS, found = 0;

		for (at = 0; (e = erofs_table_next(&t, kind << 20, &at)); wanted -= KINDS, found++)
			assert_int_equal(e->number, wanted);
		assert_int_equal(found, (COUNT - kind + KINDS - 1) / KINDS);
	}
	at = 0;
	assert_null(erofs_table_next(&t, 1, &at));
	erofs_table_fini(&t);
}

static void an_empty_table_has_nothing_and_can_be_used_again(void **state)
{
	struct table t = { .size = sizeof(struct entry) };
	uint32_t at = 0;

	(void)state;
	assert_null(erofs_table_next(&t, 0, &at));
	assert_non_null(erofs_table_add(&t, 3));
	erofs_table_fini(&t);
	at = 0;
	assert_null(erofs_table_next(&t, 3, &at));
	assert_non_null(erofs_table_add(&t, 3));
	at = 0;
	assert_non_null(erofs_table_next(&t, 3, &at));
	erofs_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_of_a_hash_come_youngest_first_and_none_else),
		cmocka_unit_test(an_empty_table_has_nothing_and_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
