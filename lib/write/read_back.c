// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The finished image, read back and compared with what was put in.
 *
 * The source of the comparison is the writer's own tree: it holds the metadata that the image is meant to have,
 * after excludes, owners, times, marks of layers, fs_config and labels, which a fresh look at the source could
 * only repeat. Contents are not held by anybody: they come from the source, a second time. What waits on extra
 * devices is not in the image, and is not read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verify/verify_priv.h"
#include "write/write_priv.h"

static const struct node *inode_of(const struct node *node)
{
	return node->link ? node->link : node;
}

/* ---- workers ---- */

static void take_metadata(struct wanted *w, const struct node *inode)
{
	uint32_t minor_high = inode->rdev >> 12 & ~UINT32_C(0xff);

	w->has = EROFS_COMPARE_ALL & ~(EROFS_COMPARE_DATA | EROFS_COMPARE_LINK);
	w->mode = inode->mode;
	w->uid = inode->uid;
	w->gid = inode->gid;
	w->size = inode->size;
	w->mtime = inode->mtime;
	w->mtime_nsec = inode->mtime_nsec;
	w->major = inode->rdev >> 8 & 0xfff;
	w->minor = (inode->rdev & 0xff) | minor_high;
	w->group[0] = inode->ino;
	w->nlink = inode->nlink;
}

static int take_xattrs(struct compare_lane *l, struct wanted *w, const struct node *inode)
{
	struct tarbuf *b = &l->buf;
	char name[XATTR_ITEM_NAME];
	struct wanted_xattr xa = { 0 };
	uint32_t i;
	int err = erofs_tarbuf_reserve(b, inode->nxattrs * sizeof(xa));

	if (err || !inode->nxattrs)
		return err;
	w->xattrs = b->len;
	w->nxattrs = inode->nxattrs;
	b->len += inode->nxattrs * sizeof(xa);
	for (i = 0; !err && i < inode->nxattrs; i++) {
		const struct xattr_item *x = inode->xattrs[i];

		erofs_xattr_name(x, name);
		xa.name = b->len;
		err = erofs_tarbuf_add(b, name, strlen(name) + 1);
		xa.value = b->len;
		xa.size = x->value_len;
		if (!err)
			err = erofs_tarbuf_add(b, x->bytes + x->name_len, x->value_len);
		if (!err)
			memcpy(b->data + w->xattrs + i * sizeof(xa), &xa, sizeof(xa));
	}
	return err;
}

static int take_target(struct compare_lane *l, struct wanted *w, const struct node *inode)
{
	w->has |= EROFS_COMPARE_LINK;
	w->target = l->buf.len;
	w->target_len = (size_t)inode->size;
	return erofs_tarbuf_add(&l->buf, inode->target, w->target_len);
}

/* Have the contents at hand, as they are now. */
static int open_contents(struct compare_lane *l, struct wanted *w, struct writer *writer, const struct node *inode)
{
	struct contents contents = { .fd = -1 };
	struct stat st;
	int err = writer->feed.ops->open(&writer->feed, inode, &contents);

	if (err)
		return err;
	l->fd = contents.fd;
	l->keep_fd = !contents.owned;
	l->fd_off = contents.off;
	w->has |= EROFS_COMPARE_DATA;
	if (contents.owned && !fstat(l->fd, &st))
		w->size = (uint64_t)st.st_size;
	return 0;
}

static int gather(struct compare *c, struct compare_lane *l, const struct compare_parcel *p,
		  const struct compare_item *item, struct wanted *w)
{
	struct writer *writer = c->source.priv;
	const struct node *inode = item->own;
	int err = 0;

	take_metadata(w, inode);
	if (S_ISREG(inode->mode) && inode->size && !inode->foreign && item->is_there) {
		err = open_contents(l, w, writer, inode);
		if (err)
			return err;
	}
	if (!p->is_range && S_ISLNK(inode->mode))
		err = take_target(l, w, inode);
	if (!p->is_range && !err)
		err = take_xattrs(l, w, inode);
	l->base = l->buf.data;
	return err ? erofs_compare_no_memory(c) : 0;
}

/* ---- the owner ---- */

static int add_node(struct compare *c, const struct node *node, const char *path, size_t len)
{
	const struct node *inode = inode_of(node);
	struct compare_item item = { .own = inode, .no_data = inode->foreign != NULL,
				     .kind = erofs_dirent_type((uint16_t)inode->mode) };

	return erofs_compare_add(c, &item, path, len, NULL, NULL);
}

struct level {
	const struct node *dir;
	uint32_t next;
	size_t path_len;
};

struct levels {
	struct level *at;
	size_t depth, room;
};

static int push(struct levels *v, const struct node *dir, size_t path_len)
{
	if (v->depth == v->room) {
		size_t room = v->room ? 2 * v->room : 32;
		struct level *grown = realloc(v->at, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		v->at = grown;
		v->room = room;
	}
	v->at[v->depth++] = (struct level){ .dir = dir, .path_len = path_len };
	return 0;
}

/* Depth first, as the image lists its names: so the first of a link's names is the same on both sides. */
static int step(struct compare *c, struct levels *v, struct tarbuf *path)
{
	struct level *top = &v->at[v->depth - 1];
	const struct node *child;
	int err;

	if (top->next == top->dir->nchildren) {
		v->depth--;
		return 0;
	}
	child = top->dir->children[top->next++];
	path->len = top->path_len;
	err = erofs_compare_make_path(path, child->name);
	if (!err && S_ISDIR(child->mode))
		err = push(v, child, path->len);
	return err ? erofs_compare_no_memory(c) : add_node(c, child, (const char *)path->data, path->len);
}

static int run(struct compare *c)
{
	struct writer *w = c->source.priv;
	struct tarbuf path = { 0 };
	struct levels v = { 0 };
	int err = add_node(c, w->feed.root, "", 0);

	if (!err && push(&v, w->feed.root, 0))
		err = erofs_compare_no_memory(c);
	while (!err && v.depth)
		err = erofs_job_is_cancelled(c->job) ? -ECANCELED : step(c, &v, &path);
	erofs_tarbuf_free(&path);
	free(v.at);
	return err;
}

static int open_tree(struct compare *c, void *writer)
{
	c->source = (struct compare_source){ .gather = gather, .run = run, .in_ranges = true, .priv = writer };
	return 0;
}

/* With its devices, if there are files of them: the chunks', or the layers. */
int erofs_read_back_open(struct writer *w, struct erofs_image **ret)
{
	const char *blob = w->blob.temp ? w->blob.temp : w->o->blob;
	struct erofs_open_options options = { .size = sizeof(options), .offset = w->out.start };

	if (blob) {
		options.devices = &blob;
		options.device_count = 1;
	} else if (w->o->source_type == EROFS_WRITE_IMAGES) {
		options.devices = w->o->sources;
		options.device_count = w->ndevices;
	}
	return erofs_open(erofs_output_path(w), &options, w->diag, ret);
}

int erofs_read_back(struct writer *w)
{
	struct erofs_compare_options options = { .size = sizeof(options), .fn = w->o->difference,
						 .priv = w->o->difference_priv };
	struct erofs_image *img;
	int err = erofs_read_back_open(w, &img);

	if (err)
		return err;
	err = erofs_compare_with(img, w->eng, &options, open_tree, w, w->diag, &w->verified);
	erofs_close(img);
	return err;
}
