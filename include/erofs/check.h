/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* check: is this image sound? Metadata always, data if asked. */
#ifndef EROFS_CHECK_H
#define EROFS_CHECK_H

#include <erofs/engine.h>
#include <erofs/image.h>

EROFS_BEGIN_DECLS

struct erofs_check_options {
	size_t size;		/* sizeof(struct erofs_check_options) */
	int data;		/* decode every pcluster, read all plain data */
	int digests;		/* compare files with their recorded digests; -ENODATA if the image has none */
	int has_nid;		/* start at @nid, not at the root */
	uint64_t nid;
};

struct erofs_check_result {
	uint64_t inodes, directories, files;
	uint64_t stored_bytes, decoded_bytes;	/* of all inodes and the packed file: pclusters; of inodes: sizes */
	uint64_t pclusters;		/* decoded, each once */
};

/**
 * erofs_check() - check an image or a subtree
 * @options:    may be NULL: metadata of the whole image
 * @diag:       receives the findings, named by path; not flushed
 * @ret_result: may be NULL; filled also when damage was found
 * Memory is bounded by the engine's limit. Findings do not depend on the number of workers.
 * Return: 0; -EUCLEAN damage was reported; -ECANCELED; -EIO, -ENOMEM … (reported) the check is not
 * complete; -ENODATA, -EOPNOTSUPP (reported) no digests in the image, or no SHA-256 in this build.
 */
EROFS_API int erofs_check(struct erofs_image *img, struct erofs_engine *eng,
			  const struct erofs_check_options *options, struct erofs_diag *diag,
			  struct erofs_check_result *ret_result);

/**
 * erofs_name_findings() - give the collected findings about nids their paths
 * @start_nid: the directory or file that paths count from
 * Walks the tree if any finding lacks a path. Of several paths of an inode the smallest is taken.
 * Return: 0, -ECANCELED, -ENOMEM, or why the start cannot be read.
 */
EROFS_API int erofs_name_findings(struct erofs_image *img, struct erofs_engine *eng,
				  struct erofs_diag *diag, uint64_t start_nid);

EROFS_END_DECLS

#endif
