/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* What the files of the map room share. */
#ifndef EROFS_MAP_INT_H
#define EROFS_MAP_INT_H

#include "map/map_priv.h"

#define SALVAGE_TRIES 512	/* places at which metadata that cannot be read is tried again further on */

/* h_advise, format.md 9.2 */
#define Z_ADVISE_COMPACTED_2B	0x01u
#define Z_ADVISE_EXTENTS	0x01u
#define Z_ADVISE_BIG_1		0x02u
#define Z_ADVISE_BIG_2		0x04u
#define Z_ADVISE_INLINE		0x08u
#define Z_ADVISE_INTERLACED	0x10u
#define Z_ADVISE_FRAGMENT	0x20u

/* @len bytes of the inode's container at @pos (len <= MAP_BUF), through the map's buffer. */
int erofs_map_fetch(struct map *m, uint64_t pos, size_t len, const uint8_t **ret);

/* Find device and position of stored bytes; reports at (nid, la). 0, -EUCLEAN, -ENODEV. */
int erofs_map_place(struct map *m, unsigned int dev_id, uint64_t pa, uint64_t len, struct extent *ext);

/* The same for RAW extents, which may be cut when salvaging: then they begin where the map is. */
int erofs_map_place_raw(struct map *m, unsigned int dev_id, uint64_t pa, struct extent *ext);

int erofs_map_flat_next(struct map *m, struct extent *ret_ext);
int erofs_map_chunk_next(struct map *m, struct extent *ret_ext);
/* After they failed: the first byte behind m->next_la that may be mapped again. */
uint64_t erofs_map_flat_resume(const struct map *m);
uint64_t erofs_map_chunk_resume(struct map *m);

int erofs_zheader_load(struct map *m);

/* Load one lcluster index; lcn < nlcl. */
int erofs_zindex_load(struct map *m, uint64_t lcn, struct z_lcluster *ret);
int erofs_zindex_load_full(struct map *m, uint64_t lcn, struct z_lcluster *ret);
int erofs_zindex_load_compact(struct map *m, uint64_t lcn, struct z_lcluster *ret);
/* Container position behind the indexes: where an inline tail begins. */
uint64_t erofs_zindex_end(const struct map *m);
/* What the indexes behind a head tell of its extent. */
struct z_span {
	uint64_t end;		/* bytes: where the extent ends */
	uint64_t nblks;		/* of its pcluster */
	bool has_nonhead, has_count, zero_count;
};
void erofs_zindex_set_head(struct map *m, uint64_t lcn, const struct z_lcluster *lc);
/* Note what the first index behind the head says. 0, -EUCLEAN (reported). */
int erofs_zindex_read_count(struct map *m, uint64_t lcn, const struct z_lcluster *lc, struct z_span *span);
/* la and len are set: where the bytes come from. */
int erofs_zindex_fill(struct map *m, const struct z_span *span, struct extent *ext);
int erofs_zindex_next(struct map *m, struct extent *ret_ext);
int erofs_zindex_seek(struct map *m, uint64_t la);

int erofs_zextent_begin(struct map *m);
int erofs_zextent_next(struct map *m, struct extent *ret_ext);
int erofs_zextent_seek(struct map *m, uint64_t la);
/* Logical start of record @i: 0, negative errno. */
int erofs_zextent_start(struct map *m, uint64_t i, uint64_t *ret_la);

/* erofs_map_salvage() of compressed files. */
int erofs_zindex_salvage(struct map *m, uint64_t la, struct extent *ret_ext);
int erofs_zextent_salvage(struct map *m, uint64_t la, struct extent *ret_ext);

/* Make @ext, whose la and len are set, a range of the packed file. */
int erofs_ztail_fragment(struct map *m, uint64_t off, struct extent *ext);
/* Make it the inline pcluster behind the indexes. */
int erofs_ztail_inline(struct map *m, struct extent *ext);
/* Algorithm nibble to enum codec_alg: known, announced. */
int erofs_map_algorithm(struct map *m, uint64_t la, unsigned int id, uint8_t *ret_alg);
/* Lengths of an ENCODED extent against the limits of the format. */
int erofs_map_check_lengths(struct map *m, const struct extent *ext);

#endif
