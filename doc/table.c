// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints the option table of a tool for those who write its man page and completions. It is built with
 * -DTABLE='"TOOL/options.c"', of which it takes the table alone, and runs on the machine that builds.
 *
 * Lines, fields ended by tabs, "-" for what is not there:
 *	group TITLE
 *	option LETTER NAME ARGUMENT VALUES HELP		HELP "-": described by the option before it
 */
#include <stdio.h>

#define CLI_TABLE_ONLY
#include TABLE

static const char *or_none(const char *text)
{
	return text && *text ? text : "-";
}

int main(void)
{
	const struct cli_option *o;

	for (o = table; o->id; o++) {
		const char letter[] = { o->letter, 0 };

		if (o->id == CLI_GROUP)
			printf("group\t%s\n", o->help);
		else if (o->id != CLI_WORDS)
			printf("option\t%s\t%s\t%s\t%s\t%s\n", or_none(letter), or_none(o->name), or_none(o->arg),
			       o[1].id == CLI_WORDS ? o[1].help : "-", or_none(o->help));
	}
	return fflush(stdout) || ferror(stdout);
}
