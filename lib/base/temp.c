// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Unlinked files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/temp.h"

const char *erofs_temp_folder(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* An unlinked file; also where the file system has no O_TMPFILE. */
int erofs_temp_file(void)
{
	const char *folder = erofs_temp_folder();
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
