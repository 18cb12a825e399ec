// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What workers read of an inode for more than one kind of stream: extents, attributes, targets. */
#include <errno.h>
#include <string.h>

#include "archive/archive_priv.h"

bool erofs_archive_is_mappable(struct lane *lane, const struct erofs_inode *ino)
{
	struct extent ext;
	struct map map;
	int r = erofs_map_begin(&map, ino, erofs_lane_metabuf(lane), true);

	if (r)
		return false;
	while ((r = erofs_map_next(&map, &ext)) > 0)
		;
	return !r;
}

void erofs_pack_xattrs(struct pack *p, struct lane *lane, const struct erofs_inode *ino,
		       int (*add)(void *arg, const struct xattr_view *xa), void *arg)
{
	struct xattr_iter *it;
	struct xattr_view xa;
	int err;

	if (!ino->xattr_size)
		return;
	it = erofs_lane_xattrs(lane);
	if (!it) {
		p->err = -ENOMEM;
		return;
	}
	err = erofs_xattr_begin(it, ino);
	while (!err && !p->err && (err = erofs_xattr_next(it, &xa)) > 0) {
		err = 0;
		if (!xa.hidden)
			p->err = add(arg, &xa);
	}
	if (err || erofs_xattr_damage(it))
		p->damaged = true;
}

int erofs_archive_target(struct lane *lane, const struct erofs_inode *ino, char target[ARCHIVE_TARGET])
{
	int err;

	if (ino->size > ARCHIVE_TARGET)
		return -EUCLEAN;	/* was reported when the inode was loaded */
	err = erofs_lane_read(lane, ino, 0, target, (size_t)ino->size);
	if (!err && memchr(target, '\0', (size_t)ino->size))
		return erofs_diag_damage(erofs_lane_diag(lane), SYMLINK_TARGET, AT_NID(ino->nid),
					 "symlink target contains NUL");
	return err;
}
