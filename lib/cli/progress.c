// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Progress on a terminal, as lines, or for machines (R16, -C): a thread that wakes ten times a second. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define TICK_NS 100000000	/* at most ten lines a second on a terminal */
#define TICKS_LINE 10		/* and one a second into a file */
#define TICKS_QUIET 3		/* short runs show nothing */

struct cli_progress {
	pthread_t	thread;
	pthread_mutex_t	lock;
	pthread_cond_t	wake;
	bool		stop;		/* L */
	const struct cli *cli;		/* C */
	struct erofs_engine *eng;	/* C */
	bool		terminal;	/* C */
	bool		extract;	/* C */
	bool		shown;		/* O the thread */
	uint64_t	started_ns;	/* C */
};	/* L lock  C constant once created  O owner thread only */

static void show(struct cli_progress *p)
{
	uint64_t ns = erofs_now_ns() - p->started_ns, rate;
	struct erofs_progress done;

	erofs_engine_progress(p->eng, &done);
	rate = ns ? (uint64_t)((double)done.bytes * 1e9 / (double)ns) : 0;
	fprintf(stderr, "%s%s %" PRIu64, p->terminal ? "\r" : "<I> erofs: ",
		p->extract ? "extracting:" : "checking:", done.inodes);
	if (done.total_inodes)
		fprintf(stderr, " of %" PRIu64, done.total_inodes);
	fprintf(stderr, " inodes, %" PRIu64 " MiB, %" PRIu64 " MiB/s%s", done.bytes >> 20, rate >> 20,
		p->terminal ? "\033[K" : "\n");
	fflush(stderr);
	p->shown = true;
}

/* A line "PASS CUR MAX DEVICE", as e2fsck writes and boot screens read. */
static void tell_machine(struct cli_progress *p)
{
	struct erofs_progress done;

	erofs_engine_progress(p->eng, &done);
	if (done.inodes > done.total_inodes)
		done.inodes = done.total_inodes;
	dprintf(p->cli->machine_fd, "%d %" PRIu64 " %" PRIu64 " %s\n", p->extract ? 2 : 1, done.inodes,
		done.total_inodes, p->cli->image ? p->cli->image : "-");
}

static bool wait_tick(struct cli_progress *p)
{
	struct timespec ts;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += TICK_NS;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	pthread_mutex_lock(&p->lock);
	while (!p->stop && !pthread_cond_timedwait(&p->wake, &p->lock, &ts))
		;
	stop = p->stop;
	pthread_mutex_unlock(&p->lock);
	return !stop;
}

static void *run(void *arg)
{
	struct cli_progress *p = arg;
	bool human = p->cli->progress > 0 || (p->cli->progress < 0 && p->terminal);
	unsigned int tick;

	for (tick = 1; wait_tick(p); tick++) {
		if (p->cli->has_machine_fd && p->cli->machine_fd > 0)
			tell_machine(p);
		else if (human && (p->terminal ? tick > TICKS_QUIET : tick % TICKS_LINE == 0))
			show(p);
	}
	if (p->shown && p->terminal)
		fputs("\r\033[K", stderr);
	return NULL;
}

static bool is_wanted(const struct cli *cli)
{
	if (cli->has_machine_fd)
		return cli->machine_fd > 0 || (!cli->machine_fd && cli->level && isatty(STDERR_FILENO));
	return cli->level && (cli->progress > 0 || (cli->progress < 0 && isatty(STDERR_FILENO)));
}

struct cli_progress *erofs_cli_progress_start(const struct cli *cli, struct erofs_engine *eng, bool verb_extract)
{
	struct cli_progress *p = is_wanted(cli) ? calloc(1, sizeof(*p)) : NULL;
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	if (!p)
		return NULL;
	p->cli = cli;
	p->eng = eng;
	p->extract = verb_extract;
	p->terminal = isatty(STDERR_FILENO);
	p->started_ns = erofs_now_ns();
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return p;
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

void erofs_cli_progress_stop(struct cli_progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
