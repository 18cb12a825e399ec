// SPDX-License-Identifier: GPL-2.0-or-later
/* mkfs.erofs: make an EROFS image of a directory or an archive. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mkfs.h"

static int print_version(const struct cli *cli)
{
	printf("mkfs.erofs (compatible with erofs-utils) %s\navailable compressors: %s\nerofs-tools %s\n",
	       EROFS_UTILS_COMPAT, erofs_compressors(), erofs_version());
	return erofs_cli_close_stdout(cli) ? 1 : 0;
}

static void print_result(const struct erofs_write_result *r)
{
	const uint8_t *u = r->uuid;

	printf("Build completed.\n------\nFilesystem UUID: %02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	       "%02x%02x%02x%02x%02x%02x\n", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
	       u[10], u[11], u[12], u[13], u[14], u[15]);
	printf("Filesystem total blocks: %" PRIu64 " (of %" PRIu32 "-byte blocks)\n", r->blocks, r->block_size);
	printf("Filesystem total inodes: %" PRIu64 "\nFilesystem total metadata blocks: %" PRIu64 "\n"
	       "Filesystem total deduplicated bytes (of source files): %" PRIu64 "\n",
	       r->inodes, r->meta_blocks, r->deduplicated);
}

static void take_difference(void *priv, const struct erofs_difference *d)
{
	erofs_cli_print_difference(priv, d);
}

static void tell_verified(const struct cli *cli, const struct mkfs_options *o, const struct erofs_write_result *r)
{
	const struct erofs_compare_result *v = &r->verified;
	const char *source = o->write.source_type == EROFS_WRITE_IMAGES ? "the images" : o->write.source;

	if (v->differences)
		erofs_cli_note(cli, 'E', "%" PRIu64 " difference%s from %s", v->differences,
			       v->differences == 1 ? "" : "s", source);
	else if (v->complete)
		erofs_cli_note(cli, 'I', "The same as %s: %" PRIu64 " names, %" PRIu64 " bytes", source, v->names,
			       v->bytes);
}

/* The image is there, whatever comes of this. */
static int print_digest(struct cli *cli, const struct mkfs_options *o, struct erofs_engine *eng,
			struct erofs_diag *diag)
{
	uint8_t digest[32];
	int err = erofs_file_digest(o->write.output, eng, diag, digest);

	erofs_cli_flush(cli, diag);
	if (!err)
		erofs_cli_print_hex(digest, sizeof(digest));
	return err;
}

static int build(struct cli *cli, struct mkfs_options *o, struct erofs_engine *eng,
		 struct erofs_diag *diag)
{
	struct cli_work work = { .verb = "writing", .eng = eng };
	struct erofs_mtree_options mtree = { .size = sizeof(mtree) };
	uint64_t started_ns = erofs_now_ns();
	struct erofs_write_result result;
	struct cli_output out = { .fd = -1 };
	struct cli_progress *progress;
	int err;

	if (o->manifest && erofs_cli_output_open(cli, o->manifest, &out))
		return 1;
	mtree.fd = out.fd;
	o->write.manifest = o->manifest ? &mtree : NULL;
	if (!o->quiet)
		printf("mkfs.erofs %s\n", EROFS_UTILS_COMPAT);
	/* the manifest and the line of progress come behind it */
	fflush(stdout);
	o->write.difference = take_difference;
	o->write.difference_priv = cli;
	progress = erofs_cli_progress_start(cli, &work);
	err = erofs_write(&o->write, eng, diag, &result);
	erofs_cli_progress_stop(progress);
	if (o->engine.stats)
		erofs_cli_print_stats(cli, eng, &o->engine, erofs_now_ns() - started_ns);
	erofs_cli_flush(cli, diag);
	tell_verified(cli, o, &result);
	if (o->manifest && erofs_cli_output_close(cli, &out, !err) && !err)
		return 1;
	if (err) {
		fprintf(stderr, "<E> erofs: \tCould not format the device : [Error %d] %s\n", -err,
			strerror(-err));
		return 1;
	}
	if (!o->quiet)
		print_result(&result);
	err = o->print_digest ? print_digest(cli, o, eng, diag) : 0;
	return erofs_cli_close_stdout(cli) || err ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct erofs_engine *eng = NULL;
	struct erofs_diag *diag = NULL;
	struct mkfs_options o;
	struct cli cli;
	int status;

	erofs_cli_init(&cli, "mkfs.erofs");
	status = mkfs_parse_options(argc, argv, &cli, &o);
	if (!status && o.help) {
		status = mkfs_print_help(&cli, o.help_all);
	} else if (!status && o.version) {
		status = print_version(&cli);
	} else if (!status) {
		status = 1;
		if (!erofs_diag_new(erofs_cli_finding, &cli, &diag) &&
		    !erofs_cli_engine_new(&cli, &o.engine, 1, diag, &eng)) {
			erofs_cli_catch_signals(eng);
			/* a signal has to be seen while nothing comes through a pipe */
			if (o.manifest || (o.write.source && !strcmp(o.write.source, "-")))
				erofs_cli_interrupt_writes();
			status = build(&cli, &o, eng, diag);
			erofs_cli_catch_signals(NULL);
		}
		erofs_engine_free(eng);
		erofs_diag_free(diag);
		if (erofs_cli_caught_signal())
			erofs_cli_die_by(erofs_cli_caught_signal());
	}
	mkfs_free_options(&o);
	return status;
}
