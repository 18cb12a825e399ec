/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * The worker pool's inside: queues, threads, jobs.
 *
 * One lock guards all queues. It is taken a few thousand times a second at most (work is megabytes of
 * decoded data), so finer locks would buy nothing.
 */
#ifndef EROFS_ENGINE_WORKERS_H
#define EROFS_ENGINE_WORKERS_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/hist.h"
#include "engine/lane_priv.h"

enum workers_mode {
	WORKERS_INLINE,		/* the calling thread alone */
	WORKERS_SHARED,		/* N: unpinned threads on one queue, the caller is one of them */
	WORKERS_UNBOUND,	/* one unpinned thread per allowed CPU on one queue */
	WORKERS_PERCPU,		/* one pinned thread per allowed CPU, a queue each */
	WORKERS_PERCPU_HIPRI,	/* the same with SCHED_FIFO 1 */
};

/* The affinity mask of a thread, however many CPUs the machine numbers. */
struct cpus {
	cpu_set_t *set;		/* NULL: not to be had */
	size_t size;		/* bytes */
	unsigned int count;
};

enum worker_priority {
	PRIORITY_NORMAL,
	PRIORITY_NICE,
	PRIORITY_FIFO,
};

struct queue {
	struct work *head, *tail;	/* L */
	unsigned int count;		/* L */
};

struct worker {
	struct erofs_engine *eng;	/* C */
	unsigned int	index;		/* C  0 .. nslots - 1 */
	int		cpu;		/* L  -1: not pinned, or a slot for CPUs to come; C while it runs */
	pthread_t	thread;		/* L  valid if joinable */
	bool		running, joinable;	/* L */
	enum worker_priority best;	/* O  what it could be raised to */
	bool		raised;		/* O */
	sem_t		wake;
	bool		idle;		/* L  sleeps on wake */
	uint64_t	woken_ns;	/* L  when wake was posted */
	struct queue	queue;		/* L */
	struct hist	wakes;		/* L  ns from the post to the first instruction (F1) */
	struct hist	waits;		/* L  ns that work this worker took had been queued */
	pid_t		tid;		/* L  0: not running */
	uint64_t	delay_ns, slices;	/* L  the kernel's account of the thread, once it has ended */
};

struct erofs_engine {
	pthread_mutex_t	lock;
	pthread_cond_t	done;		/* a job has nothing queued or running, or room for more */
	pthread_mutex_t	run;		/* held by the job that is going on */
	enum workers_mode mode;		/* C */
	unsigned int	nworkers;	/* C  threads that are wanted, without the caller */
	unsigned int	nslots;		/* C  of workers: also for CPUs that may appear */
	unsigned int	nrunning;	/* L */
	unsigned int	retired;	/* L  statistics */
	bool		start_failed;	/* L  no more threads to be had: do not ask again */
	struct worker	*workers;	/* C */
	struct queue	shared;		/* L  work bound to no worker */
	unsigned int	nidle;		/* L  workers that sleep */
	bool		owner_idle;	/* L  the job's owner sleeps, and would help */
	unsigned int	nqueued;	/* L  in all queues */
	atomic_int	spare;		/* A  relaxed hint: idle or unstarted workers less queued work */
	bool		quit;		/* L */
	atomic_bool	told_priority;	/* A  relaxed: the fallback of A2 was reported */
	struct job	*job;		/* L */
	atomic_bool	cancelled;	/* A  relaxed: a flag that only ever rises */
	struct pages	pages;
	bool		has_pages;	/* C */
	bool		kernel_policy;	/* C  B4 */
	size_t		max_memory;	/* C */
	bool		memory_given;	/* C  by the caller: a hard limit */
	struct erofs_diag *diag;	/* C  for fallbacks, may be NULL */
	uint64_t	batches, stolen, inlined;	/* L  statistics */
	size_t		peak_bytes;	/* L  most decoded bytes in flight */
	struct hist	waits;		/* L  as a worker's, of work that the owner took */
	struct erofs_stats ended;	/* L  sums of the lanes of jobs that ended */
	_Atomic uint64_t done_inodes, done_bytes, total_inodes, total_bytes;	/* A  relaxed: progress of the run */
};	/* L lock  C constant once created  A atomic, order stated */

struct job {
	struct erofs_engine *eng;	/* C */
	struct erofs_image *img;	/* C */
	struct erofs_diag *diag;	/* C */
	struct dcache	*cache;		/* C  NULL: nothing to cache */
	struct lane	**lanes;	/* C  0: the owner's, i + 1: worker i's */
	unsigned int	nlanes;		/* C  some may be NULL: of workers that never came */
	bool		threads;	/* C  workers are used */
	unsigned int	max_workers;	/* C  that the memory limit has room for */
	bool		late;		/* C  goes on after the engine was cancelled */
	atomic_bool	cancelled;	/* A  relaxed */
	unsigned int	running;	/* engine.lock */
	size_t		bytes;		/* engine.lock  queued or running */
	size_t		limit;		/* C  of bytes, for the owner's submits */
	bool		watched;	/* engine.lock  the owner wants to know of every work that ends */
	pthread_t	owner;		/* C */
};

/* What the kernel says that a thread waited for a CPU, and how often it ran. 0, -ENOENT. */
int erofs_read_run_delay(pid_t tid, uint64_t *ret_ns, uint64_t *ret_slices);

/* Add a lane's figures before it goes. The lock is held. */
void erofs_stats_add_lane(struct erofs_stats *stats, const struct lane *lane);
/* The same for a job's cache; NULL is fine. */
void erofs_stats_add_cache(struct erofs_stats *stats, struct dcache *cache);

/* Parse the words of --workers. -EINVAL if they make no sense. */
int erofs_workers_configure(struct erofs_engine *eng, const char *words);

int erofs_cpus_get(struct cpus *cpus);
void erofs_cpus_free(struct cpus *cpus);

/* Is there anything for this worker? The lock is held. */
bool erofs_workers_has_work(struct erofs_engine *eng, unsigned int index);
/* Give a worker's queue to all, since it retires. The lock is held. */
void erofs_workers_hand_on(struct erofs_engine *eng, struct worker *w);
/* Work that was picked and cannot be run here. The lock is held. */
void erofs_workers_put_back(struct erofs_engine *eng, struct work *work);
/* This worker is about to sleep. The lock is held. */
void erofs_workers_note_idle(struct erofs_engine *eng, struct worker *w);

/* One more lane for a job that is going on. 0, -ENOMEM. */
int erofs_job_make_lane(struct job *job, unsigned int index, struct lane **ret_lane);

/* Start the threads that are not running yet; fewer than wanted is no error. The lock is held. */
void erofs_workers_start(struct erofs_engine *eng);

/* Join all threads. */
void erofs_workers_stop(struct erofs_engine *eng);

/* Take the next work for worker @index (UINT_MAX: the job's owner). The lock is held. */
struct work *erofs_workers_pick(struct erofs_engine *eng, unsigned int index);

/* Run one work on a lane; the lock is held on entry and exit, not while it runs. */
void erofs_workers_run(struct erofs_engine *eng, struct lane *lane, struct work *work);

/* The owner is about to sleep and would help, or is back. The lock is held. */
void erofs_workers_set_idle(struct erofs_engine *eng, bool idle);

/* Queue and wake. The lock is held. */
void erofs_workers_push(struct erofs_engine *eng, struct work *work);

#endif
