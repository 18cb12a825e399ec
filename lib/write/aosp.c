// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * What Android's image makers say about a tree that lies in a folder of the build: owners, modes and
 * capabilities (fs_config), labels (file_contexts), both by the path that a file has on the device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fsconfig.h"
#include "base/selabel.h"
#include "write/android.h"

#define CAPS "security.capability"
#define LABEL "security.selinux"

struct android {
	struct writer *w;
	struct fs_config *config;	/* NULL: none was named */
	struct selabel *labels;		/* the same */
	struct why why;
};

char *erofs_android_path(const struct writer *w, const struct node *node)
{
	auto_free char *below = erofs_node_path(node);
	const char *mount = w->o->mount_point ? w->o->mount_point : "";
	char *path = NULL;
	size_t len;

	mount += strspn(mount, "/");
	len = strlen(mount);
	while (len && mount[len - 1] == '/')
		len--;
	if (!below || asprintf(&path, "/%.*s%s%s", (int)len, mount, len && *below ? "/" : "", below) < 0)
		return NULL;
	return path;
}

static bool is_caps(const char *name)
{
	return !strcmp(name, CAPS);
}

static bool is_label(const char *name)
{
	return !strcmp(name, LABEL);
}

/* The list is the truth about every file: what it does not know would get the builder's owner. */
static int apply_config(struct android *a, struct node *node, const char *path)
{
	const struct fs_config_entry *e = erofs_fs_config_find(a->config, path + 1);
	uint8_t value[FS_CONFIG_CAPS_SIZE];

	/* some lists call the root of every image "/" */
	if (!e && !node->parent)
		e = erofs_fs_config_find(a->config, "");
	if (!e)
		return erofs_diag_fail_path(a->w->diag, -ENOENT, path + 1, "has no line in %s",
					    a->w->o->fs_config_file);
	node->uid = e->uid;
	node->gid = e->gid;
	node->mode = (node->mode & S_IFMT) | e->mode;
	erofs_xattr_drop(node, is_caps);
	if (!e->caps || a->w->o->no_xattrs)
		return 0;
	erofs_fs_config_caps(e->caps, value);
	return erofs_xattr_add(a->w, node, CAPS, value, sizeof(value));
}

static int apply_label(struct android *a, struct node *node, const char *path)
{
	const char *label;
	int r = erofs_selabel_find(a->labels, path, node->mode, &label);

	if (r < 0)
		return erofs_diag_fail(a->w->diag, r, AT_NOWHERE, "%s", a->why.text);
	erofs_xattr_drop(node, is_label);
	return r && !a->w->o->no_xattrs ? erofs_xattr_add(a->w, node, LABEL, label, strlen(label)) : 0;
}

static int apply(struct android *a, struct node *node)
{
	auto_free char *path = erofs_android_path(a->w, node);
	int err = path ? 0 : -ENOMEM;

	if (!err && a->config)
		err = apply_config(a, node, path);
	return !err && a->labels ? apply_label(a, node, path) : err;
}

/* An inode of several names goes by its first. */
static int apply_all(struct android *a)
{
	struct writer *w = a->w;
	size_t i;
	uint32_t k;
	int err = apply(a, w->feed.root);

	for (i = 0; !err && i < w->ndirs; i++) {
		for (k = 0; !err && k < w->dirs[i]->nchildren; k++)
			if (!w->dirs[i]->children[k]->link)
				err = apply(a, w->dirs[i]->children[k]);
		if (!err && erofs_write_is_cancelled(w))
			err = -ECANCELED;
	}
	return err;
}

int erofs_android_apply(struct writer *w)
{
	struct android a = { .w = w };
	int err = 0;

	if (w->o->fs_config_file)
		err = erofs_fs_config_load(w->o->fs_config_file, &a.why, &a.config);
	if (!err && w->o->file_contexts)
		err = erofs_selabel_open(w->o->file_contexts, &a.why, &a.labels);
	if (err && err != -ENOMEM)
		erofs_diag_fail(w->diag, err, AT_NOWHERE, "%s", a.why.text);
	if (!err && (a.config || a.labels))
		err = apply_all(&a);
	erofs_selabel_free(a.labels);
	erofs_fs_config_free(a.config);
	return err;
}
