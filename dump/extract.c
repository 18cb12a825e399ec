// SPDX-License-Identifier: GPL-2.0-or-later
/* Files out of the image: --extract. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "dump.h"

#define EXTRACT_DEFAULT "erofs-root"

/* Is there anything in the folder? What cannot be opened shows when it is to be used. */
static bool has_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *de;
	bool found = false;

	while (dir && !found && (de = readdir(dir)))
		found = strcmp(de->d_name, ".") && strcmp(de->d_name, "..");
	if (dir)
		closedir(dir);
	return found;
}

static const char *choose_target(const struct cli *cli, const struct dump_options *o)
{
	if (o->target)
		return o->target;
	if (!o->how.options.overwrite && has_entries(EXTRACT_DEFAULT)) {
		erofs_cli_say_plain(cli, 'E', "%s: the folder is not empty (--extract=DIR names another, --overwrite "
				    "uses it)", EXTRACT_DEFAULT);
		return NULL;
	}
	return EXTRACT_DEFAULT;
}

/* What could not be extracted does not end the rest, unless nothing was. */
static int sum_up(int err, const struct erofs_extract_result *result)
{
	if (!err || err == -ENOMEM || (err == -ECANCELED && erofs_cli_caught_signal()))
		return err;
	return err == -EUCLEAN || result->directories || result->files || result->symlinks ? -EUCLEAN : -EIO;
}

int dump_extract(struct cli *cli, const struct dump_options *o, struct erofs_image *img,
		 struct erofs_engine *eng, struct erofs_diag *diag)
{
	const char *target = choose_target(cli, o);
	struct erofs_extract_result result = { 0 };
	struct erofs_extract_options options;
	struct cli_work work = { .verb = "extracting", .eng = eng };
	struct cli_progress *progress;
	int found, err, more = 0;

	if (!target)
		return -EIO;
	options = erofs_cli_extract_get(&o->how, target);
	options.select = o->select.select;
	options.strip_components = o->select.strip_components;
	found = erofs_cli_find_target(cli, &o->input, img, diag, &options.nid);
	if (found < 0)
		return found == -ENOENT || found == -ENOTDIR ? -EUCLEAN : found;
	options.has_nid = found;
	erofs_cli_catch_signals(eng);
	dump_count_total(o, img, found, &work);
	progress = erofs_cli_progress_start(cli, &work);
	err = sum_up(erofs_extract(img, eng, &options, diag, &result), &result);
	if (o->android_dir && (!err || err == -EUCLEAN))
		more = dump_write_android(o, img, eng, &options, diag);
	if (more && (!err || more != -EUCLEAN))
		err = more;
	erofs_cli_progress_stop(progress);
	erofs_cli_catch_signals(NULL);
	if (err == -ECANCELED && erofs_cli_caught_signal())
		return err;
	if (erofs_cli_select_unmatched(cli, &o->select) && !err)
		err = -EUCLEAN;
	return err;
}
