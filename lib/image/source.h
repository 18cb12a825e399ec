/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Where the bytes of a device come from. A source never changes once made: any thread may read.
 */
#ifndef EROFS_IMAGE_SOURCE_H
#define EROFS_IMAGE_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <erofs/diag.h>

struct source;

struct source_ops {
	/* Up to @len bytes at @off, less only at the end. Bytes read, negative errno. */
	ssize_t (*read)(const struct source *src, uint64_t off, void *buf, size_t len);
	/* [off, off + len), which lies inside, is wanted soon */
	void (*readahead)(const struct source *src, uint64_t off, uint64_t len);
	void (*free)(struct source *src);
};

struct source {
	const struct source_ops *ops;
	uint64_t size;		/* bytes */
};

/** erofs_source_fd_new() - a file or block device; takes @fd, which is left to the caller on failure */
int erofs_source_fd_new(int fd, uint64_t size, struct source **ret_src);

#define SPARSE_MAGIC 0xed26ff3au
#define SPARSE_MAX_CHUNKS (UINT32_C(1) << 20)

/**
 * erofs_source_sparse_new() - the expanded bytes of an Android sparse image
 * @below: the file, which begins with SPARSE_MAGIC; taken, left to the caller on failure
 * The index takes 16 bytes a chunk, so 16 MiB at most: more than SPARSE_MAX_CHUNKS chunks are refused.
 * Checksums are not compared: that would need all bytes, and the image has better ones of its own.
 * Return: 0, -EUCLEAN, -EOPNOTSUPP (other version, too many chunks), -ENOMEM, errno of read; reported.
 */
int erofs_source_sparse_new(struct source *below, struct erofs_diag *diag, struct source **ret_src);

/** erofs_source_free() - NULL is fine */
void erofs_source_free(struct source *src);

#endif
