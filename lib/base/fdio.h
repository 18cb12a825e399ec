/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Whole reads and writes on descriptors: EINTR and short counts end here. */
#ifndef EROFS_BASE_FDIO_H
#define EROFS_BASE_FDIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * erofs_fdio_pread() - read up to @len bytes at @off
 * Return: bytes read, less than @len only at the end of the file; negative errno.
 */
ssize_t erofs_fdio_pread(int fd, void *buf, size_t len, uint64_t off);

/**
 * erofs_fdio_pwrite() - write all of @len bytes at @off
 * Return: 0 or negative errno; after an error some of the bytes may have been written.
 */
int erofs_fdio_pwrite(int fd, const void *buf, size_t len, uint64_t off);

/**
 * erofs_fdio_write() - write all of @len bytes at the position of @fd
 * Return: 0 or negative errno; after an error some of the bytes may have been written.
 */
int erofs_fdio_write(int fd, const void *buf, size_t len);

/** erofs_fdio_umask() - the umask, without changing it for other threads where the kernel tells it */
mode_t erofs_fdio_umask(void);

#endif
