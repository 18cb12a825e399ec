// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Progress on a terminal, as lines, or for machines (R16, -C): a thread that wakes ten times a second. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define TICK_NS 100000000	/* at most ten lines a second on a terminal */
#define TICKS_LINE 10		/* and one a second into a file */
#define TICKS_QUIET 3		/* short runs show nothing */
#define MAX_LINE 160
#define LEFT_AFTER_NS 1000000000	/* before that, and before a hundredth, the time left is a guess */
#define LEFT_PART 0.01

struct cli_progress {
	pthread_t	thread;
	pthread_mutex_t	lock;
	pthread_cond_t	wake;
	bool		stop;		/* L */
	const struct cli *cli;		/* C */
	const struct cli_work *work;	/* C */
	bool		terminal;	/* C */
	bool		machine;	/* C  lines on machine_fd, none for people */
	bool		shown;		/* O the thread */
	uint64_t	started_ns;	/* C */
};	/* L lock  C constant once created  O owner thread only */

void erofs_cli_work_done(const struct cli_work *work, struct erofs_progress *ret_done)
{
	struct erofs_progress done = {
		.inodes = atomic_load_explicit(&work->files, memory_order_relaxed),
		.bytes = atomic_load_explicit(&work->bytes, memory_order_relaxed),
	};

	if (work->eng)
		erofs_engine_progress(work->eng, &done);
	if (!work->has_totals) {
		done.total_inodes = work->total_files;
		done.total_bytes = work->total_bytes;
	}
	/* names of hard links count too, so there may be more than inodes */
	if (done.inodes > done.total_inodes)
		done.total_inodes = 0;
	*ret_done = done;
}

/* 0: not known yet, or soon */
static uint64_t seconds_left(const struct erofs_progress *done, uint64_t ns)
{
	double part = done->total_bytes ? (double)done->bytes / (double)done->total_bytes :
		      done->total_inodes ? (double)done->inodes / (double)done->total_inodes : 0;

	if (ns < LEFT_AFTER_NS || part < LEFT_PART || part >= 1)
		return 0;
	return (uint64_t)((double)ns / 1e9 * (1 - part) / part + 0.5);
}

static void format_time(char text[48], uint64_t seconds)
{
	if (!seconds)
		*text = '\0';
	else if (seconds < 3600)
		snprintf(text, 48, ", %" PRIu64 ":%02" PRIu64 " left", seconds / 60, seconds % 60);
	else
		snprintf(text, 48, ", %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", seconds / 3600,
			 seconds / 60 % 60, seconds % 60);
}

static void format_line(const struct cli_progress *p, FILE *out)
{
	uint64_t ns = erofs_now_ns() - p->started_ns;
	const struct cli_work *work = p->work;
	struct erofs_progress done;
	const char *comma = " ";
	char left[48];

	erofs_cli_work_done(work, &done);
	fprintf(out, "%s:", work->verb);
	if (done.inodes || done.total_inodes) {
		fprintf(out, " %" PRIu64, done.inodes);
		if (done.total_inodes)
			fprintf(out, " of %" PRIu64, done.total_inodes);
		fprintf(out, " files");
		comma = ", ";
	}
	if (done.bytes || done.total_bytes) {
		fprintf(out, "%s%" PRIu64, comma, done.bytes >> 20);
		if (done.total_bytes)
			fprintf(out, " of %" PRIu64, done.total_bytes >> 20);
		fprintf(out, " MiB, %" PRIu64 " MiB/s",
			ns ? (uint64_t)((double)done.bytes * 1e9 / (double)ns) >> 20 : 0);
	}
	format_time(left, seconds_left(&done, ns));
	fputs(left, out);
}

/* A line that wraps could not be rewritten. */
static int terminal_width(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2 ? MAX_LINE : size.ws_col - 1;
}

static void show(struct cli_progress *p)
{
	char line[MAX_LINE] = "";
	FILE *out = fmemopen(line, sizeof(line), "w");

	if (!out)
		return;
	format_line(p, out);
	fclose(out);
	if (p->terminal)
		fprintf(stderr, "\r%.*s\033[K", terminal_width(), line);
	else
		fprintf(stderr, "<I> erofs: %s\n", line);
	p->shown = true;
}

/* A line "PASS CUR MAX DEVICE", as e2fsck writes and boot screens read. */
static void tell_machine(struct cli_progress *p)
{
	struct erofs_progress done;

	erofs_cli_work_done(p->work, &done);
	if (!done.total_inodes)
		done.total_inodes = done.inodes;
	dprintf(p->cli->machine_fd, "%d %" PRIu64 " %" PRIu64 " %s\n", p->work->pass, done.inodes,
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
	unsigned int tick;

	for (tick = 1; wait_tick(p); tick++) {
		if (p->machine)
			tell_machine(p);
		else if (p->terminal ? tick > TICKS_QUIET : tick % TICKS_LINE == 0)
			show(p);
	}
	if (p->shown && p->terminal)
		fputs("\r\033[K", stderr);
	return NULL;
}

static bool is_wanted(const struct cli *cli, const struct cli_work *work)
{
	bool terminal = isatty(STDERR_FILENO);

	if (cli->has_machine_fd && cli->machine_fd)
		return cli->machine_fd > 0;
	if (!cli->level || !cli->progress)
		return false;
	if (cli->has_machine_fd)
		return terminal;
	return cli->progress > 0 || (terminal && !(work->to_stdout && isatty(STDOUT_FILENO)));
}

struct cli_progress *erofs_cli_progress_start(const struct cli *cli, const struct cli_work *work)
{
	struct cli_progress *p = is_wanted(cli, work) ? calloc(1, sizeof(*p)) : NULL;
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	erofs_cli_watch_work(work);
	if (!p)
		return NULL;
	p->cli = cli;
	p->work = work;
	p->terminal = isatty(STDERR_FILENO);
	p->machine = cli->has_machine_fd && cli->machine_fd > 0;
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
	erofs_cli_watch_work(NULL);
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
