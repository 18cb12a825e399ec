// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Differences between an image and what it was made of: lines at once, and objects for the report. */
#include <errno.h>
#include <string.h>

#include "cli/report.h"

#define OBJECT_DEPTH 2		/* of a difference in the report */

int erofs_differences_begin(struct cli_differences *d, struct cli *cli, bool on_terminal)
{
	*d = (struct cli_differences){ .cli = cli, .on_terminal = on_terminal };
	if (!cli->report)
		return 0;
	d->spool = erofs_cli_temp_stream();
	if (!d->spool) {
		erofs_cli_say_plain(cli, 'E', "cannot make a temporary file: %s", strerror(errno));
		return -EIO;
	}
	erofs_json_begin_apart(&d->json, d->spool, REPORT_LINES, OBJECT_DEPTH);
	return 0;
}

/* A line for people, which the report need not hear. */
static void print_line(const struct cli_differences *d, const struct erofs_difference *difference)
{
	struct cli cli = *d->cli;

	cli.report = NULL;
	if (d->on_terminal)
		fputs("\r\033[K", stderr);
	erofs_cli_print_difference(&cli, difference);
}

void erofs_differences_take(void *priv, const struct erofs_difference *difference)
{
	struct cli_differences *d = priv;
	struct cli_json *j = &d->json;

	print_line(d, difference);
	if (!d->spool)
		return;
	erofs_json_object(j, NULL);
	erofs_json_bytes(j, "path", difference->path, strlen(difference->path));
	if (difference->has_nid)
		erofs_json_nid(j, "nid", difference->nid);
	else
		erofs_json_null(j, "nid");
	erofs_json_text(j, "key", difference->key);
	erofs_json_text(j, "found", difference->found);
	erofs_json_text(j, "wanted", difference->wanted);
	erofs_json_end(j);
}

/* Differences were written apart, since result and status stand in front of them. */
void erofs_report_verify(struct cli_report *r, struct cli_differences *d, const struct erofs_compare_result *result)
{
	struct cli_json *j = &r->json;

	erofs_json_object(j, "verify");
	erofs_json_unsigned(j, "names", result->names);
	erofs_json_unsigned(j, "bytes", result->bytes);
	erofs_json_unsigned(j, "differences", result->differences);
	erofs_json_bool(j, "complete", result->complete);
	erofs_json_end(j);
	erofs_json_array(j, "differences");
	if (d->spool && (fflush(d->spool) || erofs_json_put_apart(j, &d->json)))
		erofs_cli_say_plain(r->cli, 'E', "differences are missing in the report: the temporary file "
				    "cannot be written or read");
	erofs_json_end(j);
}

void erofs_differences_end(struct cli_differences *d)
{
	if (d->spool)
		fclose(d->spool);
	d->spool = NULL;
}
