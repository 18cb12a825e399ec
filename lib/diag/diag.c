// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Collecting findings from all threads and telling them in one order.
 *
 * Two bounded sets: while findings have no path they are ordered by nid, so that which of too many are
 * kept does not depend on the order of threads; erofs_diag_flush() then orders by path.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "diag/diag_priv.h"

#define DIAG_KEEP 1000	/* engine.md E5 */
#define DIAG_TEXT 400	/* bytes of one message; longer ones are cut */

struct entry {
	enum erofs_finding_id id;
	enum erofs_severity severity;
	int err;
	struct erofs_at at;
	char *path;
	char *text;
};

struct erofs_diag {
	pthread_mutex_t	lock;
	bool		is_filter;		/* C */
	struct erofs_diag *to;			/* C  of a filter */
	struct diag_cause *cause;		/* C  of a filter: its owner's; NULL: drops */
	erofs_diag_fn	fn;			/* C */
	void		*priv;			/* C */
	struct entry	*entries;		/* L  sorted by compare_nid() */
	size_t		count;			/* L */
	size_t		room;			/* L */
	uint64_t	dropped;		/* L */
	uint64_t	by_severity[EROFS_SEV_FAIL + 1];	/* L */
};	/* L lock  C constant once created */

static const struct {
	enum erofs_severity severity;
	const char *name;
} catalogue[EROFS_FINDING_COUNT] = {
	[EROFS_FINDING_FAIL] = { EROFS_SEV_FAIL, "" },
#define FINDING(id, severity, name) [EROFS_FINDING_##id] = { EROFS_SEV_##severity, name },
#include "diag/findings.def"
#undef FINDING
};

int erofs_diag_new(erofs_diag_fn fn, void *priv, struct erofs_diag **ret_diag)
{
	struct erofs_diag *diag = calloc(1, sizeof(*diag));

	if (!diag)
		return -ENOMEM;
	pthread_mutex_init(&diag->lock, NULL);
	diag->fn = fn;
	diag->priv = priv;
	*ret_diag = diag;
	return 0;
}

int erofs_diag_filter_new(struct erofs_diag *to, struct diag_cause *cause, struct erofs_diag **ret_filter)
{
	int err = erofs_diag_new(NULL, NULL, ret_filter);

	if (err)
		return err;
	(*ret_filter)->is_filter = true;
	(*ret_filter)->to = to;
	(*ret_filter)->cause = cause;
	return 0;
}

static void entry_fini(struct entry *e)
{
	free(e->path);
	free(e->text);
}

static void forget_all(struct erofs_diag *diag)
{
	while (diag->count)
		entry_fini(&diag->entries[--diag->count]);
}

void erofs_diag_free(struct erofs_diag *diag)
{
	if (!diag)
		return;
	forget_all(diag);
	free(diag->entries);
	pthread_mutex_destroy(&diag->lock);
	free(diag);
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_where(const struct entry *a, const struct entry *b)
{
	int r = a->at.has_nid - b->at.has_nid;

	if (!r)
		r = compare_u64(a->at.nid, b->at.nid);
	if (!r)
		r = a->at.has_off - b->at.has_off;
	if (!r)
		r = compare_u64(a->at.off, b->at.off);
	if (!r)
		r = (int)a->id - (int)b->id;
	return r ? r : strcmp(a->text, b->text);
}

static int compare_path(const struct entry *a, const struct entry *b)
{
	return strcmp(a->path ? a->path : "", b->path ? b->path : "");
}

/* While collecting: by nid, then by the rest. Paths only where there is no nid (the target's). */
static int compare_nid(const struct entry *a, const struct entry *b)
{
	int r = compare_where(a, b);

	return r || a->at.has_nid ? r : compare_path(a, b);
}

static int compare_report(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;
	int r = compare_path(a, b);

	return r ? r : compare_where(a, b);
}

/* Index of the first entry that is not less than @e. */
static size_t find_place(const struct erofs_diag *diag, const struct entry *e, bool *ret_same)
{
	size_t lo = 0, hi = diag->count;

	*ret_same = false;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int r = compare_nid(&diag->entries[mid], e);

		if (!r) {
			*ret_same = true;
			return mid;
		}
		if (r < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool make_room(struct erofs_diag *diag)
{
	size_t room = diag->room ? diag->room * 2 : 16;
	struct entry *grown;

	if (diag->count < diag->room)
		return true;
	grown = realloc(diag->entries, room * sizeof(*grown));
	if (!grown)
		return false;
	diag->entries = grown;
	diag->room = room;
	return true;
}

/* Takes over the strings of @e. The lock is held. */
static void insert_entry(struct erofs_diag *diag, struct entry *e)
{
	bool same;
	size_t at = find_place(diag, e, &same);

	if (same) {
		entry_fini(e);
		return;
	}
	diag->by_severity[e->severity]++;
	if (diag->count == DIAG_KEEP) {
		diag->dropped++;
		if (at == DIAG_KEEP) {
			entry_fini(e);
			return;
		}
		entry_fini(&diag->entries[--diag->count]);
	}
	if (!make_room(diag)) {
		diag->dropped++;
		entry_fini(e);
		return;
	}
	memmove(&diag->entries[at + 1], &diag->entries[at], (diag->count - at) * sizeof(*e));
	diag->entries[at] = *e;
	diag->count++;
}

/* Does a filter keep this to itself? */
static bool is_stopped(const struct erofs_diag *filter, const struct entry *e, const char *text)
{
	struct diag_cause *c = filter->cause;

	if (!erofs_diag_is_loss(e->err))
		return false;
	if (!c)
		return true;
	if (!e->at.has_nid || e->at.nid != c->nid)
		return false;
	if (!c->caught) {
		c->caught = true;
		c->id = e->id;
		c->err = e->err;
		snprintf(c->text, sizeof(c->text), "%s", text);
	}
	return true;
}

static void add_entry(struct erofs_diag *diag, struct entry *e, const char *path, const char *text)
{
	while (diag->is_filter) {
		if (is_stopped(diag, e, text) || !diag->to)
			return;
		diag = diag->to;
	}
	e->path = path ? strdup(path) : NULL;
	e->text = strdup(text);
	pthread_mutex_lock(&diag->lock);
	if (!e->text || (path && !e->path)) {
		diag->by_severity[e->severity]++;
		diag->dropped++;
		entry_fini(e);
	} else {
		insert_entry(diag, e);
	}
	pthread_mutex_unlock(&diag->lock);
}

int erofs_diag_report(struct erofs_diag *diag, enum erofs_finding_id id, int err,
		      const struct erofs_at *at, const char *fmt, ...)
{
	struct entry e = { .id = id, .severity = catalogue[id].severity, .err = err, .at = *at };
	char text[DIAG_TEXT];
	va_list ap;

	if (!diag)
		return err;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* no image at all, or one for newer readers, is not damage: exit codes tell them apart */
	if ((err == -EOPNOTSUPP || err == -EINVAL) && !at->has_nid)
		e.severity = EROFS_SEV_FAIL;
	/* a device that cannot be read is not the image's fault */
	if (id == EROFS_FINDING_DATA_HOLE && err != -EUCLEAN && err != -EOPNOTSUPP)
		e.severity = EROFS_SEV_FAIL;
	add_entry(diag, &e, NULL, text);
	return err;
}

const char *erofs_diag_strerror(int err, char *buf, size_t size)
{
#ifdef __GLIBC__
	return strerror_r(-err, buf, size);
#else
	return strerror_r(-err, buf, size) ? "unknown error" : buf;
#endif
}

__attribute__((format(printf, 5, 0)))
static void add_failure(struct erofs_diag *diag, int err, const struct erofs_at *at, const char *path,
			const char *fmt, va_list ap)
{
	struct entry e = { .id = EROFS_FINDING_FAIL, .severity = EROFS_SEV_FAIL, .err = err, .at = *at };
	char text[DIAG_TEXT], why[80];
	size_t len;

	vsnprintf(text, sizeof(text), fmt, ap);
	len = strlen(text);
	snprintf(text + len, sizeof(text) - len, ": %s", erofs_diag_strerror(err, why, sizeof(why)));
	add_entry(diag, &e, path, text);
}

int erofs_diag_fail(struct erofs_diag *diag, int err, const struct erofs_at *at,
		    const char *fmt, ...)
{
	va_list ap;

	if (!diag)
		return err;
	va_start(ap, fmt);
	add_failure(diag, err, at, NULL, fmt, ap);
	va_end(ap);
	return err;
}

int erofs_diag_fail_path(struct erofs_diag *diag, int err, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (!diag)
		return err;
	va_start(ap, fmt);
	add_failure(diag, err, AT_NOWHERE, path, fmt, ap);
	va_end(ap);
	return err;
}

int erofs_diag_warn_path(struct erofs_diag *diag, const char *path, const char *fmt, ...)
{
	struct entry e = { .id = EROFS_FINDING_SKIPPED, .severity = EROFS_SEV_WARNING };
	char text[DIAG_TEXT];
	va_list ap;

	if (!diag)
		return 0;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_entry(diag, &e, path, text);
	return 0;
}

/* First collected entry about @nid; diag->count: there is none. The lock is held. */
static size_t find_nid(const struct erofs_diag *diag, uint64_t nid)
{
	size_t lo = 0, hi = diag->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct erofs_at *at = &diag->entries[mid].at;

		if (!at->has_nid || at->nid < nid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < diag->count && diag->entries[lo].at.nid == nid ? lo : diag->count;
}

void erofs_diag_name(struct erofs_diag *diag, uint64_t nid, const char *path)
{
	size_t i;

	if (!diag)
		return;
	pthread_mutex_lock(&diag->lock);
	for (i = find_nid(diag, nid); i < diag->count && diag->entries[i].at.nid == nid; i++) {
		struct entry *e = &diag->entries[i];

		if (e->path && strcmp(e->path, path) <= 0)
			continue;
		free(e->path);
		e->path = strdup(path);
	}
	pthread_mutex_unlock(&diag->lock);
}

bool erofs_diag_wants_names(struct erofs_diag *diag)
{
	bool wants = false;
	size_t i;

	if (!diag)
		return false;
	pthread_mutex_lock(&diag->lock);
	for (i = 0; i < diag->count && !wants; i++)
		wants = diag->entries[i].at.has_nid && !diag->entries[i].path;
	pthread_mutex_unlock(&diag->lock);
	return wants;
}

bool erofs_diag_has_nid(struct erofs_diag *diag, uint64_t nid)
{
	bool has;

	if (!diag)
		return false;
	pthread_mutex_lock(&diag->lock);
	has = find_nid(diag, nid) < diag->count;
	pthread_mutex_unlock(&diag->lock);
	return has;
}

static void tell(struct erofs_diag *diag, const struct entry *e)
{
	struct erofs_finding f = {
		.id = catalogue[e->id].name,
		.severity = e->severity,
		.err = e->err,
		.has_nid = e->at.has_nid,
		.has_off = e->at.has_off,
		.nid = e->at.nid,
		.off = e->at.off,
		.path = e->path,
		.text = e->text,
		.len = e->at.len,
		.has_len = e->at.has_len,
	};

	diag->fn(diag->priv, &f);
}

void erofs_diag_flush(struct erofs_diag *diag)
{
	size_t i;

	if (diag->count)
		qsort(diag->entries, diag->count, sizeof(*diag->entries), compare_report);
	for (i = 0; i < diag->count && diag->fn; i++)
		tell(diag, &diag->entries[i]);
	forget_all(diag);
	diag->dropped = 0;
}

uint64_t erofs_diag_count(const struct erofs_diag *cdiag, enum erofs_severity severity)
{
	struct erofs_diag *diag = (struct erofs_diag *)cdiag;
	uint64_t count;

	pthread_mutex_lock(&diag->lock);
	count = diag->by_severity[severity];
	pthread_mutex_unlock(&diag->lock);
	return count;
}

uint64_t erofs_diag_dropped(const struct erofs_diag *cdiag)
{
	struct erofs_diag *diag = (struct erofs_diag *)cdiag;
	uint64_t count;

	pthread_mutex_lock(&diag->lock);
	count = diag->dropped;
	pthread_mutex_unlock(&diag->lock);
	return count;
}

size_t erofs_diag_format(const struct erofs_finding *f, char *buf, size_t size)
{
	size_t path_len = f->path ? strlen(f->path) : 0;
	auto_free char *escaped = malloc(4 * path_len + 1);
	char nid[40] = "", off[32] = "";

	if (escaped)
		erofs_escape_name(f->path ? f->path : "", path_len, escaped, 4 * path_len + 1);
	if (f->has_nid)
		snprintf(nid, sizeof(nid), "%s(nid %" PRIu64 ")", path_len ? " " : "", f->nid);
	if (f->has_off)
		snprintf(off, sizeof(off), "%s@ 0x%" PRIx64, path_len || f->has_nid ? " " : "", f->off);
	return (size_t)snprintf(buf, size, "%s%s%s%s%s", escaped ? escaped : "?", nid, off,
				path_len || f->has_nid || f->has_off ? ": " : "", f->text);
}
