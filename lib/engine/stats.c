// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Figures: what the engine did, and how far it is. */
#include "engine/workers.h"

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

void erofs_engine_stats(const struct erofs_engine *eng, struct erofs_stats *ret_stats)
{
	struct erofs_stats s = eng->ended;

	s.workers = erofs_engine_workers(eng);
	s.mode = mode_name(eng->mode);
	s.batches = eng->batches;
	s.stolen = eng->stolen;
	s.inlined = eng->inlined;
	s.max_memory = eng->max_memory;
	if (eng->has_pages) {
		s.reserved_pages = eng->pages.target;
		s.lowest_reserved = eng->pages.lowest;
		s.refills = eng->pages.refills;
	}
	*ret_stats = s;
}

void erofs_engine_progress(const struct erofs_engine *eng, struct erofs_progress *ret_progress)
{
	ret_progress->inodes = atomic_load_explicit(&eng->done_inodes, memory_order_relaxed);
	ret_progress->bytes = atomic_load_explicit(&eng->done_bytes, memory_order_relaxed);
	ret_progress->total_inodes = atomic_load_explicit(&eng->total_inodes, memory_order_relaxed);
}

void erofs_job_count(struct job *job, uint64_t inodes, uint64_t bytes)
{
	if (inodes)
		atomic_fetch_add_explicit(&job->eng->done_inodes, inodes, memory_order_relaxed);
	if (bytes)
		atomic_fetch_add_explicit(&job->eng->done_bytes, bytes, memory_order_relaxed);
}
