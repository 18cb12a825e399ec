/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * tar: the headers of one entry in pax form (POSIX.1-2001, pax interchange format), into memory.
 *
 * Facts that decide what is written: numbers are octal in fields of a fixed width; what does not fit, and
 * names above 100 bytes, stand in records of an extended header in front. Nanoseconds have a record only
 * if there are any. Owners are numbers. Names that are no UTF-8 are marked (hdrcharset=BINARY).
 * The bytes depend on nothing but the entry.
 */
#ifndef EROFS_TAR_HEAD_H
#define EROFS_TAR_HEAD_H

#include "meta/meta_priv.h"

#define TAR_BLOCK 512u
#define TAR_RECORD 10240u	/* an archive is padded to a multiple of it */

enum tar_type {
	TAR_FILE = '0',
	TAR_LINK = '1',
	TAR_SYMLINK = '2',
	TAR_CHAR = '3',
	TAR_BLOCKDEV = '4',
	TAR_DIR = '5',
	TAR_FIFO = '6',
	TAR_PAX = 'x',
};

/* Bytes that grow. */
struct tarbuf {
	uint8_t *data;
	size_t len, room;
};

void erofs_tarbuf_free(struct tarbuf *b);
/* Room for @more bytes behind what is there. 0, -ENOMEM. */
int erofs_tarbuf_reserve(struct tarbuf *b, size_t more);
int erofs_tarbuf_add(struct tarbuf *b, const void *data, size_t len);
/* Zeros up to a multiple of TAR_BLOCK. */
int erofs_tarbuf_pad(struct tarbuf *b);

struct tar_head {
	const char *path, *link;	/* link: NULL if it has none */
	size_t path_len, link_len;
	enum tar_type type;
	uint64_t size;			/* bytes of contents that follow */
	const struct erofs_inode *ino;	/* owner, mode, time, device number */
};

/** erofs_tar_record() - add the record "KEY=VALUE" to an extended header. 0, -ENOMEM. */
int erofs_tar_record(struct tarbuf *records, const char *key, const void *value, size_t len);

/**
 * erofs_tar_xattr() - add an extended attribute to an extended header
 * ACLs become text with numeric ids (SCHILY.acl.*), all else is raw (SCHILY.xattr.NAME).
 * Return: 0, -ENOMEM.
 */
int erofs_tar_xattr(struct tarbuf *records, const struct xattr_view *xa);

/**
 * erofs_tar_put_head() - write the extended header, if there is anything for it, and the header
 * @records: of the xattrs; emptied
 * Return: 0, -ENOMEM.
 */
int erofs_tar_put_head(struct tarbuf *out, const struct tar_head *h, struct tarbuf *records);

#endif
