// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Parcels in flight: filled by whoever comes, delivered in order by the owner. */
#include <errno.h>

#include "engine/flight.h"

void erofs_flight_begin(struct flight *f, struct job *job, size_t limit, const struct flight_ops *ops, void *arg)
{
	*f = (struct flight){ .job = job, .ops = ops, .arg = arg, .limit = limit };
}

static void run_parcel(struct lane *lane, struct work *work)
{
	struct parcel *p = (struct parcel *)work;

	if (!erofs_job_is_cancelled(p->flight->job))
		p->flight->ops->fill(lane, p);
	/* from here on it is the owner's, and may be gone */
	atomic_store_explicit(&p->done, true, memory_order_release);
}

static bool head_is_done(void *arg)
{
	const struct flight *f = arg;

	return atomic_load_explicit(&f->head->done, memory_order_acquire);
}

static void note_cancel(struct flight *f)
{
	if (!f->err && erofs_job_is_cancelled(f->job))
		f->err = -ECANCELED;
}

/* Deliver the head, which is done. */
static void land(struct flight *f)
{
	struct parcel *p = f->head;

	f->head = p->next;
	if (!f->head)
		f->tail = NULL;
	f->bytes -= p->bytes;
	f->count--;
	/* asked before each delivery: a parcel that was done after a cancel may not have been filled */
	note_cancel(f);
	if (!f->err) {
		f->err = f->ops->deliver(f->arg, p);
		if (f->err)
			erofs_job_cancel(f->job);
	}
	f->ops->release(f->arg, p);
}

static void land_until(struct flight *f, size_t bytes)
{
	while (f->head && (f->bytes > bytes || (f->most && f->count >= f->most) || head_is_done(f)))
		if (head_is_done(f) || erofs_job_wait_for(f->job, head_is_done, f))
			land(f);
}

static void land_all(struct flight *f)
{
	while (f->head)
		if (head_is_done(f) || erofs_job_wait_for(f->job, head_is_done, f))
			land(f);
}

int erofs_flight_send(struct flight *f, struct parcel *parcel)
{
	note_cancel(f);
	if (f->err) {
		f->ops->release(f->arg, parcel);
		return f->err;
	}
	/* room is made first, so that the limit holds */
	land_until(f, parcel->bytes < f->limit ? f->limit - parcel->bytes : 0);
	parcel->work.run = run_parcel;
	parcel->work.bytes = 0;		/* bounded here, not by the job */
	parcel->flight = f;
	parcel->next = NULL;
	atomic_store_explicit(&parcel->done, false, memory_order_relaxed);
	*(f->tail ? &f->tail->next : &f->head) = parcel;
	f->tail = parcel;
	f->bytes += parcel->bytes;
	f->count++;
	erofs_job_submit(f->job, &parcel->work);
	if (!f->limit)
		land_all(f);
	return f->err;
}

int erofs_flight_end(struct flight *f)
{
	land_all(f);
	note_cancel(f);
	return f->err;
}
