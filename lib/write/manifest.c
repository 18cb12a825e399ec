// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The manifest of what was built: an mtree of the finished image, before it gets its name, in the
 * words of dump.erofs --to-mtree. Metadata are read back, so that it says of them what the image does;
 * contents only where they did not pass through (digests.c): of images laid over each other.
 */
#include "archive/sums_priv.h"
#include "write/write_priv.h"

static const uint8_t *find_digest(void *arg, uint64_t nid)
{
	return erofs_digest_find(arg, nid);
}

int erofs_manifest_put(struct writer *w)
{
	struct erofs_image *img;
	int err = erofs_read_back_open(w, &img);

	if (err)
		return err;
	err = erofs_sums_to_mtree(img, w->eng, w->o->manifest, find_digest, w, w->diag, NULL);
	erofs_close(img);
	return err;
}
