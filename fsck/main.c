// SPDX-License-Identifier: GPL-2.0-or-later
/* fsck.erofs: check an EROFS image, or extract it. */
#include "fsck.h"

static int print_version(const struct cli *cli)
{
	erofs_cli_print_version(cli);
	return erofs_cli_close_stdout(cli) ? CLI_FSCK_FAILED : 0;
}

int main(int argc, char **argv)
{
	struct fsck_options options;
	struct cli cli;
	int status;

	erofs_cli_init(&cli, "fsck.erofs");
	status = fsck_parse_options(argc, argv, &cli, &options);
	if (!status) {
		if (options.help)
			status = fsck_print_help(&cli, options.help_all);
		else if (options.version)
			status = print_version(&cli);
		else
			status = fsck_run(&cli, &options);
	}
	fsck_free_options(&options);
	return status;
}
