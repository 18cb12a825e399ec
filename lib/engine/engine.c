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

#define CACHE_SHARE 4		/* a quarter of the limit: packed pclusters of 1 MiB decode to several */
#define STATE_SHARE 4		/* a quarter: 12 MiB hold 780,000 pclusters */
#define FLIGHT_SHARE 8		/* an eighth of the limit may be queued, in decoded bytes */

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
	if (options && options->max_memory)
		eng->max_memory = options->max_memory;
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

static int make_lanes(struct job *job)
{
	struct erofs_engine *eng = job->eng;
	unsigned int i, count = job->threads ? eng->nworkers + 1 : 1;
	int err;

	job->lanes = calloc(count, sizeof(*job->lanes));
	if (!job->lanes)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		err = erofs_lane_make(job->img, job->cache, eng->has_pages ? &eng->pages : NULL, job->diag,
				      &job->lanes[i]);
		if (err)
			return err;
		if (eng->has_pages && eng->kernel_policy) {
			erofs_lz4_pages_init(&job->lanes[i]->by_pages, &eng->pages, &job->lanes[i]->pool,
					     job->lanes[i]->codec);
			job->lanes[i]->kernel_policy = true;
		}
		job->lanes[i]->job = job;
		job->lanes[i]->index = i;
		job->nlanes++;
	}
	return 0;
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

static int set_up_job(struct job *job)
{
	const struct super *super = job->img->super;
	size_t max = job->eng->max_memory;
	int err;

	job->threads = job->eng->nworkers && image_bytes(job->img) >= SMALL_IMAGE;
	job->limit = max / FLIGHT_SHARE;
	job->owner = pthread_self();
	if (super->packed || super->metabox) {
		err = erofs_dcache_new(max / CACHE_SHARE, &job->cache);
		if (err)
			return err;
	}
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
	err = !late && erofs_engine_is_cancelled(eng) ? -ECANCELED : set_up_job(job);
	if (err) {
		free_job(job);
		return err;
	}
	pthread_mutex_lock(&eng->run);
	atomic_store_explicit(&eng->done_inodes, 0, memory_order_relaxed);
	atomic_store_explicit(&eng->done_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&eng->total_inodes, img->super->info.inodes, memory_order_relaxed);
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

void erofs_job_end(struct job *job)
{
	struct erofs_engine *eng = job->eng;
	unsigned int i;

	erofs_job_wait(job);
	pthread_mutex_lock(&eng->lock);
	for (i = 0; i < job->nlanes; i++)
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
	return !job->threads || job->eng->mode == WORKERS_SHARED || !job->eng->nstarted;
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
	if (job->threads)
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

struct lane *erofs_job_lane(struct job *job, unsigned int index)
{
	return job->lanes[index];
}

size_t erofs_job_state_bytes(const struct job *job)
{
	return job->eng->max_memory / STATE_SHARE;
}
