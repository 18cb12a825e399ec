// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A stream's target: standard output, or a file that has its name only once it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/temp.h"
#include "cli/cli.h"

#define TEMP_NAME ".erofs-part-XXXXXX"

static int fail(const struct cli *cli, const struct cli_output *out, const char *what)
{
	int err = -errno;

	erofs_cli_say_plain(cli, 'E', "%s: cannot %s: %s", out->name, what, strerror(-err));
	return err;
}

/* The file that a name leads to, symlinks resolved; NULL: no memory, or a loop. */
static char *resolve(const char *name)
{
	char *path = realpath(name, NULL);

	return path || errno != ENOENT ? path : strdup(name);
}

/* A name for the file while it is written, in the same folder. */
static char *temp_name(const char *target)
{
	const char *slash = strrchr(target, '/');
	size_t dir = slash ? (size_t)(slash + 1 - target) : 0;
	char *temp = malloc(dir + sizeof(TEMP_NAME));

	if (temp) {
		memcpy(temp, target, dir);
		memcpy(temp + dir, TEMP_NAME, sizeof(TEMP_NAME));
	}
	return temp;
}

static int open_temp(struct cli_output *out, const struct stat *old)
{
	mode_t mask = umask(0);
	int err;

	umask(mask);
	out->temp = temp_name(out->target);
	if (!out->temp)
		return -ENOMEM;
	out->fd = mkostemp(out->temp, O_CLOEXEC);
	if (out->fd >= 0 && !fchmod(out->fd, old ? old->st_mode & 07777 : 0666 & ~mask))
		return 0;
	err = -errno;
	if (out->fd >= 0) {
		close(out->fd);
		(void)unlink(out->temp);
		out->fd = -1;
	}
	free(out->temp);
	out->temp = NULL;
	errno = -err;	/* the caller reports it */
	return err;
}

int erofs_cli_output_open(const struct cli *cli, const char *name, struct cli_output *out)
{
	struct stat st;
	bool exists;

	*out = (struct cli_output){ .name = name ? name : "-", .fd = STDOUT_FILENO };
	if (!strcmp(out->name, "-"))
		return 0;
	out->fd = -1;
	out->target = resolve(out->name);
	if (!out->target)
		return fail(cli, out, "create");
	exists = !stat(out->name, &st);
	/* devices, pipes and /dev/fd/N are written in place, and so is a file in a folder that takes no new one */
	if ((!exists || S_ISREG(st.st_mode)) && !open_temp(out, exists ? &st : NULL))
		return 0;
	if (exists)
		out->fd = open(out->name, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (out->fd >= 0)
		return 0;
	(void)fail(cli, out, "create");
	free(out->target);
	out->target = NULL;
	return -EIO;
}

int erofs_cli_output_close(const struct cli *cli, struct cli_output *out, bool complete)
{
	int err = 0;

	if (!out->target)
		return 0;	/* standard output is closed where all of it is */
	if (out->fd >= 0 && close(out->fd))
		err = fail(cli, out, "write");
	if (out->temp && !err && complete && rename(out->temp, out->target))
		err = fail(cli, out, "create");
	if (out->temp && (err || !complete))
		(void)unlink(out->temp);
	free(out->temp);
	free(out->target);
	*out = (struct cli_output){ .fd = -1 };
	return err;
}

FILE *erofs_cli_temp_stream(void)
{
	auto_close int fd = erofs_temp_file();
	FILE *file;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	file = fdopen(fd, "w+");
	if (file)
		(void)steal_fd(&fd);
	return file;
}
