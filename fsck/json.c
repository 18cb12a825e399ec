// SPDX-License-Identifier: GPL-2.0-or-later
/* The report of --json (cli.md 9): what was checked or extracted, and what was found. */
#include "fsck.h"

static void put_check(struct cli_json *j, const struct erofs_check_result *c)
{
	erofs_json_object(j, "check");
	erofs_json_unsigned(j, "inodes", c->inodes);
	erofs_json_unsigned(j, "directories", c->directories);
	erofs_json_unsigned(j, "files", c->files);
	erofs_json_unsigned(j, "stored_bytes", c->stored_bytes);
	erofs_json_unsigned(j, "decoded_bytes", c->decoded_bytes);
	erofs_json_unsigned(j, "pclusters", c->pclusters);
	erofs_json_end(j);
}

static void put_extract(struct cli_json *j, const struct erofs_extract_result *x)
{
	erofs_json_object(j, "extract");
	erofs_json_unsigned(j, "files", x->files);
	erofs_json_unsigned(j, "directories", x->directories);
	erofs_json_unsigned(j, "symlinks", x->symlinks);
	erofs_json_unsigned(j, "hard_links", x->hard_links);
	erofs_json_unsigned(j, "specials", x->specials);
	erofs_json_unsigned(j, "bytes", x->bytes);
	erofs_json_unsigned(j, "failed", x->failed);
	erofs_json_end(j);
}

int fsck_write_report(struct cli_report *r, struct erofs_diag *diag, const struct fsck_facts *f)
{
	struct erofs_super_info info;
	struct cli_json *j = &r->json;

	erofs_report_begin(r, f->status & CLI_FSCK_CANCELLED, f->status & CLI_FSCK_DAMAGE, f->status);
	if (f->img) {
		erofs_image_super(f->img, &info);
		erofs_report_super(r, &info);
	}
	erofs_json_bool(j, "data_checked", f->data_checked);
	if (f->checked)
		put_check(j, f->checked);
	if (f->extracted)
		put_extract(j, f->extracted);
	if (f->verified)
		erofs_report_verify(r, &f->verified->differences, &f->verified->result);
	erofs_report_findings(r, diag);
	if (f->extracted)
		erofs_json_unsigned(j, "skipped", f->extracted->skipped);
	erofs_cli_json_times(j, f->wall_ns);
	if (f->eng)
		erofs_cli_json_engine(j, f->eng, f->engine, f->wall_ns);
	return erofs_report_end(r);
}
