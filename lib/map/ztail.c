// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Ends of compressed files: fragments in the packed file, inline pclusters (format.md 9.9, 9.10). */
#include <errno.h>
#include <inttypes.h>

#include "base/checked.h"
#include "map/map_int.h"

/* From where the map is to the end of the packed file, if anything is left. */
static void cut_to_packed(const struct map *m, uint64_t *off, uint64_t end, struct extent *ext)
{
	uint64_t skip = m->next_la > ext->la ? m->next_la - ext->la : 0, at;

	if (!add_ok(*off, skip, &at) || at >= end)
		return;
	*off = at;
	ext->cut = true;
	ext->la += skip;
	ext->len = min_u64(ext->len - skip, end - at);
}

int erofs_ztail_fragment(struct map *m, uint64_t off, struct extent *ext)
{
	const struct erofs_inode *ino = m->ino;
	const struct super *super = ino->img->super;
	struct erofs_diag *diag = m->mb->diag;

	if (ino == super->packed || ino == super->metabox || ino->nid == super->info.packed_nid ||
	    (super->info.metabox_nid && ino->nid == super->info.metabox_nid))
		return erofs_diag_damage(diag, FRAGMENT_NESTED, AT(ino->nid, ext->la),
					 "the packed or metabox file has a fragment itself");
	if (!super->packed)
		return erofs_diag_damage(diag, FRAGMENT_RANGE, AT(ino->nid, ext->la),
					 "a fragment, but the image has no packed file");
	if (m->salvage && !range_ok(off, ext->len, super->packed->size))
		cut_to_packed(m, &off, super->packed->size, ext);
	if (!range_ok(off, ext->len, super->packed->size))
		return erofs_diag_damage(diag, FRAGMENT_RANGE, AT(ino->nid, ext->la),
					 "fragment at %" PRIu64 ", %" PRIu64
					 " bytes: behind the end of the packed file (%" PRIu64 ")", off,
					 ext->len, super->packed->size);
	ext->kind = EXTENT_FRAGMENT;
	ext->pa = off;
	ext->plen = 0;
	return 0;
}

int erofs_ztail_inline(struct map *m, struct extent *ext)
{
	const struct erofs_inode *ino = m->ino;
	uint64_t pos = erofs_zindex_end(m);
	uint32_t blksz = ino->img->blksz;

	ext->meta = true;
	ext->pa = pos;
	ext->plen = m->z.idata_size;
	if ((pos & (blksz - 1)) + ext->plen > blksz)
		return erofs_diag_damage(m->mb->diag, Z_TAIL, AT(ino->nid, ext->la),
					 "inline tail of %" PRIu64 " bytes at 0x%" PRIx64 " crosses its block",
					 ext->plen, pos);
	if (ext->alg != CODEC_INTERLACED)
		return 0;
	/* format.md pitfall 16: every kernel that mounts this shows other bytes than were put in */
	if (m->strict)
		return erofs_diag_damage(m->mb->diag, Z_INTERLACED_TAIL, AT(ino->nid, ext->la),
					 "an inline plain tail in an interlaced file: kernels show wrong bytes");
	ext->alg = CODEC_SHIFTED;
	return 0;
}
