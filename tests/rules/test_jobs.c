// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules A1 to A6, A8 to A10 and F1 of the engine: pools, jobs, queues. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/workers.h"

/* An image of zeros that is large enough for threads; nothing is read from it. */
static struct erofs_image *fake_image(void)
{
	struct erofs_image *img = calloc(1, sizeof(*img));

	img->super = calloc(1, sizeof(*img->super));
	img->devs = calloc(1, sizeof(*img->devs));
	img->ndevs = 1;
	img->devs[0].size = UINT64_C(1) << 30;
	img->blkbits = 12;
	img->blksz = 4096;
	return img;
}

static void free_image(struct erofs_image *img)
{
	free(img->super);
	free(img->devs);
	free(img);
}

static struct erofs_engine *new_engine(const char *workers)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct erofs_engine *eng;

	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	return eng;
}

struct shared {
	atomic_uint ran, running, most, wrong_cpu, wrong_name;
	atomic_uint by_lane[64];
	atomic_size_t bytes, most_bytes;
	unsigned int spin_us;
};

struct task {
	struct work work;
	struct shared *shared;
	unsigned int depth;
};

static void run_task(struct lane *lane, struct work *work);

static void submit_task(struct job *job, struct shared *shared, unsigned int depth, size_t bytes)
{
	struct task *t = calloc(1, sizeof(*t));

	t->work.run = run_task;
	t->work.bytes = bytes;
	t->shared = shared;
	t->depth = depth;
	erofs_job_submit(job, &t->work);
}

static void run_task(struct lane *lane, struct work *work)
{
	struct task *t = (struct task *)work;
	struct shared *s = t->shared;
	unsigned int now = atomic_fetch_add(&s->running, 1) + 1;

	if (now > atomic_load(&s->most))
		atomic_store(&s->most, now);
	if (!erofs_job_is_cancelled(lane->job)) {
		usleep(s->spin_us);
		atomic_fetch_add(&s->ran, 1);
	}
	atomic_fetch_add(&s->by_lane[erofs_lane_index(lane) & 63], 1);
	if (t->depth) {
		submit_task(lane->job, s, t->depth - 1, 0);
		submit_task(lane->job, s, t->depth - 1, 0);
	}
	atomic_fetch_sub(&s->running, 1);
	free(t);
}

static void submit_many(struct job *job, struct shared *s, int count)
{
	while (count--)
		submit_task(job, s, 0, 0);
}

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

static void rule_A1_percpu_counts_the_affinity_mask(void **state)
{
	cpu_set_t old, one;
	struct erofs_engine *eng;
	int cpu;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	eng = new_engine("percpu");
	assert_int_equal(erofs_engine_workers(eng), CPU_COUNT(&old));
	erofs_engine_free(eng);
	for (cpu = 0; !CPU_ISSET(cpu, &old); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	eng = new_engine("percpu");
	assert_int_equal(erofs_engine_workers(eng), 1);
	erofs_engine_free(eng);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static void run_where(struct lane *lane, struct work *work)
{
	struct task *t = (struct task *)work;
	struct shared *s = t->shared;
	cpu_set_t set;
	char name[16], want[32];

	sched_getaffinity(0, sizeof(set), &set);
	if (CPU_COUNT(&set) != 1)
		atomic_fetch_add(&s->wrong_cpu, 1);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	snprintf(want, sizeof(want), "erofs_worker/%d", sched_getcpu());
	if (strcmp(name, want))
		atomic_fetch_add(&s->wrong_name, 1);
	usleep(100);
	(void)lane;
	free(t);
}

static void rule_A1_percpu_workers_are_pinned_and_named(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu");
	struct shared s = { 0 };
	struct job *job;
	int i;

	(void)state;
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (i = 0; i < 100; i++) {
		struct task *t = calloc(1, sizeof(*t));

		t->work.run = run_where;
		t->shared = &s;
		erofs_job_submit(job, &t->work);
	}
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
	assert_int_equal(atomic_load(&s.wrong_cpu), 0);
	assert_int_equal(atomic_load(&s.wrong_name), 0);
}

static void run_on_lane(struct lane *lane, struct work *work)
{
	struct task *t = (struct task *)work;

	atomic_fetch_add(&t->shared->by_lane[erofs_lane_index(lane)], 1);
	free(t);
}

/* With all workers idle, work goes to that of the submitter's CPU, one at a time. */
static void rule_A4_work_goes_to_the_worker_of_the_submitters_cpu(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu");
	struct shared s = { 0 };
	cpu_set_t old, one;
	struct job *job;
	unsigned int i;
	int cpu, lane = 0;

	(void)state;
	if (erofs_engine_workers(eng) < 2)
		skip();
	sched_getaffinity(0, sizeof(old), &old);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	submit_task(job, &s, 0, 0);		/* all threads start */
	erofs_job_wait(job);
	memset(&s, 0, sizeof(s));
	for (cpu = 0; cpu < CPU_SETSIZE && lane < 2; cpu++) {
		if (!CPU_ISSET(cpu, &old))
			continue;
		lane++;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (i = 0; i < 100; i++) {
			struct task *t = calloc(1, sizeof(*t));

			assert_non_null(t);
			t->work.run = run_on_lane;
			t->shared = &s;
			usleep(100);		/* they sleep again */
			erofs_job_submit(job, &t->work);
			erofs_job_wait(job);
		}
		/* a worker that is not asleep yet may take it first (A5) */
		assert_true(atomic_load(&s.by_lane[lane]) >= 80);
		memset(&s, 0, sizeof(s));
	}
	sched_setaffinity(0, sizeof(old), &old);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
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

static void rule_A5_idle_workers_take_from_the_longest_queue(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu");
	struct shared s = { .spin_us = 300 };
	cpu_set_t old, one;
	struct job *job;
	int i, cpu;

	(void)state;
	if (erofs_engine_workers(eng) < 2)
		skip();
	sched_getaffinity(0, sizeof(old), &old);
	for (cpu = 0; !CPU_ISSET(cpu, &old); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	submit_task(job, &s, 0, 0);			/* threads start, by the mask as it is */
	erofs_job_wait(job);
	sched_setaffinity(0, sizeof(one), &one);	/* one submitter loads one CPU's queue */
	for (i = 1; i < 200; i++)
		submit_task(job, &s, 0, 0);
	erofs_job_wait(job);
	sched_setaffinity(0, sizeof(old), &old);
	assert_int_equal(atomic_load(&s.ran), 200);
	assert_true(atomic_load(&s.by_lane[1]) > 20);
	assert_true(atomic_load(&s.by_lane[2]) > 20);
	assert_true(eng->stolen > 0);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

/* Move every thread of the process, as "taskset -ap" does. */
static void move_all_threads(const cpu_set_t *set)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *de;

	assert_non_null(dir);
	while ((de = readdir(dir)))
		if (de->d_name[0] != '.')
			(void)sched_setaffinity(atoi(de->d_name), sizeof(*set), set);
	closedir(dir);
}

static unsigned int count_running(struct erofs_engine *eng)
{
	unsigned int n;

	pthread_mutex_lock(&eng->lock);
	n = eng->nrunning;
	pthread_mutex_unlock(&eng->lock);
	return n;
}

static void rule_A6_workers_leave_with_their_cpu_and_come_back(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu");
	struct shared s = { .spin_us = 100 };
	cpu_set_t old, one;
	struct job *job;
	int cpu, round;

	(void)state;
	if (erofs_engine_workers(eng) < 2)
		skip();
	sched_getaffinity(0, sizeof(old), &old);
	for (cpu = 0; !CPU_ISSET(cpu, &old); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (round = 0; round < 20; round++) {
		submit_many(job, &s, 100);
		move_all_threads(&one);		/* under load */
		submit_many(job, &s, 100);
		erofs_job_wait(job);
		/* it notices when it has looked for more work, which may be a moment later */
		submit_many(job, &s, 10);
		erofs_job_wait(job);
		move_all_threads(&old);
		submit_many(job, &s, 100);
		assert_true(count_running(eng) >= 1);
		erofs_job_wait(job);
	}
	assert_int_equal(atomic_load(&s.ran), 20 * 310);
	assert_true(eng->retired >= 5);
	assert_true(count_running(eng) >= 2);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

static void rule_A6_a_cpu_that_appears_gets_a_worker(void **state)
{
	struct erofs_image *img = fake_image();
	struct shared s = { .spin_us = 100 };
	struct erofs_engine *eng;
	cpu_set_t old, one;
	struct job *job;
	int cpu;

	(void)state;
	sched_getaffinity(0, sizeof(old), &old);
	if (CPU_COUNT(&old) < 2)
		skip();
	for (cpu = 0; !CPU_ISSET(cpu, &old); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	eng = new_engine("percpu");
	assert_int_equal(erofs_engine_workers(eng), 1);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	submit_many(job, &s, 50);
	erofs_job_wait(job);
	assert_int_equal(count_running(eng), 1);
	sched_setaffinity(0, sizeof(old), &old);
	submit_many(job, &s, 300);
	erofs_job_wait(job);
	assert_int_equal(count_running(eng), CPU_COUNT(&old));
	assert_int_equal(atomic_load(&s.ran), 350);
	assert_true(atomic_load(&s.by_lane[2]) > 0);
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
}

struct priority_task {
	struct work work;
	atomic_int *wrong;
};

static void run_priority(struct lane *lane, struct work *work)
{
	struct priority_task *t = (struct priority_task *)work;
	int policy = sched_getscheduler(0);

	(void)lane;
	if (policy != (work->path ? SCHED_OTHER : SCHED_FIFO))
		atomic_fetch_add(t->wrong, 1);
	free(t);
}

static void rule_A2_workers_are_real_time_but_for_work_on_paths(void **state)
{
	struct erofs_image *img = fake_image();
	struct erofs_engine *eng = new_engine("percpu-hipri");
	struct sched_param param = { .sched_priority = 1 };
	atomic_int wrong = 0;
	struct job *job;
	int i;

	(void)state;
	/* without the right there is a fallback, and nothing to see */
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		skip();
	param.sched_priority = 0;
	sched_setscheduler(0, SCHED_OTHER, &param);
	assert_int_equal(erofs_job_begin(eng, img, NULL, &job), 0);
	for (i = 0; i < 100; i++) {
		struct priority_task *t = calloc(1, sizeof(*t));

		assert_non_null(t);
		t->work.run = run_priority;
		t->work.path = i % 3 == 0;
		t->wrong = &wrong;
		erofs_job_submit(job, &t->work);
	}
	erofs_job_end(job);
	erofs_engine_free(eng);
	free_image(img);
	assert_int_equal(atomic_load(&wrong), 0);
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
		cmocka_unit_test(rule_A1_percpu_counts_the_affinity_mask),
		cmocka_unit_test(rule_A1_percpu_workers_are_pinned_and_named),
		cmocka_unit_test(rule_A3_every_setting_runs_every_work_once),
		cmocka_unit_test(rule_A3_words_that_make_no_sense_are_refused),
		cmocka_unit_test(rule_A4_work_goes_to_the_worker_of_the_submitters_cpu),
		cmocka_unit_test(rule_A5_idle_workers_take_from_the_longest_queue),
		cmocka_unit_test(rule_A8_a_small_image_is_the_callers_own_work),
		cmocka_unit_test(rule_A8_a_small_image_is_the_callers_own_work_after_a_large_one),
		cmocka_unit_test(rule_A6_workers_leave_with_their_cpu_and_come_back),
		cmocka_unit_test(rule_A6_a_cpu_that_appears_gets_a_worker),
		cmocka_unit_test(rule_A2_workers_are_real_time_but_for_work_on_paths),
		cmocka_unit_test(rule_A10_less_memory_means_fewer_workers_then_an_error),
		cmocka_unit_test(rule_F1_wake_ups_and_queue_waits_are_measured),
		cmocka_unit_test(rule_A9_cancel_runs_the_queue_dry_and_frees_it),
		cmocka_unit_test(rule_A10_what_is_queued_is_bounded_in_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
