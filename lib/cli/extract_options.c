// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Options that say how an extracted tree is restored. */
#include <stdlib.h>

#include "cli/tree_options.h"

void erofs_cli_extract_init(struct cli_extract *e)
{
	*e = (struct cli_extract){ .options = { .size = sizeof(e->options), .preserve_owner = -1,
						.preserve_perms = -1 } };
}

/* 1 taken, 0 not one of these, negative: reported. */
static int take_restore(const struct cli_parse *p, struct cli_extract *e)
{
	struct erofs_extract_options *x = &e->options;

	switch (p->opt->id) {
	case CLI_XATTRS: x->xattrs = 1; return 1;
	case CLI_NO_XATTRS: x->xattrs = 0; return 1;
	case CLI_XATTRS_INCLUDE: return erofs_cli_append(&e->xattr_include, p->arg);
	case CLI_XATTRS_EXCLUDE: return erofs_cli_append(&e->xattr_exclude, p->arg);
	case CLI_PRESERVE: x->preserve_owner = x->preserve_perms = 1; return 1;
	case CLI_PRESERVE_OWNER: x->preserve_owner = 1; return 1;
	case CLI_PRESERVE_PERMS: x->preserve_perms = 1; return 1;
	case CLI_NO_PRESERVE: x->preserve_owner = x->preserve_perms = 0; return 1;
	case CLI_NO_PRESERVE_OWNER: x->preserve_owner = 0; return 1;
	case CLI_NO_PRESERVE_PERMS: x->preserve_perms = 0; return 1;
	case CLI_NO_TIMES: x->no_times = 1; return 1;
	default: return 0;
	}
}

int erofs_cli_extract_option(struct cli_parse *p, struct cli_extract *e)
{
	struct erofs_extract_options *x = &e->options;

	switch (p->opt->id) {
	case CLI_FORCE: x->force = 1; return 1;
	case CLI_OVERWRITE: x->overwrite = 1; return 1;
	case CLI_STRICT: x->strict = 1; return 1;
	case CLI_FAIL_FAST: x->fail_fast = 1; return 1;
	case CLI_SALVAGE: x->salvage = 1; return 1;
	case CLI_SPARSE: x->sparse = 1; return 1;
	case CLI_MKDIR_PARENTS: x->mkdir_parents = 1; return 1;
	case CLI_SAFE_WRITES: x->safe_writes = 1; return 1;
	case CLI_FSYNC: x->fsync = 1; return 1;
	default: return take_restore(p, e);
	}
}

const char *erofs_cli_extract_needs_target(const struct cli_extract *e)
{
	return e->options.force ? "--force" : e->options.overwrite ? "--overwrite" :
	       e->options.salvage ? "--salvage" : NULL;
}

struct erofs_extract_options erofs_cli_extract_get(const struct cli_extract *e, const char *target)
{
	struct erofs_extract_options x = e->options;

	x.target = target;
	x.xattr_include = e->xattr_include.words;
	x.xattr_exclude = e->xattr_exclude.words;
	return x;
}

void erofs_cli_extract_fini(struct cli_extract *e)
{
	free(e->xattr_include.words);
	free(e->xattr_exclude.words);
}
