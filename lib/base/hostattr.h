/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Extended attributes of files of the host, by descriptor or by a path that is not followed if it is a symlink. */
#ifndef EROFS_BASE_HOSTATTR_H
#define EROFS_BASE_HOSTATTR_H

#include <stddef.h>
#include <sys/types.h>

#define HOSTATTR_VALUE_MAX 65536	/* bytes: Linux's XATTR_SIZE_MAX */

struct hostattr_of {
	int fd;			/* if it is not negative */
	const char *path;	/* else */
};

/* Names, each ends with NUL. Keeps its room from file to file; begins as zeros; free @names. */
struct hostattr_list {
	char *names;
	size_t len, room;
};

/** erofs_hostattr_list() - return: 0, also where there are no attributes; -ENOMEM and others */
int erofs_hostattr_list(const struct hostattr_of *of, struct hostattr_list *list);

/** erofs_hostattr_get() - return: bytes of the value; -ENODATA: it is gone; other negative errno */
ssize_t erofs_hostattr_get(const struct hostattr_of *of, const char *name, void *value, size_t room);

#endif
