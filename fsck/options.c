// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of fsck.erofs (cli.md 5). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fsck.h"

enum {
	OPT_HELP = 1, OPT_VERSION, OPT_EXTRACT, OPT_RATIO, OPT_NOTHING, OPT_MACHINE, OPT_DIGEST,
	OPT_VERIFY, OPT_VERIFY_ONLY, OPT_MOUNT, OPT_CONFIG, OPT_CONTEXTS, OPT_PRODUCT,
};

/* A group of options is a block of rows: new ones go to the end of theirs. */
static const struct cli_option table[] = {
	CLI_MAIN_GROUP("Actions"),
	{ OPT_EXTRACT, "extract", 0, "[DIR]", "decode all data; with DIR: and write the tree there" },
	{ OPT_DIGEST, "xattr-inode-digest", 0, "", "verify recorded content digests" },
	{ OPT_VERIFY, "verify", 0, "WHAT", "compare with dir:PATH, tar:FILE or mtree:FILE" },
	{ OPT_VERIFY_ONLY, "verify-only", 0, "WORDS", "compare only type, mode, size, data, ..." },
	{ OPT_RATIO, "", 'p', "", "print the compression ratio" },
	{ OPT_NOTHING, "", 'a', "", "accepted for fsck(8), without effect" },
	{ OPT_NOTHING, "", 'A', "", NULL },
	{ OPT_NOTHING, "", 'y', "", NULL },
	{ OPT_NOTHING, "", 'n', "", NULL },
	{ OPT_NOTHING, "", 'f', "", NULL },
	{ OPT_NOTHING, "", 'r', "", NULL },

	CLI_OTHER_GROUP("Input"),
	CLI_INPUT_OPTIONS,

	CLI_OTHER_GROUP("Engine"),
	CLI_ENGINE_OPTIONS,

	CLI_OTHER_GROUP("Android"),
	{ OPT_MOUNT, "mount-point", 0, "X", "with --verify=dir: where it will be mounted, for the next (default /)" },
	{ OPT_CONFIG, "fs-config-file", 0, "X", "owners, modes and capabilities that files are to have" },
	{ OPT_CONTEXTS, "file-contexts", 0, "X", "labels that files are to have (SELinux)" },
	{ OPT_PRODUCT, "product-out", 0, "X", "nothing beside --fs-config-file" },

	CLI_OTHER_GROUP("Extraction"),
	CLI_EXTRACT_OPTIONS,

	CLI_OTHER_GROUP("Messages"),
	CLI_JSON_OPTION,
	{ OPT_MACHINE, "", 'C', "#", "progress lines for machines on this descriptor" },
	CLI_COMMON_OPTIONS,
	{ OPT_HELP, "help", 'h', "[all]", "show this help; all: describe every option" },
	{ OPT_VERSION, "version", 'V', "", "show versions and decompressors" },
	{ 0 },
};

#ifndef CLI_TABLE_ONLY	/* doc/table.c takes what is above */

int fsck_print_help(const struct cli *cli, bool all)
{
	puts("Usage: fsck.erofs [OPTIONS] IMAGE\n"
	     "Check an EROFS image, or extract it with --extract=DIR. Nothing is repaired.");
	erofs_cli_print_options(table, all);
	if (!all)
		puts("--help=all describes these, with examples: man fsck.erofs.");
	puts("Data is decoded with --extract, --workers, --reserved-pages or --stats.\n"
	     "Status, a sum: 0 clean, 4 damage, 8 could not do it, 16 usage, 32 cancelled.");
	return erofs_cli_close_stdout(cli) ? CLI_FSCK_FAILED : 0;
}

static int take_extract(const struct cli_parse *p, struct fsck_options *o)
{
	if (!p->arg) {
		o->decode = true;
		return 1;
	}
	if (!*p->arg) {
		erofs_cli_usage(p->cli, p->usage_status, "--extract= needs a folder");
		return -EINVAL;
	}
	o->target = p->arg;
	return 1;
}

static int take_machine(const struct cli_parse *p)
{
	const char *digits = p->arg + (*p->arg == '-');
	uint64_t fd;

	if (!erofs_cli_number(digits, &fd) || fd > 1 << 20)
		return erofs_cli_bad_value(p, "a number");
	p->cli->has_machine_fd = true;
	p->cli->machine_fd = *p->arg == '-' ? -1 : (int)fd;
	return 1;
}

static int take_other(const struct cli_parse *p, struct fsck_options *o)
{
	switch (p->opt->id) {
	case OPT_HELP: o->help = true; return erofs_cli_take_help(p, &o->help_all);
	case OPT_VERSION: o->version = true; return 1;
	case OPT_EXTRACT: return take_extract(p, o);
	case OPT_VERIFY: return fsck_take_verify(p, o);
	case OPT_VERIFY_ONLY: return fsck_take_verify_only(p, o);
	case OPT_MOUNT: o->mount_point = p->arg; return 1;
	case OPT_CONFIG: o->fs_config = p->arg; return 1;
	case OPT_CONTEXTS: o->contexts = p->arg; return 1;
	case OPT_PRODUCT: o->product_out = true; return 1;
	case OPT_DIGEST: o->digests = true; return 1;
	case OPT_RATIO: o->ratio = true; return 1;
	case OPT_MACHINE: return take_machine(p);
	default: return p->opt->id == OPT_NOTHING;
	}
}

static int take_option(struct cli_parse *p, struct fsck_options *o)
{
	int r = erofs_cli_input_option(p, &o->input);

	if (!r)
		r = erofs_cli_extract_option(p, &o->extract);
	if (!r)
		r = take_other(p, o);
	if (!r)
		r = erofs_cli_engine_option(p, &o->engine);
	if (!r)
		r = erofs_cli_take_json(p, &o->json);
	if (!r)
		r = erofs_cli_common_option(p);
	return r < 0 ? r : 0;
}

static int take_operands(int argc, char **argv, const struct cli_parse *p, struct fsck_options *o)
{
	int at = p->operand;

	if (at == argc)
		return erofs_cli_usage(p->cli, p->usage_status, "missing argument: IMAGE");
	/* "--extract DIR IMAGE": optional arguments follow an equals sign only */
	if (argc - at == 2 && o->decode && !o->target)
		return erofs_cli_usage(p->cli, p->usage_status, "unexpected argument: %s (did you mean "
				       "--extract=%s?)", argv[at + 1], argv[at]);
	if (argc - at > 1)
		return erofs_cli_usage(p->cli, p->usage_status, "unexpected argument: %s", argv[at + 1]);
	o->input.image = argv[at];
	if (!o->target && erofs_cli_extract_needs_target(&o->extract))
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --extract=DIR",
				       erofs_cli_extract_needs_target(&o->extract));
	if ((o->mount_point || o->fs_config || o->contexts || o->product_out) &&
	    (!o->verify || o->verify_kind != EROFS_COMPARE_DIR))
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --verify=dir:PATH", o->mount_point ?
				       "--mount-point" : o->fs_config ? "--fs-config-file" : o->contexts ?
				       "--file-contexts" : "--product-out");
	if (o->product_out && !o->fs_config)
		return erofs_cli_usage(p->cli, p->usage_status, "%s", CLI_PRODUCT_OUT_ALONE);
	if (o->verify_what && !o->verify)
		return erofs_cli_usage(p->cli, p->usage_status, "--verify-only needs --verify");
	if (o->verify && o->verify_kind == EROFS_COMPARE_TAR && !strcmp(o->verify_source, "-") &&
	    !strcmp(o->input.image, "-"))
		return erofs_cli_usage(p->cli, p->usage_status, "--verify=tar:-: the image is read from there");
	if (o->verify && o->target)
		return erofs_cli_usage(p->cli, p->usage_status, "--verify writes nothing: not with --extract=DIR");
	return 0;
}

int fsck_parse_options(int argc, char **argv, struct cli *cli, struct fsck_options *ret)
{
	struct cli_parse p;
	int r, err;

	*ret = (struct fsck_options){ 0 };
	erofs_cli_extract_init(&ret->extract);
	err = erofs_cli_parse_begin(&p, cli, table, CLI_FSCK_USAGE);
	if (err)
		return CLI_FSCK_FAILED;
	while (!err && (r = erofs_cli_parse_next(&p, argc, argv)))
		err = r < 0 ? r : take_option(&p, ret);
	erofs_cli_parse_end(&p);
	if (err)
		return err == -ENOMEM ? CLI_FSCK_FAILED : CLI_FSCK_USAGE;
	if (ret->help || ret->version)
		return 0;
	return take_operands(argc, argv, &p, ret);
}

void fsck_free_options(struct fsck_options *o)
{
	erofs_cli_input_fini(&o->input);
	erofs_cli_extract_fini(&o->extract);
}

#endif
