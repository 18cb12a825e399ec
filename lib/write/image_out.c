// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The file or device that becomes the image, or the device of its chunks. A regular file is written under a
 * temporary name beside it and renamed; what cannot be renamed is written in place, its superblock last (cli.md R23).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "write/write_priv.h"

#define ZEROS 65536

/* The name that a symlink leads to, also if nothing is there yet. */
static char *resolve(const char *path)
{
	char *real = realpath(path, NULL), target[4096];
	ssize_t len;

	if (real)
		return real;
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return strdup(path);
	target[len] = 0;
	if (target[0] != '/' && strrchr(path, '/')) {
		char *joined = NULL;

		if (asprintf(&joined, "%.*s/%s", (int)(strrchr(path, '/') - path), path, target) < 0)
			return NULL;
		return joined;
	}
	return strdup(target);
}

/* A descriptor by name has no name to rename to. */
static bool is_descriptor(const char *path)
{
	return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6) || !strcmp(path, "/dev/stdout");
}

static int open_temp(struct output *out, const struct stat *old)
{
	uint64_t dice;
	int tries;

	for (tries = 0; tries < 16; tries++) {
		free(out->temp);
		out->temp = NULL;
		if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
			dice = (uint64_t)getpid() << 8 | (unsigned int)tries;
		if (asprintf(&out->temp, "%s.%08x", out->path, (unsigned int)dice) < 0) {
			out->temp = NULL;
			return -ENOMEM;
		}
		out->fd = open(out->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (out->fd >= 0) {
			if (old && fchmod(out->fd, old->st_mode & 07777))
				return -errno;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	tries = -errno;
	free(out->temp);
	out->temp = NULL;
	return tries;
}

/* Whoever looks while we write must not see the superblock of before. */
static int wipe_super(struct output *out)
{
	static const uint8_t zeros[DISK_SUPER_BASE];

	if (out->regular)
		return ftruncate(out->fd, (off_t)out->start) ? -errno : 0;
	return erofs_fdio_pwrite(out->fd, zeros, sizeof(zeros), out->start + DISK_SUPER_OFFSET);
}

static int open_in_place(struct output *out, const char *path)
{
	struct stat st;

	out->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (out->fd < 0 || fstat(out->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return -EINVAL;
	out->regular = S_ISREG(st.st_mode);
	return wipe_super(out);
}

/* What is in front of the image in the file that it replaces. */
static int copy_front(const struct output *out)
{
	int fd = open(out->path, O_RDONLY | O_CLOEXEC), err = 0;
	auto_free uint8_t *buf = malloc(ZEROS);
	uint64_t off;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	if (!buf)
		err = -ENOMEM;
	for (off = 0; !err && off < out->start; off += (uint64_t)n) {
		n = erofs_fdio_pread(fd, buf, (size_t)min_u64(ZEROS, out->start - off), off);
		if (n <= 0)
			break;
		err = erofs_fdio_pwrite(out->fd, buf, (size_t)n, off);
	}
	close(fd);
	return err ? err : n < 0 ? (int)n : 0;
}

static int open_any(struct output *out)
{
	struct stat st;
	bool exists;
	int err;

	out->end = out->start;
	out->path = resolve(out->name);
	if (!out->path)
		return -ENOMEM;
	exists = !stat(out->name, &st);
	if (exists && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (is_descriptor(out->name) || (exists && !S_ISREG(st.st_mode)))
		return open_in_place(out, out->name);
	/* a file that may not be written is not replaced either */
	if (exists && access(out->path, W_OK))
		return -errno;
	out->regular = true;
	err = open_temp(out, exists ? &st : NULL);
	if (exists && (err == -EACCES || err == -EPERM || err == -EROFS))
		return open_in_place(out, out->path);
	return err || !exists || !out->start ? err : copy_front(out);
}

static int fail_output(const struct writer *w, const struct output *out, int err)
{
	return erofs_diag_fail(w->diag, err, AT_NOWHERE, "cannot write %s", out->name);
}

int erofs_output_open(struct writer *w, struct output *out, const char *name, uint64_t start)
{
	int err;

	out->name = name;
	out->start = start;
	err = open_any(out);
	return err ? fail_output(w, out, err) : 0;
}

/* On a device what is between the things we write is what was there before: zeros belong there. */
static int fill_up_to(struct output *out, uint64_t off)
{
	static const uint8_t zeros[ZEROS];
	int err = 0;

	while (!err && !out->regular && out->end < off) {
		size_t n = (size_t)min_u64(ZEROS, off - out->end);

		err = erofs_fdio_pwrite(out->fd, zeros, n, out->end);
		out->end += n;
	}
	return err;
}

int erofs_output_put(struct writer *w, struct output *out, const void *buf, size_t len, uint64_t off)
{
	int err = fill_up_to(out, out->start + off);

	if (!err)
		err = erofs_fdio_pwrite(out->fd, buf, len, out->start + off);
	if (err)
		return fail_output(w, out, err);
	out->end = max_u64(out->end, out->start + off + len);
	return 0;
}

int erofs_output_write(struct writer *w, const void *buf, size_t len, uint64_t off)
{
	return erofs_output_put(w, &w->out, buf, len, off);
}

struct output *erofs_output_named(struct writer *w)
{
	return w->o->android_sparse ? &w->sparse : &w->out;
}

const char *erofs_output_path(struct writer *w)
{
	const struct output *out = erofs_output_named(w);

	return out->temp ? out->temp : w->o->output;
}

int erofs_output_read(struct writer *w, struct output *out, void *buf, size_t len, uint64_t off)
{
	ssize_t got = erofs_fdio_pread(out->fd, buf, len, out->start + off);

	if (got < 0)
		return erofs_diag_fail(w->diag, (int)got, AT_NOWHERE, "cannot read %s", out->name);
	/* not written yet */
	memset((uint8_t *)buf + got, 0, len - (size_t)got);
	return 0;
}

int erofs_output_finish(struct writer *w, struct output *out, uint64_t size)
{
	int err = fill_up_to(out, out->start + size);

	if (!err && out->regular && ftruncate(out->fd, (off_t)(out->start + size)))
		err = -errno;
	if (err)
		return fail_output(w, out, err);
	out->end = out->start + size;
	return 0;
}

int erofs_output_commit(struct writer *w, struct output *out)
{
	int err = 0;

	if (w->o->fsync && fsync(out->fd))
		err = -errno;
	/* some file systems tell of a full disk only here */
	if (!err && close(steal_fd(&out->fd)))
		err = -errno;
	if (!err && out->temp && rename(out->temp, out->path))
		err = -errno;
	if (err)
		return fail_output(w, out, err);
	free(out->temp);
	out->temp = NULL;
	return 0;
}

void erofs_output_spoil(struct output *out)
{
	if (out->fd >= 0 && !out->temp)
		(void)wipe_super(out);
}

void erofs_output_drop(struct output *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->temp)
		unlink(out->temp);
	free(out->temp);
	free(out->path);
}
