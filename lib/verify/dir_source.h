/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* A directory as the source: what the owner (source_dir.c) and workers (dir_facts.c) share. */
#ifndef EROFS_VERIFY_DIR_SOURCE_H
#define EROFS_VERIFY_DIR_SOURCE_H

#include <dirent.h>

#include "base/fsrules.h"
#include "verify/verify_priv.h"

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
	bool has_proc;
	bool has_image;			/* the image is a file: this one */
	dev_t image_dev;
	ino_t image_ino;
	struct dir_rules *rules;	/* NULL: what the folder has counts */
	bool listing;			/* the names of inodes, for these */
};

static inline struct dir_source *erofs_dirsource_of(const struct compare *c)
{
	return c->source.priv;
}

static inline struct tree_dir *erofs_dirsource_handle(struct dir_source *s, struct src_dir *dir)
{
	return dir ? &dir->td : &s->tree.root;
}

/* dir_rules.c: 0, -ENOMEM, negative errno (reported) */
int erofs_dirrules_new(struct compare *c, struct dir_rules **ret);
void erofs_dirrules_free(struct dir_rules *r);
/* Before anything is added: a name that there is. */
int erofs_dirrules_note(struct compare *c, struct src_dir *dir, const char *name, const char *path);
/* erofs_compare_add() with what the rules say; @name: in the folder item->dir */
int erofs_dirrules_add(struct compare *c, const struct compare_item *item, const char *name, const char *path,
		       size_t len);
/* Worker: it stands in for what the folder has. 0, -ENOMEM. */
int erofs_dirrules_apply(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item,
			 struct wanted *w);

/* What is behind a name: the gather of the source. */
int erofs_dirsource_gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
			   const struct compare_item *item, struct wanted *w);
/* The settle of the source. */
void erofs_dirsource_settle(struct compare *c, struct compare_lane *l);

#endif
