/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Ordered delivery of work that is done in parallel, in bounded memory.
 *
 * The job's owner sends parcels; workers fill them in any order; the owner delivers them in the order
 * sent, from within erofs_flight_send() and erofs_flight_end(). A parcel is a batch of about 1 MiB, never
 * one small file. Fill and delivery of one parcel never run at the same time, so it needs no lock.
 *
 * When the job is cancelled or a delivery fails, nothing more is filled or delivered; every parcel is
 * freed all the same.
 */
#ifndef EROFS_ENGINE_FLIGHT_H
#define EROFS_ENGINE_FLIGHT_H

#include <stdatomic.h>

#include "engine/engine_priv.h"

struct flight;

/* First member of what users send. */
struct parcel {
	struct work	work;
	struct flight	*flight;	/* C  once sent */
	struct parcel	*next;		/* O  in the order sent */
	size_t		bytes;		/* C  once sent: memory it takes when filled, an estimate */
	atomic_bool	done;		/* A  release when filled, acquire by the owner */
};	/* C constant  O owner thread only  A atomic, order stated */

struct flight_ops {
	/* Do the work. Errors are the parcel's own matter. Any lane. */
	void (*fill)(struct lane *lane, struct parcel *parcel);
	/* Take the result. Owner, in the order sent. 0, negative errno: stop. */
	int (*deliver)(void *arg, struct parcel *parcel);
	/* Free it, or keep it for another use. Owner. */
	void (*release)(void *arg, struct parcel *parcel);
};

struct flight {
	struct job	*job;
	const struct flight_ops *ops;
	void		*arg;		/* the owner's */
	size_t		limit, bytes;	/* in flight: allowed, there are */
	unsigned int	most, count;	/* the same in parcels; most 0: any number */
	struct parcel	*head, *tail;
	int		err;		/* of the first delivery that failed, or -ECANCELED */
};	/* all of it the owner's; workers read job and ops */

/**
 * erofs_flight_begin() - start
 * @limit: bytes that may be in flight; a parcel larger than that flies alone. 0: one at a time. See
 *         erofs_job_flight_bytes().
 */
void erofs_flight_begin(struct flight *f, struct job *job, size_t limit, const struct flight_ops *ops, void *arg);

/** erofs_flight_keep_to() - no more than @most parcels at a time, so that what is delivered can be told */
static inline void erofs_flight_keep_to(struct flight *f, unsigned int most)
{
	f->most = most;
}

/**
 * erofs_flight_send() - queue a parcel (parcel->bytes is set); it is no longer the caller's
 * Delivers what is ready, and while too much is in flight helps to run work or waits.
 * Return: 0; negative errno: a delivery failed or the job was cancelled; there is no use in sending more.
 */
int erofs_flight_send(struct flight *f, struct parcel *parcel);

/** erofs_flight_end() - deliver the rest, wait until nothing flies. Return: as erofs_flight_send(). */
int erofs_flight_end(struct flight *f);

#endif
