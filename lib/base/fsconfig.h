/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * fs_config: owners, modes and capabilities of the files of an Android image, one path a line
 * (cli.md 7, "Android file formats").
 */
#ifndef EROFS_BASE_FSCONFIG_H
#define EROFS_BASE_FSCONFIG_H

#include <stdint.h>

#include "base/why.h"

struct fs_config;

struct fs_config_entry {
	const char *path;	/* without slashes in front and at the end: "vendor/bin/x"; "" is the root */
	uint32_t uid, gid;
	uint32_t mode;		/* permissions */
	uint64_t caps;		/* permitted and effective; 0: none */
	unsigned int line;
};

/* 0; -EINVAL a line makes no sense, errno of reading: @why tells it, with file and line; -ENOMEM. */
int erofs_fs_config_load(const char *path, struct why *why, struct fs_config **ret);
void erofs_fs_config_free(struct fs_config *c);
/* NULL: nothing is said of that path. */
const struct fs_config_entry *erofs_fs_config_find(const struct fs_config *c, const char *path);

/* The value of security.capability that grants @caps. */
#define FS_CONFIG_CAPS_SIZE 20
void erofs_fs_config_caps(uint64_t caps, uint8_t value[FS_CONFIG_CAPS_SIZE]);

#endif
