// SPDX-License-Identifier: GPL-2.0-or-later
/* One run of dump.erofs: open what is needed, print what was asked for. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dump.h"

struct run {
	struct cli *cli;
	const struct dump_options *o;
	struct erofs_diag *diag;
	struct erofs_engine *eng;
	struct erofs_image *img;
	struct erofs_inode *ino;	/* of --path or --nid */
	struct erofs_stat st;
	char *path;			/* of ino */
	bool text;			/* for people, on standard output */
	uint64_t started_ns;
	struct cli_report report;
	struct dump_facts facts;	/* for the report */
};

static bool needs_inode(const struct dump_options *o)
{
	return !dump_is_stream(o) && !o->extract && (o->input.path || o->input.has_nid || o->list);
}

static bool needs_super_only(const struct dump_options *o)
{
	return !o->statistics && !dump_is_stream(o) && !o->extract && !needs_inode(o);
}

/* A path without empty parts, "." and "..", as people expect to see it. NULL: no memory. */
static char *tidy_path(const char *path)
{
	char *tidy = malloc(strlen(path) + 2), *end = tidy;

	if (!tidy)
		return NULL;
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2)) {
			while (end > tidy && *--end != '/')
				;
		} else if (len && !(len == 1 && *path == '.')) {
			*end++ = '/';
			memcpy(end, path, len);
			end += len;
		}
		path += len + (path[len] == '/');
	}
	if (end == tidy)
		*end++ = '/';
	*end = '\0';
	return tidy;
}

/* Of several names of one inode the first is shown, as the released tool does. */
static int find_path(struct run *r)
{
	int err;

	if (r->o->input.path && (S_ISDIR(r->st.mode) || r->st.nlink <= 1)) {
		r->path = tidy_path(r->o->input.path);
		return r->path ? 0 : -ENOMEM;
	}
	/* damage on the way is no reason not to show the inode */
	err = erofs_path_of(r->img, r->eng, r->st.nid, NULL, &r->path);
	if (err == -ENOMEM)
		return err;
	if (err)
		r->path = strdup("(unknown)");
	return r->path ? 0 : -ENOMEM;
}

static int open_inode(struct run *r)
{
	struct erofs_super_info info;
	uint64_t nid;
	int err = erofs_cli_find_target(r->cli, &r->o->input, r->img, r->diag, &nid);

	erofs_image_super(r->img, &info);
	if (!err)
		nid = info.root_nid;
	if (err >= 0)
		err = erofs_inode_open(r->img, nid, r->diag, &r->ino);
	if (err)
		return err;
	erofs_inode_stat(r->ino, &r->st);
	return r->o->cat ? 0 : find_path(r);
}

static int look(struct run *r, int printed)
{
	int err;

	r->facts.img = r->img;
	r->facts.eng = r->eng;
	r->facts.st = r->st;
	r->facts.ino = r->ino;
	r->facts.path = r->path;
	/* what was printed has been reported */
	err = dump_look(&r->facts, &r->report, r->text ? NULL : r->diag);
	if (err == -ENOTDIR && !r->text)
		erofs_cli_say(r->cli, 'E', "%s: %s", r->path, strerror(ENOTDIR));
	return printed ? printed : err;
}

static int print_inode(struct run *r)
{
	bool bare;	/* names alone, one a line */
	int err = 0, more;

	if (r->o->cat) {
		err = dump_print_contents(r->cli, r->ino, r->diag);
		if (err == -EISDIR)
			erofs_cli_say(r->cli, 'E', "cannot show a directory with --cat (try --ls)");
		return err;
	}
	bare = r->o->list && (r->o->recursive || r->o->details || r->o->print0);
	if (!bare || r->o->extents)
		dump_print_inode(&r->st, r->path);
	if (r->o->extents)
		err = dump_print_extents(r->ino, r->diag, r->path);
	if (r->o->list) {
		more = bare ? dump_print_list(r->cli, r->img, r->eng, r->o, r->st.nid, r->path, r->diag) :
			      dump_print_entries(r->ino, r->diag);
		if (more == -ENOTDIR)
			erofs_cli_say(r->cli, 'E', "%s: %s", r->path, strerror(ENOTDIR));
		err = err ? err : more;
	}
	return err;
}

/* The first error counts. */
static int tell_inode(struct run *r)
{
	int err = open_inode(r);

	if (!err && r->text)
		err = print_inode(r);
	if (r->report.file && r->path)
		err = look(r, err);
	if (r->o->list && !err && erofs_cli_select_unmatched(r->cli, &r->o->select))
		err = -ENOENT;
	return err;
}

static int print_statistics(struct run *r)
{
	struct cli_work work = { .verb = "counting", .eng = r->eng };
	struct erofs_statistics *s = &r->facts.statistics;
	struct cli_progress *progress;
	int err;

	/* the rest does not run on the engine: there a signal may end the process at once */
	erofs_cli_catch_signals(r->eng);
	dump_count_total(r->o, r->img, false, &work);
	progress = erofs_cli_progress_start(r->cli, &work);
	err = erofs_count_tree(r->img, r->eng, r->diag, s);
	erofs_cli_progress_stop(progress);
	if (!r->report.file)
		erofs_cli_catch_signals(NULL);
	r->facts.has_statistics = !err || err == -EUCLEAN;
	if (r->facts.has_statistics && r->text)
		dump_print_statistics(s);
	return err;
}

static int print_digest(struct run *r)
{
	uint8_t digest[32];
	int err;

	err = erofs_file_digest(r->o->input.image, r->eng, r->diag, digest);
	if (!err)
		erofs_cli_print_hex(digest, sizeof(digest));
	return err;
}

/* What can be printed is printed; the first error counts. */
static int print_all(struct run *r)
{
	const struct dump_options *o = r->o;
	bool nothing = !o->udev && !o->statistics && !o->print_digest && !needs_inode(o);
	struct erofs_super_info info;
	int err = 0, more;

	erofs_image_super(r->img, &info);
	if (!info.checksum_ok && !o->input.no_sbcrc)
		erofs_cli_say(r->cli, 'W', "wrong superblock checksum: what follows may not be so");
	if (dump_is_stream(o))
		return dump_write_stream(r->cli, o, r->img, r->eng, r->diag);
	if (o->extract)
		return dump_extract(r->cli, o, r->img, r->eng, r->diag);
	if (o->print_digest)
		err = print_digest(r);
	if (o->udev)
		dump_print_udev(&info);
	r->facts.has_super = o->super || nothing;
	if (r->facts.has_super && r->text)
		dump_print_super(&info);
	if (o->statistics && !err)
		err = print_statistics(r);
	if (!needs_inode(o))
		return err;
	more = tell_inode(r);
	return err ? err : more;
}

static int choose_status(const struct run *r, int err)
{
	if (!r->img)
		return DUMP_TROUBLE;
	if (err == -ENOMEM || err == -EIO)
		return DUMP_TROUBLE;
	if (err || erofs_diag_count(r->diag, EROFS_SEV_FAIL) || erofs_diag_count(r->diag, EROFS_SEV_CORRUPT))
		return DUMP_PARTLY;
	return 0;
}

static void clean_up(struct run *r)
{
	free(r->path);
	erofs_inode_close(r->ino);
	erofs_close(r->img);
	erofs_engine_free(r->eng);
	erofs_diag_free(r->diag);
}

/* With or without a report, the findings are told. */
static int tell_findings(struct run *r, int status)
{
	struct dump_facts *f = &r->facts;

	if (!r->report.file) {
		erofs_cli_flush(r->cli, r->diag);
		return status;
	}
	/* from here on nothing is worth waiting for: a signal ends the process */
	erofs_cli_catch_signals(NULL);
	f->status = status;
	f->signal = erofs_cli_caught_signal();
	f->wall_ns = erofs_now_ns() - r->started_ns;
	f->eng = r->eng;
	f->img = r->img;
	return dump_write_report(&r->report, r->diag, f) ? DUMP_TROUBLE : status;
}

static int run_all(struct run *r)
{
	struct erofs_super_info info;
	int status, err;

	status = erofs_cli_engine_new(r->cli, &r->o->engine, DUMP_TROUBLE, r->diag, &r->eng);
	if (status)
		return tell_findings(r, DUMP_TROUBLE);
	/* a report is whole also if the run is stopped */
	if (r->report.file)
		erofs_cli_catch_signals(r->eng);
	err = erofs_cli_open(&r->o->input, needs_super_only(r->o), r->diag, &r->img);
	if (!err)
		err = print_all(r);
	status = choose_status(r, err);
	if (r->img && !needs_super_only(r->o) && status) {
		erofs_image_super(r->img, &info);
		(void)erofs_name_findings(r->img, r->eng, r->diag, info.root_nid);
	}
	return tell_findings(r, status);
}

/* How far we came (R21). */
static void tell_cancelled(const struct run *r)
{
	struct erofs_progress done = { 0 };

	if (r->eng)
		erofs_engine_progress(r->eng, &done);
	erofs_cli_say(r->cli, 'E', "cancelled by %s after %" PRIu64 " inodes%s",
		      erofs_cli_signal_name(erofs_cli_caught_signal()), done.inodes,
		      r->o->android_dir ? ", the result is not complete" :
		      r->o->extract ? ", the extracted tree is not complete" :
		      r->o->to_tar ? ", the archive is not complete" : "");
}

int dump_run(struct cli *cli, const struct dump_options *o)
{
	struct run r = { .cli = cli, .o = o, .text = !erofs_report_is_stdout(&o->json),
			 .started_ns = erofs_now_ns(), .facts = { .o = o } };
	int status;

	cli->image = o->input.image;
	if (erofs_report_open(&r.report, cli, &o->json, &o->input))
		return DUMP_TROUBLE;
	if (erofs_diag_new(erofs_cli_finding, cli, &r.diag)) {
		erofs_report_close(&r.report);
		return DUMP_TROUBLE;
	}
	status = run_all(&r);
	if (erofs_cli_caught_signal())
		tell_cancelled(&r);
	if (erofs_cli_close_stdout(cli))
		status = DUMP_TROUBLE;
	if (o->engine.stats && r.eng)
		erofs_cli_print_stats(cli, r.eng, &o->engine, erofs_now_ns() - r.started_ns);
	erofs_report_close(&r.report);
	clean_up(&r);
	if (erofs_cli_caught_signal())
		erofs_cli_die_by(erofs_cli_caught_signal());
	return status;
}
