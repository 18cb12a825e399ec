// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Where things go. Blocks are handed out in ascending order. Metadata fills blocks of its own; what an
 * inode leaves of a block is kept by size, and the smallest gap that fits takes the next one.
 */
#include <errno.h>
#include <stdlib.h>

#include "write/write_priv.h"

#define UNIT 32

static size_t classes(const struct space *s)
{
	return ((size_t)1 << s->blkbits) / UNIT + 1;
}

int erofs_space_init(struct space *s, unsigned int blkbits)
{
	*s = (struct space){ .blkbits = blkbits };
	s->gaps = calloc(classes(s), sizeof(*s->gaps));
	return s->gaps ? 0 : -ENOMEM;
}

void erofs_space_fini(struct space *s)
{
	size_t i;

	for (i = 0; s->gaps && i < classes(s); i++)
		free(s->gaps[i].at);
	free(s->gaps);
	s->gaps = NULL;
}

uint64_t erofs_space_blocks(struct space *s, uint64_t count)
{
	uint64_t block = s->next;

	s->next += count;
	return block;
}

int erofs_space_give(struct space *s, uint64_t pos, uint64_t end)
{
	uint64_t start = round_up_u64(pos, UNIT);
	struct gaps *g;

	if (start >= end || end - start < UNIT)
		return 0;
	g = &s->gaps[(end - start) / UNIT];
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 8;
		uint64_t *grown = realloc(g->at, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		g->at = grown;
		g->room = room;
	}
	g->at[g->count++] = start;
	return 0;
}

static bool take_gap(struct space *s, uint64_t size, uint64_t *ret_pos, uint64_t *ret_end)
{
	size_t i;

	for (i = (size_t)((size + UNIT - 1) / UNIT); i < classes(s); i++) {
		struct gaps *g = &s->gaps[i];

		if (!g->count)
			continue;
		*ret_pos = g->at[--g->count];
		*ret_end = *ret_pos + i * UNIT;
		return true;
	}
	return false;
}

/* Bytes to leave out in front, so that the tail and the byte before it share a block. */
static uint64_t find_shift(const struct space *s, uint64_t head, uint64_t tail)
{
	uint64_t blksz = UINT64_C(1) << s->blkbits, at = head % blksz, shift;

	if (!tail || (at && at + tail <= blksz))
		return 0;
	shift = round_up_u64(blksz - at, UNIT) % blksz;
	return (head + shift) % blksz ? shift : shift + UNIT;
}

int erofs_space_meta(struct space *s, uint64_t size, uint64_t tail, uint64_t *ret_pos)
{
	uint64_t blksz = UINT64_C(1) << s->blkbits, shift, start, end, nblks;
	int err;

	if (size <= blksz && take_gap(s, size, ret_pos, &end))
		return erofs_space_give(s, *ret_pos + size, end);
	shift = find_shift(s, size - tail, tail);
	nblks = div_up_pow2(size + shift, s->blkbits);
	start = erofs_space_blocks(s, nblks) << s->blkbits;
	s->meta_blocks += nblks;
	*ret_pos = start + shift;
	err = erofs_space_give(s, start, *ret_pos);
	if (err)
		return err;
	return erofs_space_give(s, *ret_pos + size, start + (nblks << s->blkbits));
}
