// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tasks.h"

struct erofs_image *fake_image(void)
{
	struct erofs_image *img = calloc(1, sizeof(*img));

	img->super = calloc(1, sizeof(*img->super));
	img->devs = calloc(1, sizeof(*img->devs));
	img->ndevs = 1;
	img->devs[0].size = UINT64_C(1) << 30;
	img->blkbits = 12;
	img->blksz = 4096;
	return img;
}

void free_image(struct erofs_image *img)
{
	free(img->super);
	free(img->devs);
	free(img);
}

struct erofs_engine *new_engine(const char *workers)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct erofs_engine *eng;

	assert_int_equal(erofs_engine_new(&options, NULL, &eng), 0);
	return eng;
}

static void run_task(struct lane *lane, struct work *work);

void submit_task(struct job *job, struct shared *shared, unsigned int depth, size_t bytes)
{
	struct task *t = calloc(1, sizeof(*t));

	t->work.run = run_task;
	t->work.bytes = bytes;
	t->shared = shared;
	t->depth = depth;
	erofs_job_submit(job, &t->work);
}

static void run_task(struct lane *lane, struct work *work)
{
	struct task *t = (struct task *)work;
	struct shared *s = t->shared;
	unsigned int now = atomic_fetch_add(&s->running, 1) + 1;

	if (now > atomic_load(&s->most))
		atomic_store(&s->most, now);
	if (!erofs_job_is_cancelled(lane->job)) {
		usleep(s->spin_us);
		atomic_fetch_add(&s->ran, 1);
	}
	atomic_fetch_add(&s->by_lane[erofs_lane_index(lane) & 63], 1);
	if (t->depth) {
		submit_task(lane->job, s, t->depth - 1, 0);
		submit_task(lane->job, s, t->depth - 1, 0);
	}
	atomic_fetch_sub(&s->running, 1);
	free(t);
}

void submit_many(struct job *job, struct shared *s, int count)
{
	while (count--)
		submit_task(job, s, 0, 0);
}
