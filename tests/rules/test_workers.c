// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules A1, A2 and A4 to A6 of the engine: workers and their CPUs. */
#include <dirent.h>
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

#include "tasks.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_A1_percpu_counts_the_affinity_mask),
		cmocka_unit_test(rule_A1_percpu_workers_are_pinned_and_named),
		cmocka_unit_test(rule_A4_work_goes_to_the_worker_of_the_submitters_cpu),
		cmocka_unit_test(rule_A5_idle_workers_take_from_the_longest_queue),
		cmocka_unit_test(rule_A6_workers_leave_with_their_cpu_and_come_back),
		cmocka_unit_test(rule_A6_a_cpu_that_appears_gets_a_worker),
		cmocka_unit_test(rule_A2_workers_are_real_time_but_for_work_on_paths),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
