// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A pipe copied to an unlinked file in TMPDIR (cli.md R25), since images are read all over. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "diag/diag_priv.h"
#include "image/image_priv.h"

#define SPOOL_BUFFER (64 << 10)

/* An unlinked file; also where the file system has no O_TMPFILE. */
static int make_file(const char *folder)
{
	auto_free char *path = NULL;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (asprintf(&path, "%s/erofs-XXXXXX", folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* The descriptor may have been made non-blocking by who gave it to us. */
static ssize_t read_pipe(int fd, void *buf, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while ((n = read(fd, buf, len)) < 0) {
		if (errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
	return n;
}

int erofs_image_temp(struct erofs_diag *diag, const char **ret_folder)
{
	const char *dir = getenv("TMPDIR"), *folder = dir && *dir ? dir : "/tmp";
	int fd = make_file(folder);

	if (fd < 0)
		return erofs_diag_fail(diag, fd, AT_NOWHERE, "cannot make a temporary file in %s", folder);
	*ret_folder = folder;
	return fd;
}

int erofs_image_spool(int fd, struct erofs_diag *diag)
{
	auto_free char *buf = malloc(SPOOL_BUFFER);
	const char *folder = NULL;
	auto_close int to = -1;
	ssize_t n;
	int err;

	if (!buf)
		return -ENOMEM;
	to = erofs_image_temp(diag, &folder);
	if (to < 0)
		return to;
	while ((n = read_pipe(fd, buf, SPOOL_BUFFER))) {
		if (n < 0)
			return erofs_diag_fail(diag, (int)n, AT_NOWHERE, "cannot read the pipe");
		err = erofs_fdio_write(to, buf, (size_t)n);
		if (err)
			return erofs_diag_fail(diag, err, AT_NOWHERE, "cannot write a temporary file in %s",
					       folder);
	}
	return steal_fd(&to);
}
