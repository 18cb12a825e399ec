/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * What Android's image makers say about a tree that lies in a folder of the build: owners, modes and
 * capabilities (fs_config), labels (file_contexts), both by the path that a file has on the device. Whoever
 * makes an image and whoever compares one with that folder ask here. One thread.
 */
#ifndef EROFS_BASE_FSRULES_H
#define EROFS_BASE_FSRULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fsconfig.h"
#include "base/why.h"

struct selabel;

struct fs_rules {
	struct fs_config *config;	/* NULL: none was named, owners, modes and capabilities are the folder's */
	struct selabel *labels;		/* NULL: the same of labels */
	const char *config_name;
	struct why why;
};

#define FS_RULES_CAPS "security.capability"
#define FS_RULES_LABEL "security.selinux"

struct fs_facts {
	bool has_owner;			/* the next are what counts */
	uint32_t uid, gid;
	uint32_t mode;			/* permissions */
	size_t caps_size;		/* 0: it has no capabilities */
	uint8_t caps[FS_CONFIG_CAPS_SIZE];
	bool has_label;			/* the next is what counts */
	const char *label;		/* valid until the next call; NULL: it has none */
};

/* @config, @contexts: files, borrowed; may be NULL. 0; negative errno (@r->why tells it); -ENOMEM. Fini always. */
int erofs_fs_rules_init(struct fs_rules *r, const char *config, const char *contexts);
void erofs_fs_rules_fini(struct fs_rules *r);

/* "/vendor/bin/x" of what is below the mount point; "/vendor" of "". NULL: no memory; free() it. */
char *erofs_fs_rules_path(const char *mount_point, const char *below);

/*
 * @path: on the device; @mode: its type counts. 0; -ENOENT: it has no line (@r->why tells it), and what has none
 * would get the builder's owner; negative errno (@r->why tells it).
 */
int erofs_fs_rules_find(struct fs_rules *r, const char *path, bool is_root, uint32_t mode, struct fs_facts *ret);

#endif
