// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What is behind a name of a folder: metadata, attributes, and the contents opened. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/hostattr.h"
#include "verify/dir_source.h"

static int fail(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item, int err,
		const char *what)
{
	return erofs_diag_fail_path(l->c->diag, err, (const char *)p->names.data + item->path, "%s", what);
}

static int add_attribute(struct compare_lane *l, const struct hostattr_of *of, const char *name,
			 struct wanted_xattr *ret)
{
	struct tarbuf *b = &l->buf;
	ssize_t n;
	int err;

	ret->name = b->len;
	err = erofs_tarbuf_add(b, name, strlen(name) + 1);
	if (!err)
		err = erofs_tarbuf_reserve(b, HOSTATTR_VALUE_MAX);
	if (err)
		return err;
	ret->value = b->len;
	n = erofs_hostattr_get(of, name, b->data + b->len, HOSTATTR_VALUE_MAX);
	if (n < 0)
		return (int)n;
	ret->size = (size_t)n;
	ret->met = false;
	b->len += (size_t)n;
	return 0;
}

static int gather_xattrs(struct compare_lane *l, const struct hostattr_of *of, struct wanted *w)
{
	const struct hostattr_list *list = &l->attributes;
	struct tarbuf *b = &l->buf;
	size_t at, count = 0;
	int err = erofs_hostattr_list(of, &l->attributes);

	if (err)
		return err;
	for (at = 0; at < list->len; at += strlen(list->names + at) + 1)
		count += erofs_compare_is_storable(list->names + at);
	if (!count) {
		w->has |= COMPARE_XATTRS;
		return 0;
	}
	w->xattrs = b->len;
	err = erofs_tarbuf_reserve(b, count * sizeof(struct wanted_xattr));
	b->len += err ? 0 : count * sizeof(struct wanted_xattr);
	for (at = 0; at < list->len && !err; at += strlen(list->names + at) + 1) {
		struct wanted_xattr xa = { 0 };

		if (!erofs_compare_is_storable(list->names + at))
			continue;
		err = add_attribute(l, of, list->names + at, &xa);
		if (err == -ENODATA) {
			err = 0;
			continue;
		}
		memcpy(b->data + w->xattrs + w->nxattrs * sizeof(xa), &xa, sizeof(xa));
		w->nxattrs++;
	}
	/* some of them would be as many differences */
	w->has |= err ? 0 : COMPARE_XATTRS;
	return err;
}

static int gather_target(struct compare_lane *l, int dirfd, const char *name, struct wanted *w)
{
	ssize_t n;
	int err = erofs_tarbuf_reserve(&l->buf, PATH_MAX);

	if (err)
		return err;
	w->target = l->buf.len;
	n = readlinkat(dirfd, name, (char *)l->buf.data + l->buf.len, PATH_MAX);
	if (n < 0)
		return -errno;
	w->target_len = (size_t)n;
	l->buf.len += (size_t)n;
	w->has |= EROFS_COMPARE_LINK;
	return 0;
}

static void take_stat(struct wanted *w, const struct stat *st)
{
	w->has |= EROFS_COMPARE_NAMES | EROFS_COMPARE_TYPE | EROFS_COMPARE_MODE | EROFS_COMPARE_UID |
		  EROFS_COMPARE_GID | EROFS_COMPARE_SIZE | EROFS_COMPARE_TIME | EROFS_COMPARE_DEVICE |
		  EROFS_COMPARE_HARDLINK;
	w->mode = st->st_mode;
	w->uid = st->st_uid;
	w->gid = st->st_gid;
	w->size = (uint64_t)st->st_size;
	w->mtime = st->st_mtim.tv_sec;
	w->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
	w->major = major(st->st_rdev);
	w->minor = minor(st->st_rdev);
	w->group[0] = st->st_ino;
	w->group[1] = st->st_dev;
	w->nlink = st->st_nlink;
}

/* A descriptor where one can be had without side effects; negative errno: look at the name. */
static int open_item(const struct compare *c, const struct compare_item *item, int dirfd, const char *name)
{
	unsigned int for_fd = EROFS_COMPARE_DATA | COMPARE_XATTRS;
	int fd;

	if (item->kind == DIRENT_DIR)
		for_fd = COMPARE_XATTRS;
	/* if it is a file after all it became one meanwhile */
	if ((item->kind != DIRENT_DIR && item->kind != DIRENT_REG) || !(c->what & for_fd))
		return -ESTALE;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
		    (item->kind == DIRENT_DIR ? O_DIRECTORY : 0));
	return fd < 0 ? -errno : fd;
}

static int look(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item, int dirfd,
		struct wanted *w)
{
	const char *path = (const char *)p->names.data + item->path, *name = item->dir || item->path_len > 1 ?
									     strrchr(path, '/') + 1 : ".";
	char proc[64 + NAME_MAX];
	struct stat st;
	int err = 0, again, fd = open_item(l->c, item, dirfd, name);

	l->fd = fd < 0 ? -1 : fd;
	if (l->fd >= 0 ? fstat(l->fd, &st) : fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail(l, p, item, -errno, "cannot look at it");
	take_stat(w, &st);
	w->is_image = erofs_dirsource_of(l->c)->has_image && st.st_dev == erofs_dirsource_of(l->c)->image_dev &&
		      st.st_ino == erofs_dirsource_of(l->c)->image_ino;
	if (p->is_range) {
		w->has |= fd < 0 ? 0 : EROFS_COMPARE_DATA;
		return fd < 0 ? fail(l, p, item, fd, "cannot open it") : 0;
	}
	if (S_ISLNK(st.st_mode) && l->c->what & EROFS_COMPARE_LINK)
		err = gather_target(l, dirfd, name, w);
	if (err)
		return fail(l, p, item, err, "cannot read the symlink");
	if (S_ISREG(st.st_mode) && l->c->what & EROFS_COMPARE_DATA) {
		if (l->fd < 0 && item->is_there)
			err = fail(l, p, item, fd, "cannot open it");
		w->has |= l->fd >= 0 ? EROFS_COMPARE_DATA : 0;
	}
	if (!(l->c->what & COMPARE_XATTRS) || !item->is_there)
		return err;
	if (l->fd < 0 && !erofs_dirsource_of(l->c)->has_proc)
		return err;
	if (l->fd < 0)
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d/%s", dirfd, name);
	again = gather_xattrs(l, &(struct hostattr_of){ l->fd, proc }, w);
	return again ? fail(l, p, item, again, "cannot read its attributes") : err;
}

void erofs_dirsource_settle(struct compare *c, struct compare_lane *l)
{
	if (l->folder)
		erofs_tree_unpin(&erofs_dirsource_of(c)->tree, l->folder);
	l->folder = NULL;
}

/* All threads share the lock that pins take, so that they are held over the items of a folder. */
static int hold_folder(struct compare *c, struct compare_lane *l, struct tree_dir *dir)
{
	int err;

	if (l->folder == dir)
		return 0;
	erofs_dirsource_settle(c, l);
	err = erofs_tree_pin(&erofs_dirsource_of(c)->tree, dir, &l->folder_fd);
	if (!err)
		l->folder = dir;
	return err;
}

int erofs_dirsource_gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
			   const struct compare_item *item, struct wanted *w)
{
	struct dir_source *s = erofs_dirsource_of(c);
	int err = hold_folder(c, l, erofs_dirsource_handle(s, item->dir));

	if (err)
		return fail(l, p, item, err, "cannot open the folder");
	err = look(l, p, item, l->folder_fd, w);
	if (s->rules && !p->is_range && w->has && erofs_dirrules_apply(l, p, item, w))
		err = fail(l, p, item, -ENOMEM, "cannot compare it");
	l->base = l->buf.data;
	return err;
}
