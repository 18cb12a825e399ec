// SPDX-License-Identifier: GPL-2.0-or-later
/* dump.erofs: look into an EROFS image. */
#include "dump.h"

static int print_version(const struct cli *cli)
{
	erofs_cli_print_version(cli);
	return erofs_cli_close_stdout(cli) ? DUMP_TROUBLE : 0;
}

int main(int argc, char **argv)
{
	struct dump_options options;
	struct cli cli;
	int status;

	erofs_cli_init(&cli, "dump.erofs");
	status = dump_parse_options(argc, argv, &cli, &options);
	if (!status) {
		if (options.help)
			status = dump_print_help(&cli, options.help_all);
		else if (options.version)
			status = print_version(&cli);
		else
			status = dump_run(&cli, &options);
	}
	dump_free_options(&options);
	return status;
}
