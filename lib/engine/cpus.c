// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* How many workers, and where: the affinity mask, the cgroup's quota, the words of --workers (engine.md A1, A3). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/workers.h"

#define MAX_WORKERS 1024	/* of --workers=N: a typing error should not start a million threads */

/* The affinity mask of this thread, however many CPUs the machine numbers. */
int erofs_cpus_get(struct cpus *cpus)
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

/* Slots for all CPUs that may ever appear: a worker that comes later needs no array to grow (A6). */
static unsigned int choose_slots(const struct erofs_engine *eng, unsigned int count)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);

	if (eng->mode < WORKERS_PERCPU || configured <= (long)count)
		return count;
	return (unsigned int)configured;
}

static int make_workers(struct erofs_engine *eng, unsigned int count, const struct cpus *cpus)
{
	unsigned int i;
	int cpu = -1;

	if (!count)
		return 0;
	eng->nslots = choose_slots(eng, count);
	eng->workers = calloc(eng->nslots, sizeof(*eng->workers));
	if (!eng->workers) {
		eng->nslots = 0;
		return -ENOMEM;
	}
	eng->nworkers = count;
	for (i = 0; i < eng->nslots; i++) {
		struct worker *w = &eng->workers[i];

		w->eng = eng;
		w->index = i;
		w->cpu = -1;
		sem_init(&w->wake, 0, 0);
		if (i >= count || eng->mode < WORKERS_PERCPU || !cpus->set)
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

void erofs_cpus_free(struct cpus *cpus)
{
	if (cpus->set)
		CPU_FREE(cpus->set);
	cpus->set = NULL;
}

int erofs_workers_configure(struct erofs_engine *eng, const char *words)
{
	auto_call(erofs_cpus_free) struct cpus cpus = { 0 };
	unsigned int count, quota;
	int err = erofs_cpus_get(&cpus);

	if (err)
		return err;
	count = cpus.count;
	if (!words || !*words || !strcmp(words, "auto")) {
		/*
		 * As many threads as CPUs, the caller among them, not pinned: on idle CPUs as fast as percpu
		 * (0.247 and 0.256 s for the linux tree), and where others use them too the scheduler may
		 * move what waits (1.3 against 3.5 s with four busy loops per CPU; unbound 1.8 s).
		 */
		quota = cgroup_quota();
		if (quota < count)
			count = quota;
		eng->mode = count > 1 ? WORKERS_SHARED : WORKERS_INLINE;
		count--;
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
