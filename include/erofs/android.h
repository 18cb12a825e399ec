/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* android: owners, modes, capabilities and labels of a tree, in the files that AOSP's image makers take. */
#ifndef EROFS_ANDROID_H
#define EROFS_ANDROID_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/engine.h>
#include <erofs/image.h>
#include <erofs/select.h>

EROFS_BEGIN_DECLS

struct erofs_android_options {
	size_t size;			/* sizeof(struct erofs_android_options) */
	const char *dir;		/* folder for the two files; made if it is not there */
	const char *mount_point;	/* of the start: "/vendor", "vendor", "/" */
	int has_nid;			/* start at @nid, a directory, not at the root */
	uint64_t nid;
	const struct erofs_select *select;	/* what is told of, NULL: everything */
	unsigned int strip_components;	/* leading parts of paths to be dropped; shorter ones are left out */
	int mkdir_parents;		/* make missing parents of @dir */
	int fsync;			/* flush both files before they get their names */
};

struct erofs_android_result {
	uint64_t entries;		/* lines of MOUNT_fs_config */
	uint64_t labels;		/* lines of MOUNT_file_contexts */
	uint64_t capabilities;
	uint64_t failed;		/* what the formats have no way to say */
};

/** erofs_android_check_mount() - can it be a mount point here? 0, -EINVAL: empty parts, "..", white space. */
EROFS_API int erofs_android_check_mount(const char *mount_point);

/**
 * erofs_android_config() - write MOUNT_fs_config and MOUNT_file_contexts
 * @diag:       receives findings and failures; not flushed
 * @ret_result: may be NULL; filled also after an error
 * MOUNT is the last part of the mount point, "root" for "/". Lines come in path order, a directory before what
 * is below it, and are the same whatever the engine's settings:
 *
 *   PATH UID GID MODE [capabilities=0xMASK]   path with the mount point, without a slash in front; "/" is "/"
 *   REGEX LABEL                               path with the mount point and a slash in front, escaped
 *
 * White space in a path ends it in the first file, and has no escape there; capabilities are those that are
 * permitted and effective. What does not fit that, or labels with white space, is reported and counted, and
 * the rest of such an entry is told. In the second file any name can be written. Both have their names only
 * when they are whole, then in place of older ones.
 * Return: 0; -EUCLEAN something is not in the files, or is damaged (reported); -ENOTDIR the start is no
 * directory (reported); -EINVAL; -ECANCELED; -ENOMEM; errno of the output (reported).
 */
EROFS_API int erofs_android_config(struct erofs_image *img, struct erofs_engine *eng,
				   const struct erofs_android_options *options, struct erofs_diag *diag,
				   struct erofs_android_result *ret_result);

EROFS_END_DECLS

#endif
