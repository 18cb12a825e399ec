/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * A tar stream, entry by entry: pax, GNU, ustar, v7, also compressed, read by libarchive. Names are bytes,
 * as they stand in the stream; nothing is cleaned up or refused here. One thread.
 */
#ifndef EROFS_BASE_UNTAR_H
#define EROFS_BASE_UNTAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct untar;

struct untar_xattr {
	const char *name;
	const void *value;
	size_t len;
};

/* Everything in it is valid until the next entry. */
struct untar_entry {
	const char *path;
	const char *hardlink;		/* NULL: it is none, and what follows counts */
	const char *symlink;		/* NULL: it is none */
	const char *warning;		/* something in the header made no sense; NULL: all did */
	uint32_t mode;			/* type and permissions */
	uint32_t major, minor;		/* devices */
	int64_t uid, gid;
	int64_t mtime;
	uint32_t mtime_nsec;
	bool has_mtime;
	bool is_sparse;
	uint64_t size;			/* regular files */
	const struct untar_xattr *xattrs;	/* sorted by name, each once; ACLs as system.posix_acl_… */
	size_t nxattrs;
};

/* Should reading stop? */
typedef bool (*untar_stop_fn)(void *priv);

/* Is libarchive there? */
bool erofs_untar_is_there(void);

/**
 * erofs_untar_open() - read from a descriptor's position on
 * @fd:   borrowed; anything that can be read
 * @no_data: the stream has headers alone, each behind the one before, and is not compressed
 * @stop: asked between reads, and when a signal interrupted one
 * Return: 0, -EOPNOTSUPP no libarchive, -ENOMEM.
 */
int erofs_untar_open(int fd, bool no_data, untar_stop_fn stop, void *priv, struct untar **ret);
void erofs_untar_free(struct untar *t);

/*
 * The next entry: 1, 0 at the end; -EBADMSG this is no tar archive, or it is damaged or ends too early;
 * -ECANCELED; what read() said; -ENOMEM.
 */
int erofs_untar_next(struct untar *t, struct untar_entry *ret);
/* What is wrong, in words, if that or erofs_untar_data() returned -EBADMSG. */
const char *erofs_untar_error(const struct untar *t);

/*
 * The next piece of the entry's contents, in ascending order; what lies between pieces is a hole.
 * 1, 0 no more; errors as above. @pos is its place in the unpacked archive; @place the same in the file that
 * is read, UINT64_MAX if that is compressed or cannot be read twice.
 */
struct untar_piece {
	const void *buf;
	size_t len;
	uint64_t off;
	uint64_t pos;
	uint64_t place;
};
int erofs_untar_data(struct untar *t, struct untar_piece *ret);

/* Bytes of the unpacked archive that were read; at the end that is all, with the mark of the end. */
uint64_t erofs_untar_bytes(const struct untar *t);

/*
 * After the end: read what may follow, so that who writes into a pipe is not killed. true: the end was
 * marked as it should be, or that cannot be known.
 */
bool erofs_untar_drain(struct untar *t);

#endif
