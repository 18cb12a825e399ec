// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Paths to nids and back: erofs_lookup(), erofs_path_of(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/inode.h>

#include "base/cleanup.h"
#include "walk/seen.h"
#include "walk/walk_priv.h"

static void close_inode(struct erofs_inode **ino)
{
	erofs_inode_close(*ino);
}

static void close_dir(struct erofs_dir **dir)
{
	erofs_dir_close(*dir);
}

/* ---- path to nid ---- */

/* The entry @name of directory @dir_nid. */
static int find_entry(struct erofs_image *img, uint64_t dir_nid, const char *name, size_t len,
		      struct erofs_diag *diag, uint64_t *ret_nid)
{
	auto_call(close_inode) struct erofs_inode *ino = NULL;
	auto_call(close_dir) struct erofs_dir *dir = NULL;
	struct erofs_entry de;
	int r = erofs_inode_open(img, dir_nid, diag, &ino);

	if (!r)
		r = erofs_dir_open(ino, diag, &dir);
	if (r)
		return r;
	while ((r = erofs_dir_next(dir, &de)) > 0)
		if (de.len == len && !memcmp(de.name, name, len)) {
			*ret_nid = de.nid;
			return 0;
		}
	return r ? r : -ENOENT;
}

int erofs_lookup(struct erofs_image *img, const char *path, struct erofs_diag *diag, uint64_t *ret_nid)
{
	/* the ancestors, for "..": no path has more parts than half its bytes */
	size_t depth = 0;
	auto_free uint64_t *nids = malloc((strlen(path) / 2 + 2) * sizeof(*nids));
	int err = 0;

	if (!nids)
		return -ENOMEM;
	nids[0] = img->super->info.root_nid;
	while (!err && *path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2)) {
			depth -= depth > 0;
		} else if (len && !(len == 1 && *path == '.')) {
			err = find_entry(img, nids[depth], path, len, diag, &nids[depth + 1]);
			depth++;
		}
		path += len + (path[len] == '/');
	}
	if (!err)
		*ret_nid = nids[depth];
	return err;
}

/* ---- nid to path ---- */

struct level {
	struct erofs_inode *ino;
	struct erofs_dir *dir;
	size_t path_len;	/* of the directory's path */
};

struct search {
	struct erofs_image *img;
	struct erofs_diag *diag;
	uint64_t nid;		/* wanted */
	struct level *levels;
	size_t depth, room;
	char *path;
	size_t path_len, path_room;
	struct seen seen;	/* directories entered */
	int err;		/* first error of a directory that could not be read */
};

static void pop_level(struct search *s)
{
	struct level *l = &s->levels[--s->depth];

	erofs_dir_close(l->dir);
	erofs_inode_close(l->ino);
}

static void end_search(struct search *s)
{
	while (s->depth)
		pop_level(s);
	free(s->levels);
	free(s->path);
	erofs_seen_fini(&s->seen);
}

/* Make the path @len bytes of what it is now, a slash and @name. */
static int set_name(struct search *s, size_t len, const char *name, size_t name_len)
{
	if (len + name_len + 2 > s->path_room) {
		size_t room = 2 * (len + name_len + 2);
		char *grown = realloc(s->path, room);

		if (!grown)
			return -ENOMEM;
		s->path = grown;
		s->path_room = room;
	}
	s->path[len++] = '/';
	memcpy(s->path + len, name, name_len);
	s->path_len = len + name_len;
	s->path[s->path_len] = '\0';
	return 0;
}

static int push_level(struct search *s, uint64_t nid)
{
	struct level l = { .path_len = s->path_len };
	int err;

	if (s->depth == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct level *grown = realloc(s->levels, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->levels = grown;
		s->room = room;
	}
	err = erofs_inode_open(s->img, nid, s->diag, &l.ino);
	if (!err)
		err = erofs_dir_open(l.ino, s->diag, &l.dir);
	if (err) {
		erofs_inode_close(l.ino);
		return err;
	}
	s->levels[s->depth++] = l;
	return 0;
}

static bool is_dots(const struct erofs_entry *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

/* Enter a directory once; what can't be read is remembered, and the search goes on beside it. */
static int enter(struct search *s, uint64_t nid)
{
	int r = s->depth < WALK_MAX_DEPTH ? erofs_seen_add(&s->seen, nid) : 0;

	if (r > 0)
		r = push_level(s, nid);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && !s->err)
		s->err = r;
	return 0;
}

/* Return: 1 found, 0 go on, -ENOMEM. */
static int step(struct search *s)
{
	struct level *l = &s->levels[s->depth - 1];
	struct erofs_entry de;
	int err, r = erofs_dir_next(l->dir, &de);

	if (r <= 0) {
		if (r && !s->err)
			s->err = r;
		pop_level(s);
		return r == -ENOMEM ? r : 0;
	}
	if (is_dots(&de) || (de.nid != s->nid && de.type != DIRENT_DIR))
		return 0;
	err = set_name(s, l->path_len, de.name, de.len);
	if (err || de.nid == s->nid)
		return err ? err : 1;
	return enter(s, de.nid);
}

int erofs_path_of(struct erofs_image *img, uint64_t nid, struct erofs_diag *diag, char **ret_path)
{
	auto_call(end_search) struct search s = { .img = img, .diag = diag, .nid = nid };
	uint64_t root = img->super->info.root_nid;
	int r;

	if (nid == root) {
		*ret_path = strdup("/");
		return *ret_path ? 0 : -ENOMEM;
	}
	r = enter(&s, root);
	while (!r && s.depth)
		r = step(&s);
	if (r < 0)
		return r;
	if (!r)
		return s.err ? s.err : -ENOENT;
	*ret_path = steal(s.path);
	return 0;
}
