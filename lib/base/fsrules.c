// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* fs_config and file_contexts, asked together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fsrules.h"
#include "base/selabel.h"

int erofs_fs_rules_init(struct fs_rules *r, const char *config, const char *contexts)
{
	int err = 0;

	*r = (struct fs_rules){ .config_name = config };
	if (config)
		err = erofs_fs_config_load(config, &r->why, &r->config);
	if (!err && contexts)
		err = erofs_selabel_open(contexts, &r->why, &r->labels);
	return err;
}

void erofs_fs_rules_fini(struct fs_rules *r)
{
	erofs_selabel_free(r->labels);
	erofs_fs_config_free(r->config);
	r->labels = NULL;
	r->config = NULL;
}

char *erofs_fs_rules_path(const char *mount_point, const char *below)
{
	const char *mount = mount_point ? mount_point : "";
	char *path = NULL;
	size_t len;

	mount += strspn(mount, "/");
	len = strlen(mount);
	while (len && mount[len - 1] == '/')
		len--;
	if (asprintf(&path, "/%.*s%s%s", (int)len, mount, len && *below ? "/" : "", below) < 0)
		return NULL;
	return path;
}

static int find_owner(struct fs_rules *r, const char *path, bool is_root, struct fs_facts *ret)
{
	const struct fs_config_entry *e = erofs_fs_config_find(r->config, path + 1);

	/* some lists call the root of every image "/" */
	if (!e && is_root)
		e = erofs_fs_config_find(r->config, "");
	if (!e)
		return why_is(&r->why, -ENOENT, "has no line in %s", r->config_name);
	ret->has_owner = true;
	ret->uid = e->uid;
	ret->gid = e->gid;
	ret->mode = e->mode;
	ret->caps_size = e->caps ? FS_CONFIG_CAPS_SIZE : 0;
	if (e->caps)
		erofs_fs_config_caps(e->caps, ret->caps);
	return 0;
}

int erofs_fs_rules_find(struct fs_rules *r, const char *path, bool is_root, uint32_t mode, struct fs_facts *ret)
{
	int err = 0;

	*ret = (struct fs_facts){ 0 };
	if (r->config)
		err = find_owner(r, path, is_root, ret);
	if (err || !r->labels)
		return err;
	ret->has_label = true;
	err = erofs_selabel_find(r->labels, path, mode, &ret->label);
	return err < 0 ? err : 0;
}
