/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fsck.erofs: its options, and the run they describe. */
#ifndef EROFS_FSCK_H
#define EROFS_FSCK_H

#include <erofs/erofs.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/report.h"
#include "cli/tree_options.h"

struct fsck_options {
	struct cli_input input;
	bool help, help_all, version;
	bool ratio;			/* -p */
	bool decode;			/* --extract without a folder */
	const char *target;		/* --extract=DIR */
	bool digests;
	struct cli_extract extract;
	struct cli_engine engine;
	struct cli_json_option json;
	const char *verify;		/* --verify, NULL: not given */
	enum erofs_compare_kind verify_kind;
	const char *verify_source;
	unsigned int verify_what;	/* 0: all */
	/* Android's view of the folder */
	const char *mount_point, *fs_config, *contexts;
	bool product_out;
};

struct fsck_verify {
	struct cli_differences differences;
	struct erofs_compare_result result;
};

/* 0, or the exit status after a usage error. The lists are freed by fsck_free_options(). */
int fsck_parse_options(int argc, char **argv, struct cli *cli, struct fsck_options *ret);
void fsck_free_options(struct fsck_options *o);
int fsck_print_help(const struct cli *cli, bool all);

/* Check and extract. Return: the exit status. */
int fsck_run(struct cli *cli, const struct fsck_options *o);

/* Take the arguments of --verify and --verify-only. 1, negative: a usage error was reported. */
int fsck_take_verify(const struct cli_parse *p, struct fsck_options *o);
int fsck_take_verify_only(const struct cli_parse *p, struct fsck_options *o);
/* Compare the image with what --verify names. 0, negative errno (reported). */
int fsck_verify_image(struct fsck_verify *v, const struct fsck_options *o, struct erofs_image *img,
		      struct erofs_engine *eng, struct erofs_diag *diag, const uint64_t *nid);

/* What a report tells of a run. */
struct fsck_facts {
	int status;
	uint64_t wall_ns;
	bool data_checked;	/* all data that was asked for was decoded, or found not to decode */
	struct erofs_image *img;	/* NULL: not opened */
	struct erofs_engine *eng;	/* NULL: not made */
	const struct cli_engine *engine;
	const struct erofs_check_result *checked;	/* NULL: the check did not begin */
	const struct erofs_extract_result *extracted;	/* the same */
	struct fsck_verify *verified;	/* the same */
};

/* Write the report of --json, and flush @diag (may be NULL). 0, negative errno (reported). */
int fsck_write_report(struct cli_report *r, struct erofs_diag *diag, const struct fsck_facts *f);

#endif
