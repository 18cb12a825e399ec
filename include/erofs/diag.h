/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * diag: what was found wrong, collected from all threads and told in one order.
 *
 * The library never prints. Findings and failures go to a struct erofs_diag; erofs_diag_flush()
 * hands them to the program's function, sorted by path and offset, so that the report is the same
 * whatever the number of workers.
 */
#ifndef EROFS_DIAG_H
#define EROFS_DIAG_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/version.h>

EROFS_BEGIN_DECLS

enum erofs_severity {
	EROFS_SEV_INFO,
	EROFS_SEV_WARNING,	/* odd, or skipped; does not make an image damaged */
	EROFS_SEV_CORRUPT,	/* the image is damaged */
	EROFS_SEV_FAIL,		/* the world: cannot open, read, write, allocate */
};

struct erofs_finding {
	const char *id;		/* stable name from findings.def, "" for failures */
	enum erofs_severity severity;
	int err;		/* negative errno; 0 for information and warnings */
	int has_nid, has_off;
	uint64_t nid;
	uint64_t off;		/* bytes, in the image or in the file: the text says which */
	const char *path;	/* NULL if unknown; bytes, terminated, not escaped */
	const char *text;	/* what is wrong, one line, names in it are escaped */
	uint64_t len;		/* bytes from @off on that are meant, if @has_len */
	int has_len;
};

struct erofs_diag;

/* Called by erofs_diag_flush() in the thread that called it. The finding is valid during the call. */
typedef void (*erofs_diag_fn)(void *priv, const struct erofs_finding *finding);

/**
 * erofs_diag_new() - make a collector
 * @fn:       receives the findings, may be NULL (they are only counted)
 * @priv:     handed to @fn
 * @ret_diag: receives the collector; free it with erofs_diag_free()
 * Memory is bounded: the first 1000 findings by path and offset are kept, the rest is counted.
 * Return: 0, -ENOMEM.
 */
EROFS_API int erofs_diag_new(erofs_diag_fn fn, void *priv, struct erofs_diag **ret_diag);

/** erofs_diag_free() - free a collector, findings that were not flushed are dropped; NULL is fine */
EROFS_API void erofs_diag_free(struct erofs_diag *diag);

/** erofs_diag_flush() - hand out what was collected, sorted by path, then nid, offset, text; then forget it */
EROFS_API void erofs_diag_flush(struct erofs_diag *diag);

/** erofs_diag_count() - findings of one severity since the collector was made. Any thread. */
EROFS_API uint64_t erofs_diag_count(const struct erofs_diag *diag, enum erofs_severity severity);

/** erofs_diag_dropped() - findings that were counted but not kept since the last flush. Any thread. */
EROFS_API uint64_t erofs_diag_dropped(const struct erofs_diag *diag);

/** erofs_diag_format() - "path (nid N) @ 0xOFFSET: text" into @buf, names escaped; returns the length wanted */
EROFS_API size_t erofs_diag_format(const struct erofs_finding *finding, char *buf, size_t size);

EROFS_END_DECLS

#endif
