// SPDX-License-Identifier: GPL-2.0-or-later
/* base: CRC-32C and hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/hash.h"

static void crc32c_gives_the_published_check_value(void **state)
{
	(void)state;
	assert_int_equal(~erofs_crc32c(0xffffffff, "123456789", 9) & 0xffffffff, 0xe3069283);
}

static void crc32c_register_after_magic_and_zeros_is_that_of_the_format(void **state)
{
	static const uint8_t head[8] = { 0xe2, 0xe1, 0xf5, 0xe0 };

	(void)state;
	assert_int_equal(erofs_crc32c(0xffffffff, head, sizeof(head)), 0x5045b54a);
}

static void xxh32_gives_the_published_values(void **state)
{
	(void)state;
	assert_true(erofs_hash_xxh32("", 0, 0) == 0x02cc5d05);
	assert_true(erofs_hash_xxh32("a", 1, 0) == 0x550d7456);
	assert_true(erofs_hash_xxh32("abc", 3, 0) == 0x32d153ff);
	assert_true(erofs_hash_xxh32("Nobody inspects the spammish repetition", 39, 0) ==
		    0xe2293b2f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_gives_the_published_check_value),
		cmocka_unit_test(crc32c_register_after_magic_and_zeros_is_that_of_the_format),
		cmocka_unit_test(xxh32_gives_the_published_values),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
