// SPDX-License-Identifier: GPL-2.0-or-later
/* What options and operands of mkfs.erofs mean together, once all of them are read. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mkfs.h"

/* SOURCE_DATE_EPOCH stands above all options (cli.md 13). */
int mkfs_settle_times(struct cli *cli, struct mkfs_options *o, const struct mkfs_times *t)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	struct erofs_write_options *w = &o->write;
	uint64_t v;

	if (w->has_time && t->all)
		w->all_time = 1;
	if (!epoch || !*epoch)
		return 0;
	if (!erofs_cli_number(epoch, &v) || v > INT64_MAX)
		return erofs_cli_usage(cli, 1, "SOURCE_DATE_EPOCH: '%s' is no number", epoch);
	if (w->has_time && w->time != (int64_t)v)
		erofs_cli_note(cli, 'W', "SOURCE_DATE_EPOCH overrides -T");
	w->has_time = w->all_time = 1;
	w->time = (int64_t)v;
	return 0;
}

/* A folder, or images: SOURCE that is neither is told by whoever opens it. */
static int take_sources(int argc, char **argv, const struct cli_parse *p, struct mkfs_options *o)
{
	struct erofs_write_options *w = &o->write;
	int at = p->operand + 1, i;
	struct stat st;

	if (w->source_type != EROFS_WRITE_DIRECTORY) {
		if (argc - at > 1)
			return erofs_cli_usage(p->cli, 1, "unexpected argument: %s", argv[at + 1]);
		w->source = argc > at ? argv[at] : "-";
		return 0;
	}
	w->source = argv[at];
	for (i = at; i < argc; i++) {
		bool is_image = !stat(argv[i], &st) && !S_ISDIR(st.st_mode);

		if (!is_image && argc - at > 1)
			return erofs_cli_usage(p->cli, 1, "unexpected argument: %s (several sources are images)",
					       argv[i == at ? at + 1 : i]);
		if (is_image && erofs_cli_append(&o->sources, argv[i]) < 0)
			return 1;
	}
	w->sources = o->sources.words;
	if (w->sources)
		w->source_type = EROFS_WRITE_IMAGES;
	return 0;
}

int mkfs_take_operands(int argc, char **argv, const struct cli_parse *p, struct mkfs_options *o)
{
	bool can_miss = o->write.source_type != EROFS_WRITE_DIRECTORY;
	int at = p->operand;

	if (argc - at < 2 - (can_miss && argc > at))
		return erofs_cli_usage(p->cli, 1, "missing argument: %s", argc == at ? "FILE" : "SOURCE");
	if (o->write.label && strlen(o->write.label) > 15)
		return erofs_cli_usage(p->cli, 1, "the label '%s' is longer than 15 bytes", o->write.label);
	if (o->write.compress_dirs && !o->write.compressors)
		return erofs_cli_usage(p->cli, 1, "--zD compresses directories and needs -z");
	if (o->manifest && !*o->manifest)
		return erofs_cli_usage(p->cli, 1, "--manifest= needs the name of a file");
	if (o->manifest && o->write.source_type == EROFS_WRITE_TAR_INDEX)
		return erofs_cli_usage(p->cli, 1, "--manifest with --tar=i is not implemented");
	if (erofs_report_is_stdout(&o->json) && (o->print_digest || (o->manifest && !strcmp(o->manifest, "-"))))
		return erofs_cli_usage(p->cli, 1, "%s goes with --json=FILE only",
				       o->print_digest ? "--print-digest" : "--manifest=-");
	if (o->json.path && (!strcmp(o->json.path, argv[at]) ||
			     (o->manifest && strcmp(o->manifest, "-") && !strcmp(o->json.path, o->manifest))))
		return erofs_cli_usage(p->cli, 1, "--json=%s names another output of this run", o->json.path);
	if (o->product_out && !o->write.fs_config_file)
		return erofs_cli_usage(p->cli, 1, "%s", CLI_PRODUCT_OUT_ALONE);
	o->write.output = argv[at];
	return take_sources(argc, argv, p, o);
}
