// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The report of --json (cli.md 9). Result and status stand at its head, so lists are gone through twice:
 * first to see whether all of them can be read, then to write them. Nothing of them is kept. Only
 * --ls --recursive is a stream: an object a line as names come, the report in the last line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dump.h"

/* ---- names ---- */

struct names {
	struct cli_report *report;	/* NULL: they are only counted */
	uint64_t left;
	bool whole_paths;
	const char *start;		/* of whole paths, no slash at its end */
	uint64_t count;
};

static void put_path(struct cli_json *j, const struct names *n, const struct erofs_name *name)
{
	size_t start = strlen(n->start), len = start + 1 + name->len;
	char *path = malloc(len);

	if (!path) {
		erofs_json_null(j, "path");
		return;
	}
	memcpy(path, n->start, start);
	path[start] = '/';
	memcpy(path + start + 1, name->path, name->len);
	erofs_json_bytes(j, "path", path, len);
	free(path);
}

static int put_entry(void *priv, const struct erofs_name *name)
{
	struct names *n = priv;
	struct cli_json *j;

	if (!n->report) {
		n->count++;
		return 0;
	}
	if (!n->left--)
		return 1;
	j = &n->report->json;
	erofs_json_object(j, NULL);
	erofs_json_nid(j, "nid", name->nid);
	erofs_json_text(j, "type", erofs_report_type(name->type));
	if (n->whole_paths)
		put_path(j, n, name);
	else
		erofs_json_bytes(j, "name", name->path, name->len);
	if (name->stat)
		erofs_report_stat(j, name->stat);
	if (name->target)
		erofs_json_bytes(j, "target", name->target, name->target_len);
	erofs_json_end(j);
	return ferror(n->report->file) ? -EPIPE : 0;	/* told at the end, with its reason */
}

static int list_names(const struct dump_facts *f, struct names *n, struct erofs_diag *diag)
{
	struct erofs_list_options options = { .size = sizeof(options), .nid = f->st.nid, .has_nid = 1,
					      .one_level = !f->o->recursive, .stat = f->o->details,
					      .select = f->o->select.select };

	n->whole_paths = f->o->recursive;
	n->start = strcmp(f->path, "/") ? f->path : "";
	return erofs_list(f->img, f->eng, &options, put_entry, n, diag);
}

/* ---- extents ---- */

static const char *name_kind(const struct erofs_extent_info *e)
{
	return e->fragment ? "fragment" : e->hole ? "hole" : e->compressed ? "compressed" : "plain";
}

static void put_extent(struct cli_json *j, const struct erofs_extent_info *e)
{
	erofs_json_object(j, NULL);
	erofs_json_text(j, "kind", name_kind(e));
	erofs_json_unsigned(j, "offset", e->la);
	erofs_json_unsigned(j, "length", e->len);
	erofs_json_unsigned(j, "physical_offset", e->pa);
	erofs_json_unsigned(j, "physical_length", e->plen);
	erofs_json_unsigned(j, "device", e->dev);
	erofs_json_end(j);
}

/* Count extents, or write the first @left. */
static int list_extents(const struct dump_facts *f, struct cli_json *j, uint64_t *left, struct erofs_diag *diag)
{
	struct erofs_extents *extents;
	struct erofs_extent_info e;
	int r = erofs_extents_open(f->ino, diag, &extents);

	if (r)
		return r;
	while ((!j || *left) && (r = erofs_extents_next(extents, &e)) > 0) {
		*left += j ? (uint64_t)-1 : 1;
		if (j)
			put_extent(j, &e);
		else if (erofs_engine_is_cancelled(f->eng))
			break;
	}
	erofs_extents_close(extents);
	return !j && r > 0 ? -ECANCELED : r < 0 ? r : 0;
}

/* ---- the two passes ---- */

int dump_look(struct dump_facts *f, struct cli_report *r, struct erofs_diag *diag)
{
	struct names names = { .report = f->o->recursive ? r : NULL, .left = UINT64_MAX };
	int err = 0, more = 0;

	f->has_inode = true;
	if (f->o->extents) {
		err = list_extents(f, NULL, &f->extents, diag);
		f->has_extents = !err || f->extents;
	}
	if (f->o->list) {
		if (f->o->recursive)
			r->json.lines = 0;
		more = list_names(f, &names, diag);
		f->entries = names.count;
		f->has_entries = !f->o->recursive && (!more || f->entries);
	}
	return err ? err : more;
}

static void put_statistics(struct cli_json *j, const struct erofs_statistics *s)
{
	unsigned int i;

	erofs_json_object(j, "statistics");
	erofs_json_object(j, "names");
	for (i = 0; i < 8; i++)
		erofs_json_unsigned(j, erofs_report_type(i), s->types[i]);
	erofs_json_end(j);
	erofs_json_unsigned(j, "compressed", s->compressed);
	erofs_json_unsigned(j, "uncompressed", s->uncompressed);
	erofs_json_unsigned(j, "original_bytes", s->original_bytes);
	erofs_json_unsigned(j, "stored_bytes", s->stored_bytes);
	erofs_json_array(j, "sizes");
	for (i = 0; i < EROFS_SIZE_CLASSES; i++) {
		erofs_json_object(j, NULL);
		erofs_json_unsigned(j, "from", i ? UINT64_C(512) << i : 0);
		erofs_json_unsigned(j, "original", s->original_sizes[i]);
		erofs_json_unsigned(j, "stored", s->stored_sizes[i]);
		erofs_json_end(j);
	}
	erofs_json_end(j);
	erofs_json_array(j, "suffixes");
	for (i = 0; erofs_suffix_name(i); i++) {
		erofs_json_object(j, NULL);
		erofs_json_text(j, "suffix", erofs_suffix_name(i));
		erofs_json_unsigned(j, "files", s->suffixes[i]);
		erofs_json_end(j);
	}
	erofs_json_end(j);
	erofs_json_end(j);
}

static void put_inode(struct cli_json *j, const struct dump_facts *f)
{
	erofs_json_object(j, "inode");
	erofs_json_nid(j, "nid", f->st.nid);
	erofs_json_text(j, "type", erofs_report_mode_type(f->st.mode));
	erofs_json_bytes(j, "path", f->path, strlen(f->path));
	erofs_report_stat(j, &f->st);
	erofs_json_end(j);
}

/* A fault that shows only now was no fault a moment ago: it is told as what it is, trouble. */
static int put_lists(struct cli_report *r, const struct dump_facts *f)
{
	struct names names = { .report = r, .left = f->entries };
	uint64_t extents = f->extents;

	if (f->has_entries) {
		erofs_json_array(&r->json, "entries");
		(void)list_names(f, &names, NULL);
		erofs_json_end(&r->json);
	}
	if (f->has_extents) {
		erofs_json_array(&r->json, "extents");
		(void)list_extents(f, &r->json, &extents, NULL);
		erofs_json_end(&r->json);
	}
	if (ferror(r->file))
		return 0;	/* that is told at the end */
	return extents || (f->has_entries && names.left && names.left != UINT64_MAX) ? -EIO : 0;
}

int dump_write_report(struct cli_report *r, struct erofs_diag *diag, const struct dump_facts *f)
{
	struct erofs_super_info info;
	int err, more;

	/* what a shell sees of a process that a signal ended */
	erofs_report_begin(r, f->signal, erofs_diag_count(diag, EROFS_SEV_CORRUPT),
			   f->signal ? 128 + f->signal : f->status);
	if (f->has_super) {
		erofs_image_super(f->img, &info);
		erofs_report_super(r, &info);
	}
	if (f->has_statistics)
		put_statistics(&r->json, &f->statistics);
	if (f->has_inode)
		put_inode(&r->json, f);
	err = put_lists(r, f);
	if (err)
		erofs_cli_say(r->cli, 'E', "the image changed while it was read");
	erofs_report_findings(r, diag);
	if (f->eng && (f->has_statistics || f->o->engine.stats))
		erofs_cli_json_engine(&r->json, f->eng, &f->o->engine, f->wall_ns);
	more = erofs_report_end(r);
	return err ? err : more;
}
