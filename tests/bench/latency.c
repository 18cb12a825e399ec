// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scheduling latency (engine.md F3): the same bursts of reads against an image for each kind of workers,
 * rounds interleaved, with pauses between the bursts as when an application starts. The background load
 * is whoever calls this program's affair. Prints one JSON object: mode -> latency of wake-ups in ns.
 *
 * usage: latency IMAGE [ROUNDS]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "refs.h"

#define BURSTS 20		/* a round */
#define BURST_MIN (64u << 10)	/* decoded bytes */
#define BURST_MAX (256u << 10)
#define PAUSE_NS 3000000

static const char *const modes[] = { "unbound", "percpu", "percpu-hipri" };
#define MODES 3

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void ignore_fault(void *arg, const struct pcref *ref, int err, const char *text)
{
	(void)arg;
	(void)ref;
	bench_die(text, err);
}

/* The references from @at on that decode to about @bytes. */
static size_t burst_length(const struct pcref *refs, size_t count, size_t at, uint64_t bytes)
{
	uint64_t sum = 0;
	size_t n = 0;

	while (at + n < count && sum < bytes) {
		sum += pcref_is_raw(&refs[at + n]) ? pcref_plen(&refs[at + n]) : pcref_dlen(&refs[at + n]);
		n++;
	}
	return n;
}

static void run_round(struct erofs_engine *eng, struct erofs_image *img, const struct pcref *refs, size_t count,
		      uint64_t seed)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct verify verify;
	struct job *job;
	unsigned int i;

	if (erofs_job_begin(eng, img, NULL, &job))
		bench_die("job", -ENOMEM);
	for (i = 0; i < BURSTS; i++) {
		size_t at = next_random(&seed) % count, n;

		n = burst_length(refs, count, at, BURST_MIN + next_random(&seed) % (BURST_MAX - BURST_MIN));
		erofs_verify_begin(&verify, job, ignore_fault, NULL);
		(void)erofs_verify_end(&verify, erofs_verify_submit(&verify, refs + at, n));
		nanosleep(&pause, NULL);
	}
	erofs_job_end(job);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 50, round;
	struct erofs_engine *eng[MODES];
	struct erofs_image *img;
	struct pcref *refs;
	size_t count;
	unsigned int i;

	if (argc < 2 || rounds < 1) {
		fputs("usage: latency IMAGE [ROUNDS]\n", stderr);
		return 2;
	}
	img = bench_open(argv[1]);
	refs = bench_collect(img, &count);
	if (!count)
		bench_die("no pclusters", -ENODATA);
	for (i = 0; i < MODES; i++) {
		struct erofs_engine_options options = { .size = sizeof(options), .workers = modes[i] };

		if (erofs_engine_new(&options, NULL, &eng[i]))
			bench_die(modes[i], -ENOMEM);
	}
	for (round = 0; round < rounds; round++)
		for (i = 0; i < MODES; i++)
			run_round(eng[i], img, refs, count, (uint64_t)round + 1);
	putchar('{');
	for (i = 0; i < MODES; i++) {
		struct erofs_stats s;

		erofs_engine_stats(eng[i], &s);
		printf("%s\"%s\": {\"count\": %llu, \"average\": %.1f, \"median\": %llu, \"min\": %llu, \"max\": %llu, "
		       "\"deviation\": %.1f, \"p99\": %llu, \"run_delay\": %.1f}", i ? ", " : "", modes[i],
		       (unsigned long long)s.wake.count, s.wake.average, (unsigned long long)s.wake.median,
		       (unsigned long long)s.wake.min, (unsigned long long)s.wake.max, s.wake.deviation,
		       (unsigned long long)s.wake.p99, s.has_run_delay ? s.run_delay.average : -1.0);
		erofs_engine_free(eng[i]);
	}
	puts("}");
	free(refs);
	erofs_close(img);
	return 0;
}
