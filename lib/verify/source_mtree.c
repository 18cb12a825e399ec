// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A manifest as the source: mtree(5) in both of its forms, with attributes and fs-verity digests in comments
 * that stand beside their name ("#erofs: PATH xattr.NAME=HEX", "#erofs: PATH fsverity=HEX"). If there is any
 * such comment, the attributes of all names are recorded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "verify/mtree.h"

#define COMMENT "#erofs:"
#define XATTR "xattr."

/* A name with the comments beside it. */
struct record {
	bool is_used, is_named;		/* is_named: not only by comments */
	uint64_t line;
	struct tarbuf path;		/* terminated */
	struct mtree_facts facts;
	struct tarbuf buf;		/* what facts.w refers to */
	struct wanted_xattr *xattrs;
	size_t nxattrs, room;
};

struct mtree_source {
	struct mtree_line in;
	struct mtree_facts defaults;
	struct tarbuf cwd;		/* of names without a slash; terminated */
	bool root_is_open;
	bool has_xattrs;
	bool has_sha;
	struct record record;
	struct tarbuf scratch;
};

static int bad_line(const struct compare *c, uint64_t line, const char *word, const char *why)
{
	size_t len = strnlen(word, 60);
	char text[4 * 60 + 1];

	erofs_escape_name(word, len, text, sizeof(text));
	return erofs_diag_fail(c->diag, -EINVAL, AT_NOWHERE, "%s:%" PRIu64 ": %s%s%s", c->opt->source, line, text,
			       *word ? " " : "", why);
}

/* ---- paths ---- */

static int terminate(struct tarbuf *b)
{
	int err = erofs_tarbuf_reserve(b, 1);

	if (!err)
		b->data[b->len] = '\0';
	return err;
}

/* The path that an unescaped name means, into @ret. */
static int make_path(const struct mtree_source *s, const char *name, struct tarbuf *ret)
{
	int err = 0;

	ret->len = 0;
	if (!strchr(name, '/'))
		err = erofs_tarbuf_add(ret, s->cwd.data, s->cwd.len);
	return err ? err : erofs_compare_make_path(ret, name);
}

static int leave_folder(struct mtree_source *s)
{
	const char *cwd = (const char *)s->cwd.data, *slash = s->cwd.len ? strrchr(cwd, '/') : NULL;

	if (!s->cwd.len && !s->root_is_open)
		return -EINVAL;
	if (!s->cwd.len)
		s->root_is_open = false;
	s->cwd.len = slash ? (size_t)(slash - cwd) : 0;
	return terminate(&s->cwd);
}

/* ---- records ---- */

static bool is_of(const struct record *r, const struct tarbuf *path)
{
	return r->is_used && r->path.len == path->len && !memcmp(r->path.data, path->data, path->len);
}

static int start_record(struct record *r, const struct tarbuf *path, uint64_t line)
{
	r->is_used = true;
	r->is_named = false;
	r->line = line;
	r->facts = (struct mtree_facts){ 0 };
	r->buf.len = r->path.len = r->nxattrs = 0;
	return erofs_tarbuf_add(&r->path, path->data, path->len) || terminate(&r->path) ? -ENOMEM : 0;
}

static int put_xattrs(struct record *r, struct wanted *w)
{
	w->xattrs = r->buf.len;
	w->nxattrs = r->nxattrs;
	return r->nxattrs ? erofs_tarbuf_add(&r->buf, r->xattrs, r->nxattrs * sizeof(*r->xattrs)) : 0;
}

/* libcrypto is looked for once: to ask the loader takes as long as to read a line. */
static bool has_digests(struct mtree_source *s)
{
	if (!s->has_sha)
		s->has_sha = erofs_sha_is_there();
	return s->has_sha;
}

/* The record is complete. */
static int end_record(struct compare *c, struct mtree_source *s)
{
	struct record *r = &s->record;
	struct wanted *w = &r->facts.w;
	struct compare_item item = { .optional = r->facts.optional, .ignore = r->facts.ignore };
	int err;

	if (!r->is_used)
		return 0;
	r->is_used = false;
	if (!r->is_named)
		return bad_line(c, r->line, COMMENT, "stands beside no line with its name");
	if (s->has_xattrs)
		w->has |= COMPARE_XATTRS;
	if (w->has_sha256 || w->has_sha512 || w->has_verity)
		w->has |= EROFS_COMPARE_DATA;
	if (w->has & EROFS_COMPARE_DATA && c->what & EROFS_COMPARE_DATA && !has_digests(s))
		return erofs_diag_fail(c->diag, -EOPNOTSUPP, AT_NOWHERE, "no digests without libcrypto");
	err = put_xattrs(r, w);
	if (err)
		return err;
	return erofs_compare_add(c, &item, (const char *)r->path.data, r->path.len, w, &r->buf);
}

/* Make the record at hand that of the path. */
static int find_record(struct compare *c, struct mtree_source *s, uint64_t line, bool is_name)
{
	struct record *r = &s->record;
	int err;

	if (is_of(r, &s->scratch) && !(is_name && r->is_named))
		return 0;
	err = end_record(c, s);
	return err ? err : start_record(r, &s->scratch, line);
}

/* ---- comments ---- */

static int add_xattr(struct record *r, char *name, const char *value)
{
	size_t size = strlen(value) / 2;
	struct wanted_xattr *xa;
	ssize_t len = erofs_mtree_unescape(name);
	int err;

	if (len <= 0)
		return -EINVAL;
	if (r->nxattrs == r->room) {
		size_t room = r->room ? 2 * r->room : 8;
		struct wanted_xattr *grown = realloc(r->xattrs, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->xattrs = grown;
		r->room = room;
	}
	xa = &r->xattrs[r->nxattrs];
	*xa = (struct wanted_xattr){ .name = r->buf.len, .size = size };
	err = erofs_tarbuf_add(&r->buf, name, (size_t)len + 1);
	if (!err)
		err = erofs_tarbuf_reserve(&r->buf, size + 1);
	if (err)
		return err;
	xa->value = r->buf.len;
	if (!erofs_mtree_hex(value, r->buf.data + r->buf.len, size))
		return -EINVAL;
	r->buf.len += size;
	r->nxattrs++;
	return 0;
}

static int take_comment(struct compare *c, struct mtree_source *s, char *text)
{
	char *at = text + strlen(COMMENT), *name = erofs_mtree_word(&at), *word = erofs_mtree_word(&at), *value;
	struct record *r = &s->record;
	int err;

	if (!name || !word || erofs_mtree_word(&at))
		return bad_line(c, s->in.number, "", "is not \"" COMMENT " PATH KEY=VALUE\"");
	value = strchr(word, '=');
	if (!value || erofs_mtree_unescape(name) < 0)
		return bad_line(c, s->in.number, value ? name : word, "cannot be understood");
	*value++ = '\0';
	err = make_path(s, name, &s->scratch);
	if (err)
		return err == -EINVAL ? bad_line(c, s->in.number, name, "is no path below the top") : err;
	err = find_record(c, s, s->in.number, false);
	if (err)
		return err;
	if (!strncmp(word, XATTR, strlen(XATTR))) {
		err = add_xattr(r, word + strlen(XATTR), value);
	} else if (!strcmp(word, "fsverity")) {
		err = erofs_mtree_hex(value, r->facts.w.verity, sizeof(r->facts.w.verity)) ? 0 : -EINVAL;
		r->facts.w.has_verity = !err;
	} else {
		return bad_line(c, s->in.number, word, "is no key of such a comment");
	}
	return err == -EINVAL ? bad_line(c, s->in.number, word, "has a wrong value") : err;
}

/* ---- names ---- */

static int take_words(struct compare *c, struct mtree_source *s, struct mtree_facts *f, char *at)
{
	const char *why;
	char *word;

	while ((word = erofs_mtree_word(&at)))
		if (erofs_mtree_take(f, word, &why))
			return bad_line(c, s->in.number, word, why);
	return 0;
}

static int take_unset(struct compare *c, struct mtree_source *s, char *at)
{
	char *word;

	while ((word = erofs_mtree_word(&at)))
		if (erofs_mtree_unset(&s->defaults, word))
			return bad_line(c, s->in.number, word, "is no keyword of mtree(5)");
	return 0;
}

/* The words of this line over those of /set; what comments in front of it said stays. */
static int take_facts(struct compare *c, struct mtree_source *s, char *at)
{
	struct record *r = &s->record;
	struct mtree_facts f = s->defaults;
	int err;

	f.w.has_verity = r->facts.w.has_verity;
	memcpy(f.w.verity, r->facts.w.verity, sizeof(f.w.verity));
	err = take_words(c, s, &f, at);
	r->facts = f;
	r->is_named = true;
	if (err || !f.link)
		return err;
	/* it is in the line, which is about to go */
	r->facts.w.target = r->buf.len;
	err = erofs_tarbuf_add(&r->buf, f.link, strlen(f.link) + 1);
	if (!err) {
		ssize_t len = erofs_mtree_unescape((char *)r->buf.data + r->facts.w.target);

		if (len < 0)
			return bad_line(c, s->in.number, "link=", "has a wrong value");
		r->facts.w.target_len = (size_t)len;
		r->buf.len = r->facts.w.target + (size_t)len;
	}
	return err;
}

static int take_name(struct compare *c, struct mtree_source *s, char *name, char *at)
{
	bool is_full;
	int err;

	if (erofs_mtree_unescape(name) < 0)
		return bad_line(c, s->in.number, name, "has an escape that is not \\ooo");
	if (!strcmp(name, "..")) {
		err = end_record(c, s);
		if (!err)
			err = leave_folder(s);
		return err == -EINVAL ? bad_line(c, s->in.number, name, "leaves no folder") : err;
	}
	is_full = strchr(name, '/');
	err = make_path(s, name, &s->scratch);
	if (err)
		return err == -EINVAL ? bad_line(c, s->in.number, name, "is no path below the top") : err;
	err = find_record(c, s, s->in.number, true);
	if (!err)
		err = take_facts(c, s, at);
	if (err || is_full || !S_ISDIR(s->record.facts.w.mode))
		return err;
	s->cwd.len = 0;
	s->root_is_open |= !s->record.path.len;
	return erofs_tarbuf_add(&s->cwd, s->record.path.data, s->record.path.len) || terminate(&s->cwd) ? -ENOMEM : 0;
}

static int take_line(struct compare *c, struct mtree_source *s)
{
	char *text = (char *)s->in.text.data, *word;

	if (*text == '#')
		return strncmp(text, COMMENT " ", strlen(COMMENT) + 1) ? 0 : take_comment(c, s, text);
	word = erofs_mtree_word(&text);
	if (!strcmp(word, "/set"))
		return take_words(c, s, &s->defaults, text);
	if (!strcmp(word, "/unset"))
		return take_unset(c, s, text);
	return take_name(c, s, word, text);
}

/* ---- the run ---- */

static int fail_read(const struct compare *c, const struct mtree_source *s, int err)
{
	if (err == -EOVERFLOW || err == -EINVAL)
		return bad_line(c, s->in.number, "", err == -EINVAL ? "contains NUL" : "is too long");
	return err == -ENOMEM ? erofs_compare_no_memory(c) :
				erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot read %s", c->opt->source);
}

/* Are attributes recorded? The file is read once for this. */
static int look_for_comments(struct compare *c, struct mtree_source *s)
{
	int r;

	while ((r = erofs_mtree_next(&s->in)) > 0 && !s->has_xattrs) {
		s->has_xattrs = !strncmp((const char *)s->in.text.data, COMMENT " ", strlen(COMMENT) + 1);
		if (erofs_job_is_cancelled(c->job))
			return -ECANCELED;
	}
	if (r < 0)
		return fail_read(c, s, r);
	s->in.next = s->in.bytes = 0;
	if (fseek(s->in.file, 0, SEEK_SET))
		return erofs_diag_fail(c->diag, -errno, AT_NOWHERE, "%s is read twice, and cannot be", c->opt->source);
	return 0;
}

static int run_mtree(struct compare *c)
{
	struct mtree_source *s = c->source.priv;
	int r, err = look_for_comments(c, s);

	while (!err && (r = erofs_mtree_next(&s->in)) != 0) {
		if (r < 0)
			return fail_read(c, s, r);
		err = erofs_job_is_cancelled(c->job) ? -ECANCELED : take_line(c, s);
	}
	if (!err)
		err = end_record(c, s);
	return err == -ENOMEM ? erofs_compare_no_memory(c) : err;
}

static void free_mtree(struct compare *c)
{
	struct mtree_source *s = c->source.priv;

	if (s->in.file)
		fclose(s->in.file);
	erofs_tarbuf_free(&s->in.text);
	erofs_tarbuf_free(&s->cwd);
	erofs_tarbuf_free(&s->scratch);
	erofs_tarbuf_free(&s->record.path);
	erofs_tarbuf_free(&s->record.buf);
	free(s->record.xattrs);
	free(s);
}

int erofs_source_mtree(struct compare *c)
{
	struct mtree_source *s = calloc(1, sizeof(*s));

	if (!s)
		return erofs_compare_no_memory(c);
	c->source = (struct compare_source){
		.gather = erofs_record_gather, .run = run_mtree, .free = free_mtree, .priv = s,
	};
	s->in.file = fopen(c->opt->source, "re");
	if (!s->in.file)
		return erofs_diag_fail(c->diag, -errno, AT_NOWHERE, "cannot open %s", c->opt->source);
	return terminate(&s->cwd) ? erofs_compare_no_memory(c) : 0;
}
