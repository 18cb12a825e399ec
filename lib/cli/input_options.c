// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Options that say what is read, and the opening of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <erofs/inode.h>

#include "base/escape.h"
#include "cli/cli.h"

int erofs_cli_append(struct cli_list *list, const char *word)
{
	const char **grown = realloc(list->words, (list->count + 2) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[list->count++] = word;
	grown[list->count] = NULL;
	list->words = grown;
	return 1;
}

int erofs_cli_bad_value(const struct cli_parse *p, const char *wanted)
{
	char name[32], shown[400];

	erofs_escape_name(p->arg, strlen(p->arg), shown, sizeof(shown));
	erofs_cli_usage(p->cli, p->usage_status, "%s: '%s' is not %s", erofs_cli_option_name(p->opt, name),
			shown, wanted);
	return -EINVAL;
}

int erofs_cli_input_option(struct cli_parse *p, struct cli_input *in)
{
	switch (p->opt->id) {
	case CLI_PATH:
		in->path = p->arg;
		return 1;
	case CLI_NID:
		in->has_nid = erofs_cli_number(p->arg, &in->nid);
		return in->has_nid ? 1 : erofs_cli_bad_value(p, "a number");
	case CLI_OFFSET:
		in->find = !strcmp(p->arg, "auto");
		if (in->find) {
			in->offset = 0;
			return 1;
		}
		return erofs_cli_size(p->arg, &in->offset) ? 1 : erofs_cli_bad_value(p, "a number of bytes or auto");
	case CLI_DEVICE:
		return erofs_cli_append(&in->devices, p->arg);
	case CLI_NO_SBCRC:
		in->no_sbcrc = true;
		return 1;
	case CLI_SPOOL:
		in->spool = true;
		return 1;
	default:
		return 0;
	}
}

void erofs_cli_input_fini(struct cli_input *in)
{
	free(in->devices.words);
	in->devices.words = NULL;
}

int erofs_cli_open(const struct cli_input *in, bool super_only, struct erofs_diag *diag,
		   struct erofs_image **ret_img)
{
	struct erofs_open_options options = {
		.size = sizeof(options),
		.offset = in->offset,
		.devices = in->devices.words,
		.device_count = in->devices.count,
		.ignore_checksum = in->no_sbcrc,
		.super_only = super_only,
		.spool = in->spool,
		.find = in->find,
	};

	return erofs_open(in->image, &options, diag, ret_img);
}

int erofs_cli_find_target(const struct cli *cli, const struct cli_input *in, struct erofs_image *img,
			  struct erofs_diag *diag, uint64_t *ret_nid)
{
	int err;

	if (!in->path) {
		*ret_nid = in->nid;
		return in->has_nid;
	}
	err = erofs_lookup(img, in->path, diag, ret_nid);
	if (err == -ENOENT || err == -ENOTDIR)
		erofs_cli_say(cli, 'E', "%s: %s", in->path, strerror(-err));
	return err ? err : 1;
}
