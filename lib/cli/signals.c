// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Signals. The handlers need what they act on in static storage; a process has one set of handlers, so
 * this is the one place in the tree that has any.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static struct erofs_engine *volatile engine;
static const struct cli_work *volatile watched;
static volatile sig_atomic_t on_terminal;
static volatile sig_atomic_t caught;

static void die(int number)
{
	signal(number, SIG_DFL);
	raise(number);
}

static void cancel(int number)
{
	if (caught) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, number);
		signal(number, SIG_DFL);
		raise(number);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		return;
	}
	caught = number;
	if (engine)
		erofs_engine_cancel(engine);
}

static char *put_number(char *at, uint64_t v)
{
	char digits[24];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*at++ = digits[--n];
	return at;
}

static char *put_text(char *at, const char *text)
{
	size_t len = strlen(text);

	memcpy(at, text, len);
	return at + len;
}

/* Only what may be called in a handler: no stdio. */
static void tell(int number)
{
	const struct cli_work *work = watched;
	struct erofs_progress p = { 0 };
	char line[200], *at = line;
	ssize_t written;
	int err = errno;

	(void)number;
	if (work)
		erofs_cli_work_done(work, &p);
	if (on_terminal)	/* there may be a line of progress */
		at = put_text(at, "\r\033[K");
	at = put_text(at, "<I> erofs: ");
	if (work)
		at = put_text(put_text(at, work->verb), ": ");
	if (p.inodes || p.total_inodes || !p.total_bytes) {
		at = put_number(at, p.inodes);
		if (p.total_inodes)
			at = put_number(put_text(at, " of "), p.total_inodes);
		at = put_text(at, " files, ");
	}
	at = put_number(at, p.bytes >> 20);
	if (p.total_bytes)
		at = put_number(put_text(at, " of "), p.total_bytes >> 20);
	at = put_text(at, " MiB so far\n");
	written = write(STDERR_FILENO, line, (size_t)(at - line));
	(void)written;
	errno = err;
}

static void catch(int number, void (*handler)(int))
{
	struct sigaction old, sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	/* what the caller had ignored (nohup) stays so */
	if (!sigaction(number, NULL, &old) && old.sa_handler == SIG_IGN)
		return;
	sigaction(number, &sa, NULL);
}

static void release(int number, void (*handler)(int))
{
	struct sigaction old;

	if (!sigaction(number, NULL, &old) && old.sa_handler == handler)
		signal(number, SIG_DFL);
}

void erofs_cli_catch_signals(struct erofs_engine *eng)
{
	void (*set)(int, void (*)(int)) = eng ? catch : release;

	if (eng)
		engine = eng;
	set(SIGINT, cancel);
	set(SIGTERM, cancel);
	set(SIGHUP, cancel);
	set(SIGUSR1, tell);
	engine = eng;
}

void erofs_cli_watch_work(const struct cli_work *work)
{
	on_terminal = work && isatty(STDERR_FILENO);
	watched = work;
	if (work)
		catch(SIGUSR1, tell);
}

void erofs_cli_interrupt_writes(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;
	size_t i;

	for (i = 0; i < 3; i++) {
		if (sigaction(numbers[i], NULL, &sa) || sa.sa_handler != cancel)
			continue;
		sa.sa_flags &= ~SA_RESTART;
		sigaction(numbers[i], &sa, NULL);
	}
}

int erofs_cli_caught_signal(void)
{
	return caught;
}

const char *erofs_cli_signal_name(int number)
{
	switch (number) {
	case SIGINT: return "SIGINT";
	case SIGTERM: return "SIGTERM";
	case SIGHUP: return "SIGHUP";
	default: return "a signal";
	}
}

void erofs_cli_die_by(int number)
{
	die(number);
}
