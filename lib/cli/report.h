/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * --json: the report of a run, one object whose keys come in the order of cli.md, section 9.
 *
 * A tool opens the report before it does anything else; from then on what erofs_cli_say() tells is heard.
 * When result and status are known it begins the object, writes what it found out with the functions here
 * and with json.h on @json, then findings, and closes. Lists that an image makes long are written as they
 * are read; nothing of them is kept.
 */
#ifndef EROFS_CLI_REPORT_H
#define EROFS_CLI_REPORT_H

#include <erofs/inode.h>
#include <erofs/verify.h>

#include "cli/cli.h"
#include "cli/json.h"

#define REPORT_LINES (1u << 1 | 1u << 2)	/* one line for each fact, finding and entry */
#define REPORT_HEARD 16		/* messages that are kept; a run has one or two */

struct cli_report {
	struct cli *cli;
	const char *image;
	struct cli_output output;
	FILE *file;			/* NULL: no report is wanted */
	struct cli_json json;
	bool in_findings;
	unsigned int heard;
	struct {
		char letter;
		char *text;
	} messages[REPORT_HEARD];
};

/* Does the report take the place of the text for people? */
bool erofs_report_is_stdout(const struct cli_json_option *o);

/*
 * Open what --json names; nothing happens without --json. @in: what the run reads or makes, on which the report
 * must not fall.
 * 0, negative errno (reported).
 */
int erofs_report_open(struct cli_report *r, struct cli *cli, const struct cli_json_option *o,
		      const struct cli_input *in);

/* Schema, tool, version, image, the result in a word, and @exit. */
void erofs_report_begin(struct cli_report *r, bool cancelled, bool damaged, int exit);
void erofs_report_super(struct cli_report *r, const struct erofs_super_info *info);
/* Facts of an inode, into the object that is open. */
void erofs_report_stat(struct cli_json *j, const struct erofs_stat *st);
/* Word for a directory entry's type (format.md 7.1), and for a mode. */
const char *erofs_report_type(unsigned int type);
const char *erofs_report_mode_type(uint32_t mode);

/* Differences on their way out (differences.c). */
struct cli_differences {
	struct cli *cli;
	bool on_terminal;		/* with a line of progress */
	FILE *spool;			/* NULL: there is no report */
	struct cli_json json;
};

/* Once the report is open. 0, negative errno (reported). */
int erofs_differences_begin(struct cli_differences *d, struct cli *cli, bool on_terminal);
/* An erofs_compare_fn; @priv: struct cli_differences. */
void erofs_differences_take(void *priv, const struct erofs_difference *difference);
/* More than once is fine. */
void erofs_differences_end(struct cli_differences *d);
/* The object "verify" and the list of them. */
void erofs_report_verify(struct cli_report *r, struct cli_differences *d, const struct erofs_compare_result *result);

/* What was said so far and all of @diag (may be NULL), which is flushed: findings, findings_dropped. */
void erofs_report_findings(struct cli_report *r, struct erofs_diag *diag);
/* message.c calls these for each finding that is flushed, and for each message. */
void erofs_report_finding(struct cli_report *r, const struct erofs_finding *f);
void erofs_report_hear(struct cli_report *r, char letter, const char *text);

/* End the object. 0, negative errno (reported): it did not arrive. Standard output is not closed. */
int erofs_report_end(struct cli_report *r);
/* Free all; a file whose report was not ended is removed. */
void erofs_report_close(struct cli_report *r);

#endif
