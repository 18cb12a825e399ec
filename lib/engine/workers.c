// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Queues of the pool: which worker gets what (engine.md A4, A5). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "engine/workers.h"

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

/* Workers that the job that is going on may use. */
static unsigned int wanted_workers(const struct erofs_engine *eng)
{
	unsigned int max = eng->job ? eng->job->max_workers : eng->nworkers;
	unsigned int want = max < eng->nworkers ? max : eng->nworkers;

	return want > eng->nrunning ? want : eng->nrunning;
}

static void update_spare(struct erofs_engine *eng)
{
	int unstarted = eng->start_failed ? 0 : (int)(wanted_workers(eng) - eng->nrunning);
	int spare = (int)eng->nidle + eng->owner_idle + unstarted - (int)eng->nqueued;

	atomic_store_explicit(&eng->spare, spare, memory_order_relaxed);
}

void erofs_workers_set_idle(struct erofs_engine *eng, bool idle)
{
	eng->owner_idle = idle;
	update_spare(eng);
}

/* Runs, and the job that is going on has memory for it. */
static bool is_usable(const struct erofs_engine *eng, const struct worker *w)
{
	/* a job without threads has lanes for the caller alone, whatever threads an earlier one left */
	return w->running && (!eng->job || (eng->job->threads && w->index < eng->job->max_workers));
}

/* The worker of the CPU we run on (A4). NULL: it has none. */
static struct worker *local_worker(struct erofs_engine *eng)
{
	unsigned int i;
	int cpu;

	if (eng->mode < WORKERS_PERCPU)
		return NULL;
	cpu = sched_getcpu();
	for (i = 0; i < eng->nslots; i++)
		if (eng->workers[i].cpu == cpu && is_usable(eng, &eng->workers[i]))
			return &eng->workers[i];
	return NULL;
}

static struct worker *idle_worker(struct erofs_engine *eng)
{
	unsigned int i;

	for (i = 0; i < eng->nslots; i++)
		if (eng->workers[i].idle && is_usable(eng, &eng->workers[i]))
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

	for (i = 0; i < eng->nslots; i++)
		if (eng->workers[i].queue.count > best->count)
			best = &eng->workers[i].queue;
	return best;
}

bool erofs_workers_has_work(struct erofs_engine *eng, unsigned int index)
{
	return eng->nqueued && is_usable(eng, &eng->workers[index]);
}

struct work *erofs_workers_pick(struct erofs_engine *eng, unsigned int index)
{
	struct work *work = NULL;

	if (!eng->nqueued || (index != UINT_MAX && !is_usable(eng, &eng->workers[index])))
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

void erofs_workers_hand_on(struct erofs_engine *eng, struct worker *w)
{
	struct worker *heir;
	struct work *work;
	bool any = w->queue.count;

	while ((work = dequeue(&w->queue)))
		enqueue(&eng->shared, work);
	heir = any ? idle_worker(eng) : NULL;
	if (heir)
		wake_worker(eng, heir);
	else if (any)
		pthread_cond_signal(&eng->done);
	update_spare(eng);
}

void erofs_workers_put_back(struct erofs_engine *eng, struct work *work)
{
	work->job->running--;
	eng->nqueued++;
	enqueue(&eng->shared, work);
	update_spare(eng);
	pthread_cond_signal(&eng->done);
}

void erofs_workers_note_idle(struct erofs_engine *eng, struct worker *w)
{
	w->idle = true;
	eng->nidle++;
	update_spare(eng);
}

void erofs_workers_run(struct erofs_engine *eng, struct lane *lane, struct work *work)
{
	struct job *job = work->job;
	size_t bytes = work->bytes;

	eng->batches++;
	pthread_mutex_unlock(&eng->lock);
	work->run(lane, work);
	erofs_lane_tell(lane);
	pthread_mutex_lock(&eng->lock);
	job->bytes -= bytes;
	job->running--;
	/* the owner waits for the end, for enough room to make waking it worth while, or for any work */
	if ((!eng->nqueued && !job->running) || job->bytes <= job->limit / 2 || job->watched)
		pthread_cond_signal(&eng->done);
}
