// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Threads and queues of the pool (engine.md A). */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/workers.h"

#define MAX_WORKERS 1024	/* of --workers=N: a typing error should not start a million threads */

struct cpus {
	cpu_set_t *set;
	size_t size;
	unsigned int count;
};

/* The affinity mask of this thread, however many CPUs the machine numbers. */
static int get_cpus(struct cpus *cpus)
{
	unsigned int n;

	for (n = 1024; n <= 1u << 20; n *= 2) {
		cpus->set = CPU_ALLOC(n);
		cpus->size = CPU_ALLOC_SIZE(n);
		if (!cpus->set)
			return -ENOMEM;
		if (!sched_getaffinity(0, cpus->size, cpus->set)) {
			cpus->count = (unsigned int)CPU_COUNT_S(cpus->size, cpus->set);
			return 0;
		}
		CPU_FREE(cpus->set);
		cpus->set = NULL;
		if (errno != EINVAL)
			break;
	}
	/* no affinity here (a strict sandbox): one CPU is certain */
	cpus->count = 1;
	return 0;
}

static int read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	char *line;

	if (!f)
		return -errno;
	line = fgets(buf, (int)size, f);
	fclose(f);
	return line ? 0 : -ENODATA;
}

/* CPUs that the cgroup's quota allows, rounded up; UINT_MAX: no quota that can be seen. */
static unsigned int cgroup_quota(void)
{
	char line[128];
	long long quota, period = 100000;

	if (!read_line("/sys/fs/cgroup/cpu.max", line, sizeof(line))) {
		if (sscanf(line, "%lld %lld", &quota, &period) < 1)
			return UINT_MAX;
	} else if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof(line))) {
		quota = atoll(line);
		if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof(line)))
			period = atoll(line);
	} else {
		return UINT_MAX;
	}
	if (quota <= 0 || period <= 0 || (quota + period - 1) / period > UINT_MAX)
		return UINT_MAX;
	return (unsigned int)((quota + period - 1) / period);
}

static int make_workers(struct erofs_engine *eng, unsigned int count, const struct cpus *cpus)
{
	unsigned int i;
	int cpu = -1;

	if (!count)
		return 0;
	eng->workers = calloc(count, sizeof(*eng->workers));
	if (!eng->workers)
		return -ENOMEM;
	eng->nworkers = count;
	for (i = 0; i < count; i++) {
		struct worker *w = &eng->workers[i];

		w->eng = eng;
		w->index = i;
		w->cpu = -1;
		sem_init(&w->wake, 0, 0);
		if (eng->mode < WORKERS_PERCPU || !cpus->set)
			continue;
		do
			cpu++;
		while (!CPU_ISSET_S((size_t)cpu, cpus->size, cpus->set));
		w->cpu = cpu;
	}
	atomic_store_explicit(&eng->spare, (int)count, memory_order_relaxed);
	return 0;
}

static int parse_count(const char *words, unsigned int *ret)
{
	unsigned long n;
	char *end;

	if (*words < '0' || *words > '9')
		return -EINVAL;
	errno = 0;
	n = strtoul(words, &end, 10);
	if (errno || *end || n > MAX_WORKERS)
		return -EINVAL;
	*ret = (unsigned int)n;
	return 0;
}

static void free_cpus(struct cpus *cpus)
{
	if (cpus->set)
		CPU_FREE(cpus->set);
}

int erofs_workers_configure(struct erofs_engine *eng, const char *words)
{
	auto_call(free_cpus) struct cpus cpus = { 0 };
	unsigned int count, quota;
	int err = get_cpus(&cpus);

	if (err)
		return err;
	count = cpus.count;
	if (!words || !*words || !strcmp(words, "auto")) {
		/* more pinned workers than the quota pays for would only be throttled in turns */
		quota = cgroup_quota();
		eng->mode = WORKERS_PERCPU;
		if (quota < count) {
			eng->mode = WORKERS_SHARED;
			count = quota - 1;
		}
		if (cpus.count == 1 || quota == 1) {
			eng->mode = WORKERS_INLINE;
			count = 0;
		}
	} else if (!strcmp(words, "percpu")) {
		eng->mode = WORKERS_PERCPU;
	} else if (!strcmp(words, "percpu-hipri")) {
		eng->mode = WORKERS_PERCPU_HIPRI;
	} else if (!strcmp(words, "unbound")) {
		eng->mode = WORKERS_UNBOUND;
	} else {
		err = parse_count(words, &count);
		if (err)
			return err;
		eng->mode = count > 1 ? WORKERS_SHARED : WORKERS_INLINE;
		count = count > 1 ? count - 1 : 0;
	}
	return make_workers(eng, count, &cpus);
}

/* ---- queues ---- */

static void enqueue(struct queue *q, struct work *work)
{
	work->next = NULL;
	*(q->tail ? &q->tail->next : &q->head) = work;
	q->tail = work;
	q->count++;
}

static struct work *dequeue(struct queue *q)
{
	struct work *work = q->head;

	if (!work)
		return NULL;
	q->head = work->next;
	if (!q->head)
		q->tail = NULL;
	q->count--;
	return work;
}

static void update_spare(struct erofs_engine *eng)
{
	int unstarted = eng->start_failed ? 0 : (int)(eng->nworkers - eng->nstarted);
	int spare = (int)eng->nidle + eng->owner_idle + unstarted - (int)eng->nqueued;

	atomic_store_explicit(&eng->spare, spare, memory_order_relaxed);
}

void erofs_workers_set_idle(struct erofs_engine *eng, bool idle)
{
	eng->owner_idle = idle;
	update_spare(eng);
}

/* The worker of the CPU we run on (A4). NULL: it has none. */
static struct worker *local_worker(struct erofs_engine *eng)
{
	unsigned int i;
	int cpu;

	if (eng->mode < WORKERS_PERCPU)
		return NULL;
	cpu = sched_getcpu();
	for (i = 0; i < eng->nstarted; i++)
		if (eng->workers[i].cpu == cpu)
			return &eng->workers[i];
	return NULL;
}

static struct worker *idle_worker(struct erofs_engine *eng)
{
	unsigned int i;

	for (i = 0; i < eng->nstarted; i++)
		if (eng->workers[i].idle)
			return &eng->workers[i];
	return NULL;
}

static void wake_worker(struct erofs_engine *eng, struct worker *w)
{
	w->idle = false;
	eng->nidle--;
	w->woken_ns = erofs_now_ns();
	sem_post(&w->wake);
}

void erofs_workers_push(struct erofs_engine *eng, struct work *work)
{
	struct worker *w = local_worker(eng);

	work->queued_ns = erofs_now_ns();
	enqueue(w ? &w->queue : &eng->shared, work);
	eng->nqueued++;
	if (!w || !w->idle)
		w = idle_worker(eng);	/* it will steal: locality must not mean idleness (A5) */
	if (w)
		wake_worker(eng, w);
	else
		pthread_cond_signal(&eng->done);	/* the owner may help */
	update_spare(eng);
}

static struct queue *longest_queue(struct erofs_engine *eng)
{
	struct queue *best = &eng->shared;
	unsigned int i;

	for (i = 0; i < eng->nstarted; i++)
		if (eng->workers[i].queue.count > best->count)
			best = &eng->workers[i].queue;
	return best;
}

struct work *erofs_workers_pick(struct erofs_engine *eng, unsigned int index)
{
	struct work *work = NULL;

	if (!eng->nqueued)
		return NULL;
	if (index != UINT_MAX)
		work = dequeue(&eng->workers[index].queue);
	if (!work) {
		struct queue *q = longest_queue(eng);

		work = dequeue(q);
		if (work && q != &eng->shared)
			eng->stolen++;
	}
	if (work) {
		eng->nqueued--;
		work->job->running++;
		update_spare(eng);
		erofs_hist_add(index == UINT_MAX ? &eng->waits : &eng->workers[index].waits,
			       erofs_now_ns() - work->queued_ns);
	}
	return work;
}

void erofs_workers_run(struct erofs_engine *eng, struct lane *lane, struct work *work)
{
	struct job *job = work->job;
	size_t bytes = work->bytes;

	eng->batches++;
	pthread_mutex_unlock(&eng->lock);
	work->run(lane, work);
	pthread_mutex_lock(&eng->lock);
	job->bytes -= bytes;
	job->running--;
	/* the owner waits for the end, or for enough room to make waking it worth while */
	if ((!eng->nqueued && !job->running) || job->bytes <= job->limit / 2)
		pthread_cond_signal(&eng->done);
}

/* ---- threads ---- */

/* SCHED_FIFO 1, else a negative nice value, else as we are. Return: what it became, in words. */
static const char *raise_priority(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (!pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return NULL;
	if (!setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20))
		return "nice -20";
	return "normal priority";
}

static void set_up_thread(struct worker *w)
{
	char name[32] = "erofs_unbound";

	if (w->cpu >= 0)
		snprintf(name, sizeof(name), "erofs_work%s/%d", w->cpu < 100 ? "er" : "", w->cpu);
	pthread_setname_np(pthread_self(), name);
	if (w->cpu >= 0) {
		size_t size = CPU_ALLOC_SIZE((size_t)w->cpu + 1);
		cpu_set_t *set = CPU_ALLOC((size_t)w->cpu + 1);

		if (set) {
			CPU_ZERO_S(size, set);
			CPU_SET_S((size_t)w->cpu, size, set);
			(void)sched_setaffinity(0, size, set);
			CPU_FREE(set);
		}
	}
	if (w->eng->mode == WORKERS_PERCPU_HIPRI) {
		const char *instead = raise_priority();

		if (instead && !w->index)
			erofs_diag_warn_path(w->eng->diag, NULL,
					     "no real-time priority for workers, they run with %s", instead);
	}
}

/* Sleep until woken; the lock is held, but not while asleep. */
static void sleep_idle(struct erofs_engine *eng, struct worker *w)
{
	uint64_t now;

	w->idle = true;
	eng->nidle++;
	update_spare(eng);
	pthread_mutex_unlock(&eng->lock);
	while (sem_wait(&w->wake))
		;
	now = erofs_now_ns();
	pthread_mutex_lock(&eng->lock);
	if (!eng->quit)
		erofs_hist_add(&w->wakes, now - w->woken_ns);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct erofs_engine *eng = w->eng;

	set_up_thread(w);
	pthread_mutex_lock(&eng->lock);
	w->tid = (pid_t)syscall(SYS_gettid);
	while (!eng->quit) {
		struct work *work = erofs_workers_pick(eng, w->index);

		if (work) {
			erofs_workers_run(eng, work->job->lanes[w->index + 1], work);
			continue;
		}
		sleep_idle(eng, w);
	}
	(void)erofs_read_run_delay(w->tid, &w->delay_ns, &w->slices);
	w->tid = 0;
	pthread_mutex_unlock(&eng->lock);
	return NULL;
}

void erofs_workers_start(struct erofs_engine *eng)
{
	sigset_t all, old;

	if (eng->nstarted == eng->nworkers || eng->start_failed)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (eng->nstarted < eng->nworkers && !eng->start_failed) {
		struct worker *w = &eng->workers[eng->nstarted];

		if (pthread_create(&w->thread, NULL, worker_main, w))
			eng->start_failed = true;
		else
			eng->nstarted++;
	}
	update_spare(eng);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void erofs_workers_stop(struct erofs_engine *eng)
{
	unsigned int i;

	pthread_mutex_lock(&eng->lock);
	eng->quit = true;
	for (i = 0; i < eng->nstarted; i++)
		sem_post(&eng->workers[i].wake);
	pthread_mutex_unlock(&eng->lock);
	for (i = 0; i < eng->nstarted; i++)
		pthread_join(eng->workers[i].thread, NULL);
	for (i = 0; i < eng->nworkers; i++)
		sem_destroy(&eng->workers[i].wake);
	free(eng->workers);
}
