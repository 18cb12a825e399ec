// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"

const char *const fault_names[K_COUNT] = {
	"memory", "pread", "open", "openat", "mmap", "pthread_create", "memfd_create", "pwrite", "mkdirat",
	"linkat", "symlinkat", "mknodat", "ftruncate", "fchown", "fchmod", "futimens", "close", "write", "rename",
	"fdopendir", "readlinkat", "xattr", "fsync", "read", "stat", "readdir", "seek",
	"size",
};

static _Atomic int armed = -1;		/* the kind that is to fail, -1: none */
static _Atomic long countdown;
static _Atomic bool hit;

void fault_arm(enum kind kind, long n)
{
	atomic_store(&hit, false);
	atomic_store(&countdown, n);
	atomic_store(&armed, (int)kind);
}

bool fault_disarm(void)
{
	atomic_store(&armed, -1);
	return atomic_load(&hit);
}

static bool fails(enum kind kind)
{
	if (atomic_load(&armed) != (int)kind || atomic_fetch_sub(&countdown, 1) != 1)
		return false;
	atomic_store(&hit, true);
	return true;
}

#define WRAP(type, name, kind, err, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		if (!fails(kind)) \
			return __real_##name args; \
		errno = (err); \
		return (type)-1; \
	}

#define WRAP_NULL(name, params, args) \
	void *__real_##name params; \
	void *__wrap_##name params; \
	void *__wrap_##name params \
	{ \
		return fails(K_MEMORY) ? NULL : __real_##name args; \
	}

WRAP_NULL(malloc, (size_t n), (n))
WRAP_NULL(calloc, (size_t n, size_t s), (n, s))
WRAP_NULL(realloc, (void *p, size_t n), (p, n))
WRAP_NULL(strdup, (const char *s), (s))
WRAP_NULL(strndup, (const char *s, size_t n), (s, n))
WRAP(ssize_t, pread, K_PREAD, EIO, (int fd, void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, pwrite, K_PWRITE, ENOSPC, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, write, K_WRITE, ENOSPC, (int fd, const void *b, size_t n), (fd, b, n))
WRAP(int, renameat, K_RENAME, EIO, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAP(int, rename, K_RENAME, EIO, (const char *a, const char *b), (a, b))
WRAP(int, fsync, K_FLUSH, EIO, (int fd), (fd))
WRAP(ssize_t, readlinkat, K_TARGET, EIO, (int fd, const char *p, char *b, size_t n), (fd, p, b, n))
WRAP(ssize_t, llistxattr, K_XATTR, EIO, (const char *p, char *b, size_t n), (p, b, n))
WRAP(ssize_t, lgetxattr, K_XATTR, EIO, (const char *p, const char *k, void *b, size_t n), (p, k, b, n))
WRAP(ssize_t, flistxattr, K_XATTR, EIO, (int fd, char *b, size_t n), (fd, b, n))
WRAP(ssize_t, fgetxattr, K_XATTR, EIO, (int fd, const char *k, void *b, size_t n), (fd, k, b, n))
WRAP(ssize_t, read, K_READ, EIO, (int fd, void *b, size_t n), (fd, b, n))
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	int err;

	if (fails(K_STAT)) {
		errno = EIO;
		return -1;
	}
	err = __real_fstat(fd, st);
	if (!err && S_ISREG(st->st_mode) && st->st_size >= FAULT_LARGE && fails(K_SIZE))
		st->st_size += 4096;
	return err;
}
WRAP(int, stat, K_STAT, EIO, (const char *p, struct stat *st), (p, st))
WRAP(int, fstatat, K_STAT, EIO, (int fd, const char *p, struct stat *st, int f), (fd, p, st, f))
WRAP(off_t, lseek, K_SEEK, EIO, (int fd, off_t o, int w), (fd, o, w))
WRAP(int, fseek, K_SEEK, EIO, (FILE *f, long o, int w), (f, o, w))
WRAP(ssize_t, __getdelim, K_MEMORY, ENOMEM, (char **l, size_t *n, int c, FILE *f), (l, n, c, f))
WRAP(ssize_t, getline, K_MEMORY, ENOMEM, (char **l, size_t *n, FILE *f), (l, n, f))
WRAP(int, memfd_create, K_MEMFD, ENOSYS, (const char *n, unsigned int f), (n, f))
WRAP(int, mkdirat, K_MKDIR, ENOSPC, (int fd, const char *n, mode_t m), (fd, n, m))
WRAP(int, linkat, K_LINK, ENOSPC, (int a, const char *b, int c, const char *d, int e), (a, b, c, d, e))
WRAP(int, symlinkat, K_SYMLINK, ENOSPC, (const char *t, int fd, const char *n), (t, fd, n))
WRAP(int, mknodat, K_MKNOD, ENOSPC, (int fd, const char *n, mode_t m, dev_t d), (fd, n, m, d))
WRAP(int, ftruncate, K_TRUNCATE, EIO, (int fd, off_t n), (fd, n))
WRAP(int, fchown, K_CHOWN, EIO, (int fd, uid_t u, gid_t g), (fd, u, g))
WRAP(int, fchmod, K_CHMOD, EIO, (int fd, mode_t m), (fd, m))
WRAP(int, futimens, K_TIMES, EIO, (int fd, const struct timespec *t), (fd, t))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (!fails(K_OPEN))
		return __real_open(path, flags, 0600);
	errno = EMFILE;
	return -1;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (!fails(K_OPENAT))
		return __real_openat(dir, path, flags, mode);
	errno = ENFILE;
	return -1;
}

void *__real_mmap(void *a, size_t n, int p, int f, int fd, off_t o);
void *__wrap_mmap(void *a, size_t n, int p, int f, int fd, off_t o);
void *__wrap_mmap(void *a, size_t n, int p, int f, int fd, off_t o)
{
	if (!fails(K_MMAP))
		return __real_mmap(a, n, p, f, fd, o);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	return fails(K_THREAD) ? EAGAIN : __real_pthread_create(t, a, fn, arg);
}

/* Closes, and says that what was written did not arrive. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r = __real_close(fd);

	if (!fails(K_CLOSE))
		return r;
	errno = EIO;
	return -1;
}

int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list ap;
	int r = -1;

	va_start(ap, format);
	if (!fails(K_MEMORY))
		r = vasprintf(ret, format, ap);
	va_end(ap);
	return r;
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
	if (!fails(K_FOLDER))
		return __real_fdopendir(fd);
	errno = ENOMEM;
	return NULL;
}

struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d)
{
	if (!fails(K_NAMES))
		return __real_readdir(d);
	errno = EIO;
	return NULL;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!fails(K_OPEN))
		return __real_fopen(path, mode);
	errno = EMFILE;
	return NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

void fault_remove_tree(const char *path)
{
	nftw(path, remove_entry, 20, FTW_PHYS | FTW_DEPTH);
}
