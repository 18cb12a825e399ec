// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree as a stream: --to-tar. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"

/* The last part of the path that names the start, for a start that is no directory. */
static const char *start_name(const struct dump_options *o)
{
	const char *slash = o->input.path ? strrchr(o->input.path, '/') : NULL;

	return slash ? slash + 1 : o->input.path;
}

int dump_write_tar(struct cli *cli, const struct dump_options *o, struct erofs_image *img,
		   struct erofs_engine *eng, struct erofs_diag *diag)
{
	struct erofs_tar_options options = { .size = sizeof(options), .name = start_name(o),
					     .select = o->select.select,
					     .strip_components = o->select.strip_components };
	struct cli_work work = { .verb = "writing", .eng = eng };
	struct cli_progress *progress;
	struct cli_output out;
	int found, err, closed;

	found = erofs_cli_find_target(cli, &o->input, img, diag, &options.nid);
	if (found < 0)
		return found == -ENOENT || found == -ENOTDIR ? -EUCLEAN : found;
	options.has_nid = found;
	if (erofs_cli_output_open(cli, o->tar_file, &out))
		return -EIO;
	options.fd = out.fd;
	erofs_cli_catch_signals(eng);
	erofs_cli_interrupt_writes();
	work.to_stdout = out.fd == STDOUT_FILENO;
	dump_count_total(o, img, found, &work);
	progress = erofs_cli_progress_start(cli, &work);
	err = erofs_to_tar(img, eng, &options, diag, NULL);
	erofs_cli_progress_stop(progress);
	erofs_cli_catch_signals(NULL);
	closed = erofs_cli_output_close(cli, &out, !err || err == -EUCLEAN);
	if ((!err || err == -EUCLEAN) && erofs_cli_select_unmatched(cli, &o->select))
		err = -EUCLEAN;
	/* damage means that the rest is there; all else that the archive is not */
	return err == -EUCLEAN && !closed ? err : err || closed ? -EIO : 0;
}
