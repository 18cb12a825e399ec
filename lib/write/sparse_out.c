// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The image as an Android sparse image (cli.md R26). It is made in TMPDIR and copied from there: of blocks that
 * are one word over and over a chunk holds the word. Zeros are such blocks too, not "don't care": who writes the image
 * to a device must write them. "Don't care" is what lies in front of the image (offset).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "image/source.h"
#include "image/sparse.h"
#include "write/write_priv.h"

#define COPY_BYTES (UINT32_C(1) << 20)
#define USUAL_BLOCK 4096u
#define LEAST_BLOCK 512u
#define RAW_BYTES (UINT32_C(64) << 20)	/* of one chunk: some readers hold one in memory */

struct sparse_out {
	struct writer *w;
	uint32_t block;			/* bytes */
	uint32_t chunks;
	uint64_t pos;			/* where the next chunk begins in the file */
	/* the chunk that grows */
	uint16_t kind;			/* 0: none */
	uint32_t value, blocks;
};

int erofs_sparse_check(struct writer *w)
{
	const char *why = w->o->offset % LEAST_BLOCK ? "the offset of a sparse image is no multiple of 512" : NULL;
	struct stat st;

	if (!stat(w->o->output, &st) && S_ISBLK(st.st_mode))
		why = "a sparse image is a file, and the output is a device";
	return why ? erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s", why) : 0;
}

int erofs_sparse_open(struct writer *w)
{
	struct output *plain = &w->out;
	int err;

	plain->name = "a temporary file";
	plain->regular = true;
	plain->start = plain->end = w->o->offset;
	err = erofs_write_temp(w, &plain->fd);
	return err ? err : erofs_output_open(w, &w->sparse, w->o->output, 0);
}

/* Image and what is in front of it are multiples of it; it is what readers expect, if that can be. */
static uint32_t choose_block(const struct writer *w, uint64_t end)
{
	uint32_t block = USUAL_BLOCK;

	while ((w->out.start | end) & (block - 1))
		block >>= 1;
	return block;
}

static int put_header(struct sparse_out *s, uint64_t end)
{
	struct disk_sparse h = { .magic = le32_of(SPARSE_MAGIC), .major = le16_of(1),
				 .file_hdr_sz = le16_of(SPARSE_HEADER), .chunk_hdr_sz = le16_of(SPARSE_CHUNK_HEADER),
				 .blk_sz = le32_of(s->block), .total_blks = le32_of((uint32_t)(end / s->block)),
				 .total_chunks = le32_of(s->chunks) };

	return erofs_output_put(s->w, &s->w->sparse, &h, sizeof(h), 0);
}

/* The chunk is complete. The bytes of raw ones are there already. */
static int end_chunk(struct sparse_out *s)
{
	uint64_t body = s->kind == SPARSE_RAW ? (uint64_t)s->blocks * s->block : s->kind == SPARSE_FILL ? 4 : 0;
	struct disk_chunk c = { .type = le16_of(s->kind), .chunk_sz = le32_of(s->blocks),
				.total_sz = le32_of((uint32_t)(SPARSE_CHUNK_HEADER + body)) };
	size_t len = SPARSE_CHUNK_HEADER;
	uint64_t pos = s->pos;

	if (!s->kind)
		return 0;
	if (s->kind == SPARSE_FILL) {
		memcpy(&c.value, &s->value, sizeof(c.value));
		len = sizeof(c);
	}
	s->pos += SPARSE_CHUNK_HEADER + body;
	s->chunks++;
	s->kind = 0;
	s->blocks = 0;
	return erofs_output_put(s->w, &s->w->sparse, &c, len, pos);
}

/* @blocks of one kind follow. */
static int add_blocks(struct sparse_out *s, uint16_t kind, uint32_t value, const uint8_t *raw, uint32_t blocks)
{
	int err = 0;

	if (kind != s->kind || value != s->value ||
	    (kind == SPARSE_RAW && (uint64_t)(s->blocks + blocks) * s->block > RAW_BYTES))
		err = end_chunk(s);
	s->kind = kind;
	s->value = value;
	if (!err && kind == SPARSE_RAW)
		err = erofs_output_put(s->w, &s->w->sparse, raw, (size_t)blocks * s->block,
				       s->pos + SPARSE_CHUNK_HEADER + (uint64_t)s->blocks * s->block);
	s->blocks += blocks;
	return err;
}

static bool is_fill(const uint8_t *data, uint32_t block, uint32_t *ret_value)
{
	memcpy(ret_value, data, sizeof(*ret_value));
	return !memcmp(data, data + 4, block - 4);
}

/* One buffer. */
static int add_bytes(struct sparse_out *s, const uint8_t *data, size_t len)
{
	uint32_t count = (uint32_t)(len / s->block), at, n, value, ignored;
	int err = 0;

	for (at = 0; !err && at < count; at += n) {
		const uint8_t *start = data + (size_t)at * s->block;
		bool fill = is_fill(start, s->block, &value);

		n = 1;
		while (!fill && at + n < count && !is_fill(start + (size_t)n * s->block, s->block, &ignored))
			n++;
		err = add_blocks(s, fill ? SPARSE_FILL : SPARSE_RAW, fill ? value : 0, start, n);
	}
	return err;
}

int erofs_sparse_put(struct writer *w)
{
	uint64_t size = w->space.next << w->blkbits, end = w->out.start + size, off;
	struct sparse_out s = { .w = w, .block = choose_block(w, end), .pos = SPARSE_HEADER };
	auto_free uint8_t *buf = malloc(COPY_BYTES);
	size_t n;
	int err = buf ? 0 : -ENOMEM;

	if (end / s.block > UINT32_MAX)
		return erofs_diag_fail(w->diag, -EFBIG, AT_NOWHERE, "a sparse image has at most 2^32 blocks");
	if (!err && w->out.start)
		err = add_blocks(&s, SPARSE_SKIP, 0, NULL, (uint32_t)(w->out.start / s.block));
	for (off = 0; !err && off < size; off += n) {
		n = (size_t)min_u64(COPY_BYTES, size - off);
		err = erofs_write_is_cancelled(w) ? -ECANCELED : erofs_output_read(w, &w->out, buf, n, off);
		if (!err)
			err = add_bytes(&s, buf, n);
	}
	if (!err)
		err = end_chunk(&s);
	/* last: what lacks it is no image */
	if (!err)
		err = put_header(&s, end);
	return err ? err : erofs_output_finish(w, &w->sparse, s.pos);
}
