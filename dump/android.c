// SPDX-License-Identifier: GPL-2.0-or-later
/* Beside an extracted tree: --android-config. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

/* The image's file name up to its first dot; NULL: no memory. */
static char *name_of_image(const char *image)
{
	const char *slash = strrchr(image, '/'), *last = slash ? slash + 1 : image;

	return strndup(last, strcspn(last, "."));
}

int dump_choose_mount(const struct cli *cli, struct dump_options *o, int usage_status)
{
	const char *named = o->mount_point;
	bool piped = !strcmp(o->input.image, "-");

	o->mount = named ? strdup(named) : name_of_image(piped ? "" : o->input.image);
	if (!o->mount)
		return usage_status;
	if (!erofs_android_check_mount(o->mount))
		return 0;
	if (named)
		return erofs_cli_usage(cli, usage_status, "--mount-point=%s: no mount point", named);
	return erofs_cli_usage(cli, usage_status, "--android-config: where is %s mounted? (name it with --mount-point)",
			       piped ? "standard input" : o->input.image);
}

int dump_write_android(const struct dump_options *o, struct erofs_image *img, struct erofs_engine *eng,
		       const struct erofs_extract_options *tree, struct erofs_diag *diag)
{
	struct erofs_android_options options = {
		.size = sizeof(options), .dir = o->android_dir, .mount_point = o->mount,
		.has_nid = tree->has_nid, .nid = tree->nid, .select = tree->select,
		.strip_components = tree->strip_components, .mkdir_parents = tree->mkdir_parents,
		.fsync = tree->fsync,
	};
	int err = erofs_android_config(img, eng, &options, diag, NULL);

	/* in part is one thing, not at all another */
	return !err || err == -EUCLEAN || err == -ECANCELED || err == -ENOMEM ? err : -EIO;
}
