/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Scope cleanup: what a function made and did not hand on is released where its scope ends. */
#ifndef EROFS_BASE_CLEANUP_H
#define EROFS_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define auto_call(fn) __attribute__((cleanup(fn)))

/* steal() marks the line where ownership of a pointer leaves the scope. */
#define steal(p) ({ __typeof__(p) stolen_ = (p); (p) = NULL; stolen_; })

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#define auto_free auto_call(cleanup_free)
#define auto_close auto_call(cleanup_close)

#endif
