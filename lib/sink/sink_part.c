// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Files that get their names when they are complete (X9): O_TMPFILE where it can be linked afterwards,
 * else a temporary name that is renamed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sink/sink_priv.h"

#define PART_MARK "user.erofs.part"
#define PART_PREFIX ".erofs-part-"

static int link_by(enum tree_temp temp, int fd, int dir_fd, const char *name)
{
	char path[40];

	if (temp == TREE_TEMP_LINK)
		return linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) ? -errno : 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* A name that nobody else has: random at first, then counted up. */
static void make_name(struct tree *tree, struct tree_part *part)
{
	pthread_mutex_lock(&tree->lock);
	if (!tree->next_part && getrandom(&tree->next_part, sizeof(tree->next_part), GRND_NONBLOCK) < 0)
		tree->next_part = (uint64_t)getpid() << 32;
	snprintf(part->name, sizeof(part->name), PART_PREFIX "%016" PRIx64, tree->next_part++);
	pthread_mutex_unlock(&tree->lock);
}

/* Which way works here? Tried out once, with an empty file, before anything is written. */
static enum tree_temp probe(struct tree *tree, int dir_fd)
{
	static const enum tree_temp ways[] = { TREE_TEMP_LINK, TREE_TEMP_PROC };
	enum tree_temp temp = TREE_TEMP_NAME;
	int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	struct tree_part part;
	unsigned int i;

	if (fd < 0)
		return TREE_TEMP_NAME;
	make_name(tree, &part);
	for (i = 0; i < 2 && temp == TREE_TEMP_NAME; i++) {
		if (link_by(ways[i], fd, dir_fd, part.name))
			continue;
		temp = ways[i];
		(void)unlinkat(dir_fd, part.name, 0);
	}
	close(fd);
	return temp;
}

int erofs_tree_part_begin(struct tree *tree, int dir_fd, struct tree_part *part)
{
	enum tree_temp temp;

	pthread_mutex_lock(&tree->lock);
	temp = tree->temp;
	pthread_mutex_unlock(&tree->lock);
	if (temp == TREE_TEMP_UNKNOWN) {
		temp = probe(tree, dir_fd);
		pthread_mutex_lock(&tree->lock);
		tree->temp = temp;
		pthread_mutex_unlock(&tree->lock);
	}
	part->temp = temp;
	part->name[0] = '\0';
	if (temp != TREE_TEMP_NAME) {
		part->fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		if (part->fd >= 0 || errno != EOPNOTSUPP)
			return part->fd < 0 ? -errno : 0;
		part->temp = TREE_TEMP_NAME;	/* another file system is mounted here */
	}
	make_name(tree, part);
	part->fd = erofs_tree_create(tree, dir_fd, part->name, 0600);
	if (part->fd < 0)
		return part->fd;
	(void)fsetxattr(part->fd, PART_MARK, "", 0, 0);
	return 0;
}

static int rename_part(int dir_fd, struct tree_part *part, const char *name)
{
	if (!renameat2(dir_fd, part->name, dir_fd, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dir_fd, part->name, dir_fd, name, 0))
		return -errno;
	(void)unlinkat(dir_fd, part->name, 0);
	return 0;
}

static int give_name(int dir_fd, struct tree_part *part, const char *name)
{
	if (part->temp != TREE_TEMP_NAME)
		return link_by(part->temp, part->fd, dir_fd, name);
	return rename_part(dir_fd, part, name);
}

int erofs_tree_part_finish(struct tree *tree, int dir_fd, struct tree_part *part, const char *name)
{
	int err;

	if (part->temp == TREE_TEMP_NAME)
		(void)fremovexattr(part->fd, PART_MARK);
	err = give_name(dir_fd, part, name);
	if (err == -EEXIST) {
		err = erofs_tree_make_room(tree, dir_fd, name);
		if (!err)
			err = give_name(dir_fd, part, name);
	}
	if (!err)
		part->name[0] = '\0';
	return err;
}

int erofs_tree_part_replace(int dir_fd, struct tree_part *part, const char *name)
{
	(void)fremovexattr(part->fd, PART_MARK);
	if (renameat(dir_fd, part->name, dir_fd, name))
		return -errno;
	part->name[0] = '\0';
	return 0;
}

void erofs_tree_part_drop(int dir_fd, struct tree_part *part)
{
	if (part->name[0])
		(void)unlinkat(dir_fd, part->name, 0);
	part->name[0] = '\0';
}

static void sweep_name(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fgetxattr(fd, PART_MARK, NULL, 0) >= 0)
		(void)unlinkat(dir_fd, name, 0);
	close(fd);
}

void erofs_tree_sweep(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *de;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((de = readdir(dir)))
		if (!strncmp(de->d_name, PART_PREFIX, strlen(PART_PREFIX)))
			sweep_name(dir_fd, de->d_name);
	closedir(dir);
}
