// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A pipe copied to an unlinked file in TMPDIR (cli.md R25), since images are read all over. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/temp.h"
#include "diag/diag_priv.h"
#include "image/image_priv.h"

#define SPOOL_BUFFER (64 << 10)

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

int erofs_image_spool(int fd, struct erofs_diag *diag)
{
	const char *folder = erofs_temp_folder();
	auto_free char *buf = malloc(SPOOL_BUFFER);
	auto_close int to = -1;
	ssize_t n;
	int err;

	if (!buf)
		return -ENOMEM;
	to = erofs_temp_file();
	if (to < 0)
		return erofs_diag_fail(diag, to, AT_NOWHERE, "cannot make a temporary file in %s", folder);
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
