// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * --block-list-file: "PATH START-END START …", a line for each name of a regular file that has blocks of its
 * own. It is read back from the image, so it tells what is there, whatever the layout.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/image.h>

#include "map/map_priv.h"
#include "write/android.h"

struct block_list {
	struct writer *w;
	struct metabuf mb;
	struct map map;
	FILE *out;
	uint64_t first, last;		/* the range that is not written yet */
	bool has_range, has_line;
};

static void put_range(struct block_list *l, const char *path)
{
	if (!l->has_range)
		return;
	if (!l->has_line)
		fputs(path, l->out);
	l->has_line = true;
	l->has_range = false;
	fprintf(l->out, l->first == l->last ? " %" PRIu64 : " %" PRIu64 "-%" PRIu64, l->first, l->last);
}

/* Ends beside inodes share their block with others, fragments lie in the packed file: neither is listed. */
static void add_extent(struct block_list *l, const char *path, const struct extent *e)
{
	uint64_t first, last;

	if (e->meta || e->dev || (e->kind != EXTENT_RAW && e->kind != EXTENT_ENCODED))
		return;
	first = e->pa >> l->w->blkbits;
	last = (e->pa + e->plen - 1) >> l->w->blkbits;
	if (l->has_range && first >= l->first && first <= l->last + 1) {
		l->last = max_u64(l->last, last);
		return;
	}
	put_range(l, path);
	l->first = first;
	l->last = last;
	l->has_range = true;
}

static int put_file(struct block_list *l, const struct node *node)
{
	const struct node *inode = node->link ? node->link : node;
	auto_free char *path = erofs_android_path(l->w, node);
	struct erofs_inode ino;
	struct extent e;
	int r;

	if (!path)
		return -ENOMEM;
	if (strpbrk(path, " \t\r\n\v\f"))
		return erofs_diag_warn_path(l->w->diag, path, "has white space, not in %s",
					    l->w->o->block_list_file);
	r = erofs_inode_load(&l->mb, inode->nid, &ino);
	if (!r)
		r = erofs_map_begin(&l->map, &ino, &l->mb, false);
	if (r)
		return r;
	l->has_range = l->has_line = false;
	while ((r = erofs_map_next(&l->map, &e)) > 0)
		add_extent(l, path, &e);
	put_range(l, path);
	if (l->has_line)
		putc('\n', l->out);
	return r;
}

static int put_all(struct block_list *l)
{
	const struct writer *w = l->w;
	size_t i;
	uint32_t k;
	int err = 0;

	for (i = 0; !err && i < w->ndirs; i++) {
		for (k = 0; !err && k < w->dirs[i]->nchildren; k++) {
			const struct node *child = w->dirs[i]->children[k];

			if (S_ISREG(child->link ? child->link->mode : child->mode))
				err = put_file(l, child);
		}
		if (!err && erofs_write_is_cancelled(w))
			err = -ECANCELED;
	}
	return err;
}

static int put_list(struct block_list *l)
{
	const char *path = l->w->o->block_list_file;
	int err;

	l->out = fopen(path, "we");
	if (!l->out)
		return erofs_diag_fail(l->w->diag, -errno, AT_NOWHERE, "cannot write %s", path);
	err = put_all(l);
	if (!err && (fflush(l->out) || ferror(l->out)))
		err = erofs_diag_fail(l->w->diag, errno ? -errno : -EIO, AT_NOWHERE, "cannot write %s", path);
	if (fclose(l->out) && !err)
		err = erofs_diag_fail(l->w->diag, -errno, AT_NOWHERE, "cannot write %s", path);
	return err;
}

int erofs_block_list_put(struct writer *w)
{
	struct block_list *l;
	struct erofs_image *img;
	const struct erofs_open_options oo = { .size = sizeof(oo), .offset = w->out.start };
	int err = erofs_open(erofs_output_path(w), &oo, w->diag, &img);

	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	err = l ? erofs_metabuf_init(&l->mb, img, w->diag) : -ENOMEM;
	if (!err) {
		l->w = w;
		err = put_list(l);
		erofs_metabuf_fini(&l->mb);
	}
	free(l);
	erofs_close(img);
	return err;
}
