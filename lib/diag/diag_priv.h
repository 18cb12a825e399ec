/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * diag: the only room that collects, names, orders and formats findings.
 *
 * The line that detects a fault knows its inode and offset, and reports it with one of the functions
 * below, which return the error so that the line can return it. Callers pass it on silently. All of
 * them may be called by any thread, with @diag NULL too (then they only return the error).
 * A finding that is reported twice (same id, nid, offset, text) is kept once.
 *
 * Low rooms know nids, not paths. The walk names them afterwards: erofs_diag_name() fills in the path
 * of all collected findings of one nid; of several paths the bytewise smallest is kept.
 *
 * Lock order: diag.lock is a leaf; nothing is called while it is held.
 */
#ifndef EROFS_DIAG_PRIV_H
#define EROFS_DIAG_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <erofs/diag.h>

enum erofs_finding_id {
	EROFS_FINDING_FAIL,	/* failures of the world: not in the catalogue */
#define FINDING(id, severity, name) EROFS_FINDING_##id,
#include "diag/findings.def"
#undef FINDING
	EROFS_FINDING_COUNT,
};

/* Where something is wrong. AT_NOWHERE, AT_NID(nid), AT(nid, off), AT_RANGE(nid, off, len), AT_OFF(off). */
struct erofs_at {
	bool has_nid, has_off, has_len;
	uint64_t nid;
	uint64_t off;		/* bytes; the text says in what */
	uint64_t len;
};

#define AT_NOWHERE (&(const struct erofs_at){ 0 })
#define AT_NID(n) (&(const struct erofs_at){ .has_nid = true, .nid = (n) })
#define AT(n, o) (&(const struct erofs_at){ .has_nid = true, .nid = (n), .has_off = true, .off = (o) })
#define AT_RANGE(n, o, l) (&(const struct erofs_at){ .has_nid = true, .nid = (n), .has_off = true, \
						     .off = (o), .has_len = true, .len = (l) })
#define AT_OFF(o) (&(const struct erofs_at){ .has_off = true, .off = (o) })

/* erofs_diag_damage(diag, EXTENT_RANGE, AT(nid, off), "...", ...): the image is wrong; -EUCLEAN. */
#define erofs_diag_damage(diag, id, at, ...) \
	erofs_diag_report((diag), EROFS_FINDING_##id, -117, (at), __VA_ARGS__)

/* The same for things that a newer implementation understands: -EOPNOTSUPP. */
#define erofs_diag_unsupported(diag, id, at, ...) \
	erofs_diag_report((diag), EROFS_FINDING_##id, -95, (at), __VA_ARGS__)

/* A finding whose catalogue severity is WARNING or INFO: returns 0. */
#define erofs_diag_note(diag, id, at, ...) \
	erofs_diag_report((diag), EROFS_FINDING_##id, 0, (at), __VA_ARGS__)

/**
 * erofs_diag_report() - report one finding of the catalogue; use the macros above
 * Return: @err.
 */
int erofs_diag_report(struct erofs_diag *diag, enum erofs_finding_id id, int err,
		      const struct erofs_at *at, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/**
 * erofs_diag_fail() - the world refused: open, read, write, memory. Appends ": strerror(-err)".
 * @err: negative errno
 * Return: @err.
 */
int erofs_diag_fail(struct erofs_diag *diag, int err, const struct erofs_at *at,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * erofs_diag_fail_path() - the same about a path in the target; the path is the finding's path
 * @path: bytes, relative to the target, not escaped, copied
 */
int erofs_diag_fail_path(struct erofs_diag *diag, int err, const char *path,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same as a counted warning (skipped things): returns 0. */
int erofs_diag_warn_path(struct erofs_diag *diag, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** erofs_diag_strerror() - text of a negative errno, thread-safe; may or may not use @buf */
const char *erofs_diag_strerror(int err, char *buf, size_t size);

/** erofs_diag_name() - this nid is called @path; of several the smallest stays */
void erofs_diag_name(struct erofs_diag *diag, uint64_t nid, const char *path);

/**
 * erofs_diag_wants_names() - is there a collected finding with a nid and without a path?
 */
bool erofs_diag_wants_names(struct erofs_diag *diag);

/** erofs_diag_has_nid() - is there a collected finding about @nid? */
bool erofs_diag_has_nid(struct erofs_diag *diag, uint64_t nid);

/*
 * Filters: collectors for a time in which damage is expected and will be told in another way. They keep
 * nothing; what they let through goes to the collector behind them.
 */

/* What makes data unreadable, while the run itself can go on. */
static inline bool erofs_diag_is_loss(int err)
{
	return err && err != -12 /* ENOMEM */ && err != -125 /* ECANCELED */;
}

/* The first loss about one inode. */
struct diag_cause {
	uint64_t nid;			/* set by the owner */
	bool caught;			/* reset by the owner */
	enum erofs_finding_id id;
	int err;
	char text[400];
};

/**
 * erofs_diag_filter_new() - make a filter; free it with erofs_diag_free()
 * @to:    what is no loss goes there, may be NULL
 * @cause: catches losses about its nid, and all others go on to @to; one thread. NULL: losses are dropped
 * Return: 0, -ENOMEM.
 */
int erofs_diag_filter_new(struct erofs_diag *to, struct diag_cause *cause, struct erofs_diag **ret_filter);

#endif
