// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Extended attributes of the host. */
#include <errno.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "base/hostattr.h"

static ssize_t list_once(const struct hostattr_of *of, const struct hostattr_list *list)
{
	ssize_t n = of->fd >= 0 ? flistxattr(of->fd, list->names, list->room) :
				  llistxattr(of->path, list->names, list->room);

	return n < 0 ? -errno : n;
}

int erofs_hostattr_list(const struct hostattr_of *of, struct hostattr_list *list)
{
	ssize_t n = list_once(of, list);

	while (n == -ERANGE || (n > 0 && !list->names)) {
		size_t room = list->room ? 2 * list->room : 1024;
		char *grown = realloc(list->names, room);

		if (!grown)
			return -ENOMEM;
		list->names = grown;
		list->room = room;
		n = list_once(of, list);
	}
	if (n == -ENOTSUP || n == -ENOSYS)
		n = 0;
	list->len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

ssize_t erofs_hostattr_get(const struct hostattr_of *of, const char *name, void *value, size_t room)
{
	ssize_t n = of->fd >= 0 ? fgetxattr(of->fd, name, value, room) : lgetxattr(of->path, name, value, room);

	return n < 0 ? -errno : n;
}
