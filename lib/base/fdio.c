// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Whole reads and writes on descriptors. Knows nothing of EROFS. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"

ssize_t erofs_fdio_pread(int fd, void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	if (off > INT64_MAX || len > INT64_MAX - off)
		return -EINVAL;
	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int erofs_fdio_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	if (off > INT64_MAX || len > INT64_MAX - off)
		return -EFBIG;
	while (done < len) {
		ssize_t n = pwrite(fd, (const char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

int erofs_fdio_write(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

mode_t erofs_fdio_umask(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	unsigned int mask;
	mode_t old;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Umask: %o", &mask) == 1) {
			fclose(f);
			return (mode_t)mask & 0777;
		}
	if (f)
		fclose(f);
	old = umask(022);
	umask(old);
	return old & 0777;
}
