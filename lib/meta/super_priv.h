/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* What the files that read the superblock share: super.c, super_config.c, super_devices.c. */
#ifndef EROFS_META_SUPER_PRIV_H
#define EROFS_META_SUPER_PRIV_H

#include "disk/layout.h"
#include "meta/meta_priv.h"

struct super_loader {
	struct erofs_image *img;
	struct super *sb;		/* being filled */
	struct disk_super raw;		/* fields that do not exist are 0 */
	const struct erofs_open_options *options;
	struct erofs_diag *diag;
};

/** erofs_super_read() - read bytes of the primary device for the superblock; reports failures */
int erofs_super_read(const struct super_loader *l, uint64_t off, void *buf, size_t len);

/**
 * erofs_super_load_configs() - algorithms and their configuration records, format.md 3
 * Return: 0, -EUCLEAN, -EOPNOTSUPP, errno of pread; all reported.
 */
int erofs_super_load_configs(const struct super_loader *l);

/**
 * erofs_super_load_devices() - device table, format.md 4; opens the devices given
 * Return: 0, -EUCLEAN, -EINVAL (more devices given than slots), -ENOMEM, errno of open; reported.
 */
int erofs_super_load_devices(const struct super_loader *l);

/** erofs_super_hint() - ": this is a zip file" and the like for a file that is no image, or "" */
void erofs_super_hint(const struct erofs_image *img, char *buf, size_t size);

#endif
