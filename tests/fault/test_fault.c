// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fault injection: of each kind of call the first fails, then the second, and so on until a run is over
 * before its turn. No run may crash, leak or hang; a run that says it succeeded must have done as much as
 * one without a fault (some calls have a fallback). Calls are caught by the linker (--wrap).
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <erofs/erofs.h>

enum kind {
	K_MEMORY, K_PREAD, K_OPEN, K_OPENAT, K_MMAP, K_THREAD, K_MEMFD, K_PWRITE, K_MKDIR, K_LINK, K_SYMLINK,
	K_MKNOD, K_TRUNCATE, K_CHOWN, K_CHMOD, K_TIMES, K_CLOSE, K_WRITE, K_RENAME, K_COUNT,
};

static const char *const kind_names[K_COUNT] = {
	"memory", "pread", "open", "openat", "mmap", "pthread_create", "memfd_create", "pwrite", "mkdirat",
	"linkat", "symlinkat", "mknodat", "ftruncate", "fchown", "fchmod", "futimens", "close", "write", "renameat",
};

static _Atomic int armed = -1;		/* the kind that is to fail, -1: none */
static _Atomic long countdown;
static _Atomic bool hit;

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
WRAP(ssize_t, pread, K_PREAD, EIO, (int fd, void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, pwrite, K_PWRITE, ENOSPC, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, write, K_WRITE, ENOSPC, (int fd, const void *b, size_t n), (fd, b, n))
WRAP(int, renameat, K_RENAME, EIO, (int a, const char *b, int c, const char *d), (a, b, c, d))
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

/* ---- the run ---- */

struct outcome {
	bool ok;
	struct erofs_check_result checked;
	struct erofs_extract_result extracted;
	uint64_t entries, bytes;	/* in the target */
};

static struct outcome *counting;

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	counting->entries++;
	if (type == FTW_F && S_ISREG(st->st_mode))
		counting->bytes += (uint64_t)st->st_size;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int check_and_extract(const char *image, const char *target, struct erofs_engine *eng,
			     struct erofs_diag *diag, struct outcome *o)
{
	struct erofs_check_options full = { .size = sizeof(full), .data = 1 };
	struct erofs_extract_options extract = { .size = sizeof(extract), .target = target,
						 .preserve_owner = -1, .preserve_perms = -1 };
	static const char *const odd[] = { "**/* *", NULL };	/* what fs_config cannot hold */
	struct erofs_select_options leave = { .size = sizeof(leave), .excludes = odd };
	struct erofs_android_options config = { .size = sizeof(config), .mount_point = "/vendor" };
	struct erofs_select *select = NULL;
	struct erofs_image *img;
	char beside[4200];
	int err = erofs_open(image, NULL, diag, &img);

	if (err)
		return err;
	snprintf(beside, sizeof(beside), "%s/config of it", target);
	config.dir = beside;
	err = erofs_check(img, eng, &full, diag, &o->checked);
	if (!err)
		err = erofs_extract(img, eng, &extract, diag, &o->extracted);
	if (!err)
		err = erofs_select_new(&leave, &select);
	config.select = select;
	if (!err)
		err = erofs_android_config(img, eng, &config, diag, NULL);
	erofs_select_free(select);
	(void)erofs_name_findings(img, eng, diag, 0);
	erofs_close(img);
	return err;
}

static struct outcome run(const char *image, const char *folder, enum kind kind, long n, const char *workers)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct outcome o = { 0 };
	struct erofs_engine *eng = NULL;
	struct erofs_diag *diag;
	char target[4096];
	int err;

	snprintf(target, sizeof(target), "%s/x", folder);
	if (erofs_diag_new(NULL, NULL, &diag))
		return o;
	atomic_store(&hit, false);
	atomic_store(&countdown, n);
	atomic_store(&armed, (int)kind);
	err = erofs_engine_new(&options, diag, &eng);
	if (!err)
		err = check_and_extract(image, target, eng, diag, &o);
	erofs_engine_free(eng);
	atomic_store(&armed, -1);
	o.ok = !err && !erofs_diag_count(diag, EROFS_SEV_FAIL) && !erofs_diag_count(diag, EROFS_SEV_CORRUPT) &&
	       !erofs_diag_count(diag, EROFS_SEV_WARNING);
	erofs_diag_free(diag);
	counting = &o;
	nftw(target, count_entry, 20, FTW_PHYS);
	nftw(target, remove_entry, 20, FTW_PHYS | FTW_DEPTH);
	return o;
}

/* A copy with bytes behind its end: images below 1 MiB are not worth threads. */
static bool copy_padded(const char *from, const char *to)
{
	char buf[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t n;
	bool ok = in && out;

	while (ok && (n = fread(buf, 1, sizeof(buf), in)) > 0)
		ok = fwrite(buf, 1, n, out) == n;
	ok = ok && !fflush(out) && !ftruncate(fileno(out), 4 << 20);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	return ok;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
	return !memcmp(&a->checked, &b->checked, sizeof(a->checked)) &&
	       !memcmp(&a->extracted, &b->extracted, sizeof(a->extracted)) && a->entries == b->entries &&
	       a->bytes == b->bytes;
}

/* Fail the first, second, ... call of a kind. Return: how many runs claimed too much. */
static unsigned int try_kind(const char *image, const char *folder, enum kind kind, const char *workers,
			     const struct outcome *whole, long *ret_runs)
{
	unsigned int wrong = 0;
	long n;

	for (n = 1; n < 20000; n++) {
		struct outcome o = run(image, folder, kind, n, workers);

		if (o.ok && !same(&o, whole) && wrong++ < 5)
			printf("# %s %ld, workers=%s: success with %lu entries and %lu bytes of %lu and %lu\n",
			       kind_names[kind], n, workers, o.entries, o.bytes, whole->entries, whole->bytes);
		if (!atomic_load(&hit))
			break;
	}
	*ret_runs = n;
	return wrong;
}

int main(void)
{
	static const char *const settings[] = { "1", "2" };
	const char *top = getenv("top_srcdir");
	char sample[4096], image[4096], folder[] = "/tmp/erofs-fault-XXXXXX";
	unsigned int i, k, number = 0;

	snprintf(sample, sizeof(sample), "%s/tests/data/sample.erofs", top ? top : ".");
	if (mkdtemp(folder))
		snprintf(image, sizeof(image), "%s/image", folder);
	if (access(sample, R_OK) || !copy_padded(sample, image)) {
		puts("1..0 # SKIP no sample image");
		return 0;
	}
	printf("1..%d\n", 2 * K_COUNT);
	for (i = 0; i < 2; i++) {
		struct outcome whole = run(image, folder, K_COUNT, 0, settings[i]);

		for (k = 0; k < K_COUNT; k++) {
			long runs;
			unsigned int wrong = whole.ok ? try_kind(image, folder, (enum kind)k, settings[i], &whole,
								 &runs) : 1;

			printf("%sok %u - %s fails: %ld runs, workers=%s\n", wrong ? "not " : "", ++number,
			       kind_names[k], whole.ok ? runs : 0, settings[i]);
			fflush(stdout);
		}
	}
	unlink(image);
	rmdir(folder);
	return 0;
}
