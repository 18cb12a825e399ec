// SPDX-License-Identifier: GPL-2.0-or-later
/* dump.erofs: look into an EROFS image. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump.h"

#define STDOUT_BUFFER 65536	/* long lists; terminals see each line at once */

static int print_version(const struct cli *cli)
{
	erofs_cli_print_version(cli);
	return erofs_cli_close_stdout(cli) ? DUMP_TROUBLE : 0;
}

int main(int argc, char **argv)
{
	struct dump_options options;
	struct cli cli;
	char *buffer;
	int status;

	erofs_cli_init(&cli, "dump.erofs");
	buffer = isatty(STDOUT_FILENO) ? NULL : malloc(STDOUT_BUFFER);
	if (buffer)
		setvbuf(stdout, buffer, _IOFBF, STDOUT_BUFFER);	/* which keeps it to the end */
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
