// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Owners, modes, capabilities and labels as the lists of Android's image makers have them (base/fsrules.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fsrules.h"
#include "write/android.h"

char *erofs_android_path(const struct writer *w, const struct node *node)
{
	auto_free char *below = erofs_node_path(node);

	return below ? erofs_fs_rules_path(w->o->mount_point, below) : NULL;
}

static bool is_caps(const char *name)
{
	return !strcmp(name, FS_RULES_CAPS);
}

static bool is_label(const char *name)
{
	return !strcmp(name, FS_RULES_LABEL);
}

static int add_xattr(struct writer *w, struct node *node, const char *name, const void *value, size_t len)
{
	return w->o->no_xattrs ? 0 : erofs_xattr_add(w, node, name, value, len);
}

static int take_facts(struct writer *w, struct node *node, const struct fs_facts *f)
{
	int err = 0;

	if (f->has_owner) {
		node->uid = f->uid;
		node->gid = f->gid;
		node->mode = (node->mode & S_IFMT) | f->mode;
		erofs_xattr_drop(node, is_caps);
		if (f->caps_size)
			err = add_xattr(w, node, FS_RULES_CAPS, f->caps, f->caps_size);
	}
	if (f->has_label)
		erofs_xattr_drop(node, is_label);
	return !err && f->label ? add_xattr(w, node, FS_RULES_LABEL, f->label, strlen(f->label)) : err;
}

static int apply(struct writer *w, struct fs_rules *rules, struct node *node)
{
	auto_free char *path = erofs_android_path(w, node);
	struct fs_facts facts;
	int err = path ? erofs_fs_rules_find(rules, path, !node->parent, node->mode, &facts) : -ENOMEM;

	if (err == -ENOENT)
		return erofs_diag_fail_path(w->diag, err, path + 1, "%s", rules->why.text);
	if (err)
		return err == -ENOMEM ? err : erofs_diag_fail(w->diag, err, AT_NOWHERE, "%s", rules->why.text);
	return take_facts(w, node, &facts);
}

/* An inode of several names goes by its first. */
static int apply_all(struct writer *w, struct fs_rules *rules)
{
	size_t i;
	uint32_t k;
	int err = apply(w, rules, w->feed.root);

	for (i = 0; !err && i < w->ndirs; i++) {
		for (k = 0; !err && k < w->dirs[i]->nchildren; k++)
			if (!w->dirs[i]->children[k]->link)
				err = apply(w, rules, w->dirs[i]->children[k]);
		if (!err && erofs_write_is_cancelled(w))
			err = -ECANCELED;
	}
	return err;
}

int erofs_android_apply(struct writer *w)
{
	struct fs_rules rules;
	int err;

	if (!w->o->fs_config_file && !w->o->file_contexts)
		return 0;
	err = erofs_fs_rules_init(&rules, w->o->fs_config_file, w->o->file_contexts);
	if (err && err != -ENOMEM)
		erofs_diag_fail(w->diag, err, AT_NOWHERE, "%s", rules.why.text);
	if (!err)
		err = apply_all(w, &rules);
	erofs_fs_rules_fini(&rules);
	return err;
}
