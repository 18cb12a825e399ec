// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Directory handles of the target: a bounded number is open, the rest can be opened again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sink/sink_priv.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#define OPEN_MAX_DIRS 512	/* more would not be faster: a walk goes up and down a few at a time */
#define OPEN_KEEP_FREE 24	/* descriptors for image, devices, pipes and whatever the program has */
#define OPEN_PER_LANE 3		/* two pinned directories and a file */

/* ---- the list of directories that are open and not pinned ---- */

static void unlink_dir(struct tree *tree, struct tree_dir *dir)
{
	*(dir->newer ? &dir->newer->older : &tree->newest) = dir->older;
	*(dir->older ? &dir->older->newer : &tree->oldest) = dir->newer;
	dir->newer = dir->older = NULL;
}

static void link_newest(struct tree *tree, struct tree_dir *dir)
{
	dir->older = tree->newest;
	dir->newer = NULL;
	*(tree->newest ? &tree->newest->newer : &tree->oldest) = dir;
	tree->newest = dir;
}

static void close_oldest(struct tree *tree)
{
	struct tree_dir *dir = tree->oldest;

	unlink_dir(tree, dir);
	close(dir->fd);
	dir->fd = -1;
	tree->nopen--;
}

/* @dir is open: keep it so. The lock is held. */
static void pin(struct tree *tree, struct tree_dir *dir)
{
	if (!dir->pins++)
		unlink_dir(tree, dir);
}

static void unpin(struct tree *tree, struct tree_dir *dir)
{
	if (--dir->pins)
		return;
	link_newest(tree, dir);
	while (tree->nopen > tree->max_open && tree->oldest)
		close_oldest(tree);
}

void erofs_tree_unpin(struct tree *tree, struct tree_dir *dir)
{
	pthread_mutex_lock(&tree->lock);
	unpin(tree, dir);
	pthread_mutex_unlock(&tree->lock);
}

/* A directory was opened: pin it; if another thread was faster, with that one's descriptor. */
static void adopt(struct tree *tree, struct tree_dir *dir, int fd)
{
	if (dir->fd >= 0) {
		close(fd);
		pin(tree, dir);
		return;
	}
	dir->fd = fd;
	dir->pins = 1;
	tree->nopen++;
}

/* openat() that closes idle handles if the process has no descriptors left. */
static int open_at(struct tree *tree, int dir_fd, const char *name, int flags, mode_t mode)
{
	int fd = openat(dir_fd, name, flags, mode);

	if (fd >= 0 || errno != EMFILE)
		return fd >= 0 ? fd : -errno;
	pthread_mutex_lock(&tree->lock);
	while (tree->oldest)
		close_oldest(tree);
	pthread_mutex_unlock(&tree->lock);
	fd = openat(dir_fd, name, flags, mode);
	return fd >= 0 ? fd : -errno;
}

/* Open a known directory below its pinned parent; it must still be the one it was. */
static int reopen(struct tree *tree, int up_fd, const struct tree_dir *dir)
{
	auto_close int fd = open_at(tree, up_fd, dir->name, DIR_FLAGS, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_dev != dir->dev || st.st_ino != dir->ino)
		return -ESTALE;
	return steal_fd(&fd);
}

/* From @dir up to the first open directory, which is pinned. Return: how many are closed. */
static size_t climb(struct tree *tree, struct tree_dir *dir, struct tree_dir ***ret_chain)
{
	struct tree_dir *d, **chain;
	size_t n = 0, i = 0;

	for (d = dir; d->fd < 0; d = d->up)
		n++;
	chain = malloc((n + 1) * sizeof(*chain));
	if (!chain)
		return SIZE_MAX;
	for (d = dir; d->fd < 0; d = d->up)
		chain[i++] = d;
	chain[n] = d;
	pin(tree, d);
	*ret_chain = chain;
	return n;
}

int erofs_tree_pin(struct tree *tree, struct tree_dir *dir, int *ret_fd)
{
	auto_free struct tree_dir **chain = NULL;
	size_t n;
	int err = 0;

	pthread_mutex_lock(&tree->lock);
	if (dir->fd >= 0) {
		pin(tree, dir);
		n = 0;
	} else {
		n = climb(tree, dir, &chain);
	}
	while (n && n != SIZE_MAX) {
		int fd, up_fd = chain[n]->fd;

		pthread_mutex_unlock(&tree->lock);
		fd = reopen(tree, up_fd, chain[n - 1]);
		pthread_mutex_lock(&tree->lock);
		if (fd >= 0)
			adopt(tree, chain[n - 1], fd);
		unpin(tree, chain[n]);
		err = fd < 0 ? fd : 0;
		if (err)
			break;
		n--;
	}
	if (!n)
		*ret_fd = dir->fd;
	pthread_mutex_unlock(&tree->lock);
	return n == SIZE_MAX ? -ENOMEM : err;
}

void erofs_tree_forget(struct tree *tree, struct tree_dir *dir)
{
	pthread_mutex_lock(&tree->lock);
	if (dir->fd >= 0) {
		unlink_dir(tree, dir);
		close(dir->fd);
		dir->fd = -1;
		tree->nopen--;
	}
	pthread_mutex_unlock(&tree->lock);
}

/* ---- making directories ---- */

/* Was it made by this run? Only a birth time can tell; without one the answer is no. */
static bool is_ours(const struct tree *tree, int dir_fd, const char *name)
{
	struct statx stx;

	if (tree->fresh)
		return true;
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) || !(stx.stx_mask & STATX_BTIME))
		return false;
	return stx.stx_btime.tv_sec > tree->start.tv_sec ||
	       (stx.stx_btime.tv_sec == tree->start.tv_sec &&
		stx.stx_btime.tv_nsec > (uint32_t)tree->start.tv_nsec);
}

bool erofs_tree_has_made(const struct tree *tree, int dir_fd, const char *name)
{
	struct stat st;

	return !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && is_ours(tree, dir_fd, name);
}

int erofs_tree_make_room(struct tree *tree, int dir_fd, const char *name)
{
	struct stat st;

	if (is_ours(tree, dir_fd, name))
		return -ENOTUNIQ;
	if (!tree->overwrite)
		return -EEXIST;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (unlinkat(dir_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) && errno != ENOENT)
		return -errno;
	return 0;
}

/* A directory's mode is set at the end; until then we must be able to write into it. */
static void allow_writing(int fd, mode_t mode)
{
	if ((mode & 0700) != 0700)
		(void)fchmod(fd, (mode & 07777) | 0700);
}

/* The directory that is in the way may be used, if we can look into it. */
static int open_existing(struct tree *tree, int up_fd, const char *name, bool sweep)
{
	int fd = open_at(tree, up_fd, name, DIR_FLAGS, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		int err = -errno;

		close(fd);
		return err;
	}
	if (!tree->read_only)
		allow_writing(fd, st.st_mode);
	if (sweep)
		erofs_tree_sweep(fd);
	return fd;
}

/* Return: a descriptor, negative errno. */
static int make_or_open(struct tree *tree, int up_fd, const char *name, bool *ret_fresh)
{
	unsigned int tries;
	int err;

	for (tries = 0; tries < 2; tries++) {
		struct stat st;

		*ret_fresh = !mkdirat(up_fd, name, 0700);
		if (*ret_fresh)
			return open_at(tree, up_fd, name, DIR_FLAGS, 0);
		if (errno != EEXIST)
			return -errno;
		if (fstatat(up_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (S_ISDIR(st.st_mode))
			return is_ours(tree, up_fd, name) ? -ENOTUNIQ :
							    open_existing(tree, up_fd, name, tree->overwrite);
		err = erofs_tree_make_room(tree, up_fd, name);
		if (err)
			return err;
	}
	return -EEXIST;
}

/* Make @dir known as what @fd, which it takes, is. */
static int know(struct tree *tree, struct tree_dir *up, const char *name, int fd, bool fresh,
		struct tree_dir *dir)
{
	auto_close int owned = fd;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	memset(dir, 0, sizeof(*dir));
	dir->fresh = fresh && up->fresh;	/* a default ACL or SGID bit is passed on to what is made below it */
	dir->up = up;
	dir->name = name;
	dir->dev = st.st_dev;
	dir->ino = st.st_ino;
	pthread_mutex_lock(&tree->lock);
	dir->fd = steal_fd(&owned);
	dir->pins = 1;
	tree->nopen++;
	unpin(tree, dir);
	pthread_mutex_unlock(&tree->lock);
	return 0;
}

int erofs_tree_mkdir(struct tree *tree, struct tree_dir *up, const char *name, struct tree_dir *dir)
{
	bool fresh = false;
	int fd, up_fd, err = erofs_tree_pin(tree, up, &up_fd);

	if (err)
		return err;
	fd = make_or_open(tree, up_fd, name, &fresh);
	erofs_tree_unpin(tree, up);
	return know(tree, up, name, fd, fresh, dir);
}

int erofs_tree_enter(struct tree *tree, struct tree_dir *up, const char *name, struct tree_dir *dir)
{
	int fd, up_fd, err;
	struct stat st;

	if (!up && !tree->read_only && !fstat(tree->root.fd, &st))
		allow_writing(tree->root.fd, st.st_mode);
	if (!up)
		return 0;
	err = erofs_tree_pin(tree, up, &up_fd);
	if (err)
		return err;
	fd = open_existing(tree, up_fd, name, false);
	erofs_tree_unpin(tree, up);
	return know(tree, up, name, fd, false, dir);
}

int erofs_tree_create(struct tree *tree, int dir_fd, const char *name, mode_t mode)
{
	int err, fd;

	fd = open_at(tree, dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd != -EEXIST)
		return fd;
	err = erofs_tree_make_room(tree, dir_fd, name);
	if (err)
		return err;
	return open_at(tree, dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* ---- the target ---- */

static unsigned int choose_max_open(unsigned int lanes)
{
	unsigned int taken = OPEN_KEEP_FREE + OPEN_PER_LANE * lanes;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= OPEN_MAX_DIRS + taken)
		return OPEN_MAX_DIRS;
	return lim.rlim_cur > taken + 4 ? (unsigned int)lim.rlim_cur - taken : 4;
}

/*
 * From now on births are later than tree->start. What is there was born at the latest now by the fine
 * clock; what will be made gets the time of the coarse one, so wait for its next tick (1 to 10 ms).
 */
static void mark_start(struct tree *tree)
{
	struct timespec now, nap = { .tv_nsec = 500000 };

	clock_gettime(CLOCK_REALTIME, &tree->start);
	do {
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < tree->start.tv_sec ||
		 (now.tv_sec == tree->start.tv_sec && now.tv_nsec <= tree->start.tv_nsec));
}

static int make_parents(const char *path)
{
	auto_free char *copy = strdup(path);
	char *at;

	if (!copy)
		return -ENOMEM;
	for (at = copy + 1; *at; at++) {
		if (*at != '/' || at[-1] == '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return 0;
}

/* Does it pass a group or an ACL on to what is made in it? mkdir() may have inherited them. */
static bool passes_on(int fd, const struct stat *st)
{
	return (st->st_mode & S_ISGID) || fgetxattr(fd, "system.posix_acl_default", NULL, 0) > 0;
}

static int set_root(struct tree *tree, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	tree->root.fresh = tree->fresh && !passes_on(fd, &st);
	tree->root.dev = st.st_dev;
	tree->root.ino = st.st_ino;
	tree->root.fd = fd;
	tree->root.pins = 1;
	tree->nopen = 1;
	if (!tree->fresh && !tree->read_only)
		mark_start(tree);
	if (!tree->fresh && tree->overwrite)
		erofs_tree_sweep(fd);
	return 0;
}

static void init_tree(struct tree *tree, bool overwrite, unsigned int lanes)
{
	memset(tree, 0, sizeof(*tree));
	pthread_mutex_init(&tree->lock, NULL);
	tree->root.fd = -1;
	tree->overwrite = overwrite;
	tree->max_open = choose_max_open(lanes);
}

static int open_folder(struct tree *tree, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = set_root(tree, fd);
	if (!err)
		steal_fd(&fd);
	return err;
}

int erofs_tree_open(struct tree *tree, const char *path, bool parents, bool overwrite, unsigned int lanes)
{
	int err;

	init_tree(tree, overwrite, lanes);
	err = parents ? make_parents(path) : 0;
	if (err)
		return err;
	tree->fresh = !mkdir(path, 0700);
	if (!tree->fresh && errno != EEXIST)
		return -errno;
	return open_folder(tree, path);
}

int erofs_tree_open_source(struct tree *tree, const char *path, unsigned int lanes)
{
	init_tree(tree, false, lanes);
	tree->read_only = true;
	return open_folder(tree, path);
}

int erofs_tree_open_parent(struct tree *tree, const char *path, bool parents, bool overwrite,
			   const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder = NULL;
	int err;

	init_tree(tree, overwrite, 1);
	if (slash && !slash[1])
		return -EISDIR;
	err = parents ? make_parents(path) : 0;
	if (err)
		return err;
	if (slash)
		folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	else
		folder = strdup(".");
	if (!folder)
		return -ENOMEM;
	*ret_name = slash ? slash + 1 : path;
	return open_folder(tree, folder);
}

void erofs_tree_close(struct tree *tree)
{
	if (tree->root.fd >= 0)
		close(tree->root.fd);
	tree->root.fd = -1;
	pthread_mutex_destroy(&tree->lock);
}
