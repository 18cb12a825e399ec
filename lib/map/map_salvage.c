// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Mapping past damage: what holds a byte, or how much is lost from there on. */
#include <errno.h>

#include "base/checked.h"
#include "map/map_int.h"

static int map_plain(struct map *m, struct extent *ext, uint64_t *ret_end)
{
	int err;

	if (erofs_inode_is_compressed(m->ino)) {	/* a fragment and nothing else */
		ext->len = m->ino->size;
		*ret_end = m->ino->size;
		return erofs_ztail_fragment(m, m->z.fragment_off, ext);
	}
	if (m->ino->layout == LAYOUT_CHUNK) {
		err = erofs_map_chunk_next(m, ext);
		*ret_end = err ? erofs_map_chunk_resume(m) : 0;
		return err;
	}
	*ret_end = erofs_map_flat_resume(m);
	return erofs_map_flat_next(m, ext);
}

int erofs_map_salvage(struct map *m, uint64_t la, struct extent *ret_ext)
{
	struct extent ext = { 0 };
	uint64_t end;
	int err;

	m->next_la = la;
	m->salvage = true;
	if (erofs_inode_is_compressed(m->ino) && !m->z.whole_fragment)
		return m->z.extents ? erofs_zextent_salvage(m, la, ret_ext) :
				      erofs_zindex_salvage(m, la, ret_ext);
	err = map_plain(m, &ext, &end);
	if (err == -ENOMEM)
		return err;
	if (err)
		ext = (struct extent){ .la = la, .len = end - la };
	*ret_ext = ext;
	return !err;
}
