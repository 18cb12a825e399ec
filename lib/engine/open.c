// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Opening an image. Stands here and not in meta because the last steps may have to decode: the root
 * may lie in the metabox, xattr prefixes in the packed file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "engine/lane_priv.h"
#include "engine/look.h"

void erofs_close(struct erofs_image *img)
{
	if (!img)
		return;
	erofs_look_free(img->look);
	erofs_super_free(img);
	erofs_image_free(img);
}

static void close_image(struct erofs_image **img)
{
	erofs_close(*img);
}

static void free_lane(struct lane **lane)
{
	erofs_lane_free(*lane);
}

/* Packed and metabox inode: regular files without fragments, not in the metabox (format.md 10). */
static int load_special(struct lane *lane, uint64_t nid, const char *what, struct erofs_inode **ret_ino)
{
	auto_free struct erofs_inode *ino = malloc(sizeof(*ino));
	int err;

	if (!ino)
		return -ENOMEM;
	err = erofs_inode_load(&lane->mb, nid, ino);
	if (err)
		return err;
	if (!S_ISREG(ino->mode))
		return erofs_diag_damage(lane->diag, SB_SPECIAL, AT_NID(nid), "%s is no regular file (mode 0%o)",
					 what, ino->mode);
	*ret_ino = steal(ino);
	return 0;
}

static int load_root(struct lane *lane)
{
	struct erofs_inode root;
	uint64_t nid = lane->img->super->info.root_nid;
	int err = erofs_inode_load(&lane->mb, nid, &root);

	if (err)
		return err;
	if (!S_ISDIR(root.mode))
		return erofs_diag_damage(lane->diag, SB_ROOT, AT_NID(nid), "the root is no directory (mode 0%o)",
					 root.mode);
	return 0;
}

static int load_inodes(struct erofs_image *img, struct erofs_diag *diag)
{
	auto_call(free_lane) struct lane *lane = NULL;
	struct super *super = img->super;
	int err = erofs_lane_new(img, NULL, diag, &lane);

	if (!err && super->info.metabox_nid)
		err = load_special(lane, super->info.metabox_nid, "the metabox", &super->metabox);
	if (!err && super->info.packed_nid)
		err = load_special(lane, super->info.packed_nid, "the packed file", &super->packed);
	if (!err)
		err = erofs_xattr_load_prefixes(&lane->mb);
	return err ? err : load_root(lane);
}

/* Callers that were built before a field was added give a smaller size. */
#define has_field(o, field) ((o)->size >= offsetof(struct erofs_open_options, field) + sizeof((o)->field))

int erofs_open(const char *path, const struct erofs_open_options *options, struct erofs_diag *diag,
	       struct erofs_image **ret_img)
{
	static const struct erofs_open_options none = { .size = sizeof(none) };
	auto_call(close_image) struct erofs_image *img = NULL;
	int err;

	if (!options)
		options = &none;
	err = erofs_image_open(path, options->offset, has_field(options, spool) && options->spool, diag, &img);
	if (!err && has_field(options, find) && options->find)
		err = erofs_super_find(img, diag);
	if (!err)
		err = erofs_look_new(&img->look);
	if (!err)
		err = erofs_super_load(img, options, diag);
	if (!err && !options->super_only)
		err = load_inodes(img, diag);
	if (!err)
		*ret_img = steal(img);
	return err;
}
