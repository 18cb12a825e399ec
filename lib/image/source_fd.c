// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The bytes of a file or block device. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fdio.h"
#include "image/source.h"

struct source_fd {
	struct source src;
	int fd;
};

static ssize_t read_fd(const struct source *src, uint64_t off, void *buf, size_t len)
{
	return erofs_fdio_pread(((const struct source_fd *)src)->fd, buf, len, off);
}

static void readahead_fd(const struct source *src, uint64_t off, uint64_t len)
{
	(void)posix_fadvise(((const struct source_fd *)src)->fd, (off_t)off, (off_t)len,
			    POSIX_FADV_WILLNEED);
}

static void free_fd(struct source *src)
{
	close(((struct source_fd *)src)->fd);
	free(src);
}

static const struct source_ops fd_ops = { read_fd, readahead_fd, free_fd };

int erofs_source_fd_new(int fd, uint64_t size, struct source **ret_src)
{
	struct source_fd *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct source_fd){ .src = { .ops = &fd_ops, .size = size }, .fd = fd };
	*ret_src = &s->src;
	return 0;
}

void erofs_source_free(struct source *src)
{
	if (src)
		src->ops->free(src);
}
