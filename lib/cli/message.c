// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Messages on stderr, and the end of stdout. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/cli.h"
#include "cli/report.h"

void erofs_cli_init(struct cli *cli, const char *tool)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	*cli = (struct cli){ .tool = tool, .level = 2, .progress = -1 };
	signal(SIGXFSZ, SIG_IGN);	/* it comes back as EFBIG, with the file's name (R24) */
	cli->colour = isatty(STDERR_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

static int level_of(char letter)
{
	switch (letter) {
	case 'E': return 0;
	case 'W': return 2;
	case 'I': return 3;
	default: return 4;
	}
}

static const char *colour_of(char letter)
{
	return letter == 'E' ? "\033[31m" : letter == 'W' ? "\033[33m" : "\033[2m";
}

/* One write() for one line: the lines of several processes on one stderr must not mix. */
static void print(const struct cli *cli, char letter, const char *image, const char *text)
{
	size_t image_len = image ? strlen(image) : 0, len = strlen(text), size = 4 * (image_len + len) + 80;
	auto_free char *name = malloc(4 * image_len + 1), *safe = malloc(4 * len + 1), *line = malloc(size);

	if (!name || !safe || !line)
		return;
	erofs_escape_name(image ? image : "", image_len, name, 4 * image_len + 1);
	/* words of the command line stand in it too, and may come from a script (R20) */
	erofs_escape_text(text, len, safe, 4 * len + 1);
	snprintf(line, size, "%s<%c>%s erofs: %s%s%s\n", cli->colour ? colour_of(letter) : "", letter,
		 cli->colour ? "\033[0m" : "", name, image_len ? ": " : "", safe);
	fputs(line, stderr);
	fflush(stderr);
}

/* Print at a level that shows it; a report hears it at any. */
__attribute__((format(printf, 5, 0)))
static void print_formatted(const struct cli *cli, char letter, const char *image, bool shown,
			    const char *fmt, va_list ap)
{
	auto_free char *text = NULL;

	if (!shown && !cli->report)
		return;
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
		return;
	}
	if (cli->report)
		erofs_report_hear(cli->report, letter, text);
	if (shown)
		print(cli, letter, image, text);
}

void erofs_cli_say(const struct cli *cli, char letter, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_formatted(cli, letter, cli->image, cli->level >= level_of(letter), fmt, ap);
	va_end(ap);
}

void erofs_cli_say_plain(const struct cli *cli, char letter, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_formatted(cli, letter, NULL, true, fmt, ap);
	va_end(ap);
}

void erofs_cli_note(const struct cli *cli, char letter, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_formatted(cli, letter, NULL, cli->level >= level_of(letter), fmt, ap);
	va_end(ap);
}

int erofs_cli_usage(const struct cli *cli, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_formatted(cli, 'E', NULL, true, fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s --help' for more information.\n", cli->tool);
	return status;
}

void erofs_cli_finding(void *priv, const struct erofs_finding *f)
{
	static const char letters[] = { 'I', 'W', 'E', 'E' };
	const struct cli *cli = priv;
	char small[512];
	size_t len;
	char *text;

	if (cli->report)
		erofs_report_finding(cli->report, f);
	if (cli->level < level_of(letters[f->severity]))
		return;
	len = erofs_diag_format(f, small, sizeof(small));
	if (len < sizeof(small)) {
		print(cli, letters[f->severity], cli->image, small);
		return;
	}
	text = malloc(len + 1);
	if (!text)
		return;
	erofs_diag_format(f, text, len + 1);
	print(cli, letters[f->severity], cli->image, text);
	free(text);
}

void erofs_cli_flush(const struct cli *cli, struct erofs_diag *diag)
{
	uint64_t dropped = erofs_diag_dropped(diag);

	erofs_diag_flush(diag);
	if (dropped)
		erofs_cli_say(cli, 'E', "%" PRIu64 " more findings are not shown", dropped);
}

char *erofs_cli_escape(const char *name, size_t len)
{
	char *text = malloc(4 * len + 1);

	if (text)
		erofs_escape_name(name, len, text, 4 * len + 1);
	return text;
}

int erofs_cli_close_stdout(const struct cli *cli)
{
	bool failed = ferror(stdout);
	int err = 0;

	if (fflush(stdout) || failed)
		err = errno ? -errno : -EIO;
	/* not fclose(): the stream keeps the buffer that it may have been given, and nobody else knows it */
	if (close(STDOUT_FILENO) && !err)
		err = -errno;
	if (err)
		erofs_cli_say_plain(cli, 'E', "cannot write to standard output: %s", strerror(-err));
	return err;
}

void erofs_cli_print_difference(const struct cli *cli, const struct erofs_difference *d)
{
	auto_free char *path = erofs_cli_escape(d->path, strlen(d->path));

	erofs_cli_say(cli, 'E', "%s: %s (%s, %s)", path ? path : "?", d->key, d->found, d->wanted);
}

void erofs_cli_print_hex(const uint8_t *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}
