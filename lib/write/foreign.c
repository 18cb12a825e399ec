// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Chunk-based inodes (format.md 6.3), and the table of extra devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/foreign.h"

/* ---- pieces ---- */

int erofs_foreign_init(struct node *node)
{
	erofs_foreign_free(node);
	node->foreign = calloc(1, sizeof(*node->foreign));
	return node->foreign ? 0 : -ENOMEM;
}

int erofs_foreign_add(struct node *node, const struct piece *piece)
{
	struct foreign *f = node->foreign;
	struct piece *last = f->count ? &f->pieces[f->count - 1] : NULL;

	if (last && last->dev == piece->dev && last->la + last->len == piece->la &&
	    last->pa + last->len == piece->pa) {
		last->len += piece->len;
		return 0;
	}
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 1;
		struct piece *grown = realloc(f->pieces, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		f->pieces = grown;
		f->room = room;
	}
	f->pieces[f->count++] = *piece;
	return 0;
}

int erofs_foreign_copy(struct node *to, const struct node *from)
{
	size_t i;
	int err;

	if (!from->foreign)
		return 0;
	err = erofs_foreign_init(to);
	for (i = 0; !err && i < from->foreign->count; i++)
		err = erofs_foreign_add(to, &from->foreign->pieces[i]);
	return err;
}

void erofs_foreign_free(struct node *node)
{
	if (node->foreign)
		free(node->foreign->pieces);
	free(node->foreign);
	node->foreign = NULL;
}

/* ---- chunks ---- */

/* The largest chunk within which every piece is whole, in blocks, as a power of two. */
static unsigned int choose_chunk(const struct writer *w, const struct node *node)
{
	const struct foreign *f = node->foreign;
	uint64_t borders = 0;
	unsigned int bits = 0;
	size_t i;

	for (i = 0; i < f->count; i++) {
		borders |= f->pieces[i].la;
		if (f->pieces[i].la + f->pieces[i].len < node->size)
			borders |= f->pieces[i].la + f->pieces[i].len;
	}
	if (borders)
		bits = (unsigned int)__builtin_ctzll(borders) - w->blkbits;
	else
		while (bits < DISK_CHUNK_BITS && node->size >> w->blkbits >> bits > 1)
			bits++;
	if (!borders && bits < DISK_CHUNK_BITS && node->size > UINT64_C(1) << (w->blkbits + bits))
		bits++;
	return bits < DISK_CHUNK_BITS ? bits : DISK_CHUNK_BITS;
}

static int fill_chunks(struct writer *w, const struct node *node, unsigned int bits,
		       struct disk_chunk_index *map, uint64_t count)
{
	const struct foreign *f = node->foreign;
	uint64_t i, la, block;
	size_t at = 0;

	for (i = 0; i < count; i++) {
		const struct piece *p;

		la = i << bits << w->blkbits;
		while (at < f->count && f->pieces[at].la + f->pieces[at].len <= la)
			at++;
		p = at < f->count && f->pieces[at].la <= la ? &f->pieces[at] : NULL;
		map[i].startblk_lo = le32_of(DISK_NULL_BLK32);
		if (!p)
			continue;
		block = (p->pa + (la - p->la)) >> w->blkbits;
		if (block >= DISK_NULL_BLK32)
			return -EFBIG;
		map[i].startblk_lo = le32_of((uint32_t)block);
		map[i].device_id = le16_of((uint16_t)p->dev);
	}
	return 0;
}

static uint32_t block_of(const struct disk_chunk_index *x)
{
	return le32_get(x->startblk_lo);
}

/* The short form, where all is in the image: half as long. */
static void shorten(struct disk_chunk_index *map, uint64_t count)
{
	uint8_t *dst = (uint8_t *)map;
	uint64_t i;

	for (i = 0; i < count; i++)
		put_le32(dst + 4 * i, block_of(&map[i]));
}

static int fail_put(struct writer *w, const struct node *node, int err)
{
	auto_free char *path = erofs_node_path(node);

	return erofs_diag_fail_path(w->diag, err, path ? path : "?", "its contents lie behind block 2^32");
}

int erofs_foreign_put(struct writer *w, struct node *node)
{
	unsigned int bits = choose_chunk(w, node);
	uint64_t count = div_up_pow2(node->size, w->blkbits + bits);
	auto_free struct disk_chunk_index *map = NULL;
	struct body body = { .layout = 4, .u = DISK_CHUNK_INDEXES | bits, .map_align = sizeof(*map) };
	int err;

	if (count > SIZE_MAX / sizeof(*map))
		return -ENOMEM;
	map = calloc((size_t)count, sizeof(*map));
	if (!map)
		return -ENOMEM;
	err = fill_chunks(w, node, bits, map, count);
	if (err)
		return fail_put(w, node, err);
	body.map = (const uint8_t *)map;
	if (w->chunks && !w->o->blob && w->o->chunk_map != EROFS_WRITE_CHUNK_INDEXES) {
		shorten(map, count);
		body.u = bits;
		body.map_align = 4;
	}
	body.map_len = (size_t)count * body.map_align;
	return erofs_inode_put(w, node, &body);
}

/* ---- devices ---- */

int erofs_device_add(struct writer *w, const char *tag, uint64_t blocks)
{
	struct device *grown;

	if (w->ndevices == UINT16_MAX)
		return erofs_diag_fail(w->diag, -E2BIG, AT_NOWHERE, "more than 65535 devices");
	grown = realloc(w->devices, (w->ndevices + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->devices = grown;
	grown[w->ndevices] = (struct device){ .blocks = blocks };
	strncpy(grown[w->ndevices].tag, tag, sizeof(grown->tag) - 1);
	w->ndevices++;
	return 0;
}

static uint64_t table_start(uint64_t super_end)
{
	return round_up_u64(super_end, sizeof(struct disk_device));
}

uint64_t erofs_device_room(uint64_t super_end, unsigned int count)
{
	return count ? table_start(super_end) + count * sizeof(struct disk_device) - super_end : 0;
}

/* Behind the image, one behind the other: so Linux finds them in the image's own file if none is named. */
int erofs_device_put(struct writer *w)
{
	auto_free struct disk_device *table = calloc(w->ndevices + 1, sizeof(*table));
	uint64_t next = w->space.next;
	unsigned int i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < w->ndevices; i++) {
		const struct device *d = &w->devices[i];

		if (next > UINT32_MAX || d->blocks > UINT32_MAX)
			return erofs_diag_fail(w->diag, -EFBIG, AT_NOWHERE, "all devices have more than 2^32 blocks");
		memcpy(table[i].tag, d->tag, sizeof(table[i].tag));
		table[i].blocks_lo = le32_of((uint32_t)d->blocks);
		table[i].uniaddr_lo = le32_of((uint32_t)next);
		next += d->blocks;
	}
	return erofs_output_write(w, table, w->ndevices * sizeof(*table), table_start(w->super_end));
}
