// SPDX-License-Identifier: GPL-2.0-or-later
/* base: histograms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hist.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void quantiles_are_within_one_per_cent(void **state)
{
	enum { COUNT = 5000 };
	static const double shares[] = { 0.01, 0.25, 0.5, 0.9, 0.99, 1.0 };
	uint64_t *all = calloc(COUNT, sizeof(*all)), seed = 7, total = 0;
	struct hist *h = calloc(2, sizeof(*h));
	size_t i;

	(void)state;
	assert_non_null(all);
	assert_non_null(h);
	for (i = 0; i < COUNT; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		all[i] = (seed >> 33) >> (i % 25);
		total += all[i];
		erofs_hist_add(&h[i & 1], all[i]);
	}
	erofs_hist_merge(&h[0], &h[1]);
	qsort(all, COUNT, sizeof(*all), compare);
	assert_int_equal(h->count, COUNT);
	assert_int_equal(h->total, total);
	assert_int_equal(h->min, all[0]);
	assert_int_equal(h->max, all[COUNT - 1]);
	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		size_t at = (size_t)(shares[i] * COUNT + 0.999999) - 1;
		uint64_t q = erofs_hist_quantile(h, shares[i]);

		assert_true(q >= all[at]);
		assert_true(q - all[at] <= all[at] / 100);
	}
	free(all);
	free(h);
}

static void deviation_and_extremes(void **state)
{
	struct hist *h = calloc(1, sizeof(*h));

	(void)state;
	assert_non_null(h);
	assert_int_equal(erofs_hist_quantile(h, 0.5), 0);
	assert_true(erofs_hist_deviation(h) == 0.0);
	erofs_hist_add(h, 10);
	erofs_hist_add(h, 30);
	assert_true(erofs_hist_deviation(h) > 9.99 && erofs_hist_deviation(h) < 10.01);
	erofs_hist_add(h, UINT64_MAX);
	assert_int_equal(erofs_hist_quantile(h, 0.5), 30);
	assert_int_equal(h->max, UINT64_MAX);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_one_per_cent),
		cmocka_unit_test(deviation_and_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
