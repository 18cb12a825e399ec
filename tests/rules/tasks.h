/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of workers, jobs and flights have in common: an engine, an image, and work that counts itself. */
#ifndef TESTS_RULES_TASKS_H
#define TESTS_RULES_TASKS_H

#include "engine/workers.h"

/* An image of zeros that is large enough for threads; nothing is read from it. */
struct erofs_image *fake_image(void);
void free_image(struct erofs_image *img);
/* An engine with these words of --workers. */
struct erofs_engine *new_engine(const char *workers);

struct shared {
	atomic_uint ran, running, most, wrong_cpu, wrong_name;
	atomic_uint by_lane[64];
	atomic_size_t bytes, most_bytes;
	unsigned int spin_us;
};

struct task {
	struct work work;
	struct shared *shared;
	unsigned int depth;
};

/* Work that counts itself; with a depth, it submits two more of one less. */
void submit_task(struct job *job, struct shared *shared, unsigned int depth, size_t bytes);
void submit_many(struct job *job, struct shared *s, int count);

#endif
