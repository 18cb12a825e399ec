/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mkfs.erofs: its options. */
#ifndef EROFS_MKFS_H
#define EROFS_MKFS_H

#include <erofs/erofs.h>

#include "cli/cli.h"

struct mkfs_options {
	struct erofs_write_options write;
	struct cli_engine engine;
	struct cli_list paths, regexes, prefixes;
	uint32_t uid, gid;
	bool help, help_all, version, quiet;
	bool product_out;
	bool print_digest;
	const char *manifest;		/* NULL: none; "-": standard output */
	struct cli_list sources;
};

struct mkfs_times {
	int all;		/* 1 --all-time, 0 --mkfs-time, -1 neither */
	bool preserve;
};

/* 0, or 1 after a usage error. The lists are freed by mkfs_free_options(). */
int mkfs_parse_options(int argc, char **argv, struct cli *cli, struct mkfs_options *ret);
void mkfs_free_options(struct mkfs_options *o);
/* settle.c: what they mean together. 0, or 1 after a usage error. */
int mkfs_settle_times(struct cli *cli, struct mkfs_options *o, const struct mkfs_times *t);
int mkfs_take_operands(int argc, char **argv, const struct cli_parse *p, struct mkfs_options *o);
/* -E: 1, or negative after a usage error. */
int mkfs_take_extended(const struct cli_parse *p, struct mkfs_options *o);
int mkfs_print_help(const struct cli *cli, bool all);

#endif
