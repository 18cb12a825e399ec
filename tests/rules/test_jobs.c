// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules A3, A8 to A10 and F1 of the engine: jobs and their work. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tasks.h"

static void run_settings(const char *workers)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine(workers);
	struct shared s = { .spin_us = 20 };
	struct job *job;
	unsigned int i;

	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (i = 0; i < 200; i++)
		submit_task(job, &s, 0, 1 << 20);
	submit_task(job, &s, 9, 0);		/* work that makes work: 1023 in all */
	erofs_job_wait(job);
	assert_int_equal(atomic_load(&s.ran), 200 + 1023);
	assert_int_equal(atomic_load(&s.running), 0);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

static void rule_A3_every_setting_runs_every_work_once(void **state)
{
	static const char *const settings[] = { "0", "1", "2", "3", "7", "64", "percpu", "percpu-hipri",
						"unbound", "auto" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		run_settings(settings[i]);
}

static void rule_A3_words_that_make_no_sense_are_refused(void **state)
{
	static const char *const words[] = { "-1", "x", "2x", "percpux", "99999999999999999999", "1025", " 1" };
	struct erofs_engine *eng = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct erofs_engine_options options = { .size = sizeof(options), .workers = words[i] };

		assert_int_equal(erofs_engine_new(&options, NULL, &eng), -EINVAL);
		assert_null(eng);
	}
}

static void rule_A8_a_small_image_is_the_callers_own_work(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu");
	struct shared s = { 0 };
	struct job *job;

	(void)state;
	img->devs[0].size = 100000;
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	submit_many(job, &s, 50);
	erofs_job_wait(job);
	assert_int_equal(atomic_load(&s.by_lane[0]), 50);
	assert_int_equal(eng->nrunning, 0);
	assert_int_equal(eng->inlined, 50);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

/* Threads of the job before, awake or asleep, take nothing of it. */
static void rule_A8_a_small_image_is_the_callers_own_work_after_a_large_one(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("4");
	struct job *job;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		struct shared large = { .spin_us = 10 }, small = { .spin_us = 10 };

		img->devs[0].size = UINT64_C(1) << 30;
		assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
		submit_many(job, &large, 20);
		erofs_job_wait(job);
		erofs_job_end(job);
		img->devs[0].size = 100000;
		assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
		assert_int_equal(erofs_job_lanes(job), 1);
		submit_many(job, &small, 20);
		erofs_job_wait(job);
		assert_int_equal(atomic_load(&small.by_lane[0]), 20);
		erofs_job_end(job);
	}
	erofs_engine_free(eng);
	free_image(img);
}

static void rule_A10_less_memory_means_fewer_workers_then_an_error(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "8" };
	struct erofs_engine *eng;
	struct job *job;

	(void)state;
	options.max_memory = 14 << 20;
	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	assert_int_equal(erofs_job_active_lanes(job), 4);	/* (14 - 2) / 3, the caller among them */
	erofs_job_end(job);
	erofs_engine_free(eng);
	options.max_memory = 4 << 20;
	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), -ENOMEM);
	erofs_engine_free(eng);
	options.max_memory = 5 << 20;
	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	assert_int_equal(erofs_job_active_lanes(job), 1);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

static void rule_F1_wake_ups_and_queue_waits_are_measured(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("unbound");
	struct shared s = { .spin_us = 50 };
	struct erofs_stats stats;
	struct job *job;
	int i;

	(void)state;
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (i = 0; i < 100; i++) {
		submit_task(job, &s, 0, 0);
		erofs_job_wait(job);
		usleep(200);
	}
	erofs_job_end(job);
	erofs_engine_stats(eng, &stats);
	assert_int_equal(stats.queue.count, 100);
	assert_true(stats.wake.count >= 50 && stats.wake.count <= 100);
	assert_true(stats.wake.min <= stats.wake.median && stats.wake.median <= stats.wake.p99);
	assert_true(stats.wake.p99 <= stats.wake.max && stats.wake.max > 0);
	assert_true(stats.wake.average >= (double)stats.wake.min);
	erofs_engine_free(eng);
	free_image(img);
}

static void rule_A9_cancel_runs_the_queue_dry_and_frees_it(void **state)
{
	static const char *const settings[] = { "1", "2", "percpu" };
	size_t k;
	int i;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct erofs_image *img = fake_image();
		struct erofs_engine *eng = new_engine(settings[k]);
		struct shared s = { .spin_us = 1000 };
		struct job *job, *other = NULL;

		assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
		for (i = 0; i < 1000; i++)
			submit_task(job, &s, 0, 0);
		erofs_engine_cancel(eng);
		erofs_job_wait(job);
		assert_true(atomic_load(&s.ran) < 1000);
		erofs_job_end(job);
		assert_int_equal(erofs_job_begin(eng, img, NULL, &other), -ECANCELED);
		assert_null(other);
		erofs_engine_free(eng);
		free_image(img);
	}
}

static void rule_A10_what_is_queued_is_bounded_in_bytes(void **state)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "2",
						.max_memory = 16 << 20 };
	struct erofs_image *img = fake_image();
	struct shared s = { .spin_us = 50 };
	struct erofs_engine *eng;
	size_t most = 0;
	struct job *job;
	int i;

	(void)state;
	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (i = 0; i < 500; i++) {
		submit_task(job, &s, 0, 1 << 20);
		pthread_mutex_lock(&eng->lock);
		if (job->bytes > most)
			most = job->bytes;
		pthread_mutex_unlock(&eng->lock);
	}
	erofs_job_wait(job);
	assert_int_equal(atomic_load(&s.ran), 500);
	assert_true(most > 32 << 20 && most <= (64 << 20) + (1 << 20));
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_A3_every_setting_runs_every_work_once),
		cmocka_unit_test(rule_A3_words_that_make_no_sense_are_refused),
		cmocka_unit_test(rule_A8_a_small_image_is_the_callers_own_work),
		cmocka_unit_test(rule_A8_a_small_image_is_the_callers_own_work_after_a_large_one),
		cmocka_unit_test(rule_A10_less_memory_means_fewer_workers_then_an_error),
		cmocka_unit_test(rule_F1_wake_ups_and_queue_waits_are_measured),
		cmocka_unit_test(rule_A9_cancel_runs_the_queue_dry_and_frees_it),
		cmocka_unit_test(rule_A10_what_is_queued_is_bounded_in_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
