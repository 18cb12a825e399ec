// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Figures: what the engine did, and how far it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/workers.h"

#define TELL_INODES 64
#define TELL_BYTES (UINT64_C(4) << 20)

void erofs_stats_add_lane(struct erofs_stats *stats, const struct lane *lane)
{
	unsigned int i;

	stats->pclusters += lane->pclusters;
	stats->bytes_in += lane->bytes_in;
	stats->bytes_out += lane->bytes_out;
	for (i = 0; i < PAGE_SOURCES; i++) {
		const struct page_counters *c = &lane->pool.by_source[i];

		stats->pages[i].count += c->count;
		stats->pages[i].total_ns += c->total_ns;
		if (c->max_ns > stats->pages[i].max_ns)
			stats->pages[i].max_ns = c->max_ns;
	}
}

void erofs_stats_add_cache(struct erofs_stats *stats, struct dcache *cache)
{
	uint64_t lookups, fills;

	if (!cache)
		return;
	erofs_dcache_counts(cache, &lookups, &fills);
	stats->cache_hits += lookups - fills;
	stats->cache_misses += fills;
}

int erofs_read_run_delay(pid_t tid, uint64_t *ret_ns, uint64_t *ret_slices)
{
	unsigned long long run, delay, slices;
	char path[64];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	n = fscanf(f, "%llu %llu %llu", &run, &delay, &slices);
	fclose(f);
	if (n != 3)
		return -ENOENT;
	*ret_ns = delay;
	*ret_slices = slices;
	return 0;
}

static void describe(const struct hist *h, struct erofs_latency *ret)
{
	*ret = (struct erofs_latency){
		.count = h->count,
		.total = h->total,
		.min = h->min,
		.median = erofs_hist_quantile(h, 0.5),
		.max = h->max,
		.p99 = erofs_hist_quantile(h, 0.99),
		.average = h->count ? (double)h->total / (double)h->count : 0.0,
		.deviation = erofs_hist_deviation(h),
	};
}

static void add_run_delay(const struct worker *w, struct erofs_stats *s)
{
	uint64_t ns = w->delay_ns, slices = w->slices;

	if (w->tid && erofs_read_run_delay(w->tid, &ns, &slices))
		return;
	s->has_run_delay |= slices > 0;
	s->run_delay.count += slices;
	s->run_delay.total += ns;
}

/* Latencies of all workers. The engine's lock is held. */
static void collect_latencies(const struct erofs_engine *eng, struct erofs_stats *s)
{
	struct hist *sum = calloc(2, sizeof(*sum));
	unsigned int i;

	if (!sum)
		return;
	erofs_hist_merge(&sum[1], &eng->waits);
	for (i = 0; i < eng->nslots; i++) {
		erofs_hist_merge(&sum[0], &eng->workers[i].wakes);
		erofs_hist_merge(&sum[1], &eng->workers[i].waits);
		add_run_delay(&eng->workers[i], s);
	}
	describe(&sum[0], &s->wake);
	describe(&sum[1], &s->queue);
	if (s->run_delay.count)
		s->run_delay.average = (double)s->run_delay.total / (double)s->run_delay.count;
	free(sum);
}

static const char *mode_name(enum workers_mode mode)
{
	switch (mode) {
	case WORKERS_INLINE: return "inline";
	case WORKERS_SHARED: return "shared";
	case WORKERS_UNBOUND: return "unbound";
	case WORKERS_PERCPU: return "percpu";
	case WORKERS_PERCPU_HIPRI: return "percpu-hipri";
	}
	return "";
}

void erofs_engine_stats(struct erofs_engine *eng, struct erofs_stats *ret_stats)
{
	struct erofs_stats s;

	pthread_mutex_lock(&eng->lock);
	s = eng->ended;
	s.workers = erofs_engine_workers(eng);
	s.mode = mode_name(eng->mode);
	s.policy = eng->kernel_policy ? "kernel" : "caching";
	s.batches = eng->batches;
	s.stolen = eng->stolen;
	s.inlined = eng->inlined;
	s.max_memory = eng->max_memory;
	s.retired = eng->retired;
	if (eng->has_pages) {
		s.reserved_pages = eng->pages.target;
		s.lowest_reserved = eng->pages.lowest;
		s.refills = eng->pages.refills;
		s.final_reserved = atomic_load_explicit(&eng->pages.nreserved, memory_order_relaxed);
		s.locked = eng->pages.locked;
		s.lock_error = eng->pages.lock_error;
	}
	s.peak_bytes = eng->peak_bytes;
	collect_latencies(eng, &s);
	pthread_mutex_unlock(&eng->lock);
	*ret_stats = s;
}

void erofs_engine_progress(const struct erofs_engine *eng, struct erofs_progress *ret_progress)
{
	ret_progress->inodes = atomic_load_explicit(&eng->done_inodes, memory_order_relaxed);
	ret_progress->bytes = atomic_load_explicit(&eng->done_bytes, memory_order_relaxed);
	ret_progress->total_inodes = atomic_load_explicit(&eng->total_inodes, memory_order_relaxed);
	ret_progress->total_bytes = atomic_load_explicit(&eng->total_bytes, memory_order_relaxed);
}

void erofs_job_expect(struct job *job, uint64_t inodes, uint64_t bytes)
{
	atomic_store_explicit(&job->eng->total_inodes, inodes, memory_order_relaxed);
	atomic_store_explicit(&job->eng->total_bytes, bytes, memory_order_relaxed);
}

void erofs_lane_tell(struct lane *lane)
{
	struct erofs_engine *eng = lane->job ? lane->job->eng : NULL;

	if (!eng || !(lane->done_inodes | lane->done_bytes))
		return;
	atomic_fetch_add_explicit(&eng->done_inodes, lane->done_inodes, memory_order_relaxed);
	atomic_fetch_add_explicit(&eng->done_bytes, lane->done_bytes, memory_order_relaxed);
	lane->done_inodes = lane->done_bytes = 0;
}

void erofs_lane_count(struct lane *lane, uint64_t inodes, uint64_t bytes)
{
	lane->done_inodes += inodes;
	lane->done_bytes += bytes;
	/* counters that all workers write cost a cache miss each time */
	if (lane->done_inodes >= TELL_INODES || lane->done_bytes >= TELL_BYTES)
		erofs_lane_tell(lane);
}
