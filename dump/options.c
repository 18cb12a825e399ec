// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of dump.erofs (cli.md 6). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dump.h"

enum {
	OPT_HELP = 1, OPT_VERSION, OPT_SUPER, OPT_STATISTICS, OPT_EXTENTS, OPT_LIST, OPT_CAT, OPT_UDEV,
	OPT_PATH, OPT_NID, OPT_OFFSET, OPT_DEVICE, OPT_NO_SBCRC,
};

static const struct cli_option table[] = {
	{ OPT_SUPER, "", 's', "", "show the superblock (default)" },
	{ OPT_STATISTICS, "", 'S', "", "show statistics of the image" },
	{ OPT_EXTENTS, "", 'e', "", "show the extents of --path or --nid" },
	{ OPT_LIST, "ls", 0, "", "list a directory, / if none is named" },
	{ OPT_CAT, "cat", 0, "", "write the contents of --path or --nid to stdout" },
	{ OPT_PATH, "path", 0, "X", "the file or directory; alone: show its inode" },
	{ OPT_NID, "nid", 0, "#", "the same by inode number" },
	{ OPT_UDEV, "blkid-udev", 0, "", "show KEY=value lines for udev" },
	{ OPT_DEVICE, "device", 0, "X", "extra device or blob, in the order of the slots" },
	{ OPT_OFFSET, "offset", 0, "#", "the image starts there in its file (K, M, G)" },
	{ OPT_NO_SBCRC, "no-sbcrc", 0, "", "ignore the superblock checksum" },
	CLI_ENGINE_OPTIONS,
	CLI_COMMON_OPTIONS,
	{ OPT_HELP, "help", 'h', "", "show this help" },
	{ OPT_VERSION, "version", 'V', "", "show versions and decompressors" },
	{ 0 },
};

int dump_print_help(const struct cli *cli)
{
	puts("Usage: dump.erofs [OPTIONS] IMAGE\n"
	     "Look into an EROFS image.\n");
	erofs_cli_print_options(table);
	puts("\nExit status: 0 all was delivered, 1 not there or only in part, 2 trouble.");
	return erofs_cli_close_stdout(cli) ? DUMP_TROUBLE : 0;
}

static int bad_number(const struct cli_parse *p)
{
	char name[32];

	erofs_cli_usage(p->cli, p->usage_status, "%s: '%.100s' is not a number",
			erofs_cli_option_name(p->opt, name), p->arg);
	return -EINVAL;
}

static int add_device(struct dump_options *o, const char *path)
{
	const char **grown = realloc(o->devices, (o->device_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[o->device_count++] = path;
	o->devices = grown;
	return 1;
}

/* 1 taken, 0 not one of these, negative: reported. */
static int take_action(const struct cli_parse *p, struct dump_options *o)
{
	switch (p->opt->id) {
	case OPT_SUPER: o->super = true; return 1;
	case OPT_STATISTICS: o->statistics = true; return 1;
	case OPT_EXTENTS: o->extents = true; return 1;
	case OPT_LIST: o->list = true; return 1;
	case OPT_CAT: o->cat = true; return 1;
	case OPT_UDEV: o->udev = true; return 1;
	case OPT_HELP: o->help = true; return 1;
	case OPT_VERSION: o->version = true; return 1;
	default: return 0;
	}
}

static int take_input(const struct cli_parse *p, struct dump_options *o)
{
	switch (p->opt->id) {
	case OPT_PATH:
		o->path = p->arg;
		return 1;
	case OPT_NID:
		o->has_nid = erofs_cli_number(p->arg, &o->nid);
		return o->has_nid ? 1 : bad_number(p);
	case OPT_OFFSET:
		return erofs_cli_size(p->arg, &o->offset) ? 1 : bad_number(p);
	case OPT_DEVICE:
		return add_device(o, p->arg);
	case OPT_NO_SBCRC:
		o->no_sbcrc = true;
		return 1;
	default:
		return 0;
	}
}

static int take_option(struct cli_parse *p, struct dump_options *o)
{
	int r = take_action(p, o);

	if (!r)
		r = take_input(p, o);
	if (!r)
		r = erofs_cli_engine_option(p, &o->engine);
	if (!r)
		r = erofs_cli_common_option(p);
	return r < 0 ? r : 0;
}

static int check_together(const struct cli_parse *p, const struct dump_options *o)
{
	bool target = o->path || o->has_nid;

	if (o->cat && (o->super || o->statistics || o->extents || o->list || o->udev))
		return erofs_cli_usage(p->cli, p->usage_status, "--cat does not go with other output");
	if ((o->cat || o->extents) && !target)
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --path or --nid",
				       o->cat ? "--cat" : "-e");
	return 0;
}

static int take_operands(int argc, char **argv, const struct cli_parse *p, struct dump_options *o)
{
	int at = p->operand;

	if (at == argc)
		return erofs_cli_usage(p->cli, p->usage_status, "missing argument: IMAGE");
	if (argc - at > 1)
		return erofs_cli_usage(p->cli, p->usage_status, "unexpected argument: %s", argv[at + 1]);
	o->image = argv[at];
	return check_together(p, o);
}

int dump_parse_options(int argc, char **argv, struct cli *cli, struct dump_options *ret)
{
	struct cli_parse p;
	int r, err;

	*ret = (struct dump_options){ 0 };
	err = erofs_cli_parse_begin(&p, cli, table, DUMP_TROUBLE);
	if (err)
		return DUMP_TROUBLE;
	while (!err && (r = erofs_cli_parse_next(&p, argc, argv)))
		err = r < 0 ? r : take_option(&p, ret);
	erofs_cli_parse_end(&p);
	if (err)
		return DUMP_TROUBLE;
	if (ret->help || ret->version)
		return 0;
	return take_operands(argc, argv, &p, ret);
}

void dump_free_options(struct dump_options *o)
{
	free(o->devices);
}
