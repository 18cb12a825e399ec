/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* digest: digests of an image's files, alone or in an mtree manifest, computed in parallel, written in order. */
#ifndef EROFS_DIGEST_H
#define EROFS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/archive.h>
#include <erofs/engine.h>
#include <erofs/image.h>

EROFS_BEGIN_DECLS

enum erofs_digest_algorithm {
	EROFS_DIGEST_SHA256,
	EROFS_DIGEST_SHA512,
	EROFS_DIGEST_FSVERITY,		/* by SHA-256 */
	EROFS_DIGEST_FSVERITY_SHA512,
};

struct erofs_digest_options {
	size_t size;			/* sizeof(struct erofs_digest_options) */
	int has_nid;			/* start at @nid, not at the root */
	uint64_t nid;
	const char *name;		/* of the start if it is no directory; NULL: "file" */
	const struct erofs_select *select;	/* which files, NULL: all */
	enum erofs_digest_algorithm algorithm;
	unsigned int fsverity_block;	/* bytes, a power of two from 1024 to 65536; 0: 4096 */
	const uint8_t *salt;		/* of fs-verity, at most 32 bytes */
	size_t salt_size;
	int fd;				/* where to write, at its position */
	erofs_write_fn write;		/* if not NULL: instead of @fd */
	void *write_arg;
};

struct erofs_mtree_options {
	size_t size;			/* sizeof(struct erofs_mtree_options) */
	int has_nid;			/* start at @nid, not at the root */
	uint64_t nid;
	const char *name;		/* of the start if it is no directory; NULL: "file" */
	const struct erofs_select *select;	/* which entries, NULL: all */
	int xattrs;			/* xattrs and fs-verity digests too, as comments */
	int fd;				/* where to write, at its position */
	erofs_write_fn write;		/* if not NULL: instead of @fd */
	void *write_arg;
};

struct erofs_digest_result {
	uint64_t entries;		/* lines written, without comments */
	uint64_t failed;		/* files and symlinks whose contents cannot be read */
	int output_failed;		/* the error that was returned is the output's */
};

/**
 * erofs_digest_files() - write a line with the digest of each regular file
 * @ret_result: may be NULL; filled also after an error
 * Lines are those of sha256sum, sha512sum and "fsverity digest", sorted by path, depth first; paths have no
 * slash in front. A file that cannot be read has no line, and is reported and counted. One large file is
 * hashed in parallel for fs-verity. The bytes are the same whatever the engine's settings.
 * Return: 0; -EUCLEAN something was left out or damaged, the rest is there; -EINVAL an option is wrong;
 * -EOPNOTSUPP no libcrypto (reported); -ECANCELED; -ENOMEM; errno of the output (reported).
 */
EROFS_API int erofs_digest_files(struct erofs_image *img, struct erofs_engine *eng,
				 const struct erofs_digest_options *options, struct erofs_diag *diag,
				 struct erofs_digest_result *ret_result);

/**
 * erofs_to_mtree() - write an mtree(5) manifest with SHA-256 digests
 * @ret_result: may be NULL; filled also after an error
 * Full paths "./a/b", the start is "."; sorted by path, depth first. The line of a file that cannot be read
 * has no digest, that of a symlink no target; both are reported and counted. After all errors that are not
 * damage the manifest is not whole.
 * Return: as erofs_digest_files().
 */
EROFS_API int erofs_to_mtree(struct erofs_image *img, struct erofs_engine *eng,
			     const struct erofs_mtree_options *options, struct erofs_diag *diag,
			     struct erofs_digest_result *ret_result);

/**
 * erofs_file_digest() - the fs-verity digest of a file, of an image as it lies there
 * @path: a regular file or a block device
 * SHA-256, blocks of 4096 bytes, no salt: what "fsverity digest" prints.
 * Return: 0; -EOPNOTSUPP no libcrypto; -ECANCELED; -ENOMEM; errno of reading (all reported but -ECANCELED).
 */
EROFS_API int erofs_file_digest(const char *path, struct erofs_engine *eng, struct erofs_diag *diag,
				uint8_t ret_digest[32]);

EROFS_END_DECLS

#endif
