// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A directory as the source. Names are reached from its descriptor, so neither depth nor the length of a
 * path matters; nothing below it is followed through a symlink.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/hostattr.h"
#include "write/tree_priv.h"

struct known {
	dev_t dev;
	ino_t ino;
	struct node *node;
};

struct input {
	int fd;
	struct writer *w;
	struct table known;		/* inodes of several names */
	struct hostattr_list attributes;
	uint8_t *value;			/* HOSTATTR_VALUE_MAX bytes */
	bool has_proc;
};

/* ---- opening ---- */

/* Open @node, component by component where the path is too long for one call. */
static int open_node(const struct input *in, const struct node *node, int flags)
{
	auto_free char *path = erofs_node_path(node);
	char *part = path, *slash, dot[] = ".";
	int fd, at = in->fd;

	if (!path)
		return -ENOMEM;
	if (!*path)
		part = dot;
	while (strlen(part) >= PATH_MAX) {
		slash = part + PATH_MAX - 1;
		while (*slash != '/')
			slash--;
		*slash = 0;
		fd = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (at != in->fd)
			close(at);
		if (fd < 0)
			return -errno;
		at = fd;
		part = slash + 1;
	}
	fd = openat(at, part, flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	if (at != in->fd)
		close(at);
	return fd;
}

static int open_contents(struct feed *src, const struct node *node, struct contents *ret)
{
	struct input *in = src->priv;
	auto_free char *path = NULL;
	int fd = open_node(in, node, O_RDONLY | O_NONBLOCK);

	if (fd < 0) {
		path = erofs_node_path(node);
		return erofs_diag_fail_path(in->w->diag, fd, path ? path : "?", "cannot open");
	}
	*ret = (struct contents){ .fd = fd, .owned = true, .stamp = node->key };
	return 0;
}

static void free_input(struct feed *src)
{
	struct input *in = src->priv;

	if (!in)
		return;
	if (in->fd >= 0)
		close(in->fd);
	erofs_table_fini(&in->known);
	free(in->attributes.names);
	free(in->value);
	free(in);
	src->priv = NULL;
}

static const struct feed_ops ops = { .open = open_contents, .free = free_input };

/* ---- hard links ---- */

/* Another name of an inode that came before? */
static int find_links(struct input *in, struct node *node, const struct stat *st)
{
	uint32_t hash = erofs_table_hash(st->st_ino), at = 0;
	struct known *k;

	if (st->st_nlink < 2 || S_ISDIR(st->st_mode) || in->w->o->hard_dereference)
		return 0;
	/* aufs links its marks to each other; each becomes something of its own */
	if (in->w->o->aufs && !strncmp(node->name, ".wh.", 4))
		return 0;
	while ((k = erofs_table_next(&in->known, hash, &at))) {
		if (k->ino != st->st_ino || k->dev != st->st_dev)
			continue;
		node->link = k->node;
		k->node->nlink++;
		return 0;
	}
	k = erofs_table_add(&in->known, hash);
	if (!k)
		return -ENOMEM;
	*k = (struct known){ st->st_dev, st->st_ino, node };
	return 0;
}

/* ---- one name ---- */

static int read_xattrs(struct input *in, struct node *node, const struct hostattr_of *of)
{
	const struct hostattr_list *list = &in->attributes;
	int err = erofs_hostattr_list(of, &in->attributes);
	const char *name;
	size_t at;
	ssize_t len;

	for (at = 0; !err && at < list->len; at += strlen(name) + 1) {
		name = list->names + at;
		len = erofs_hostattr_get(of, name, in->value, HOSTATTR_VALUE_MAX);
		if (len >= 0)
			err = erofs_xattr_add(in->w, node, name, in->value, (size_t)len);
		else if (len != -ENODATA)
			err = (int)len;
	}
	return err;
}

/* Without /proc (cli.md R29) only what can be opened shows its attributes. */
static int read_all_xattrs(struct input *in, struct node *node, int dirfd, const char *name)
{
	char path[64 + NAME_MAX];
	auto_close int fd = -1;

	if (in->has_proc) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name);
		return read_xattrs(in, node, &(struct hostattr_of){ -1, path });
	}
	if (!S_ISREG(node->mode) && !S_ISDIR(node->mode))
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : read_xattrs(in, node, &(struct hostattr_of){ fd, NULL });
}

static int read_target(struct node *node, int dirfd, const char *name)
{
	char buf[PATH_MAX];
	ssize_t len = readlinkat(dirfd, name, buf, sizeof(buf));

	if (len < 0)
		return -errno;
	if (len > DISK_SYMLINK_MAX)
		return -ENAMETOOLONG;
	node->target = malloc((size_t)len + 1);
	if (!node->target)
		return -ENOMEM;
	memcpy(node->target, buf, (size_t)len);
	node->size = (uint64_t)len;
	return 0;
}

static void take_stat(struct node *node, const struct stat *st)
{
	node->key = contents_stamp(st);
	node->mode = st->st_mode;
	node->uid = st->st_uid;
	node->gid = st->st_gid;
	node->mtime = st->st_mtim.tv_sec;
	node->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
	if (S_ISREG(st->st_mode))
		node->size = (uint64_t)st->st_size;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		node->rdev = erofs_node_rdev(major(st->st_rdev), minor(st->st_rdev));
}

static int fill_node(struct input *in, struct node *node, int dirfd, const struct stat *st)
{
	const char *name = node->parent ? node->name : ".";
	int err;

	take_stat(node, st);
	err = find_links(in, node, st);
	if (err || node->link)
		return err;
	if (S_ISLNK(st->st_mode)) {
		err = read_target(node, dirfd, name);
		if (err)
			return err;
	}
	return in->w->o->no_xattrs ? 0 : read_all_xattrs(in, node, dirfd, name);
}

static bool is_output(const struct writer *w, const struct stat *st)
{
	unsigned int i;

	for (i = 0; S_ISREG(st->st_mode) && i < w->nouts; i++)
		if (st->st_dev == w->outs[i].dev && st->st_ino == w->outs[i].ino)
			return true;
	return false;
}

/* ---- the tree ---- */

static int fail_below(struct input *in, const struct node *dir, const char *name, int err, const char *what)
{
	auto_free char *path = erofs_node_path(dir), *whole = NULL;

	if (asprintf(&whole, "%s%s%s", path ? path : "", path && *path ? "/" : "", name) < 0)
		whole = NULL;
	return erofs_diag_fail_path(in->w->diag, err, whole ? whole : name, "%s", what);
}

/* Is the name left out? Its path is @base and the name. 1: yes, 0, -ENOMEM */
static int is_left_out(struct input *in, const char *base, const char *name, const struct stat *st)
{
	auto_free char *path = NULL;

	if (asprintf(&path, "%s%s%s", base, *base ? "/" : "", name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (erofs_exclude_has(in->w->exclude, path))
		return 1;
	if (!is_output(in->w, st))
		return 0;
	erofs_diag_warn_path(in->w->diag, path, "is the output, left out");
	return 1;
}

static int add_name(struct input *in, struct node *dir, const char *base, int dirfd, const char *name)
{
	struct node *node;
	struct stat st;
	int err;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_below(in, dir, name, -errno, "cannot look at it");
	err = is_left_out(in, base, name, &st);
	if (err)
		return err < 0 ? err : 0;
	node = erofs_node_add(dir, name, strlen(name));
	if (!node)
		return -ENOMEM;
	err = fill_node(in, node, dirfd, &st);
	return err ? fail_below(in, dir, name, err, "cannot read its metadata") : 0;
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

struct names {
	char **all;
	size_t count, room;
};

static void free_names(struct names *n)
{
	while (n->count)
		free(n->all[--n->count]);
	free(n->all);
}

static int add_to_names(struct names *n, const char *name)
{
	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 32;
		char **grown = realloc(n->all, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		n->all = grown;
		n->room = room;
	}
	n->all[n->count] = strdup(name);
	if (!n->all[n->count])
		return -ENOMEM;
	n->count++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order of their bytes: which name of an inode comes first must not depend on readdir(). */
static int list_names(DIR *d, struct names *ret)
{
	struct dirent *de;
	int err;

	while (errno = 0, (de = readdir(d))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		err = add_to_names(ret, de->d_name);
		if (err)
			return err;
	}
	if (errno)
		return -errno;
	if (ret->count)
		qsort(ret->all, ret->count, sizeof(*ret->all), compare_names);
	return 0;
}

static int read_folder(struct input *in, struct node *dir)
{
	auto_free char *base = erofs_node_path(dir);
	auto_call(close_dir) DIR *d = NULL;
	auto_call(free_names) struct names names = { 0 };
	size_t i;
	int fd, err;

	if (!base)
		return -ENOMEM;
	fd = open_node(in, dir, O_RDONLY | O_DIRECTORY);
	d = fd < 0 ? NULL : fdopendir(fd);
	err = fd < 0 ? fd : d ? list_names(d, &names) : -errno;
	if (fd >= 0 && !d)
		close(fd);
	if (err)
		return erofs_diag_fail_path(in->w->diag, err, base, "cannot read the folder");
	for (i = 0; i < names.count; i++) {
		err = add_name(in, dir, base, dirfd(d), names.all[i]);
		if (err)
			return err;
		if (erofs_write_is_cancelled(in->w))
			return -ECANCELED;
	}
	return 0;
}

/* Breadth first; the list of directories is the queue. */
static int read_tree(struct input *in, struct node *root)
{
	struct writer *w = in->w;
	uint32_t i;
	size_t at;
	int err = erofs_tree_add_dir(w, root);

	for (at = 0; !err && at < w->ndirs; at++) {
		struct node *dir = w->dirs[at];

		err = read_folder(in, dir);
		for (i = 0; !err && i < dir->nchildren; i++)
			if (S_ISDIR(dir->children[i]->mode))
				err = erofs_tree_add_dir(w, dir->children[i]);
	}
	return err;
}

int erofs_input_dir(struct writer *w, const char *path, struct feed *ret)
{
	struct input *in = calloc(1, sizeof(*in));
	struct stat st;
	int err;

	if (!in)
		return -ENOMEM;
	*ret = (struct feed){ .ops = &ops, .priv = in };
	in->w = w;
	in->known.size = sizeof(struct known);
	in->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st))
		return erofs_diag_fail(w->diag, -errno, AT_NOWHERE, "cannot open the folder %s", path);
	in->has_proc = !access("/proc/self/fd", F_OK);
	if (!in->has_proc && !w->o->no_xattrs)
		erofs_diag_warn_path(w->diag, path,
				     "without /proc, attributes of symlinks and special files are left out");
	in->value = malloc(HOSTATTR_VALUE_MAX);
	ret->root = erofs_node_new("", 0);
	if (!in->value || !ret->root)
		return -ENOMEM;
	err = fill_node(in, ret->root, in->fd, &st);
	if (err)
		return erofs_diag_fail(w->diag, err, AT_NOWHERE, "cannot read the metadata of %s", path);
	err = read_tree(in, ret->root);
	/* names that are marks for layers make the list of folders anew */
	return err || !(w->o->aufs || w->o->ovlfs_strip) ? err : erofs_tree_finish(w, false);
}
