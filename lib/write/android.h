/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* write: options of Android's image makers (cli.md 7, "Android file formats"). */
#ifndef EROFS_WRITE_ANDROID_H
#define EROFS_WRITE_ANDROID_H

#include "write/write_priv.h"

/* The path on the device: "/vendor/bin/x"; "/vendor" of the root. NULL: no memory; free() it. */
char *erofs_android_path(const struct writer *w, const struct node *node);

/* Give the complete tree the owners, modes, capabilities and labels that the files named in the options
 * say. 0, negative errno (reported). */
int erofs_android_apply(struct writer *w);

/* block_list.c: which blocks each regular file has in the image, which is complete but for its name. */
int erofs_block_list_put(struct writer *w);

#endif
