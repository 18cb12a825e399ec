/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fsck.erofs: its options, and the run they describe. */
#ifndef EROFS_FSCK_H
#define EROFS_FSCK_H

#include <erofs/erofs.h>

#include "cli/cli.h"

struct fsck_options {
	struct cli_input input;
	bool help, help_all, version;
	bool ratio;			/* -p */
	bool decode;			/* --extract without a folder */
	const char *target;		/* --extract=DIR */
	bool digests;
	struct cli_list xattr_include, xattr_exclude;
	struct erofs_extract_options extract;
	struct cli_engine engine;
};

/* 0, or the exit status after a usage error. The lists are freed by fsck_free_options(). */
int fsck_parse_options(int argc, char **argv, struct cli *cli, struct fsck_options *ret);
void fsck_free_options(struct fsck_options *o);
int fsck_print_help(const struct cli *cli, bool all);

/* Check and extract. Return: the exit status. */
int fsck_run(struct cli *cli, const struct fsck_options *o);

#endif
