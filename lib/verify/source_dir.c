// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A directory as the source. The owner reads names, by handles alone, in the byte order of each folder; workers
 * look at what is behind them. A folder with more names than memory is for is sorted part by part.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "verify/dir_source.h"

#define NAMES_SHARE 4		/* of the state memory, for names of the folders that are open */
#define NAMES_LEAST ((size_t)4096)

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
	drop_dir(erofs_dirsource_of(c), item->dir);
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
	int fd, dirfd, err = erofs_tree_pin(&s->tree, erofs_dirsource_handle(s, dir), &dirfd);
	DIR *d;

	if (err) {
		errno = -err;
		return NULL;
	}
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = errno;
	erofs_tree_unpin(&s->tree, erofs_dirsource_handle(s, dir));
	d = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !d)
		close(fd);
	errno = fd < 0 ? err : errno;
	return d;
}

/* The folder that s->path names: what of it was not read is not missing in it. */
static int give_up_folder(struct compare *c, size_t path_len, int why, const char *what)
{
	struct compare_item item = { .ignore = true };
	struct dir_source *s = erofs_dirsource_of(c);

	c->failed = true;
	s->path[path_len] = '\0';
	erofs_diag_fail_path(c->diag, why, path_len ? s->path : "/", "%s", what);
	return erofs_compare_look(c, &item, s->path + (path_len > 0), path_len ? path_len - 1 : 0);
}

static int push_level(struct compare *c, struct src_dir *dir, size_t path_len)
{
	struct dir_source *s = erofs_dirsource_of(c);
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
	return give_up_folder(c, path_len, -errno, "cannot read the folder");
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
	if (erofs_tree_pin(&s->tree, erofs_dirsource_handle(s, dir), &dirfd))
		return DIRENT_UNKNOWN;
	(void)fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
	erofs_tree_unpin(&s->tree, erofs_dirsource_handle(s, dir));
	return erofs_dirent_type((uint16_t)st.st_mode);
}

/* Enter the folder that s->path names. */
static int enter(struct compare *c, struct src_dir *up, const char *name, size_t path_len)
{
	struct dir_source *s = erofs_dirsource_of(c);
	struct src_dir *dir = calloc(1, sizeof(*dir) + strlen(name) + 1);
	int err;

	if (!dir)
		return -ENOMEM;
	strcpy(dir->name, name);
	err = erofs_tree_enter(&s->tree, erofs_dirsource_handle(s, up), dir->name, &dir->td);
	if (err) {
		free(dir);
		return give_up_folder(c, path_len, err, "cannot open the folder");
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

static int add_item(struct compare *c, const struct compare_item *item, const char *name, size_t len)
{
	struct dir_source *s = erofs_dirsource_of(c);

	if (s->listing)
		return erofs_dirrules_note(c, item->dir, name, s->path + 1);
	if (s->rules)
		return erofs_dirrules_add(c, item, name, s->path + 1, len);
	return erofs_compare_add(c, item, s->path + 1, len, NULL, NULL);
}

static int step(struct compare *c)
{
	struct dir_source *s = erofs_dirsource_of(c);
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
		return !err || err == -ENOMEM ? err : give_up_folder(c, path_len, err, "cannot read the folder");
	}
	name = (const char *)v->names.data + v->order[v->next++];
	len = strlen(name + 1);
	err = set_path(s, path_len, name + 1, len);
	if (err)
		return err;
	item.kind = kind_of(s, v->dir, name + 1, (unsigned char)*name);
	err = add_item(c, &item, name + 1, path_len + len);
	if (!err && item.kind == DIRENT_DIR)
		err = enter(c, v->dir, name + 1, path_len + 1 + len);
	return err;
}

static int walk(struct compare *c)
{
	struct compare_item root = { .kind = DIRENT_DIR };
	struct dir_source *s = erofs_dirsource_of(c);
	int err = set_path(s, 0, "", 0);

	if (!err)
		err = add_item(c, &root, ".", 0);
	if (!err)
		err = push_level(c, NULL, 0);
	while (!err && s->depth)
		err = erofs_job_is_cancelled(c->job) ? -ECANCELED : step(c);
	return err == -ENOMEM ? erofs_compare_no_memory(c) : err;
}

static int run(struct compare *c)
{
	struct dir_source *s = erofs_dirsource_of(c);
	int err;

	s->listing = s->rules != NULL;
	err = s->listing ? walk(c) : 0;
	s->listing = false;
	return err ? err : walk(c);
}

static void free_source(struct compare *c)
{
	struct dir_source *s = erofs_dirsource_of(c);

	while (s->depth)
		pop_level(s);
	erofs_tree_close(&s->tree);
	erofs_dirrules_free(s->rules);
	free(s->levels);
	free(s->path);
	free(s);
}

int erofs_source_dir(struct compare *c)
{
	struct dir_source *s = calloc(1, sizeof(*s));
	struct stat st;
	int err;

	if (!s)
		return erofs_compare_no_memory(c);
	c->source = (struct compare_source){
		.gather = erofs_dirsource_gather, .settle = erofs_dirsource_settle, .run = run, .hold = hold_item,
		.drop = drop_item, .free = free_source,
		.in_ranges = true, .hides_trusted = geteuid() != 0, .priv = s,
	};
	s->has_image = c->img->devs[0].name && !stat(c->img->devs[0].name, &st) && S_ISREG(st.st_mode);
	if (s->has_image) {
		s->image_dev = st.st_dev;
		s->image_ino = st.st_ino;
	}
	/* attributes of what cannot be opened are read through it */
	s->has_proc = !access("/proc/self/fd", F_OK);
	if (!s->has_proc && c->what & COMPARE_XATTRS)
		erofs_diag_warn_path(c->diag, "/", "no /proc: attributes of symlinks and devices are not compared");
	s->max_names = erofs_job_state_bytes(c->job) / NAMES_SHARE;
	err = erofs_tree_open_source(&s->tree, c->opt->source, erofs_job_lanes(c->job));
	if (err)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot open the folder %s", c->opt->source);
	return erofs_dirrules_new(c, &s->rules);
}
