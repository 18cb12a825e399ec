// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A directory as the source. The owner reads names, by handles alone, in the byte order of each folder; workers
 * look at what is behind them. A folder with more names than memory is for is sorted part by part.
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
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "verify/verify_priv.h"

#define NAMES_SHARE 4		/* of the state memory, for names of the folders that are open */
#define NAMES_LEAST ((size_t)4096)
#define VALUE_MAX ((size_t)65536)	/* XATTR_SIZE_MAX */

/* A folder of the source; lives as long as somebody needs it. */
struct src_dir {
	struct tree_dir td;
	struct src_dir *up;
	size_t refs;		/* the level's, one for each item in flight, one for each folder in it */
	char name[];
};

struct src_level {
	struct src_dir *dir;	/* NULL: the root */
	DIR *stream;		/* NULL: all names were read */
	struct tarbuf names;	/* d_type, name, NUL */
	size_t *order;		/* where they begin */
	size_t count, next, room;
	size_t path_len;
};

struct dir_source {
	struct tree tree;
	struct src_level *levels;
	size_t depth, room;
	size_t names_bytes, max_names;	/* of all levels */
	char *path;
	size_t path_room;
};

static struct dir_source *source_of(const struct compare *c)
{
	return c->source.priv;
}

static struct tree_dir *handle_of(struct dir_source *s, struct src_dir *dir)
{
	return dir ? &dir->td : &s->tree.root;
}

static void drop_dir(struct dir_source *s, struct src_dir *dir)
{
	while (dir && !--dir->refs) {
		struct src_dir *up = dir->up;

		erofs_tree_forget(&s->tree, &dir->td);
		free(dir);
		dir = up;
	}
}

static void hold_item(struct compare *c, struct compare_item *item)
{
	(void)c;
	if (item->dir)
		item->dir->refs++;
}

static void drop_item(struct compare *c, struct compare_item *item)
{
	drop_dir(source_of(c), item->dir);
}

/* ---- workers: what is behind a name ---- */

static int fail(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item, int err,
		const char *what)
{
	return erofs_diag_fail_path(l->c->diag, err, (const char *)p->names.data + item->path, "%s", what);
}

static ssize_t list_attributes(int fd, const char *path, char *list, size_t size)
{
	ssize_t n = fd >= 0 ? flistxattr(fd, list, size) : llistxattr(path, list, size);

	return n < 0 ? -errno : n;
}

static int read_list(struct compare_lane *l, int fd, const char *path, size_t *ret_len)
{
	ssize_t n = list_attributes(fd, path, l->list, l->list_room);

	while (n == -ERANGE || (n > 0 && !l->list)) {
		size_t room = l->list_room ? 2 * l->list_room : 1024;
		char *grown = realloc(l->list, room);

		if (!grown)
			return -ENOMEM;
		l->list = grown;
		l->list_room = room;
		n = list_attributes(fd, path, l->list, l->list_room);
	}
	if (n == -ENOTSUP || n == -ENOSYS)
		n = 0;
	*ret_len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static int add_attribute(struct compare_lane *l, int fd, const char *path, const char *name,
			 struct wanted_xattr *ret)
{
	struct tarbuf *b = &l->buf;
	ssize_t n;
	int err;

	ret->name = b->len;
	err = erofs_tarbuf_add(b, name, strlen(name) + 1);
	if (!err)
		err = erofs_tarbuf_reserve(b, VALUE_MAX);
	if (err)
		return err;
	ret->value = b->len;
	n = fd >= 0 ? fgetxattr(fd, name, b->data + b->len, VALUE_MAX) :
		      lgetxattr(path, name, b->data + b->len, VALUE_MAX);
	if (n < 0)
		return -errno;
	ret->size = (size_t)n;
	ret->met = false;
	b->len += (size_t)n;
	return 0;
}

static int gather_xattrs(struct compare_lane *l, int fd, const char *path, struct wanted *w)
{
	struct tarbuf *b = &l->buf;
	size_t len, at, count = 0;
	int err = read_list(l, fd, path, &len);

	if (err)
		return err;
	for (at = 0; at < len; at += strlen(l->list + at) + 1)
		count += erofs_compare_is_storable(l->list + at);
	w->has |= COMPARE_XATTRS;
	if (!count)
		return 0;
	while (b->len % 16)
		if (erofs_tarbuf_add(b, "", 1))
			return -ENOMEM;
	w->xattrs = b->len;
	err = erofs_tarbuf_reserve(b, count * sizeof(struct wanted_xattr));
	b->len += err ? 0 : count * sizeof(struct wanted_xattr);
	for (at = 0; at < len && !err; at += strlen(l->list + at) + 1) {
		struct wanted_xattr xa = { 0 };

		if (!erofs_compare_is_storable(l->list + at))
			continue;
		err = add_attribute(l, fd, path, l->list + at, &xa);
		if (err == -ENODATA) {
			err = 0;
			continue;
		}
		memcpy(b->data + w->xattrs + w->nxattrs * sizeof(xa), &xa, sizeof(xa));
		w->nxattrs++;
	}
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

/* A descriptor where one can be had without side effects; -1: look at the name. */
static int open_item(const struct compare *c, const struct compare_item *item, int dirfd, const char *name)
{
	unsigned int for_fd = EROFS_COMPARE_DATA | COMPARE_XATTRS;

	if (item->kind == DIRENT_DIR)
		for_fd = COMPARE_XATTRS;
	else if (item->kind != DIRENT_REG)
		return -1;
	if (!(c->what & for_fd))
		return -1;
	return openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
		      (item->kind == DIRENT_DIR ? O_DIRECTORY : 0));
}

static int look(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item, int dirfd,
		struct wanted *w)
{
	const char *path = (const char *)p->names.data + item->path, *name = item->dir || item->path_len > 1 ?
									     strrchr(path, '/') + 1 : ".";
	char proc[64 + NAME_MAX];
	struct stat st;
	int err = 0, again;

	l->fd = open_item(l->c, item, dirfd, name);
	if (l->fd >= 0 ? fstat(l->fd, &st) : fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail(l, p, item, -errno, "cannot look at it");
	take_stat(w, &st);
	if (p->is_range)
		w->has |= l->fd >= 0 ? EROFS_COMPARE_DATA : 0;
	if (p->is_range)
		return 0;
	if (S_ISLNK(st.st_mode) && l->c->what & EROFS_COMPARE_LINK)
		err = gather_target(l, dirfd, name, w);
	if (err)
		return fail(l, p, item, err, "cannot read the symlink");
	if (S_ISREG(st.st_mode) && l->c->what & EROFS_COMPARE_DATA) {
		if (l->fd < 0 && item->is_there)
			err = fail(l, p, item, -EACCES, "cannot open it");
		w->has |= l->fd >= 0 ? EROFS_COMPARE_DATA : 0;
	}
	if (!(l->c->what & COMPARE_XATTRS) || !item->is_there)
		return err;
	if (l->fd < 0)
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d/%s", dirfd, name);
	again = gather_xattrs(l, l->fd, proc, w);
	return again ? fail(l, p, item, again, "cannot read its attributes") : err;
}

static int gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
		  const struct compare_item *item, struct wanted *w)
{
	struct dir_source *s = source_of(c);
	struct tree_dir *dir = handle_of(s, item->dir);
	int dirfd, err = erofs_tree_pin(&s->tree, dir, &dirfd);

	if (err)
		return fail(l, p, item, err, "cannot open the folder");
	err = look(l, p, item, dirfd, w);
	erofs_tree_unpin(&s->tree, dir);
	l->base = l->buf.data;
	return err;
}

/* ---- the owner: names ---- */

static int add_name(struct src_level *v, unsigned char type, const char *name)
{
	int err;

	if (v->count == v->room) {
		size_t room = v->room ? 2 * v->room : 32;
		size_t *grown = realloc(v->order, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		v->order = grown;
		v->room = room;
	}
	v->order[v->count] = v->names.len;
	err = erofs_tarbuf_add(&v->names, &type, 1);
	if (!err)
		err = erofs_tarbuf_add(&v->names, name, strlen(name) + 1);
	v->count += !err;
	return err;
}

static int compare_at(const void *a, const void *b, void *names)
{
	const char *base = names;

	return strcmp(base + *(const size_t *)a + 1, base + *(const size_t *)b + 1);
}

static size_t level_bytes(const struct src_level *v)
{
	return v->names.room + v->room * sizeof(*v->order);
}

/* Read the next names of a folder, as many as there is room for, and sort them. 0, negative errno. */
static int read_names(struct dir_source *s, struct src_level *v)
{
	size_t left = s->names_bytes < s->max_names ? (s->max_names - s->names_bytes) / 2 : 0;
	struct dirent *de;
	int err = 0;

	v->names.len = v->count = v->next = 0;
	s->names_bytes -= level_bytes(v);
	while (!err && (v->names.len < NAMES_LEAST || level_bytes(v) < left) &&
	       (errno = 0, (de = readdir(v->stream)))) {
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			err = add_name(v, de->d_type, de->d_name);
	}
	if (!err && (v->names.len < NAMES_LEAST || level_bytes(v) < left)) {
		err = -errno;
		closedir(v->stream);
		v->stream = NULL;
	}
	s->names_bytes += level_bytes(v);
	if (v->count > 1)
		qsort_r(v->order, v->count, sizeof(*v->order), compare_at, v->names.data);
	return err;
}

static DIR *open_stream(struct dir_source *s, struct src_dir *dir)
{
	int fd, dirfd, err = erofs_tree_pin(&s->tree, handle_of(s, dir), &dirfd);
	DIR *d;

	if (err) {
		errno = -err;
		return NULL;
	}
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = errno;
	erofs_tree_unpin(&s->tree, handle_of(s, dir));
	d = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !d)
		close(fd);
	errno = fd < 0 ? err : errno;
	return d;
}

static int push_level(struct compare *c, struct src_dir *dir, size_t path_len)
{
	struct dir_source *s = source_of(c);
	struct src_level *v;

	if (s->depth == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct src_level *grown = realloc(s->levels, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->levels = grown;
		s->room = room;
	}
	v = &s->levels[s->depth++];
	*v = (struct src_level){ .dir = dir, .path_len = path_len };
	v->stream = open_stream(s, dir);
	if (v->stream)
		return 0;
	c->failed = true;
	erofs_diag_fail_path(c->diag, -errno, s->path, "cannot read the folder");
	return 0;
}

static void pop_level(struct dir_source *s)
{
	struct src_level *v = &s->levels[--s->depth];

	s->names_bytes -= level_bytes(v);
	if (v->stream)
		closedir(v->stream);
	erofs_tarbuf_free(&v->names);
	free(v->order);
	drop_dir(s, v->dir);
}

static unsigned int kind_of(struct dir_source *s, struct src_dir *dir, const char *name, unsigned char type)
{
	struct stat st = { 0 };
	int dirfd;

	switch (type) {
	case DT_REG: return DIRENT_REG;
	case DT_DIR: return DIRENT_DIR;
	case DT_CHR: return DIRENT_CHR;
	case DT_BLK: return DIRENT_BLK;
	case DT_FIFO: return DIRENT_FIFO;
	case DT_SOCK: return DIRENT_SOCK;
	case DT_LNK: return DIRENT_LNK;
	default: break;
	}
	if (erofs_tree_pin(&s->tree, handle_of(s, dir), &dirfd))
		return DIRENT_UNKNOWN;
	(void)fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
	erofs_tree_unpin(&s->tree, handle_of(s, dir));
	return erofs_dirent_type((uint16_t)st.st_mode);
}

/* Enter the folder that s->path names. */
static int enter(struct compare *c, struct src_dir *up, const char *name, size_t path_len)
{
	struct dir_source *s = source_of(c);
	struct src_dir *dir = calloc(1, sizeof(*dir) + strlen(name) + 1);
	int err;

	if (!dir)
		return -ENOMEM;
	strcpy(dir->name, name);
	err = erofs_tree_enter(&s->tree, handle_of(s, up), dir->name, &dir->td);
	if (err) {
		free(dir);
		c->failed = true;
		erofs_diag_fail_path(c->diag, err, s->path, "cannot open the folder");
		return 0;
	}
	dir->refs = 1;
	dir->up = up;
	if (up)
		up->refs++;
	return push_level(c, dir, path_len);
}

/* s->path becomes the name's: a slash, and no end of one in front. */
static int set_path(struct dir_source *s, size_t len, const char *name, size_t name_len)
{
	if (len + name_len + 2 > s->path_room) {
		char *grown = realloc(s->path, 2 * (len + name_len + 2));

		if (!grown)
			return -ENOMEM;
		s->path = grown;
		s->path_room = 2 * (len + name_len + 2);
	}
	s->path[len] = '/';
	memcpy(s->path + len + 1, name, name_len + 1);
	return 0;
}

static int step(struct compare *c)
{
	struct dir_source *s = source_of(c);
	struct src_level *v = &s->levels[s->depth - 1];
	struct compare_item item = { .dir = v->dir };
	const char *name;
	size_t len, path_len = v->path_len;
	int err;

	if (v->next == v->count) {
		if (!v->stream) {
			pop_level(s);
			return 0;
		}
		err = read_names(s, v);
		if (!err || err == -ENOMEM)
			return err;
		s->path[path_len] = '\0';
		c->failed = true;
		erofs_diag_fail_path(c->diag, err, path_len ? s->path : "/", "cannot read the folder");
		return 0;
	}
	name = (const char *)v->names.data + v->order[v->next++];
	len = strlen(name + 1);
	err = set_path(s, path_len, name + 1, len);
	if (err)
		return err;
	item.kind = kind_of(s, v->dir, name + 1, (unsigned char)*name);
	err = erofs_compare_add(c, &item, s->path + 1, path_len + len, NULL, NULL);
	if (!err && item.kind == DIRENT_DIR)
		err = enter(c, v->dir, name + 1, path_len + 1 + len);
	return err;
}

static int run(struct compare *c)
{
	struct compare_item root = { .kind = DIRENT_DIR };
	struct dir_source *s = source_of(c);
	int err = set_path(s, 0, "", 0);

	if (!err)
		err = erofs_compare_add(c, &root, "", 0, NULL, NULL);
	if (!err)
		err = push_level(c, NULL, 0);
	while (!err && s->depth)
		err = erofs_job_is_cancelled(c->job) ? -ECANCELED : step(c);
	return err == -ENOMEM ? erofs_compare_no_memory(c) : err;
}

static void free_source(struct compare *c)
{
	struct dir_source *s = source_of(c);

	while (s->depth)
		pop_level(s);
	erofs_tree_close(&s->tree);
	free(s->levels);
	free(s->path);
	free(s);
}

int erofs_source_dir(struct compare *c)
{
	struct dir_source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return erofs_compare_no_memory(c);
	c->source = (struct compare_source){
		.gather = gather, .run = run, .hold = hold_item, .drop = drop_item, .free = free_source,
		.in_ranges = true, .hides_trusted = geteuid() != 0, .priv = s,
	};
	s->max_names = erofs_job_state_bytes(c->job) / NAMES_SHARE;
	err = erofs_tree_open_source(&s->tree, c->opt->source, erofs_job_lanes(c->job));
	return err ? erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot open the folder %s", c->opt->source) : 0;
}
