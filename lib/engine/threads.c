// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Threads of the pool: starting, pinning, priority, coming and going with their CPUs (engine.md A1, A2, A6). */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/workers.h"

static pid_t get_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* ---- priority ---- */

/* SCHED_FIFO 1, else a negative nice value, else as we are. */
static enum worker_priority raise_priority(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (!pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return PRIORITY_FIFO;
	if (!setpriority(PRIO_PROCESS, (id_t)get_tid(), -20))
		return PRIORITY_NICE;
	return PRIORITY_NORMAL;
}

static void lower_priority(enum worker_priority was)
{
	struct sched_param param = { 0 };

	if (was == PRIORITY_FIFO)
		(void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &param);
	else if (was == PRIORITY_NICE)
		(void)setpriority(PRIO_PROCESS, (id_t)get_tid(), 0);
}

/* System calls on paths may take long: they run at normal priority (A2). */
static void fit_priority(struct worker *w, const struct work *work)
{
	if (w->best == PRIORITY_NORMAL || w->raised == !work->path)
		return;
	if (work->path)
		lower_priority(w->best);
	else
		(void)raise_priority();
	w->raised = !work->path;
}

/* ---- the CPU ---- */

static void pin(int cpu)
{
	size_t size = CPU_ALLOC_SIZE((size_t)cpu + 1);
	cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);

	if (!set)
		return;
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)cpu, size, set);
	(void)sched_setaffinity(0, size, set);
	CPU_FREE(set);
}

/*
 * May this thread still run on its CPU? The kernel moves it elsewhere without a word when a cpuset
 * shrinks; a mask that was only widened (taskset) is set right again.
 */
static bool has_its_cpu(const struct worker *w)
{
	auto_call(erofs_cpus_free) struct cpus cpus = { 0 };

	if (w->cpu < 0 || erofs_cpus_get(&cpus) || !cpus.set)
		return true;
	if ((size_t)w->cpu >= cpus.size * 8 || !CPU_ISSET_S((size_t)w->cpu, cpus.size, cpus.set))
		return false;
	if (cpus.count > 1)
		pin(w->cpu);
	return true;
}

static void set_up_thread(struct worker *w)
{
	char name[32] = "erofs_unbound";

	if (w->cpu >= 0) {
		/* names have 15 bytes */
		snprintf(name, sizeof(name), "erofs_work%s/%d", w->cpu < 100 ? "er" : "", w->cpu);
		pin(w->cpu);
	}
	pthread_setname_np(pthread_self(), name);
	if (w->eng->mode != WORKERS_PERCPU_HIPRI)
		return;
	w->best = raise_priority();
	w->raised = w->best != PRIORITY_NORMAL;
	if (w->best != PRIORITY_FIFO && !atomic_exchange_explicit(&w->eng->told_priority, true, memory_order_relaxed))
		erofs_diag_warn_path(w->eng->diag, NULL, "no real-time priority for workers, they run with %s",
				     w->best == PRIORITY_NICE ? "nice -20" : "normal priority");
}

/* ---- the loop ---- */

/* Sleep until woken; the lock is held, but not while asleep. */
static void sleep_idle(struct erofs_engine *eng, struct worker *w)
{
	uint64_t now;

	erofs_workers_note_idle(eng, w);
	pthread_mutex_unlock(&eng->lock);
	while (sem_wait(&w->wake))
		;
	now = erofs_now_ns();
	pthread_mutex_lock(&eng->lock);
	if (!eng->quit)
		erofs_hist_add(&w->wakes, now - w->woken_ns);
}

/* The lane of a worker that came while the job was going on. NULL: no memory. The lock is held. */
static struct lane *get_lane(struct erofs_engine *eng, struct worker *w, struct job *job)
{
	struct lane **at = &job->lanes[w->index + 1], *lane = NULL;

	if (*at)
		return *at;
	pthread_mutex_unlock(&eng->lock);
	(void)erofs_job_make_lane(job, w->index + 1, &lane);
	pthread_mutex_lock(&eng->lock);
	*at = lane;
	return lane;
}

/* false: this worker cannot, and retires. The lock is held. */
static bool run_work(struct erofs_engine *eng, struct worker *w, struct work *work)
{
	struct lane *lane = get_lane(eng, w, work->job);

	if (!lane) {
		erofs_workers_put_back(eng, work);
		return eng->nrunning == 1;
	}
	if (eng->mode == WORKERS_PERCPU_HIPRI)
		fit_priority(w, work);
	erofs_workers_run(eng, lane, work);
	return true;
}

/* Its CPU is gone: finish, hand on, end. The last one never does. The lock is held. */
static bool must_retire(struct erofs_engine *eng, const struct worker *w)
{
	bool has;

	if (w->cpu < 0)
		return false;
	pthread_mutex_unlock(&eng->lock);
	has = has_its_cpu(w);
	pthread_mutex_lock(&eng->lock);
	return !has && eng->nrunning > 1 && !eng->quit;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct erofs_engine *eng = w->eng;

	set_up_thread(w);
	pthread_mutex_lock(&eng->lock);
	w->tid = get_tid();
	while (!eng->quit) {
		struct work *work = erofs_workers_pick(eng, w->index);

		if (work && !run_work(eng, w, work))
			break;
		if (must_retire(eng, w)) {
			eng->retired++;
			break;
		}
		/* what came while the lock was free */
		if (!work && !eng->quit && !erofs_workers_has_work(eng, w->index))
			sleep_idle(eng, w);
	}
	w->running = false;
	eng->nrunning--;
	if (!eng->quit)
		erofs_workers_hand_on(eng, w);
	(void)erofs_read_run_delay(w->tid, &w->delay_ns, &w->slices);
	w->tid = 0;
	pthread_mutex_unlock(&eng->lock);
	return NULL;
}

/* ---- starting and ending ---- */

/* The lock is held. false: no more threads to be had. */
static bool start_worker(struct erofs_engine *eng, struct worker *w)
{
	if (w->joinable) {
		/* it has left the loop, and only has to return */
		pthread_join(w->thread, NULL);
		w->joinable = false;
	}
	if (pthread_create(&w->thread, NULL, worker_main, w)) {
		eng->start_failed = true;
		return false;
	}
	w->joinable = true;
	w->running = true;
	w->idle = false;
	eng->nrunning++;
	return true;
}

static struct worker *find_slot(struct erofs_engine *eng, int cpu)
{
	struct worker *unused = NULL;
	unsigned int i;

	for (i = 0; i < eng->nslots; i++) {
		if (eng->workers[i].cpu == cpu)
			return &eng->workers[i];
		if (eng->workers[i].cpu < 0 && !unused)
			unused = &eng->workers[i];
	}
	return unused;
}

/* A worker for each CPU that we may use now. */
static void start_percpu(struct erofs_engine *eng, unsigned int max)
{
	auto_call(erofs_cpus_free) struct cpus cpus = { 0 };
	size_t cpu;

	if (erofs_cpus_get(&cpus) || !cpus.set)
		return;
	for (cpu = 0; cpu < cpus.size * 8 && !eng->start_failed; cpu++) {
		struct worker *w;

		if (!CPU_ISSET_S(cpu, cpus.size, cpus.set))
			continue;
		w = find_slot(eng, (int)cpu);
		if (!w || w->running || w->index >= max)
			continue;
		w->cpu = (int)cpu;
		(void)start_worker(eng, w);
	}
}

void erofs_workers_start(struct erofs_engine *eng)
{
	unsigned int i, max = eng->job ? eng->job->max_workers : eng->nworkers;
	sigset_t all, old;

	if (eng->start_failed || (eng->mode < WORKERS_PERCPU && eng->nrunning == eng->nworkers))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* without an affinity mask to be read the first slots have no CPU, and run unpinned */
	if (eng->mode >= WORKERS_PERCPU)
		start_percpu(eng, max);
	for (i = 0; i < eng->nworkers && i < max && !eng->start_failed; i++)
		if (!eng->workers[i].running && (eng->mode < WORKERS_PERCPU || !eng->nrunning))
			(void)start_worker(eng, &eng->workers[i]);
	erofs_workers_set_idle(eng, eng->owner_idle);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void erofs_workers_stop(struct erofs_engine *eng)
{
	unsigned int i;

	pthread_mutex_lock(&eng->lock);
	eng->quit = true;
	for (i = 0; i < eng->nslots; i++)
		sem_post(&eng->workers[i].wake);
	pthread_mutex_unlock(&eng->lock);
	for (i = 0; i < eng->nslots; i++)
		if (eng->workers[i].joinable)
			pthread_join(eng->workers[i].thread, NULL);
	for (i = 0; i < eng->nslots; i++)
		sem_destroy(&eng->workers[i].wake);
	free(eng->workers);
}
