/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Options about trees that several actions and tools have: which names are meant, how they are restored. */
#ifndef EROFS_CLI_TREE_OPTIONS_H
#define EROFS_CLI_TREE_OPTIONS_H

#include <erofs/extract.h>
#include <erofs/select.h>

#include "cli/cli.h"

enum {
	CLI_INCLUDE = 1000, CLI_EXCLUDE, CLI_FILES_FROM, CLI_NULL, CLI_STRIP,
	CLI_FORCE = 1100, CLI_OVERWRITE, CLI_PRESERVE, CLI_PRESERVE_OWNER, CLI_PRESERVE_PERMS, CLI_NO_PRESERVE,
	CLI_NO_PRESERVE_OWNER, CLI_NO_PRESERVE_PERMS, CLI_NO_TIMES, CLI_STRICT, CLI_FAIL_FAST, CLI_SPARSE,
	CLI_MKDIR_PARENTS, CLI_SAFE_WRITES, CLI_FSYNC, CLI_XATTRS, CLI_NO_XATTRS, CLI_XATTRS_INCLUDE,
	CLI_XATTRS_EXCLUDE, CLI_SALVAGE,
};

/* ---- which names (select_options.c) ---- */

struct cli_select {
	struct cli_list members, includes, excludes;	/* words from the command line */
	const char *files_from;		/* NULL: none; "-": standard input */
	bool null_ended;		/* its names end with NUL, not with a newline */
	unsigned int strip_components;
	struct cli_list names;		/* from it, escaped; each is freed */
	struct erofs_select *select;	/* NULL: everything is meant */
};

#define CLI_SELECT_OPTIONS \
	{ CLI_INCLUDE, "include", 0, "GLOB", "only what matches (beside members)" }, \
	{ CLI_EXCLUDE, "exclude", 0, "GLOB", "leave out what matches, and all below it" }, \
	{ CLI_FILES_FROM, "files-from", 0, "FILE", "names from FILE, one a line; -: standard input" }, \
	{ CLI_NULL, "null", 0, "", "names in that FILE end with NUL" }, \
	{ CLI_STRIP, "strip-components", 0, "N", "drop N leading parts of paths" }

/* 1 it was one, 0 it was not, negative: usage error was reported. */
int erofs_cli_select_option(struct cli_parse *p, struct cli_select *s);
/* Was any of them given? Its name, else NULL. */
const char *erofs_cli_select_named(const struct cli_select *s);
/* Make s->select of what was given. 0; -EINVAL usage error, other errors: all reported. */
int erofs_cli_select_make(const struct cli *cli, struct cli_select *s, int usage_status);
/* A line for each pattern that matched nothing. Return: how many. */
unsigned int erofs_cli_select_unmatched(const struct cli *cli, const struct cli_select *s);
void erofs_cli_select_fini(struct cli_select *s);

/* ---- how they are restored (extract_options.c) ---- */

struct cli_extract {
	struct erofs_extract_options options;
	struct cli_list xattr_include, xattr_exclude;
};

#define CLI_EXTRACT_OPTIONS \
	{ CLI_FORCE, "force", 0, "", "allow / as the target" }, \
	{ CLI_OVERWRITE, "overwrite", 0, "", "replace what stands in the way" }, \
	{ CLI_XATTRS, "xattrs", 0, "", "restore extended attributes (default: no)" }, \
	{ CLI_NO_XATTRS, "no-xattrs", 0, "", NULL }, \
	{ CLI_XATTRS_INCLUDE, "xattrs-include", 0, "GLOB", "restore only these" }, \
	CLI_VALUES("user.* security.* trusted.* system.posix_acl_*"), \
	{ CLI_XATTRS_EXCLUDE, "xattrs-exclude", 0, "GLOB", "do not restore these" }, \
	CLI_VALUES("user.* security.* trusted.* system.posix_acl_*"), \
	{ CLI_PRESERVE, "preserve", 0, "", "both of the following" }, \
	{ CLI_NO_PRESERVE, "no-preserve", 0, "", NULL }, \
	{ CLI_PRESERVE_OWNER, "preserve-owner", 0, "", "restore owners (root: default)" }, \
	{ CLI_NO_PRESERVE_OWNER, "no-preserve-owner", 0, "", NULL }, \
	{ CLI_PRESERVE_PERMS, "preserve-perms", 0, "", "exact modes (root: default)" }, \
	{ CLI_NO_PRESERVE_PERMS, "no-preserve-perms", 0, "", NULL }, \
	{ CLI_NO_TIMES, "no-times", 0, "", "do not restore times" }, \
	{ CLI_STRICT, "strict", 0, "", "what is skipped is a failure, a warning is damage" }, \
	{ CLI_FAIL_FAST, "fail-fast", 0, "", "stop the extraction at the first error" }, \
	{ CLI_SPARSE, "sparse", 0, "", "write holes for blocks of zeros" }, \
	{ CLI_MKDIR_PARENTS, "mkdir-parents", 0, "", "make missing parents of DIR" }, \
	{ CLI_SAFE_WRITES, "safe-writes", 0, "", "write every file under a temporary name first" }, \
	{ CLI_FSYNC, "fsync", 0, "", "flush every file" }, \
	{ CLI_SALVAGE, "salvage", 0, "", "keep damaged files, with zeros for what is lost" }

void erofs_cli_extract_init(struct cli_extract *e);
/* 1 it was one, 0 it was not, negative: usage error was reported. */
int erofs_cli_extract_option(struct cli_parse *p, struct cli_extract *e);
/* An option that makes no sense without a target, if one was given, else NULL. */
const char *erofs_cli_extract_needs_target(const struct cli_extract *e);
/* What the library is to be told. */
struct erofs_extract_options erofs_cli_extract_get(const struct cli_extract *e, const char *target);
void erofs_cli_extract_fini(struct cli_extract *e);

#endif
