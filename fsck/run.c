// SPDX-License-Identifier: GPL-2.0-or-later
/* One run of fsck.erofs: open, check, extract, tell. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fsck.h"

struct run {
	struct cli *cli;
	const struct fsck_options *o;
	struct erofs_diag *diag;
	struct erofs_engine *eng;
	struct erofs_image *img;
	bool has_nid;
	uint64_t nid;
	struct erofs_check_result checked;
	struct erofs_extract_result extracted;
	struct fsck_verify verify;
	bool checking, extracting, verifying;	/* it began */
	int err;
	uint64_t started_ns;
	struct cli_report report;
	int report_err;
};

static bool has_too_many_devices(const struct run *r)
{
	struct erofs_open_options options = { .size = sizeof(options), .offset = r->o->input.offset,
					      .ignore_checksum = 1, .super_only = 1 };
	struct erofs_super_info info;
	struct erofs_image *img;

	if (!r->o->input.devices.count || erofs_open(r->o->input.image, &options, NULL, &img))
		return false;
	erofs_image_super(img, &info);
	erofs_close(img);
	return r->o->input.devices.count > info.extra_devices;
}

static bool wants_data(const struct run *r)
{
	/* whoever compares and names workers does not ask for another pass */
	return r->o->target || r->o->decode || (r->o->engine.named && !r->o->verify);
}

static int check_image(struct run *r)
{
	struct erofs_check_options options = {
		.size = sizeof(options),
		.data = !r->o->target && wants_data(r),
		.digests = r->o->digests,
		.has_nid = r->has_nid,
		.nid = r->nid,
	};

	r->checking = true;
	return erofs_check(r->img, r->eng, &options, r->diag, &r->checked);
}

static int extract_image(struct run *r)
{
	struct erofs_extract_options options = erofs_cli_extract_get(&r->o->extract, r->o->target);

	options.has_nid = r->has_nid;
	options.nid = r->nid;
	r->extracting = true;
	return erofs_extract(r->img, r->eng, &options, r->diag, &r->extracted);
}

static void do_it(struct run *r)
{
	struct cli_work work = { .verb = r->o->target ? "extracting" : "checking", .eng = r->eng,
				 .pass = r->o->target ? 2 : 1 };
	struct cli_progress *progress;
	struct erofs_super_info info;
	int err, found;

	found = erofs_cli_find_target(r->cli, &r->o->input, r->img, r->diag, &r->nid);
	r->has_nid = found > 0;
	r->err = found < 0 ? found : 0;
	if (r->err)
		return;
	erofs_image_super(r->img, &info);
	work.total_files = r->has_nid ? 0 : info.inodes;
	progress = erofs_cli_progress_start(r->cli, &work);
	r->err = check_image(r);
	/* damage does not keep what is sound from being extracted */
	if (r->o->target && r->err != -ECANCELED) {
		err = extract_image(r);
		if (!r->err || err == -ECANCELED)
			r->err = err;
	}
	if (r->o->verify && r->err != -ECANCELED) {
		r->verifying = true;
		err = erofs_differences_begin(&r->verify.differences, r->cli, progress && isatty(STDERR_FILENO));
		if (!err)
			err = fsck_verify_image(&r->verify, r->o, r->img, r->eng, r->diag,
						r->has_nid ? &r->nid : NULL);
		if (!r->err || err == -ECANCELED)
			r->err = err;
	}
	erofs_cli_progress_stop(progress);
}

static void tell_ratio(const struct run *r)
{
	double ratio = r->checked.decoded_bytes ?
		       100.0 * (double)r->checked.stored_bytes / (double)r->checked.decoded_bytes : 100.0;

	if (r->o->ratio)
		erofs_cli_say_plain(r->cli, 'I', "Compression ratio: %.2f(%%)", ratio);
}

static int get_status(const struct run *r)
{
	int status = 0;

	if (erofs_diag_count(r->diag, EROFS_SEV_CORRUPT) || r->verify.result.differences ||
	    (r->o->extract.options.strict && erofs_diag_count(r->diag, EROFS_SEV_WARNING) > r->extracted.skipped))
		status |= CLI_FSCK_DAMAGE;
	if (erofs_diag_count(r->diag, EROFS_SEV_FAIL))
		status |= CLI_FSCK_FAILED;
	if (r->err == -ECANCELED || (r->eng && erofs_engine_is_cancelled(r->eng)))
		status |= CLI_FSCK_CANCELLED;
	if (r->err && !status)
		status = r->err == -EUCLEAN ? CLI_FSCK_DAMAGE : CLI_FSCK_FAILED;
	return status;
}

static void tell_result(const struct run *r, int status)
{
	const struct cli *cli = r->cli;

	if (status & CLI_FSCK_CANCELLED)
		erofs_cli_say(cli, 'E', "cancelled by %s after %" PRIu64 " inodes%s",
			      erofs_cli_signal_name(erofs_cli_caught_signal()), r->checked.inodes,
			      r->extracting ? ", the extracted tree is not complete" : "");
	if (r->extracting && status)
		erofs_cli_note(cli, 'E', "Failed to extract filesystem (%" PRIu64 " entries)",
			      r->extracted.failed);
	if (r->extracting && r->extracted.damaged)
		erofs_cli_note(cli, 'E', "Files salvaged with holes: %" PRIu64, r->extracted.damaged);
	if (r->verify.result.differences)
		erofs_cli_note(cli, 'E', "%" PRIu64 " difference%s from %s", r->verify.result.differences,
			       r->verify.result.differences == 1 ? "" : "s", r->o->verify);
	if (status & CLI_FSCK_DAMAGE &&
	    (erofs_diag_count(r->diag, EROFS_SEV_CORRUPT) || !r->verify.result.differences))
		erofs_cli_note(cli, 'E', "Found some filesystem corruption");
	if (status)
		return;
	if (r->extracting)
		erofs_cli_note(cli, 'I', "Extracted filesystem successfully");
	if (r->verifying)
		erofs_cli_note(cli, 'I', "The same as %s: %" PRIu64 " names, %" PRIu64 " bytes", r->o->verify,
			       r->verify.result.names, r->verify.result.bytes);
	erofs_cli_note(cli, 'I', "No errors found");
	if (!wants_data(r) && !r->o->verify)
		erofs_cli_note(cli, 'I', "Data was not decoded: --extract does that");
}

/* Was all data decoded that there is? */
static bool is_data_checked(const struct run *r)
{
	unsigned int what = r->o->verify_what;

	if (wants_data(r))
		return r->checking && (!r->err || r->err == -EUCLEAN);
	return r->verifying && r->o->verify_kind != EROFS_COMPARE_MTREE && (!what || what & EROFS_COMPARE_DATA) &&
	       r->verify.result.complete && !r->verify.result.differences;
}

/* Status of a usage error that shows only once the image is open, 0: none. */
static int late_usage(const struct run *r)
{
	if (r->err == -ENOTUNIQ) {
		erofs_cli_flush(r->cli, r->diag);
		return CLI_FSCK_USAGE;
	}
	if (r->err != -EINVAL || !has_too_many_devices(r))
		return 0;
	return erofs_cli_usage(r->cli, CLI_FSCK_USAGE, "more --device=%s than the image has",
			       r->o->input.devices.words[r->o->input.devices.count - 1]);
}

/* With or without a report, the findings are told. */
static void tell_findings(struct run *r, struct erofs_diag *diag, int status)
{
	struct fsck_facts facts = {
		.status = status,
		.wall_ns = erofs_now_ns() - r->started_ns,
		.data_checked = is_data_checked(r),
		.img = r->img,
		.eng = r->eng,
		.engine = &r->o->engine,
		.checked = r->checking ? &r->checked : NULL,
		.extracted = r->extracting ? &r->extracted : NULL,
		.verified = r->verifying ? &r->verify : NULL,
	};

	if (r->report.file)
		r->report_err = fsck_write_report(&r->report, diag, &facts);
	else if (diag)
		erofs_cli_flush(r->cli, diag);
}

static int finish(struct run *r)
{
	uint64_t start = r->has_nid ? r->nid : 0;
	struct erofs_super_info info;
	int status;

	if (r->img) {
		erofs_image_super(r->img, &info);
		(void)erofs_name_findings(r->img, r->eng, r->diag, r->has_nid ? start : info.root_nid);
	}
	status = get_status(r);
	tell_findings(r, r->diag, status);
	tell_ratio(r);
	tell_result(r, status);
	return status;
}

static int run_all(struct run *r)
{
	int status;

	if (erofs_diag_new(erofs_cli_finding, r->cli, &r->diag))
		return CLI_FSCK_FAILED;
	status = erofs_cli_engine_new(r->cli, &r->o->engine, CLI_FSCK_USAGE, r->diag, &r->eng);
	if (status) {
		status = status < 0 ? CLI_FSCK_FAILED : status;
		tell_findings(r, NULL, status);
		return status;
	}
	erofs_cli_catch_signals(r->eng);
	r->err = erofs_cli_open(&r->o->input, false, r->diag, &r->img);
	status = late_usage(r);
	if (status) {
		tell_findings(r, NULL, status);
		return status;
	}
	if (!r->err)
		do_it(r);
	return finish(r);
}

int fsck_run(struct cli *cli, const struct fsck_options *o)
{
	struct run r = { .cli = cli, .o = o, .started_ns = erofs_now_ns() };
	int status;

	cli->image = o->input.image;
	if (erofs_report_open(&r.report, cli, &o->json, &o->input))
		return CLI_FSCK_FAILED;
	status = run_all(&r);
	if (o->engine.stats && r.eng)
		erofs_cli_print_stats(cli, r.eng, &o->engine, erofs_now_ns() - r.started_ns);
	erofs_cli_catch_signals(NULL);
	erofs_report_close(&r.report);
	erofs_differences_end(&r.verify.differences);
	if (r.report_err || (erofs_report_is_stdout(&o->json) && erofs_cli_close_stdout(cli)))
		status |= CLI_FSCK_FAILED;
	erofs_close(r.img);
	erofs_engine_free(r.eng);
	erofs_diag_free(r.diag);
	return status;
}
