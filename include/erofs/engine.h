/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * engine: the worker pool and the memory that decompression takes.
 *
 * One engine may serve any number of images; runs on one engine take turns. Its threads start with the
 * first batch of the first run that is worth it, block all signals, and are joined by
 * erofs_engine_free().
 */
#ifndef EROFS_ENGINE_H
#define EROFS_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/diag.h>
#include <erofs/version.h>

EROFS_BEGIN_DECLS

struct erofs_engine;

struct erofs_engine_options {
	size_t size;			/* sizeof(struct erofs_engine_options) */
	/* "percpu", "percpu-hipri", "unbound", "0", "1", "N", "auto" (also NULL): min(CPUs, cgroup quota) */
	const char *workers;
	unsigned int reserved_pages;	/* host pages kept for LZ4, 0..16384 */
	uint64_t max_memory;		/* bytes in flight and caches, 0: 32 MiB + 8 MiB per worker */
	const char *page_policy;	/* "caching" or "kernel" (engine.md B4); NULL: kernel if pages are reserved */
};

/**
 * erofs_engine_new() - make an engine
 * @options: may be NULL
 * @diag:    receives what could not be had (real-time priority, memory object), may be NULL
 * @ret_eng: receives the engine; free it with erofs_engine_free()
 * The CPUs are those of the calling thread's affinity mask. Starts no thread.
 * Return: 0, -EINVAL (an option is wrong), -ENOMEM.
 */
EROFS_API int erofs_engine_new(const struct erofs_engine_options *options, struct erofs_diag *diag,
			       struct erofs_engine **ret_eng);

/** erofs_engine_free() - join all threads and free; no run may be going on. NULL is fine. */
EROFS_API void erofs_engine_free(struct erofs_engine *eng);

/**
 * erofs_engine_cancel() - stop the run that is going on, and every later one
 * Running requests finish, nothing new begins, the run returns -ECANCELED. Async-signal-safe, any thread.
 */
EROFS_API void erofs_engine_cancel(struct erofs_engine *eng);

/** erofs_engine_is_cancelled() - was erofs_engine_cancel() called? Any thread. */
EROFS_API int erofs_engine_is_cancelled(const struct erofs_engine *eng);

struct erofs_progress {
	uint64_t inodes;	/* walked or extracted in this run */
	uint64_t bytes;		/* decoded or written in this run */
	uint64_t total_inodes;	/* of the image, as its superblock says; to be written; 0: not known */
	uint64_t total_bytes;	/* to be written; 0: not known */
};

/** erofs_engine_progress() - how far the run is that is going on. Async-signal-safe, any thread. */
EROFS_API void erofs_engine_progress(const struct erofs_engine *eng, struct erofs_progress *ret_progress);

/* Times of one kind (engine.md F1), in nanoseconds. */
struct erofs_latency {
	uint64_t count, total, min, median, max, p99;
	double average, deviation;
};

/* What the engine did, all runs of it together; pages by where they came from (engine.md B1). */
struct erofs_stats {
	unsigned int workers;		/* threads that decode, the caller's included if it is one of them */
	const char *mode;		/* "inline", "shared", "unbound", "percpu", "percpu-hipri" */
	uint64_t batches, stolen, inlined;
	unsigned int retired;		/* workers that ended because their CPU was taken away */
	uint64_t pclusters, bytes_in, bytes_out;
	uint64_t cache_hits, cache_misses;	/* decoded extents of the packed and metabox file */
	const char *policy;		/* "caching", "kernel" */
	unsigned int reserved_pages, lowest_reserved, final_reserved;	/* of the pool: size, lowest fill, fill now */
	int locked, lock_error;		/* reserved pages are locked; if not: why, an errno */
	uint64_t refills;
	struct {
		uint64_t count, total_ns, max_ns;
	} pages[4];			/* pagepool, reserved, system, failed */
	uint64_t max_memory;		/* bytes, the limit in force */
	uint64_t peak_bytes;		/* most decoded bytes that were queued or running */
	struct erofs_latency wake;	/* an idle worker: from the wake-up call to its first instruction */
	struct erofs_latency queue;	/* work: from being queued to being taken */
	int has_run_delay;		/* 0: the kernel does not tell (no /proc, no schedstat) */
	struct erofs_latency run_delay;	/* the kernel's account of the workers: count, total and average alone */
};

/** erofs_engine_stats() - figures of the engine's runs; no run may be going on */
EROFS_API void erofs_engine_stats(struct erofs_engine *eng, struct erofs_stats *ret_stats);

/** erofs_engine_workers() - threads that decode, 1 if the caller's is the only one. Any thread. */
EROFS_API unsigned int erofs_engine_workers(const struct erofs_engine *eng);

EROFS_END_DECLS

#endif
