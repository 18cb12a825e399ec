// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree as a stream: --to-tar, --to-mtree, --digest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"

/* The last part of the path that names the start, for a start that is no directory. */
static const char *start_name(const struct dump_options *o)
{
	const char *slash = o->input.path ? strrchr(o->input.path, '/') : NULL;

	return slash ? slash + 1 : o->input.path;
}

/* Names of files are bytes; none of them may drive a terminal (R18). Whole lines come. */
static int write_escaped(void *arg, const void *data, size_t len)
{
	const char *at = data, *end = at + len;

	(void)arg;
	for (; at < end; at++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);

		errno = 0;
		dump_print_name(at, n);
		if (putchar('\n') == EOF)
			return errno ? -errno : -EIO;
		at += n;
	}
	return fflush(stdout) ? -errno : 0;
}

static int write_tar(const struct dump_options *o, struct erofs_image *img, struct erofs_engine *eng,
		     const uint64_t *nid, int fd, struct erofs_diag *diag)
{
	struct erofs_tar_options options = { .size = sizeof(options), .name = start_name(o), .fd = fd,
					     .select = o->select.select,
					     .strip_components = o->select.strip_components };

	options.has_nid = nid != NULL;
	options.nid = nid ? *nid : 0;
	return erofs_to_tar(img, eng, &options, diag, NULL);
}

static int write_mtree(const struct dump_options *o, struct erofs_image *img, struct erofs_engine *eng,
		       const uint64_t *nid, int fd, struct erofs_diag *diag)
{
	struct erofs_mtree_options options = { .size = sizeof(options), .name = start_name(o), .fd = fd,
					       .select = o->select.select, .xattrs = o->mtree_xattrs };

	options.has_nid = nid != NULL;
	options.nid = nid ? *nid : 0;
	return erofs_to_mtree(img, eng, &options, diag, NULL);
}

static int write_digests(const struct dump_options *o, struct erofs_image *img, struct erofs_engine *eng,
			 const uint64_t *nid, int fd, struct erofs_diag *diag)
{
	const struct dump_digest *d = &o->digest;
	struct erofs_digest_options options = { .size = sizeof(options), .name = start_name(o), .fd = fd,
						.select = o->select.select, .algorithm = d->algorithm,
						.fsverity_block = d->block, .salt = d->salt,
						.salt_size = d->salt_size };

	options.has_nid = nid != NULL;
	options.nid = nid ? *nid : 0;
	if (isatty(fd))
		options.write = write_escaped;
	return erofs_digest_files(img, eng, &options, diag, NULL);
}

int dump_write_stream(struct cli *cli, const struct dump_options *o, struct erofs_image *img,
		      struct erofs_engine *eng, struct erofs_diag *diag)
{
	const char *file = o->to_tar ? o->tar_file : o->to_mtree ? o->mtree_file : NULL;
	struct cli_work work = { .verb = o->to_tar || o->to_mtree ? "writing" : "digesting", .eng = eng };
	struct cli_progress *progress;
	struct cli_output out;
	const uint64_t *start;
	int found, err, closed;
	uint64_t nid;

	found = erofs_cli_find_target(cli, &o->input, img, diag, &nid);
	if (found < 0)
		return found == -ENOENT || found == -ENOTDIR ? -EUCLEAN : found;
	start = found ? &nid : NULL;
	if (erofs_cli_output_open(cli, file, &out))
		return -EIO;
	erofs_cli_catch_signals(eng);
	erofs_cli_interrupt_writes();
	work.to_stdout = out.fd == STDOUT_FILENO;
	dump_count_total(o, img, found, &work);
	progress = erofs_cli_progress_start(cli, &work);
	err = o->to_tar ? write_tar(o, img, eng, start, out.fd, diag) :
	      o->to_mtree ? write_mtree(o, img, eng, start, out.fd, diag) :
	      write_digests(o, img, eng, start, out.fd, diag);
	erofs_cli_progress_stop(progress);
	erofs_cli_catch_signals(NULL);
	closed = erofs_cli_output_close(cli, &out, !err || err == -EUCLEAN);
	if ((!err || err == -EUCLEAN) && erofs_cli_select_unmatched(cli, &o->select))
		err = -EUCLEAN;
	/* damage means that the rest is there; all else that the stream is not */
	return err == -EUCLEAN && !closed ? err : err || closed ? -EIO : 0;
}
