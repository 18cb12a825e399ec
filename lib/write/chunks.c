// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Files in chunks of one size (--chunksize). Workers hash them; the owner looks for equal ones, compares them
 * byte for byte with what it wrote before, and writes what is new, one behind the other.
 *
 * Memory: a chunk in flight at least; 28 bytes for each that is stored, twice that while the table grows; of
 * the file that is being put, 32 bytes for each run of chunks that lie one behind the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "write/foreign.h"

#define MAX_CHUNK (UINT32_C(1) << 30)
#define MAX_CHUNKS (UINT32_C(1) << 31)	/* as many are known; what comes then is stored */
#define MAX_TRIES 8			/* so many of one hash are read: they are equal, but for a mischief */
#define COMPARE_BYTES 65536

struct chunk {
	uint64_t pa;			/* in the output */
	uint32_t len;
};

struct chunks {
	struct output *out;
	unsigned int dev;
	struct table known;
	uint64_t blob_blocks;
	uint8_t buf[COMPARE_BYTES];
};

static int refuse(struct writer *w, const char *what)
{
	return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s", what);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !strcmp(a, b) || (!stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino);
}

int erofs_chunks_check(struct writer *w)
{
	const struct erofs_write_options *o = w->o;

	if (!o->chunk_size)
		return o->blob ? refuse(w, "a device for chunks, but no size of chunks (--chunksize)") : 0;
	if (o->chunk_size & (o->chunk_size - 1) || o->chunk_size < w->blksz || o->chunk_size > MAX_CHUNK)
		return refuse(w, "the chunk size is no power of two from the block size to 1 GiB");
	if (o->source_type >= EROFS_WRITE_TAR_INDEX)
		return refuse(w, "a chunk size, but the image has no contents of its own");
	if (o->blob && o->chunk_map == EROFS_WRITE_CHUNK_BLOCKMAP)
		return refuse(w, "a block map cannot name the device of --blobdev");
	if (o->blob && is_same_file(o->blob, o->output))
		return refuse(w, "the image and the device of its chunks are the same file");
	return 0;
}

int erofs_chunks_begin(struct writer *w)
{
	if (!w->o->chunk_size)
		return 0;
	w->chunks = calloc(1, sizeof(*w->chunks));
	if (!w->chunks)
		return -ENOMEM;
	w->chunks->out = w->o->blob ? &w->blob : &w->out;
	w->chunks->dev = w->o->blob ? 1 : 0;
	w->chunks->known.size = sizeof(struct chunk);
	return 0;
}

void erofs_chunks_fini(struct writer *w)
{
	if (!w->chunks)
		return;
	erofs_table_fini(&w->chunks->known);
	free(w->chunks);
}

/* ---- by workers ---- */

static bool is_zero(const uint8_t *data, size_t len)
{
	return !*data && !memcmp(data, data + 1, len - 1);
}

int erofs_chunks_print(const struct writer *w, const uint8_t *data, size_t len, uint32_t **ret)
{
	size_t size = w->o->chunk_size, count = (len + size - 1) / size, i;

	*ret = calloc(count, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		size_t n = (size_t)min_u64(size, len - i * size);

		if (is_zero(data + i * size, n))
			continue;
		(*ret)[i] = erofs_hash_xxh32(data + i * size, n, (uint32_t)n);
		(*ret)[i] += !(*ret)[i];
	}
	return 0;
}

/* ---- by the owner ---- */

static int remember(struct chunks *t, uint32_t print, const struct chunk *c)
{
	struct chunk *known;

	if (t->known.count == MAX_CHUNKS)
		return 0;
	known = erofs_table_add(&t->known, print);
	if (!known)
		return -ENOMEM;
	*known = *c;
	return 0;
}

/* 1 they are the same, 0, negative errno. */
static int compare(struct writer *w, const struct chunk *c, const uint8_t *data)
{
	struct chunks *t = w->chunks;
	uint32_t at, n;
	int err;

	for (at = 0; at < c->len; at += n) {
		n = (uint32_t)min_u64(COMPARE_BYTES, c->len - at);
		err = erofs_output_read(w, t->out, t->buf, n, c->pa + at);
		if (err)
			return err;
		if (memcmp(t->buf, data + at, n))
			return 0;
	}
	return 1;
}

/* New chunks that lie one behind the other, in memory and in the output, and are not written yet. */
struct fresh {
	const uint8_t *data;
	size_t len;
	uint64_t pa;
};

static int flush_run(struct writer *w, struct fresh *run)
{
	size_t len = run->len;

	run->len = 0;
	return len ? erofs_output_put(w, w->chunks->out, run->data, len, run->pa) : 0;
}

/* 1 found, 0, negative errno. */
static int find(struct writer *w, struct fresh *run, const uint8_t *data, uint32_t print, struct chunk *c)
{
	unsigned int tries = 0;
	const struct chunk *known;
	uint32_t at = 0;
	int r = 0;

	while (!r && tries < MAX_TRIES && (known = erofs_table_next(&w->chunks->known, print, &at))) {
		if (known->len != c->len)
			continue;
		tries++;
		r = flush_run(w, run);
		if (!r)
			r = compare(w, known, data);
		if (r > 0)
			c->pa = known->pa;
	}
	return r;
}

static int store(struct writer *w, struct fresh *run, const uint8_t *data, uint32_t print, struct chunk *c)
{
	struct chunks *t = w->chunks;
	uint64_t count = div_up_pow2(c->len, w->blkbits), block = t->blob_blocks;
	int err = 0;

	if (t->dev)
		t->blob_blocks += count;
	else
		block = erofs_space_blocks(&w->space, count);
	c->pa = block << w->blkbits;
	if (run->len && (run->pa + run->len != c->pa || run->data + run->len != data))
		err = flush_run(w, run);
	if (err)
		return err;
	if (!run->len)
		*run = (struct fresh){ .data = data, .pa = c->pa };
	run->len += c->len;
	return remember(t, print, c);
}

static int put_one(struct writer *w, struct node *node, struct fresh *run, uint64_t la, const uint8_t *data,
		   size_t left, uint32_t print)
{
	struct chunk c = { .len = (uint32_t)min_u64(w->o->chunk_size, left) };
	int r = find(w, run, data, print, &c);

	if (r > 0)
		w->deduplicated += c.len;
	if (!r)
		r = store(w, run, data, print, &c);
	return r < 0 ? r : erofs_foreign_add(node, &(struct piece){ la, c.len, c.pa, w->chunks->dev });
}

int erofs_chunks_put(struct writer *w, struct node *node, uint64_t off, const uint8_t *data, size_t len,
		     const uint32_t *prints)
{
	struct fresh run = { 0 };
	size_t at;
	int err = off ? 0 : erofs_foreign_init(node);

	for (at = 0; !err && at < len; at += w->o->chunk_size, prints++)
		if (*prints)
			err = put_one(w, node, &run, off + at, data + at, len - at, *prints);
	if (!err)
		err = flush_run(w, &run);
	if (err || off + len < node->size)
		return err;
	w->has_chunks = true;
	err = erofs_foreign_put(w, node);
	erofs_foreign_free(node);
	return err;
}

int erofs_chunks_end(struct writer *w)
{
	int err;

	if (!w->o->blob)
		return 0;
	err = erofs_device_add(w, "", w->chunks->blob_blocks);
	return err ? err : erofs_output_finish(w, &w->blob, w->chunks->blob_blocks << w->blkbits);
}
