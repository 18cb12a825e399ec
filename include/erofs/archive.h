/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* archive: an image's tree as one stream, decoded in parallel, written in order. */
#ifndef EROFS_ARCHIVE_H
#define EROFS_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/engine.h>
#include <erofs/image.h>
#include <erofs/select.h>

EROFS_BEGIN_DECLS

/* Takes @len bytes of the stream. 0, negative errno: the run ends with it. Called by the caller's thread. */
typedef int (*erofs_write_fn)(void *arg, const void *data, size_t len);

struct erofs_tar_options {
	size_t size;			/* sizeof(struct erofs_tar_options) */
	int has_nid;			/* start at @nid, not at the root */
	uint64_t nid;
	const char *name;		/* of the start if it is no directory; NULL: "file" */
	const struct erofs_select *select;	/* what is archived, NULL: everything */
	unsigned int strip_components;	/* leading parts of paths to be dropped */
	int fd;				/* where to write, at its position */
	erofs_write_fn write;		/* if not NULL: instead of @fd */
	void *write_arg;
};

struct erofs_tar_result {
	uint64_t entries;		/* written */
	uint64_t bytes;			/* of the archive, written */
	uint64_t skipped;		/* sockets: tar has none */
	uint64_t failed;		/* left out, or with zeros in place of contents: damaged */
	int output_failed;		/* the error that was returned is the output's */
};

/**
 * erofs_to_tar() - write a tree as a pax archive (POSIX.1-2001)
 * @diag:       receives findings and failures; not flushed
 * @ret_result: may be NULL; filled also after an error
 * Sorted by path, depth first; the start is "./", all else has no "./" in front. Numeric owners, xattrs as
 * SCHILY.xattr.*, ACLs as SCHILY.acl.* text, hard links to the first path, holes as data. The bytes are the
 * same whatever the engine's settings.
 *
 * A file up to 1 MiB that cannot be read is left out, and so are its other names; a larger one too if its
 * extents are damaged. If its data does not decode, which shows after its header was written, what cannot
 * be read is zeros. All are reported and counted.
 * After any other error the archive lacks its end.
 * Return: 0; -EUCLEAN something was left out or damaged, the rest is there; -ECANCELED; -ENOMEM; errno of
 * the output (reported).
 */
EROFS_API int erofs_to_tar(struct erofs_image *img, struct erofs_engine *eng,
			   const struct erofs_tar_options *options, struct erofs_diag *diag,
			   struct erofs_tar_result *ret_result);

EROFS_END_DECLS

#endif
