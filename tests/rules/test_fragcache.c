// SPDX-License-Identifier: GPL-2.0-or-later
/* Rule E2 of the engine: the shared cache of the packed and the metabox file. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/fragcache.h"

struct readers {
	struct dcache *cache;
	atomic_uint fills[64];
	atomic_uint wrong;
};

static void *read_cached(void *arg)
{
	struct readers *r = arg;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		unsigned int la = i % 64;
		struct dentry *d;
		bool fill;

		if (erofs_dcache_get(r->cache, 1, la, 4096, &d, &fill))
			continue;
		if (fill) {
			atomic_fetch_add(&r->fills[la], 1);
			usleep(100);
			memset(d->data, (int)la, 4096);
			erofs_dcache_filled(r->cache, d, 0);
		}
		if (d->data[0] != la || d->data[4095] != la)
			atomic_fetch_add(&r->wrong, 1);
		erofs_dcache_put(r->cache, d);
	}
	return NULL;
}

static void rule_E2_what_fits_is_decoded_once_by_all_workers(void **state)
{
	struct readers r = { 0 };
	pthread_t thread[4];
	int i;

	(void)state;
	assert_int_equal(erofs_dcache_new(64 * 4096, &r.cache), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_cached, &r), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 64; i++)
		assert_int_equal(atomic_load(&r.fills[i]), 1);
	assert_int_equal(atomic_load(&r.wrong), 0);
	erofs_dcache_free(r.cache);
}

static void rule_E2_cache_is_bounded_and_right_when_small(void **state)
{
	struct readers r = { 0 };
	pthread_t thread[4];
	int i;

	(void)state;
	assert_int_equal(erofs_dcache_new(8 * 4096, &r.cache), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_cached, &r), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&r.wrong), 0);
	erofs_dcache_free(r.cache);
}

static void rule_E2_failed_fill_is_told_and_not_kept(void **state)
{
	struct dcache *cache;
	struct dentry *d;
	bool fill;
	int i;

	(void)state;
	assert_int_equal(erofs_dcache_new(1 << 20, &cache), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(erofs_dcache_get(cache, 1, 0, 4096, &d, &fill), 0);
		assert_true(fill);
		erofs_dcache_filled(cache, d, -EUCLEAN);
	}
	erofs_dcache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_E2_what_fits_is_decoded_once_by_all_workers),
		cmocka_unit_test(rule_E2_cache_is_bounded_and_right_when_small),
		cmocka_unit_test(rule_E2_failed_fill_is_told_and_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
