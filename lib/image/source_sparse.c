// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Android sparse images, version 1: a header, then chunks of blocks in order, each with a header of its
 * own. Raw chunks are read where they lie in the file, the others are made up while reading.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "diag/diag_priv.h"
#include "image/source.h"
#include "image/sparse.h"

struct piece {
	uint64_t pos;		/* of its bytes in the file, 0: filled with @value */
	uint32_t block;		/* where it begins; it ends where the next one begins */
	uint32_t value;		/* the four bytes as they lie in the file */
};

struct source_sparse {
	struct source src;
	struct source *below;
	uint32_t blk_sz;
	uint32_t blocks;
	uint32_t count;
	struct piece *pieces;	/* by block, without gaps */
};

struct sparse_loader {
	struct source_sparse *s;
	struct source *below;
	struct erofs_diag *diag;
	uint32_t file_hdr, chunk_hdr, chunks;
	uint32_t room;
	uint32_t index;		/* of the chunk at @pos */
	uint64_t pos;
	uint64_t block;		/* where it begins */
};

#define bad_header(l, ...) erofs_diag_damage((l)->diag, SPARSE_HEADER, AT_OFF(0), "sparse header: " __VA_ARGS__)
#define bad_chunk(l, fmt, ...) \
	erofs_diag_damage((l)->diag, SPARSE_CHUNK, AT_OFF((l)->pos), "sparse chunk %" PRIu32 ": " fmt, \
			  (l)->index, __VA_ARGS__)

/* ---- reading ---- */

/* The last piece that begins at or in front of @block; there is one at 0. */
static uint32_t find_piece(const struct source_sparse *s, uint64_t block)
{
	uint32_t lo = 0, hi = s->count;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->pieces[mid].block <= block)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t piece_start(const struct source_sparse *s, uint32_t i)
{
	return (uint64_t)(i < s->count ? s->pieces[i].block : s->blocks) * s->blk_sz;
}

/* Pieces begin at multiples of four bytes, so the phase of the pattern is that of @off. */
static void fill(uint8_t *buf, size_t len, uint64_t off, uint32_t value)
{
	uint8_t pattern[4];
	size_t i;

	if (!value) {
		memset(buf, 0, len);
		return;
	}
	memcpy(pattern, &value, sizeof(pattern));
	for (i = 0; i < len; i++)
		buf[i] = pattern[(off + i) & 3];
}

static ssize_t read_sparse(const struct source *src, uint64_t off, void *buf, size_t len)
{
	const struct source_sparse *s = (const struct source_sparse *)src;
	uint8_t *to = buf;
	size_t done = 0;
	uint32_t i;

	if (off >= src->size)
		return 0;
	len = (size_t)min_u64(len, src->size - off);
	for (i = find_piece(s, off / s->blk_sz); done < len; i++) {
		uint64_t at = off + done, start = piece_start(s, i);
		size_t n = (size_t)min_u64(len - done, piece_start(s, i + 1) - at);
		const struct piece *p = &s->pieces[i];
		ssize_t got = (ssize_t)n;

		if (p->pos)
			got = s->below->ops->read(s->below, p->pos + (at - start), to + done, n);
		else
			fill(to + done, n, at, p->value);
		if (got < 0)
			return got;
		done += (size_t)got;
		if ((size_t)got < n)
			break;	/* the file shrank since it was opened */
	}
	return (ssize_t)done;
}

/*
 * Chunks lie in the file in the order of their blocks, so one range of the file holds what is wanted. A
 * header stands between any two; where they are many, what is behind the range is left to later calls.
 */
static void readahead_sparse(const struct source *src, uint64_t off, uint64_t len)
{
	const struct source_sparse *s = (const struct source_sparse *)src;
	uint32_t i = find_piece(s, off / s->blk_sz);
	uint64_t end = off + len, pos, start;

	while (i < s->count && !s->pieces[i].pos && piece_start(s, i + 1) < end)
		i++;
	if (i == s->count || !s->pieces[i].pos)
		return;
	start = max_u64(piece_start(s, i), off);
	pos = s->pieces[i].pos + (start - piece_start(s, i));
	s->below->ops->readahead(s->below, pos, min_u64(end - start, s->below->size - pos));
}

static void free_sparse(struct source *src)
{
	struct source_sparse *s = (struct source_sparse *)src;

	erofs_source_free(s->below);
	free(s->pieces);
	free(s);
}

static const struct source_ops sparse_ops = { read_sparse, readahead_sparse, free_sparse };

/* ---- loading ---- */

static int load_header(struct sparse_loader *l)
{
	struct disk_sparse h;
	ssize_t n = l->below->ops->read(l->below, 0, &h, sizeof(h));
	uint64_t size;

	if (n < 0)
		return erofs_diag_fail(l->diag, (int)n, AT_OFF(0), "cannot read the sparse header");
	if ((size_t)n < sizeof(h))
		return bad_header(l, "the file ends inside it (%zd bytes)", n);
	if (le16_get(h.major) != 1)
		return erofs_diag_unsupported(l->diag, SPARSE_HEADER, AT_OFF(4),
					      "sparse header: version %u.%u (wanted 1.0)",
					      le16_get(h.major), le16_get(h.minor));
	l->file_hdr = le16_get(h.file_hdr_sz);
	l->chunk_hdr = le16_get(h.chunk_hdr_sz);
	if (l->file_hdr < SPARSE_HEADER || l->chunk_hdr < SPARSE_CHUNK_HEADER)
		return bad_header(l, "headers of %" PRIu32 " and %" PRIu32 " bytes (at least 28 and 12)",
				  l->file_hdr, l->chunk_hdr);
	l->s->blk_sz = le32_get(h.blk_sz);
	if (!l->s->blk_sz || l->s->blk_sz % 4)
		return bad_header(l, "blocks of %" PRIu32 " bytes (wanted a multiple of 4)", l->s->blk_sz);
	l->s->blocks = le32_get(h.total_blks);
	size = (uint64_t)l->s->blocks * l->s->blk_sz;
	if (size > INT64_MAX)
		return bad_header(l, "%" PRIu32 " blocks of %" PRIu32 " bytes are more than 2^63",
				  l->s->blocks, l->s->blk_sz);
	l->s->src.size = size;
	l->chunks = le32_get(h.total_chunks);
	if (l->chunks > SPARSE_MAX_CHUNKS)
		return erofs_diag_unsupported(l->diag, SPARSE_HEADER, AT_OFF(20), "sparse header: %" PRIu32
					      " chunks (at most %" PRIu32 " are read here)", l->chunks,
					      SPARSE_MAX_CHUNKS);
	return 0;
}

/* Note a piece at l->block; the same filling as in front of it makes one piece of both. */
static int add_piece(struct sparse_loader *l, uint64_t pos, uint32_t value)
{
	struct source_sparse *s = l->s;
	const struct piece *last = s->count ? &s->pieces[s->count - 1] : NULL;
	struct piece *grown;

	if (last && !pos && !last->pos && last->value == value)
		return 0;
	if (s->count == l->room) {
		uint32_t room = l->room ? 2 * l->room : 64;

		grown = realloc(s->pieces, room * sizeof(*grown));
		if (!grown)
			return erofs_diag_fail(l->diag, -ENOMEM, AT_NOWHERE, "no memory for the sparse chunks");
		s->pieces = grown;
		l->room = room;
	}
	s->pieces[s->count++] = (struct piece){ .pos = pos, .block = (uint32_t)l->block, .value = value };
	return 0;
}

/* How many bytes are behind the header of such a chunk? */
static int get_body(const struct sparse_loader *l, const struct disk_chunk *c, uint64_t *ret_body)
{
	uint32_t blocks = le32_get(c->chunk_sz);

	switch (le16_get(c->type)) {
	case SPARSE_RAW:
		*ret_body = (uint64_t)blocks * l->s->blk_sz;
		return 0;
	case SPARSE_FILL:
		*ret_body = 4;
		return 0;
	case SPARSE_SKIP:
		*ret_body = 0;
		return 0;
	case SPARSE_CRC32:
		*ret_body = 4;
		return blocks ? bad_chunk(l, "a checksum of %" PRIu32 " blocks (wanted 0)", blocks) : 0;
	default:
		return bad_chunk(l, "unknown type 0x%04x", le16_get(c->type));
	}
}

static int load_chunk(struct sparse_loader *l)
{
	struct disk_chunk c = { 0 };
	uint32_t blocks, total, value;
	uint64_t body;
	unsigned int type;
	ssize_t n;
	int err;

	if (!range_ok(l->pos, l->chunk_hdr, l->below->size))
		return bad_chunk(l, "the file ends in front of it or in its header (%" PRIu64 " bytes)",
				 l->below->size);
	n = l->below->ops->read(l->below, l->pos, &c, SPARSE_CHUNK_HEADER);
	if (n != SPARSE_CHUNK_HEADER)
		return erofs_diag_fail(l->diag, n < 0 ? (int)n : -EIO, AT_OFF(l->pos),
				       "cannot read sparse chunk %" PRIu32, l->index);
	err = get_body(l, &c, &body);
	if (err)
		return err;
	type = le16_get(c.type);
	blocks = le32_get(c.chunk_sz);
	total = le32_get(c.total_sz);
	if (total != l->chunk_hdr + body)
		return bad_chunk(l, "%" PRIu32 " bytes long (wanted %" PRIu64 ")", total, l->chunk_hdr + body);
	if (!range_ok(l->pos, total, l->below->size))
		return bad_chunk(l, "%" PRIu32 " bytes long, behind the end of the file (%" PRIu64 " bytes)",
				 total, l->below->size);
	if (blocks > l->s->blocks - l->block)
		return bad_chunk(l, "%" PRIu32 " blocks from block %" PRIu64 " on (the image has %" PRIu32 ")",
				 blocks, l->block, l->s->blocks);
	if (type == SPARSE_FILL) {
		n = l->below->ops->read(l->below, l->pos + l->chunk_hdr, &c.value, sizeof(c.value));
		if (n != sizeof(c.value))
			return erofs_diag_fail(l->diag, n < 0 ? (int)n : -EIO, AT_OFF(l->pos),
					       "cannot read sparse chunk %" PRIu32, l->index);
	}
	memcpy(&value, &c.value, sizeof(value));
	if (blocks)
		err = add_piece(l, type == SPARSE_RAW ? l->pos + l->chunk_hdr : 0, value);
	l->block += blocks;
	l->pos += total;
	return err;
}

static int load_sparse(struct sparse_loader *l)
{
	int err = load_header(l);

	if (err)
		return err;
	l->pos = l->file_hdr;
	for (l->index = 0; l->index < l->chunks; l->index++) {
		err = load_chunk(l);
		if (err)
			return err;
	}
	if (l->block != l->s->blocks)
		return bad_header(l, "%" PRIu32 " blocks, the chunks have %" PRIu64, l->s->blocks, l->block);
	return 0;
}

int erofs_source_sparse_new(struct source *below, struct erofs_diag *diag, struct source **ret_src)
{
	struct source_sparse *s = calloc(1, sizeof(*s));
	struct sparse_loader l = { .s = s, .below = below, .diag = diag };
	int err;

	if (!s)
		return -ENOMEM;
	s->src.ops = &sparse_ops;
	err = load_sparse(&l);
	if (err) {
		erofs_source_free(&s->src);
		return err;
	}
	s->below = below;
	*ret_src = &s->src;
	return 0;
}
