/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * cli: what the tools share: option tables, numbers, messages, signals, progress, figures, exit status.
 *
 * This room alone prints and ends processes. It owns the process: signal handlers, stdout, stderr. A
 * tool has one struct cli, used by its main thread; the progress thread and the handlers only read it.
 */
#ifndef EROFS_CLI_H
#define EROFS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <erofs/diag.h>
#include <erofs/engine.h>
#include <erofs/image.h>
#include <erofs/verify.h>

#include "base/clock.h"

/* Exit bits of fsck(8), cli.md 3. */
#define CLI_FSCK_DAMAGE 4
#define CLI_FSCK_FAILED 8
#define CLI_FSCK_USAGE 16
#define CLI_FSCK_CANCELLED 32

struct cli_json;
struct cli_report;
struct cli_work;

struct cli {
	const char *tool;	/* "fsck.erofs" */
	const char *image;	/* named in messages, NULL: not yet known */
	int level;		/* -d */
	int progress;		/* 1 yes, 0 no, -1 if stderr is a terminal */
	bool has_machine_fd;	/* -C: lines for machines on machine_fd */
	int machine_fd;
	bool colour;
	struct cli_report *report;	/* hears messages and findings too; NULL: there is none */
};

void erofs_cli_init(struct cli *cli, const char *tool);

/* ---- messages (message.c) ---- */

/* Print "<L> erofs: IMAGE: text" if the level allows; @letter: E W I D */
void erofs_cli_say(const struct cli *cli, char letter, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same at every level, without the image's name. */
void erofs_cli_say_plain(const struct cli *cli, char letter, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* With the level, without the image's name. */
void erofs_cli_note(const struct cli *cli, char letter, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A usage error: the line, and the hint to --help. Return: @status. */
int erofs_cli_usage(const struct cli *cli, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* erofs_diag_fn of the tools; @priv is the struct cli. */
void erofs_cli_finding(void *priv, const struct erofs_finding *finding);

/* Hand out all findings, and say how many were too many to keep. */
void erofs_cli_flush(const struct cli *cli, struct erofs_diag *diag);

/* A name for people: control bytes and what is no UTF-8 as \ooo. NULL: no memory; free() it. */
char *erofs_cli_escape(const char *name, size_t len);

/* A line of standard output: @len bytes in hexadecimal digits. */
void erofs_cli_print_hex(const uint8_t *bytes, size_t len);

/* Flush and close stdout. 0, or negative errno (reported): what was printed did not arrive (R11). */
int erofs_cli_close_stdout(const struct cli *cli);

/* ---- options (options.c) ---- */

/*
 * Tables are arrays that end with id 0. Names stand in the structure, not behind a pointer: linkers
 * merge equal ends of strings, and callers look for whole names in the executable (R9).
 */
struct cli_option {
	int id;			/* > 0; several names may share one. CLI_GROUP, CLI_WORDS: no option */
	char name[24];		/* long name, "": none */
	char letter;		/* short name, 0: none */
	char arg[12];		/* "": none; "X": required; "[X]": optional, with = only. See CLI_VALUES */
	const char *help;	/* NULL: described by the row before it */
};

#define CLI_GROUP 799
/* A heading over the rows that follow. Short help describes the rows of main groups and names the others. */
#define CLI_MAIN_GROUP(title) { CLI_GROUP, "", 0, "main", title }
#define CLI_OTHER_GROUP(title) { CLI_GROUP, "", 0, "", title }

/*
 * What the option in the row before takes: words, FILE, DIR, PATH (of the image), GLOB (for paths of the
 * image), LIST: any of the other words, with commas. Without such a row: ARG itself if it is one of these, or
 * is in lower case. Completion offers them.
 */
#define CLI_WORDS 798
#define CLI_VALUES(words) { CLI_WORDS, "", 0, "", words }

struct cli_parse {
	struct cli *cli;
	const struct cli_option *table;
	int usage_status;
	void *getopt;		/* private */
	char letters[64];
	const struct cli_option *opt;	/* the option that was found */
	const char *arg;		/* its argument or NULL */
	int operand;			/* after the end: index of the first operand in argv */
};

int erofs_cli_parse_begin(struct cli_parse *p, struct cli *cli, const struct cli_option *table,
			  int usage_status);
/* 1 an option, 0 the end, negative: a usage error was reported */
int erofs_cli_parse_next(struct cli_parse *p, int argc, char **argv);
void erofs_cli_parse_end(struct cli_parse *p);

/* Is @word one of the words in the option's CLI_VALUES? */
bool erofs_cli_is_value(const struct cli_option *opt, const char *word);

/* How the option is written, for messages: "--name" or "-x". */
const char *erofs_cli_option_name(const struct cli_option *opt, char buf[32]);

/*
 * Print the table to stdout: @all describes every option, else only those of main groups are described
 * and the rest is named, to fit one screen.
 */
void erofs_cli_print_options(const struct cli_option *table, bool all);

/* Take the argument of --help: 1; -EINVAL: it is neither absent nor "all" (reported). */
int erofs_cli_take_help(const struct cli_parse *p, bool *ret_all);

/* The long name that @len bytes at @word were probably meant to be, NULL: none is near (suggest.c). */
const char *erofs_cli_suggest(const struct cli_option *table, const char *word, size_t len);

/* "TOOL (erofs-utils compatible) X.Y.Z", codecs, our own version, to stdout (R7). */
void erofs_cli_print_version(const struct cli *cli);

/* Decimal, 0x, 0 octal. false: no number, or too large (R5). */
bool erofs_cli_number(const char *text, uint64_t *ret);
/* The same with K M G T, KiB MiB GiB TiB. */
bool erofs_cli_size(const char *text, uint64_t *ret);
/* The same with N% of the machine's memory. */
bool erofs_cli_memory(const char *text, uint64_t *ret);

/* Words of an option that adds up; borrowed from argv, ends with NULL. Free the list with free(words). */
struct cli_list {
	const char **words;
	unsigned int count;
};

/* 1, negative: no memory. */
int erofs_cli_append(struct cli_list *list, const char *word);

/* Report that the option's argument is not @wanted. -EINVAL. */
int erofs_cli_bad_value(const struct cli_parse *p, const char *wanted);

/* Options that both reading tools have, for what is read. */
struct cli_input {
	const char *image;	/* the operand */
	const char *path;
	bool has_nid, no_sbcrc, spool, find;
	uint64_t nid, offset;
	struct cli_list devices;
};

/* Take an input option. 1 it was one, 0 it was not, negative: usage error was reported. */
int erofs_cli_input_option(struct cli_parse *p, struct cli_input *in);
void erofs_cli_input_fini(struct cli_input *in);
/* Open the image; "-" is standard input. 0, negative errno (reported). */
int erofs_cli_open(const struct cli_input *in, bool super_only, struct erofs_diag *diag,
		   struct erofs_image **ret_img);
/* The nid of --path or --nid. 1 found, 0 none is named, negative errno (reported). */
int erofs_cli_find_target(const struct cli *cli, const struct cli_input *in, struct erofs_image *img,
			  struct erofs_diag *diag, uint64_t *ret_nid);

/* Options that both reading tools have, for the engine. */
struct cli_engine {
	const char *workers;
	uint64_t reserved_pages, max_memory;
	bool stats;
	const char *stats_how;	/* "json", or a baseline file; NULL: for people */
	const char *page_policy;	/* NULL: the default */
	bool named;		/* an engine option was given, not only a variable */
};

/* Why --product-out alone is refused: what it stands for is in an Android build, not in the folder it names. */
#define CLI_PRODUCT_OUT_ALONE "--product-out without --fs-config-file is not implemented: owners and modes would be " \
	"those of a table that Android builds have inside; name a file with them " \
	"(dump.erofs --android-config makes one)"

/* --json, which is described in report.h. */
struct cli_json_option {
	bool wanted;
	const char *path;	/* NULL, "-": standard output */
};

#define CLI_JSON_OPTION \
	{ CLI_JSON, "json", 0, "[FILE]", "report as one JSON object to stdout (instead of text) or FILE" }

/* 1 it was --json, 0 it was not, negative: usage error was reported. */
int erofs_cli_take_json(struct cli_parse *p, struct cli_json_option *o);

/* Take an engine option. 1 it was one, 0 it was not, negative: usage error was reported. */
int erofs_cli_engine_option(struct cli_parse *p, struct cli_engine *e);
/* Ids of the options that the functions here know. */
enum {
	CLI_PATH = 800, CLI_NID, CLI_OFFSET, CLI_DEVICE, CLI_NO_SBCRC, CLI_SPOOL,
	CLI_WORKERS = 900, CLI_RESERVED_PAGES, CLI_MAX_MEMORY, CLI_STATS, CLI_PAGE_POLICY,
	CLI_LEVEL, CLI_QUIET, CLI_VERBOSE, CLI_PROGRESS, CLI_NO_PROGRESS,
	CLI_JSON,
};
/* The rows of an option table for these. */
#define CLI_INPUT_OPTIONS \
	{ CLI_PATH, "path", 0, "PATH", "the file or directory of the image to start at" }, \
	{ CLI_NID, "nid", 0, "#", "the same by inode number" }, \
	{ CLI_DEVICE, "device", 0, "FILE", "extra device or blob, in the order of the slots" }, \
	{ CLI_OFFSET, "offset", 0, "#", "the image starts there in its file (K, M, G); auto: find it" }, \
	CLI_VALUES("auto"), \
	{ CLI_NO_SBCRC, "no-sbcrc", 0, "", "ignore the superblock checksum" }, \
	{ CLI_SPOOL, "spool", 0, "", "copy an image from a pipe to TMPDIR first" }
#define CLI_ENGINE_OPTIONS \
	{ CLI_WORKERS, "workers", 0, "W", "percpu, percpu-hipri, unbound, auto, or a number of threads" }, \
	CLI_VALUES("percpu percpu-hipri unbound auto"), \
	{ CLI_RESERVED_PAGES, "reserved-pages", 0, "N", "keep N pages for LZ4 (default 0)" }, \
	{ CLI_MAX_MEMORY, "max-memory", 0, "SIZE", "limit of caches and data in flight (K, M, G, %)" }, \
	{ CLI_PAGE_POLICY, "page-policy", 0, "P", "caching (default) or kernel, for comparison" }, \
	CLI_VALUES("caching kernel"), \
	{ CLI_STATS, "stats", 0, "[HOW]", "print figures to stderr; HOW: json, or a file to compare with" }, \
	CLI_VALUES("json FILE")
#define CLI_COMMON_OPTIONS \
	{ CLI_LEVEL, "", 'd', "#", "message level 0 to 9 (default 2)" }, \
	{ CLI_QUIET, "quiet", 'q', "", "errors only, the same as -d0" }, \
	{ CLI_VERBOSE, "verbose", 'v', "", "one message level more, may be repeated" }, \
	{ CLI_PROGRESS, "progress", 0, "", "show progress (default: on a terminal)" }, \
	{ CLI_NO_PROGRESS, "no-progress", 0, "", NULL }
int erofs_cli_common_option(struct cli_parse *p);

/* Make the engine. 0, negative errno (reported); usage errors give @usage_status as a positive value. */
int erofs_cli_engine_new(const struct cli *cli, const struct cli_engine *e, int usage_status,
			 struct erofs_diag *diag, struct erofs_engine **ret_eng);

/* A file in TMPDIR without a name, for what is printed later. NULL: errno says why. */
FILE *erofs_cli_temp_stream(void);

/* A difference between an image and what it was made of: one line for people. */
void erofs_cli_print_difference(const struct cli *cli, const struct erofs_difference *d);

/* ---- signals (signals.c) ---- */

/*
 * SIGINT, SIGTERM, SIGHUP cancel @eng, a second one ends the process; SIGUSR1 prints a line (R21, R22).
 * NULL: as it was before.
 */
void erofs_cli_catch_signals(struct erofs_engine *eng);
/* The signal that cancelled, 0: none. */
int erofs_cli_caught_signal(void);
/* "SIGTERM" */
const char *erofs_cli_signal_name(int number);
/* End as the signal would have ended us: for tools whose exit status has no bit for it. */
void erofs_cli_die_by(int number);

/* What SIGUSR1 tells of from now on. NULL: nothing is done. */
void erofs_cli_watch_work(const struct cli_work *work);

/* From now on a signal that cancels also ends a write that waits for its reader. */
void erofs_cli_interrupt_writes(void);

/* ---- streams (output.c) ---- */

/* Where a stream goes. */
struct cli_output {
	const char *name;	/* as the user said it */
	int fd;
	char *target, *temp;	/* of a file; temp: its name until it is whole, NULL: written in place */
};

/* @name: NULL or "-": standard output. 0, negative errno (reported). */
int erofs_cli_output_open(const struct cli *cli, const char *name, struct cli_output *out);
/*
 * Close, and give a file its name if it is @complete; else remove it. 0, negative errno (reported).
 * Standard output is left to erofs_cli_close_stdout().
 */
int erofs_cli_output_close(const struct cli *cli, struct cli_output *out, bool complete);

/* ---- progress (progress.c) ---- */

/* What people wait for. */
struct cli_work {
	const char *verb;		/* "extracting" */
	struct erofs_engine *eng;	/* its run counts; NULL: @files and @bytes do */
	int pass;			/* of -C, from 1 */
	bool to_stdout;			/* where a line of progress would spoil it, if that is a terminal */
	bool has_totals;		/* the engine knows them: the next two are not used */
	uint64_t total_files;		/* 0: not known */
	uint64_t total_bytes;		/* 0: not known */
	_Atomic uint64_t files, bytes;	/* relaxed */
};

/* How far it is; totals as @work says. Async-signal-safe. */
void erofs_cli_work_done(const struct cli_work *work, struct erofs_progress *ret_done);

struct cli_progress;
/*
 * Show progress if it is wanted (R16); SIGUSR1 tells it in any case (R22). @work: must stay until it is
 * stopped. NULL: not shown, or no thread to be had.
 */
struct cli_progress *erofs_cli_progress_start(const struct cli *cli, const struct cli_work *work);
/* Remove the line. NULL is fine. */
void erofs_cli_progress_stop(struct cli_progress *progress);

/* ---- figures (figures.c) ---- */

/* Print what the engine did, the way that --stats asks for. @wall_ns: of the whole run */
void erofs_cli_print_stats(const struct cli *cli, struct erofs_engine *eng, const struct cli_engine *e,
			   uint64_t wall_ns);

/* The same in JSON: the object "engine". */
void erofs_cli_json_engine(struct cli_json *j, struct erofs_engine *eng, const struct cli_engine *e,
			   uint64_t wall_ns);
/* The object "times": wall, user and system, in ns. */
void erofs_cli_json_times(struct cli_json *j, uint64_t wall_ns);

#endif
