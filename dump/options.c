// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of dump.erofs (cli.md 6). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump.h"

enum {
	OPT_HELP = 1, OPT_VERSION, OPT_SUPER, OPT_STATISTICS, OPT_EXTENTS, OPT_LIST, OPT_CAT, OPT_UDEV,
	OPT_TO_TAR, OPT_TO_MTREE, OPT_DIGEST, OPT_EXTRACT, OPT_ANDROID, OPT_MOUNT, OPT_MTREE_XATTRS,
	OPT_VERITY_BLOCK, OPT_SALT, OPT_PRINT_DIGEST,
	OPT_RECURSIVE, OPT_LONG, OPT_PRINT0,
};

/* A group of options is a block of rows: new ones go to the end of theirs. */
static const struct cli_option table[] = {
	CLI_MAIN_GROUP("Actions"),
	{ OPT_SUPER, "", 's', "", "show the superblock (default)" },
	{ OPT_STATISTICS, "", 'S', "", "show statistics of the image" },
	{ OPT_EXTENTS, "", 'e', "", "show the extents of --path or --nid" },
	{ OPT_LIST, "ls", 0, "", "list a directory, / if none is named" },
	{ OPT_CAT, "cat", 0, "", "write the contents of --path or --nid to stdout" },
	{ OPT_TO_TAR, "to-tar", 0, "[FILE]", "write the tree as a pax archive to stdout or FILE" },
	{ OPT_TO_MTREE, "to-mtree", 0, "[FILE]", "write an mtree manifest, with SHA-256" },
	{ OPT_DIGEST, "digest", 0, "ALG", "digests of files: sha256, sha512, fsverity[-sha512]" },
	{ OPT_EXTRACT, "extract", 0, "[DIR]", "write the tree into DIR (default: erofs-root)" },

	CLI_OTHER_GROUP("Details"),
	{ OPT_RECURSIVE, "recursive", 0, "", "with --ls: all below, full paths, one a line" },
	{ OPT_LONG, "long", 0, "", "with --ls: mode, owner, size, time, name, target" },
	{ OPT_PRINT0, "print0", 0, "", "with --ls: names only, each ends with NUL" },
	{ OPT_PRINT_DIGEST, "print-digest", 0, "", "show the fs-verity digest of the image file itself" },
	{ OPT_UDEV, "blkid-udev", 0, "", "show KEY=value lines for udev" },
	{ OPT_MTREE_XATTRS, "mtree-xattrs", 0, "", "with --to-mtree: xattrs and fs-verity as comments" },
	{ OPT_VERITY_BLOCK, "fsverity-block", 0, "N", "block size of fs-verity (default 4096)" },
	{ OPT_SALT, "salt", 0, "HEX", "salt of fs-verity, up to 32 bytes (default: none)" },

	CLI_OTHER_GROUP("Selection"),
	CLI_SELECT_OPTIONS,

	CLI_OTHER_GROUP("Extraction"),
	CLI_EXTRACT_OPTIONS,
	{ OPT_ANDROID, "android-config", 0, "DIR", "write owners, modes, capabilities and labels into DIR too" },
	{ OPT_MOUNT, "mount-point", 0, "X", "paths in these files begin there (default: image's name)" },

	CLI_OTHER_GROUP("Input"),
	CLI_INPUT_OPTIONS,

	CLI_OTHER_GROUP("Engine"),
	CLI_ENGINE_OPTIONS,

	CLI_OTHER_GROUP("Messages"),
	CLI_JSON_OPTION,
	CLI_COMMON_OPTIONS,
	{ OPT_HELP, "help", 'h', "[all]", "show this help; all: describe every option" },
	{ OPT_VERSION, "version", 'V', "", "show versions and decompressors" },
	{ 0 },
};

#ifndef CLI_TABLE_ONLY	/* doc/table.c takes what is above */

int dump_print_help(const struct cli *cli, bool all)
{
	/* short: one screen of 24 lines */
	printf("Usage: dump.erofs [OPTIONS] IMAGE [MEMBER...]%s\n",
	       all ? "" : "  (more: --help=all, man page)");
	if (all)
		puts("Look into an EROFS image, or take something out. "
		     "Members: for --extract, --ls, streams and digests.");
	erofs_cli_print_options(table, all);
	if (all)
		puts("Exit status: 0 all was delivered, 1 not there or only in part, 2 trouble.");
	return erofs_cli_close_stdout(cli) ? DUMP_TROUBLE : 0;
}

/* 1 taken, 0 not one of these, negative: reported. */
static int take_action(const struct cli_parse *p, struct dump_options *o)
{
	switch (p->opt->id) {
	case OPT_SUPER: o->super = true; return 1;
	case OPT_STATISTICS: o->statistics = true; return 1;
	case OPT_EXTENTS: o->extents = true; return 1;
	case OPT_LIST: o->list = true; return 1;
	case OPT_RECURSIVE: o->recursive = true; return 1;
	case OPT_LONG: o->details = true; return 1;
	case OPT_PRINT0: o->print0 = true; return 1;
	case OPT_CAT: o->cat = true; return 1;
	case OPT_UDEV: o->udev = true; return 1;
	case OPT_PRINT_DIGEST: o->print_digest = true; return 1;
	case OPT_TO_TAR: o->to_tar = true; o->tar_file = p->arg; return 1;
	case OPT_TO_MTREE: o->to_mtree = true; o->mtree_file = p->arg; return 1;
	case OPT_MTREE_XATTRS: o->mtree_xattrs = true; return 1;
	case OPT_DIGEST: return dump_take_digest(p, &o->digest);
	case OPT_VERITY_BLOCK: return dump_take_block(p, &o->digest);
	case OPT_SALT: return dump_take_salt(p, &o->digest);
	case OPT_EXTRACT: o->extract = true; o->target = p->arg; return 1;
	case OPT_ANDROID: o->android_dir = p->arg; return 1;
	case OPT_MOUNT: o->mount_point = p->arg; return 1;
	case OPT_HELP: o->help = true; return erofs_cli_take_help(p, &o->help_all);
	case OPT_VERSION: o->version = true; return 1;
	default: return 0;
	}
}

static int take_option(struct cli_parse *p, struct dump_options *o)
{
	int r = take_action(p, o);

	if (!r)
		r = erofs_cli_input_option(p, &o->input);
	if (!r)
		r = erofs_cli_select_option(p, &o->select);
	if (!r)
		r = erofs_cli_extract_option(p, &o->how);
	if (!r)
		r = erofs_cli_engine_option(p, &o->engine);
	if (!r)
		r = erofs_cli_take_json(p, &o->json);
	if (!r)
		r = erofs_cli_common_option(p);
	return r < 0 ? r : 0;
}

/* Actions that read the whole tree go alone. */
static int check_alone(const struct cli_parse *p, const struct dump_options *o, const char *action)
{
	int trees = o->to_tar + o->to_mtree + o->digest.wanted + o->extract;

	if (o->cat || o->super || o->statistics || o->extents || o->list || o->udev || o->print_digest || trees > 1)
		return erofs_cli_usage(p->cli, p->usage_status, "%s does not go with other output", action);
	if (o->recursive || o->details || o->print0)
		return erofs_cli_usage(p->cli, p->usage_status, "%s does not go with options of --ls", action);
	return 0;
}

/* Text may go to a terminal. */
static int check_sums(const struct cli_parse *p, const struct dump_options *o)
{
	int status = check_alone(p, o, o->to_mtree ? "--to-mtree" : "--digest");

	if (!status && o->mtree_file && !*o->mtree_file)
		return erofs_cli_usage(p->cli, p->usage_status, "--to-mtree= needs the name of a file");
	return status;
}

static int check_archive(const struct cli_parse *p, const struct dump_options *o)
{
	int status = check_alone(p, o, "--to-tar");

	if (status)
		return status;
	if (o->tar_file && !*o->tar_file)
		return erofs_cli_usage(p->cli, p->usage_status, "--to-tar= needs the name of a file");
	if (!o->tar_file && isatty(STDOUT_FILENO))
		return erofs_cli_usage(p->cli, p->usage_status,
				       "an archive is not for terminals: name a file, or --to-tar=-");
	return 0;
}

/* One thing at a time goes to standard output. */
static int check_json(const struct cli_parse *p, const struct dump_options *o)
{
	const char *file = o->to_tar ? o->tar_file : o->to_mtree ? o->mtree_file : NULL;
	bool stream = dump_is_stream(o) && (!file || !strcmp(file, "-"));

	if (!erofs_report_is_stdout(&o->json) || !(o->cat || o->udev || o->print0 || o->print_digest || stream))
		return 0;
	return erofs_cli_usage(p->cli, p->usage_status, "%s goes with --json=FILE only", o->cat ? "--cat" :
			       o->udev ? "--blkid-udev" : o->print_digest ? "--print-digest" :
			       o->print0 ? "--print0" : o->to_tar ? "--to-tar" :
			       o->to_mtree ? "--to-mtree" : "--digest");
}

static int check_extract(const struct cli_parse *p, const struct dump_options *o)
{
	int status = check_alone(p, o, "--extract");

	if (!status && ((o->target && !*o->target) || (o->android_dir && !*o->android_dir)))
		return erofs_cli_usage(p->cli, p->usage_status, "%s= needs a folder",
				       o->target && !*o->target ? "--extract" : "--android-config");
	return status;
}

/* Options of actions that were not asked for. */
static int check_idle(const struct cli_parse *p, const struct dump_options *o)
{
	const char *name = erofs_cli_select_named(&o->select);

	if (!o->extract && erofs_cli_extract_needs_target(&o->how))
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --extract",
				       erofs_cli_extract_needs_target(&o->how));
	if (o->android_dir ? !o->extract : o->mount_point != NULL)
		return erofs_cli_usage(p->cli, p->usage_status, o->android_dir ? "--android-config needs --extract" :
				       "--mount-point needs --android-config");
	if (o->mtree_xattrs && !o->to_mtree)
		return erofs_cli_usage(p->cli, p->usage_status, "--mtree-xattrs needs --to-mtree");
	if ((o->digest.block || o->digest.salt_text) && !o->digest.is_verity)
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --digest=fsverity",
				       o->digest.block ? "--fsverity-block" : "--salt");
	if (o->extract || o->to_tar)
		return 0;
	if (o->select.strip_components)
		return erofs_cli_usage(p->cli, p->usage_status, "--strip-components needs --extract or --to-tar");
	if (name && !o->list && !dump_is_stream(o))
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --extract, --to-tar, --to-mtree, --digest "
				       "or --ls", name);
	return 0;
}

static int check_together(const struct cli_parse *p, const struct dump_options *o)
{
	bool target = o->input.path || o->input.has_nid;
	int status = check_idle(p, o);

	if (status)
		return status;
	if (o->to_tar)
		return check_archive(p, o);
	if (o->to_mtree || o->digest.wanted)
		return check_sums(p, o);
	if (o->extract)
		return check_extract(p, o);
	if (o->cat && (o->super || o->statistics || o->extents || o->list || o->udev || o->print_digest))
		return erofs_cli_usage(p->cli, p->usage_status, "--cat does not go with other output");
	if (!o->list && (o->recursive || o->details || o->print0))
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --ls", o->recursive ? "--recursive" :
				       o->details ? "--long" : "--print0");
	if ((o->cat || o->extents) && !target)
		return erofs_cli_usage(p->cli, p->usage_status, "%s needs --path or --nid",
				       o->cat ? "--cat" : "-e");
	return 0;
}

/* "--extract DIR IMAGE": optional arguments follow an equals sign only. */
static int check_mistake(const struct cli_parse *p, const struct dump_options *o)
{
	struct stat st;

	if (!o->extract || o->target || o->select.members.count != 1 || stat(o->input.image, &st) ||
	    !S_ISDIR(st.st_mode) || stat(o->select.members.words[0], &st))
		return 0;
	return erofs_cli_usage(p->cli, p->usage_status, "%s is a directory, no image (did you mean --extract=%s?)",
			       o->input.image, o->input.image);
}

static int take_operands(int argc, char **argv, const struct cli_parse *p, struct dump_options *o)
{
	int at = p->operand;

	if (at == argc)
		return erofs_cli_usage(p->cli, p->usage_status, "missing argument: IMAGE");
	if (argc - at > 1 && !o->extract && !dump_is_stream(o) && !o->list)
		return erofs_cli_usage(p->cli, p->usage_status, "unexpected argument: %s", argv[at + 1]);
	o->input.image = argv[at];
	while (++at < argc)
		if (erofs_cli_append(&o->select.members, argv[at]) < 0)
			return DUMP_TROUBLE;
	/* what is chosen may lie anywhere */
	o->recursive |= o->list && (o->select.members.count || erofs_cli_select_named(&o->select));
	at = check_mistake(p, o);
	if (!at)
		at = check_json(p, o);
	if (!at)
		at = check_together(p, o);
	if (!at && o->android_dir)
		at = dump_choose_mount(p->cli, o, p->usage_status);
	return !at && erofs_cli_select_make(p->cli, &o->select, p->usage_status) ? DUMP_TROUBLE : at;
}

int dump_parse_options(int argc, char **argv, struct cli *cli, struct dump_options *ret)
{
	struct cli_parse p;
	int r, err;

	*ret = (struct dump_options){ 0 };
	erofs_cli_extract_init(&ret->how);
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
	erofs_cli_input_fini(&o->input);
	erofs_cli_select_fini(&o->select);
	erofs_cli_extract_fini(&o->how);
	free(o->mount);
}

#endif
