// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Options that the reading tools share: engine, message level, progress. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "cli/cli.h"

#define MAX_RESERVED_PAGES 16384

int erofs_cli_engine_option(struct cli_parse *p, struct cli_engine *e)
{
	switch (p->opt->id) {
	case CLI_WORKERS:
		if (!*p->arg)
			return erofs_cli_bad_value(p, "a number or word");
		e->workers = p->arg;
		break;
	case CLI_RESERVED_PAGES:
		if (!erofs_cli_number(p->arg, &e->reserved_pages) || e->reserved_pages > MAX_RESERVED_PAGES)
			return erofs_cli_bad_value(p, "a number of pages up to 16384");
		break;
	case CLI_MAX_MEMORY:
		if (!erofs_cli_memory(p->arg, &e->max_memory) || !e->max_memory)
			return erofs_cli_bad_value(p, "a size such as 64M or 10%");
		return 1;	/* it does not ask for the engine: a plain check has the same bound */
	case CLI_STATS:
		e->stats = true;
		e->stats_how = p->arg;
		if (p->arg && !*p->arg)
			return erofs_cli_bad_value(p, "json or a file");
		break;
	case CLI_PAGE_POLICY:
		if (!erofs_cli_is_value(p->opt, p->arg))
			return erofs_cli_bad_value(p, "kernel or caching");
		e->page_policy = p->arg;
		break;
	default:
		return 0;
	}
	e->named = true;
	return 1;
}

int erofs_cli_common_option(struct cli_parse *p)
{
	struct cli *cli = p->cli;
	uint64_t level;

	switch (p->opt->id) {
	case CLI_LEVEL:
		if (!erofs_cli_number(p->arg, &level) || level > 9)
			return erofs_cli_bad_value(p, "a level from 0 to 9");
		cli->level = (int)level;
		return 1;
	case CLI_QUIET:
		cli->level = 0;
		return 1;
	case CLI_VERBOSE:
		cli->level += cli->level < 9;
		return 1;
	case CLI_PROGRESS:
		cli->progress = 1;
		return 1;
	case CLI_NO_PROGRESS:
		cli->progress = 0;
		return 1;
	default:
		return 0;
	}
}

int erofs_cli_take_json(struct cli_parse *p, struct cli_json_option *o)
{
	if (p->opt->id != CLI_JSON)
		return 0;
	if (p->arg && !*p->arg)
		return erofs_cli_bad_value(p, "the name of a file");
	*o = (struct cli_json_option){ .wanted = true, .path = p->arg };
	return 1;
}

int erofs_cli_engine_new(const struct cli *cli, const struct cli_engine *e, int usage_status,
			 struct erofs_diag *diag, struct erofs_engine **ret_eng)
{
	const char *workers = e->workers ? e->workers : getenv("EROFS_WORKERS");
	const char *memory = getenv("EROFS_MAX_MEMORY");
	struct erofs_engine_options options = {
		.size = sizeof(options),
		.workers = workers,
		.reserved_pages = (unsigned int)e->reserved_pages,
		.max_memory = e->max_memory,
		.page_policy = e->page_policy,
	};
	char shown[400];
	int err;

	if (!e->max_memory && memory && *memory && !erofs_cli_memory(memory, &options.max_memory))
		return erofs_cli_usage(cli, usage_status, "EROFS_MAX_MEMORY: not a size");
	err = erofs_engine_new(&options, diag, ret_eng);
	if (err == -EINVAL && workers) {
		erofs_escape_name(workers, strlen(workers), shown, sizeof(shown));
		return erofs_cli_usage(cli, usage_status, "%s: '%s' is neither a number of threads nor "
				       "percpu, percpu-hipri, unbound or auto",
				       e->workers ? "--workers" : "EROFS_WORKERS", shown);
	}
	if (err)
		erofs_cli_say(cli, 'E', "cannot make the engine: %s", strerror(-err));
	return err;
}
