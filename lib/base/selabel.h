/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Labels of files by their paths: file_contexts, read by libselinux. One thread. */
#ifndef EROFS_BASE_SELABEL_H
#define EROFS_BASE_SELABEL_H

#include <stdint.h>

#include "base/why.h"

struct selabel;

/*
 * 0; -EOPNOTSUPP no libselinux; -EINVAL a line makes no sense; errno of reading; @why tells each; -ENOMEM.
 * @why is used by erofs_selabel_find() too.
 */
int erofs_selabel_open(const char *path, struct why *why, struct selabel **ret);
void erofs_selabel_free(struct selabel *s);
/*
 * The label of a path ("/vendor/bin/x") of this type and mode; valid until the next call. 1; 0 none is meant
 * for it; negative errno (@why tells it).
 */
int erofs_selabel_find(struct selabel *s, const char *path, uint32_t mode, const char **ret_label);

#endif
