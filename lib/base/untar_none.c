// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What there is of untar.c without libarchive: nothing is ever opened. */
#include <errno.h>

#include "base/untar.h"

#ifndef HAVE_LIBARCHIVE
struct untar {
	int fd;
};

bool erofs_untar_is_there(void)
{
	return false;
}

int erofs_untar_open(int fd, bool no_data, untar_stop_fn stop, void *priv, struct untar **ret)
{
	(void)fd;
	(void)no_data;
	(void)stop;
	(void)priv;
	(void)ret;
	return -EOPNOTSUPP;
}

void erofs_untar_free(struct untar *t)
{
	(void)t;
}

int erofs_untar_next(struct untar *t, struct untar_entry *ret)
{
	(void)t;
	(void)ret;
	return -EOPNOTSUPP;
}

const char *erofs_untar_error(const struct untar *t)
{
	(void)t;
	return "";
}

int erofs_untar_data(struct untar *t, struct untar_piece *ret)
{
	(void)t;
	(void)ret;
	return -EOPNOTSUPP;
}

uint64_t erofs_untar_bytes(const struct untar *t)
{
	(void)t;
	return 0;
}

bool erofs_untar_drain(struct untar *t)
{
	(void)t;
	return true;
}

#endif
