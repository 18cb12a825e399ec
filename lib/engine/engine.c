// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Engines and jobs: create, run, cancel. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "engine/workers.h"

/*
 * Images below this are checked by the calling thread: making and joining two threads takes about
 * 100 us, as long as one core needs to decode 300 KiB.
 */
#define SMALL_IMAGE (UINT64_C(1) << 20)

/* Memory that is neither cache nor state: buffers of the lanes, decoded bytes in flight. */
#define MEMORY_BASE (UINT64_C(32) << 20)	/* engine.md A10 */
#define MEMORY_WORKER (UINT64_C(8) << 20)

#define MEMORY_LEAST (UINT64_C(2) << 20)	/* state, cache and queue of the smallest run */
#define MEMORY_LANE (UINT64_C(3) << 20)	/* input window and output run of 1 MiB each, metadata, LZ4 pages */
#define MEMORY_CODEC (UINT64_C(256) << 10)	/* of decoder contexts, without the window */

#define CACHE_SHARE 4		/* a quarter of the limit: packed pclusters of 1 MiB decode to several */
/*
 * Three eighths for state that covers the image: with two workers 18 MiB, half of it for 590,000 pclusters.
 * What does not fit costs another walk.
 */
#define STATE_EIGHTHS 3
/*
 * An eighth for decoded bytes that wait for their turn in an ordered result: with two workers 6 MiB, so
 * that each has its parcel while others wait to be written.
 */
#define FLIGHT_SHARE 8
/*
 * Decoded bytes that may be queued. What is queued is a description of some 100 bytes; a bound is needed
 * only so that read-ahead does not run away from the decoding. With 6 MiB, a check by percpu workers on CPUs
 * with four busy loops each took 5.6 s, since all waited for the owner to get a CPU and queue more; with
 * 64 MiB 3.5 s.
 */
#define FLIGHT_BYTES ((size_t)64 << 20)

static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	/* a real-time worker must not wait behind a normal thread that was preempted (A2) */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static int choose_policy(struct erofs_engine *eng, const struct erofs_engine_options *options)
{
	const char *words = options ? options->page_policy : NULL;

	eng->kernel_policy = options && options->reserved_pages;
	if (!words)
		return 0;
	if (strcmp(words, "kernel") && strcmp(words, "caching"))
		return -EINVAL;
	eng->kernel_policy = !strcmp(words, "kernel");
	return 0;
}

static int set_up(struct erofs_engine *eng, const struct erofs_engine_options *options)
{
	unsigned int reserved = options ? options->reserved_pages : 0;
	int err;

	if (reserved > PAGES_MAX_RESERVED)
		return -EINVAL;
	err = erofs_workers_configure(eng, options ? options->workers : NULL);
	if (err)
		return err;
	eng->max_memory = MEMORY_BASE + (eng->nworkers + !eng->nworkers) * MEMORY_WORKER;
	if (options && options->max_memory) {
		eng->max_memory = options->max_memory;
		eng->memory_given = true;
	}
	err = choose_policy(eng, options);
	if (err)
		return err;
	err = erofs_pages_init(&eng->pages, reserved, reserved + 32 * (eng->nworkers + 1));
	eng->has_pages = !err;
	if (eng->has_pages && eng->pages.target != reserved)
		erofs_diag_warn_path(eng->diag, NULL, "no memory for %u reserved pages, running with none",
				     reserved);
	return 0;
}

static void free_engine(struct erofs_engine **eng)
{
	erofs_engine_free(*eng);
}

int erofs_engine_new(const struct erofs_engine_options *options, struct erofs_diag *diag,
		     struct erofs_engine **ret_eng)
{
	auto_call(free_engine) struct erofs_engine *eng = calloc(1, sizeof(*eng));
	int err;

	if (!eng)
		return -ENOMEM;
	init_lock(&eng->lock);
	pthread_mutex_init(&eng->run, NULL);
	pthread_cond_init(&eng->done, NULL);
	eng->pages.fd = -1;
	eng->diag = diag;
	err = set_up(eng, options);
	if (err)
		return err;
	*ret_eng = steal(eng);
	return 0;
}

void erofs_engine_free(struct erofs_engine *eng)
{
	if (!eng)
		return;
	erofs_workers_stop(eng);
	erofs_pages_fini(&eng->pages);
	pthread_cond_destroy(&eng->done);
	pthread_mutex_destroy(&eng->run);
	pthread_mutex_destroy(&eng->lock);
	free(eng);
}

void erofs_engine_cancel(struct erofs_engine *eng)
{
	atomic_store_explicit(&eng->cancelled, true, memory_order_relaxed);
}

int erofs_engine_is_cancelled(const struct erofs_engine *eng)
{
	return atomic_load_explicit(&eng->cancelled, memory_order_relaxed);
}

unsigned int erofs_engine_workers(const struct erofs_engine *eng)
{
	return eng->mode == WORKERS_SHARED || eng->mode == WORKERS_INLINE ? eng->nworkers + 1 : eng->nworkers;
}

/* ---- jobs ---- */

/* Is anything of the job queued or running? The lock is held. */
static bool can_go_on(const struct job *job)
{
	return job->eng->nqueued || job->running;
}

static uint64_t image_bytes(const struct erofs_image *img)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < img->ndevs; i++)
		bytes += img->devs[i].size;
	return bytes;
}

int erofs_job_make_lane(struct job *job, unsigned int index, struct lane **ret_lane)
{
	struct erofs_engine *eng = job->eng;
	struct lane *lane;
	int err = erofs_lane_make(job->img, job->cache, eng->has_pages ? &eng->pages : NULL, job->diag, &lane);

	if (err)
		return err;
	if (job->img && eng->has_pages && eng->kernel_policy) {
		erofs_lz4_pages_init(&lane->by_pages, &eng->pages, &lane->pool, lane->codec);
		lane->kernel_policy = true;
	}
	lane->job = job;
	lane->index = index;
	*ret_lane = lane;
	return 0;
}

static int make_lanes(struct job *job)
{
	unsigned int i;
	int err = 0;

	job->nlanes = job->threads ? job->eng->nslots + 1 : 1;
	job->lanes = calloc(job->nlanes, sizeof(*job->lanes));
	if (!job->lanes) {
		job->nlanes = 0;
		return -ENOMEM;
	}
	for (i = 0; !err && i < erofs_job_active_lanes(job); i++)
		err = erofs_job_make_lane(job, i, &job->lanes[i]);
	return err;
}

static void free_job(struct job *job)
{
	unsigned int i;

	for (i = 0; i < job->nlanes; i++)
		erofs_lane_free(job->lanes[i]);
	free(job->lanes);
	erofs_dcache_free(job->cache);
	free(job);
}

/* What the image's codecs keep per worker: dictionary, window, and their own state. */
static size_t codec_bytes(const struct codec_config *c)
{
	size_t bytes = c->lzma_dict_size;

	if (c->zstd_window_log && (size_t)1 << c->zstd_window_log > bytes)
		bytes = (size_t)1 << c->zstd_window_log;
	return bytes ? bytes + MEMORY_CODEC : 0;
}

/* How many workers does the limit have room for (A10)? The default grows with what the image declares. */
static int fit_memory(struct job *job)
{
	struct erofs_engine *eng = job->eng;
	size_t one = MEMORY_LANE + codec_bytes(&job->img->super->codec), fit;

	job->max_workers = eng->nslots;
	if (!eng->memory_given)
		return 0;
	if (eng->max_memory < MEMORY_LEAST + one)
		return erofs_diag_fail(job->diag, -ENOMEM, AT_NOWHERE,
				       "the memory limit of %zu KiB is too small, %zu KiB are needed",
				       eng->max_memory >> 10, (MEMORY_LEAST + one) >> 10);
	fit = (eng->max_memory - MEMORY_LEAST) / one;
	if (fit >= eng->nworkers + !eng->nworkers)
		return 0;
	/* with shared queues the caller is one of them */
	job->max_workers = (unsigned int)fit - (eng->mode == WORKERS_SHARED);
	erofs_diag_warn_path(job->diag, NULL, "the memory limit has room for %zu of %u workers", fit,
			     erofs_engine_workers(eng));
	return 0;
}

static int set_up_job(struct job *job)
{
	const struct super *super = job->img->super;
	size_t max = job->eng->max_memory;
	int err = fit_memory(job);

	if (err)
		return err;
	job->threads = job->max_workers && image_bytes(job->img) >= SMALL_IMAGE;
	job->limit = FLIGHT_BYTES;
	job->owner = pthread_self();
	if (super->packed || super->metabox) {
		err = erofs_dcache_new(max / CACHE_SHARE, &job->cache);
		if (err)
			return err;
	}
	return make_lanes(job);
}

/* Work of a writer is coarse and compresses: threads always pay. */
static int set_up_plain(struct job *job)
{
	job->max_workers = job->eng->nslots;
	job->threads = job->max_workers;
	job->limit = SIZE_MAX;
	job->owner = pthread_self();
	return make_lanes(job);
}

static int begin_job(struct erofs_engine *eng, struct erofs_image *img, struct erofs_diag *diag, bool late,
		     struct job **ret_job)
{
	struct job *job = calloc(1, sizeof(*job));
	int err;

	if (!job)
		return -ENOMEM;
	job->eng = eng;
	job->img = img;
	job->diag = diag;
	job->late = late;
	if (!late && erofs_engine_is_cancelled(eng))
		err = -ECANCELED;
	else
		err = img ? set_up_job(job) : set_up_plain(job);
	if (err) {
		free_job(job);
		return err;
	}
	pthread_mutex_lock(&eng->run);
	atomic_store_explicit(&eng->done_inodes, 0, memory_order_relaxed);
	atomic_store_explicit(&eng->done_bytes, 0, memory_order_relaxed);
	erofs_job_expect(job, img ? img->super->info.inodes : 0, 0);
	pthread_mutex_lock(&eng->lock);
	eng->job = job;
	pthread_mutex_unlock(&eng->lock);
	*ret_job = job;
	return 0;
}

int erofs_job_begin(struct erofs_engine *eng, struct erofs_image *img, struct erofs_diag *diag,
		    struct job **ret_job)
{
	return begin_job(eng, img, diag, false, ret_job);
}

int erofs_job_begin_late(struct erofs_engine *eng, struct erofs_image *img, struct erofs_diag *diag,
			 struct job **ret_job)
{
	return begin_job(eng, img, diag, true, ret_job);
}

int erofs_job_begin_plain(struct erofs_engine *eng, struct erofs_diag *diag, struct job **ret_job)
{
	return begin_job(eng, NULL, diag, false, ret_job);
}

void erofs_job_end(struct job *job)
{
	struct erofs_engine *eng = job->eng;
	unsigned int i;

	erofs_job_wait(job);
	pthread_mutex_lock(&eng->lock);
	for (i = 0; i < job->nlanes; i++)
		if (job->lanes[i])
			erofs_stats_add_lane(&eng->ended, job->lanes[i]);
	erofs_stats_add_cache(&eng->ended, job->cache);
	eng->job = NULL;
	pthread_mutex_unlock(&eng->lock);
	free_job(job);
	pthread_mutex_unlock(&eng->run);
}

/* May the owner run work itself? Not where every allowed CPU has a worker of its own. */
static bool owner_helps(const struct job *job)
{
	return !job->threads || job->eng->mode == WORKERS_SHARED || !job->eng->nrunning;
}

/* Run one work, or wait for a change. The lock is held. */
static void help_or_wait(struct job *job)
{
	struct erofs_engine *eng = job->eng;
	bool helps = owner_helps(job);
	struct work *work = helps ? erofs_workers_pick(eng, UINT_MAX) : NULL;

	if (!work) {
		erofs_workers_set_idle(eng, helps);
		pthread_cond_wait(&eng->done, &eng->lock);
		erofs_workers_set_idle(eng, false);
		return;
	}
	eng->inlined++;
	erofs_workers_run(eng, job->lanes[0], work);
}

void erofs_job_submit(struct job *job, struct work *work)
{
	struct erofs_engine *eng = job->eng;

	work->job = job;
	pthread_mutex_lock(&eng->lock);
	/* a worker's own mask is its one CPU: only the owner's shows which CPUs came (A6) */
	if (job->threads && (!eng->nrunning || pthread_equal(pthread_self(), job->owner)))
		erofs_workers_start(eng);
	/* back-pressure (A10) is the owner's: a worker that waited for room could be the one to make it */
	if (pthread_equal(pthread_self(), job->owner) && job->bytes + work->bytes > job->limit)
		while (job->bytes > job->limit / 2 && can_go_on(job))
			help_or_wait(job);
	job->bytes += work->bytes;
	if (job->bytes > eng->peak_bytes)
		eng->peak_bytes = job->bytes;
	erofs_workers_push(eng, work);
	pthread_mutex_unlock(&eng->lock);
}

void erofs_job_wait(struct job *job)
{
	struct erofs_engine *eng = job->eng;

	pthread_mutex_lock(&eng->lock);
	while (can_go_on(job))
		help_or_wait(job);
	pthread_mutex_unlock(&eng->lock);
}

bool erofs_job_wait_for(struct job *job, bool (*is_ready)(void *arg), void *arg)
{
	struct erofs_engine *eng = job->eng;
	bool ready;

	pthread_mutex_lock(&eng->lock);
	job->watched = true;
	while (!(ready = is_ready(arg)) && can_go_on(job))
		help_or_wait(job);
	job->watched = false;
	pthread_mutex_unlock(&eng->lock);
	return ready;
}

bool erofs_job_is_hungry(struct job *job)
{
	return job->threads && atomic_load_explicit(&job->eng->spare, memory_order_relaxed) > 0;
}

bool erofs_job_is_cancelled(const struct job *job)
{
	return atomic_load_explicit(&job->cancelled, memory_order_relaxed) ||
	       (!job->late && erofs_engine_is_cancelled(job->eng));
}

void erofs_job_cancel(struct job *job)
{
	atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
}

unsigned int erofs_job_lanes(const struct job *job)
{
	return job->nlanes;
}

unsigned int erofs_job_active_lanes(const struct job *job)
{
	return job->threads ? (job->max_workers < job->eng->nworkers ? job->max_workers : job->eng->nworkers) + 1 : 1;
}

struct lane *erofs_job_lane(struct job *job, unsigned int index)
{
	return job->lanes[index];
}

size_t erofs_job_state_bytes(const struct job *job)
{
	return job->eng->max_memory / 8 * STATE_EIGHTHS;
}

size_t erofs_job_flight_bytes(const struct job *job)
{
	return job->threads ? job->eng->max_memory / FLIGHT_SHARE : 0;
}
