// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The manifest of what was built: an mtree of the finished image, before it gets its name. It is read back, not
 * gathered on the way: what it says is what the image decodes to, in the words of dump.erofs --to-mtree.
 */
#include "write/write_priv.h"

int erofs_manifest_put(struct writer *w)
{
	struct erofs_image *img;
	int err = erofs_read_back_open(w, &img);

	if (err)
		return err;
	err = erofs_to_mtree(img, w->eng, w->o->manifest, w->diag, NULL);
	erofs_close(img);
	return err;
}
