// SPDX-License-Identifier: GPL-2.0-or-later
/* mkfs.erofs: make an EROFS image of a directory or an archive. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

struct run {
	struct cli *cli;
	struct mkfs_options *o;
	struct erofs_engine *eng;
	struct erofs_diag *diag;
	struct cli_report report;
	struct cli_differences differences;
	struct erofs_write_result result;
	bool text;			/* for people, on standard output */
	bool begun, built;
	uint64_t started_ns;
	uint8_t digest[32];
};

static int make_image(struct run *r)
{
	struct cli_work work = { .verb = "writing", .eng = r->eng, .has_totals = true };
	struct erofs_write_options *w = &r->o->write;
	struct cli_progress *progress;
	int err;

	r->begun = true;
	progress = erofs_cli_progress_start(r->cli, &work);
	err = erofs_differences_begin(&r->differences, r->cli, progress && isatty(STDERR_FILENO));
	w->difference = erofs_differences_take;
	w->difference_priv = &r->differences;
	if (!err)
		err = erofs_write(w, r->eng, r->diag, &r->result);
	erofs_cli_progress_stop(progress);
	return err;
}

/* With the manifest and the digest of it. */
static int make_all(struct run *r)
{
	struct erofs_mtree_options mtree = { .size = sizeof(mtree) };
	const char *manifest = r->o->manifest;
	struct cli_output out = { .fd = -1 };
	int err;

	if (manifest && erofs_cli_output_open(r->cli, manifest, &out))
		return -EIO;
	mtree.fd = out.fd;
	r->o->write.manifest = manifest ? &mtree : NULL;
	err = make_image(r);
	r->built = !err;
	if (manifest && erofs_cli_output_close(r->cli, &out, !err) && !err)
		err = -EIO;
	/* the image is there, whatever comes of this */
	if (!err && r->o->print_digest)
		err = erofs_file_digest(r->o->write.output, r->eng, r->diag, r->digest);
	return err;
}

static void tell(struct run *r, int err)
{
	tell_verified(r->cli, r->o, &r->result);
	if (err && !r->built)
		fprintf(stderr, "<E> erofs: \tCould not format the device : [Error %d] %s\n", -err,
			strerror(-err));
	if (r->built && r->text)
		print_result(&r->result);
	if (!err && r->o->print_digest)
		erofs_cli_print_hex(r->digest, sizeof(r->digest));
}

static int finish(struct run *r, int status)
{
	struct mkfs_facts facts = { .o = r->o, .status = status, .wall_ns = erofs_now_ns() - r->started_ns,
				    .built = r->built, .eng = r->eng, .result = r->begun ? &r->result : NULL,
				    .differences = &r->differences };

	if (r->o->engine.stats && r->eng)
		erofs_cli_print_stats(r->cli, r->eng, &r->o->engine, facts.wall_ns);
	if (r->report.file && mkfs_write_report(&r->report, r->diag, &facts))
		status = 1;
	if (!r->report.file && r->diag)
		erofs_cli_flush(r->cli, r->diag);
	return status;
}

static int build(struct run *r)
{
	int err, status;

	if (erofs_diag_new(erofs_cli_finding, r->cli, &r->diag) ||
	    erofs_cli_engine_new(r->cli, &r->o->engine, 1, r->diag, &r->eng))
		return finish(r, 1);
	erofs_cli_catch_signals(r->eng);
	/* a signal has to be seen while nothing comes through a pipe */
	if (r->o->manifest || (r->o->write.source && !strcmp(r->o->write.source, "-")))
		erofs_cli_interrupt_writes();
	if (r->text)
		printf("mkfs.erofs %s\n", EROFS_UTILS_COMPAT);
	/* the manifest and the line of progress come behind it */
	fflush(stdout);
	err = make_all(r);
	status = finish(r, err ? 1 : 0);
	tell(r, err);
	erofs_cli_catch_signals(NULL);
	return status;
}

static int run(struct cli *cli, struct mkfs_options *o)
{
	struct run r = { .cli = cli, .o = o, .text = !o->quiet && !erofs_report_is_stdout(&o->json),
			 .started_ns = erofs_now_ns() };
	int status;

	if (mkfs_open_report(&r.report, cli, o))
		return 1;
	status = build(&r);
	if (erofs_cli_close_stdout(cli))
		status = 1;
	erofs_report_close(&r.report);
	erofs_differences_end(&r.differences);
	erofs_engine_free(r.eng);
	erofs_diag_free(r.diag);
	if (erofs_cli_caught_signal())
		erofs_cli_die_by(erofs_cli_caught_signal());
	return status;
}

int main(int argc, char **argv)
{
	struct mkfs_options o;
	struct cli cli;
	int status;

	erofs_cli_init(&cli, "mkfs.erofs");
	status = mkfs_parse_options(argc, argv, &cli, &o);
	if (!status && o.help)
		status = mkfs_print_help(&cli, o.help_all);
	else if (!status && o.version)
		status = print_version(&cli);
	else if (!status)
		status = run(&cli, &o);
	mkfs_free_options(&o);
	return status;
}
