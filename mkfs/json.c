// SPDX-License-Identifier: GPL-2.0-or-later
/* The report of --json (cli.md 9): what was built, of what, and what was found. */
#include <stdlib.h>

#include "mkfs.h"

int mkfs_open_report(struct cli_report *r, struct cli *cli, const struct mkfs_options *o)
{
	struct cli_input files = { .image = o->write.output };
	const char *const *source = o->write.sources;
	int err = 0;

	/* all that is read or made, so that the report falls on none of it */
	for (; o->json.wanted && !err && source && *source; source++)
		err = erofs_cli_append(&files.devices, *source) < 0;
	if (o->json.wanted && !err && !o->write.sources)
		err = erofs_cli_append(&files.devices, o->write.source) < 0;
	if (o->json.wanted && !err && o->write.blob)
		err = erofs_cli_append(&files.devices, o->write.blob) < 0;
	if (!err)
		err = erofs_report_open(r, cli, &o->json, &files);
	free(files.devices.words);
	return err;
}

static bool is_damaged(const struct mkfs_facts *f, struct erofs_diag *diag)
{
	return (diag && erofs_diag_count(diag, EROFS_SEV_CORRUPT)) || (f->result && f->result->verified.differences);
}

/* As all readers find it. */
static void put_super(struct cli_report *r, const struct mkfs_facts *f)
{
	struct erofs_open_options options = { .size = sizeof(options), .offset = f->o->write.offset,
					      .super_only = 1 };
	struct erofs_super_info info;
	struct erofs_image *img;

	if (erofs_open(f->o->write.output, &options, NULL, &img))
		return;
	erofs_image_super(img, &info);
	erofs_report_super(r, &info);
	erofs_close(img);
}

static void put_build(struct cli_json *j, const struct erofs_write_result *b)
{
	erofs_json_object(j, "build");
	erofs_json_unsigned(j, "inodes", b->inodes);
	erofs_json_unsigned(j, "files", b->files);
	erofs_json_unsigned(j, "directories", b->directories);
	erofs_json_unsigned(j, "symlinks", b->symlinks);
	erofs_json_unsigned(j, "hard_links", b->hard_links);
	erofs_json_unsigned(j, "specials", b->specials);
	erofs_json_unsigned(j, "bytes", b->bytes);
	erofs_json_unsigned(j, "image_bytes", b->image_bytes);
	erofs_json_unsigned(j, "meta_blocks", b->meta_blocks);
	erofs_json_unsigned(j, "deduplicated_bytes", b->deduplicated);
	erofs_json_end(j);
}

int mkfs_write_report(struct cli_report *r, struct erofs_diag *diag, const struct mkfs_facts *f)
{
	int number = erofs_cli_caught_signal();
	struct cli_json *j = &r->json;

	/* what a shell sees of a process that a signal ended */
	erofs_report_begin(r, number, is_damaged(f, diag), number ? 128 + number : f->status);
	if (f->built) {
		put_super(r, f);
		put_build(j, f->result);
	}
	if (f->result && f->o->write.verify)
		erofs_report_verify(r, f->differences, &f->result->verified);
	erofs_report_findings(r, diag);
	erofs_cli_json_times(j, f->wall_ns);
	if (f->eng)
		erofs_cli_json_engine(j, f->eng, &f->o->engine, f->wall_ns);
	return erofs_report_end(r);
}
