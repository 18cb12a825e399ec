/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mkfs.erofs: its options. */
#ifndef EROFS_MKFS_H
#define EROFS_MKFS_H

#include <erofs/erofs.h>

#include "cli/cli.h"
#include "cli/report.h"

struct mkfs_options {
	struct erofs_write_options write;
	struct cli_engine engine;
	struct cli_list paths, regexes, prefixes;
	uint32_t uid, gid;
	bool help, help_all, version, quiet;
	bool product_out;
	struct cli_json_option json;
	bool print_digest;
	const char *manifest;		/* NULL: none; "-": standard output */
	struct cli_list sources;
};

struct mkfs_times {
	int all;		/* 1 --all-time, 0 --mkfs-time, -1 neither */
};

/* 0, or 1 after a usage error. The lists are freed by mkfs_free_options(). */
int mkfs_parse_options(int argc, char **argv, struct cli *cli, struct mkfs_options *ret);
void mkfs_free_options(struct mkfs_options *o);
/* settle.c: what they mean together. 0, or 1 after a usage error. */
int mkfs_settle_times(struct cli *cli, struct mkfs_options *o, const struct mkfs_times *t);
int mkfs_take_operands(int argc, char **argv, const struct cli_parse *p, struct mkfs_options *o);
/* -E: 1, or negative after a usage error. */
int mkfs_take_extended(const struct cli_parse *p, struct mkfs_options *o);
/* What a report tells of a run. */
struct mkfs_facts {
	const struct mkfs_options *o;
	int status;
	uint64_t wall_ns;
	bool built;			/* the image has its name */
	struct erofs_engine *eng;	/* NULL: not made */
	const struct erofs_write_result *result;	/* NULL: it did not begin */
	struct cli_differences *differences;
};

/* Open it, if --json is given. 0, negative errno (reported). */
int mkfs_open_report(struct cli_report *r, struct cli *cli, const struct mkfs_options *o);
/* Write it, and flush @diag (may be NULL). 0, negative errno (reported). */
int mkfs_write_report(struct cli_report *r, struct erofs_diag *diag, const struct mkfs_facts *f);

int mkfs_print_help(const struct cli *cli, bool all);

#endif
