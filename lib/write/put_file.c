// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Everything that is no directory, in the order of the tree: sent to the workers, and put into the image by the
 * owner in the order sent. Small files travel in batches, large ones in segments.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/flight.h"
#include "write/file_priv.h"

#define BATCH_BYTES (UINT32_C(1) << 20)	/* of contents: the engine's notion of coarse work */

/* ---- what comes back ---- */

static int put_blocks(struct writer *w, const void *data, size_t len)
{
	uint64_t block = erofs_space_blocks(&w->space, div_up_pow2(len, w->blkbits));

	if (!w->file.blocks)
		w->file.block = block;
	w->file.blocks += div_up_pow2(len, w->blkbits);
	return erofs_output_write(w, data, len, block << w->blkbits);
}

static int put_symlink(struct writer *w, const struct node *node, struct body *body)
{
	size_t len = (size_t)node->size;
	uint64_t block;

	if (erofs_takes_tail(w, node, len) && len <= w->blksz - 64) {
		*body = (struct body){ .layout = 2, .u = DISK_NULL_BLK32,
				       .tail = (const uint8_t *)node->target, .tail_len = len };
		return 0;
	}
	block = erofs_space_blocks(&w->space, div_up_pow2(len, w->blkbits));
	body->u = (uint32_t)block;
	return erofs_output_write(w, node->target, len, block << w->blkbits);
}

static int put_special(struct writer *w, struct node *node)
{
	struct body body = { 0 };
	int err = 0;

	if (S_ISLNK(node->mode))
		err = put_symlink(w, node, &body);
	else if (S_ISCHR(node->mode) || S_ISBLK(node->mode))
		body.u = node->rdev;
	return err ? err : erofs_inode_put(w, node, &body);
}

static uint32_t first_block(const struct filestate *f)
{
	return f->blocks ? (uint32_t)f->block : DISK_NULL_BLK32;
}

/* The last bytes may lie beside the inode; the rest is in blocks. */
static int put_raw(struct writer *w, struct item *it)
{
	size_t tail = it->last ? (size_t)(it->len % w->blksz) : 0;
	struct body body = { 0 };
	int err = 0;

	if (!erofs_takes_tail(w, it->node, tail))
		tail = 0;
	if (it->len > tail)
		err = put_blocks(w, it->raw, it->len - tail);
	if (err || !it->last)
		return err;
	body.u = first_block(&w->file);
	if (tail) {
		body.layout = 2;
		body.tail = it->raw + it->len - tail;
		body.tail_len = tail;
	}
	return erofs_inode_put(w, it->node, &body);
}

/* Nothing of it did shrink, and so it lies in the image as it would without compression. */
static bool is_flat(const struct writer *w)
{
	const struct zout *all = &w->file.out;
	size_t i;

	for (i = 0; i < all->count; i++) {
		const struct zext *e = &all->ext[i];

		if (e->kind != ZEXT_PLAIN || e->twin || (e->dlen != w->blksz && i + 1 < all->count))
			return false;
	}
	return true;
}

static int finish_coded(struct writer *w, struct item *it)
{
	struct filestate *f = &w->file;
	struct zmap m = { .ext = f->out.ext, .count = f->out.count, .size = it->node->size, .block = f->block,
			  .fragment = f->fragment, .head = erofs_inode_head(it->node),
			  .alg = w->z.methods[it->params.method].enc->alg,
			  .legacy = w->o->legacy_compress, .encoded = w->o->encoded_extents };
	struct body body = { .tail = it->out.beside.data, .tail_len = it->out.beside.len };
	int err = 0;

	if (is_flat(w)) {
		body.layout = body.tail_len ? 2 : 0;
		body.u = first_block(f);
		return erofs_inode_put(w, it->node, &body);
	}
	w->has_compressed = true;
	w->has_beside |= body.tail_len != 0;
	err = erofs_zmap_make(w, &m, &body);
	if (!err)
		err = erofs_inode_put(w, it->node, &body);
	free((void *)body.map);
	return err;
}

static int put_coded(struct writer *w, struct item *it, uint32_t serial)
{
	struct filestate *f = &w->file;
	uint64_t block = w->space.next;
	int err = erofs_zout_append(&f->out, it->out.ext, it->out.count);

	if (!err && it->out.blocks.len)
		err = put_blocks(w, it->out.blocks.data, it->out.blocks.len);
	if (!err && w->twins)
		err = erofs_zout_publish(w, w->twins, &it->out, block, serial);
	if (!err && it->out.fragment)
		err = erofs_fragment_put(w, it->node, it->hash, it->raw, it->out.fragment, &f->fragment);
	return err || !it->last ? err : finish_coded(w, it);
}

static int put_fragment(struct writer *w, struct item *it)
{
	uint8_t map[16];
	uint64_t offset;
	struct body body = { .layout = 1, .map = map, .map_len = sizeof(map), .map_align = 8 };
	/* only whole files are looked for: the segments of a large one must follow one another */
	int err = it->first && it->last ?
		  erofs_fragment_put(w, it->node, it->hash, it->raw, it->len, &offset) :
		  erofs_packed_add(w, it->raw, it->len, &offset);

	if (err)
		return err;
	if (it->first)
		w->file.fragment = offset;
	if (!it->last)
		return 0;
	erofs_zmap_whole_fragment(w->file.fragment, map);
	return erofs_inode_put(w, it->node, &body);
}

static int put_item(struct writer *w, struct item *it, uint32_t serial)
{
	if (it->first)
		w->file = (struct filestate){ .out = { .ext = w->file.out.ext, .room = w->file.out.room } };
	switch (it->how) {
	case HOW_RAW: return put_raw(w, it);
	case HOW_CODED: return put_coded(w, it, serial);
	case HOW_FRAGMENT: return put_fragment(w, it);
	case HOW_CHUNKS: return erofs_chunks_put(w, it->node, it->off, it->raw, it->len, it->prints);
	default: return put_special(w, it->node);
	}
}

static int deliver_item(struct writer *w, struct item *it, uint32_t serial)
{
	int err = erofs_digest_take(w, it);

	if (!err)
		err = put_item(w, it, serial);
	return err ? err : erofs_digest_keep(w, it);
}

static int deliver_batch(void *arg, struct parcel *parcel)
{
	struct batch *b = (struct batch *)parcel;
	int err = b->err;
	size_t i;

	for (i = 0; !err && i < b->count; i++)
		err = deliver_item(arg, &b->items[i], b->serial);
	return err;
}

static void release_batch(void *arg, struct parcel *parcel)
{
	struct batch *b = (struct batch *)parcel;
	size_t i;

	(void)arg;
	for (i = 0; i < b->count; i++) {
		free(b->items[i].raw);
		free(b->items[i].whole);
		free(b->items[i].prints);
		erofs_zout_free(&b->items[i].out);
	}
	free(b);
}

static const struct flight_ops ops = { erofs_batch_fill, deliver_batch, release_batch };

/* ---- sending ---- */

static int send_batch(struct writer *w)
{
	struct batch *b = steal(w->batch);

	if (!b)
		return 0;
	/* what was read, and what comes of it */
	b->serial = w->serial++;
	b->parcel.bytes = sizeof(*b) + 2 * (size_t)b->bytes;
	return erofs_flight_send(w->flight, &b->parcel);
}

static int add_item(struct writer *w, const struct item *it)
{
	struct batch *b = w->batch;
	int err = 0;

	if (b && (b->count == BATCH_ITEMS || b->bytes + it->len > BATCH_BYTES))
		err = send_batch(w);
	if (err)
		return err;
	if (!w->batch) {
		w->batch = b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->w = w;
	}
	b->items[b->count++] = *it;
	b->bytes += it->len;
	return 0;
}

size_t erofs_zsegment(uint32_t pcluster)
{
	/* eight pclusters and more, so that the cuts cost little */
	return (size_t)max_u64(UINT32_C(4) << 20, 8 * (uint64_t)pcluster);
}

size_t erofs_zflight_bytes(const struct writer *w, uint32_t pcluster)
{
	/* a segment each, with what comes of it, and one that waits; half of the limit, as there are two flights */
	size_t wanted = ((size_t)erofs_job_active_lanes(w->job) + 1) * 2 * erofs_zsegment(pcluster);

	return (size_t)min_u64(wanted, 4 * (uint64_t)erofs_job_flight_bytes(w->job));
}

int erofs_file_put(struct writer *w, struct node *node)
{
	struct item it = { .node = node, .first = true, .last = true };
	uint64_t segment;
	int err = 0;

	if (!S_ISREG(node->mode) || !node->size)
		return add_item(w, &it);
	err = erofs_zconfig_for(w, node, &it.params);
	if (err < 0)
		return err;
	it.compress = err;
	err = 0;
	segment = it.compress ? erofs_zsegment(it.params.pcluster) : max_u64(erofs_zsegment(0), w->o->chunk_size);
	for (; !err && it.off < node->size; it.off += it.len, it.first = false) {
		it.len = (uint32_t)min_u64(segment, node->size - it.off);
		it.last = it.off + it.len == node->size;
		err = add_item(w, &it);
	}
	return err;
}

int erofs_files_begin(struct writer *w)
{
	uint32_t pcluster = w->z.max_pcluster;
	int err = erofs_job_begin_plain(w->eng, w->diag, &w->job);

	if (err)
		return err;
	erofs_job_expect(w->job, w->ahead_inodes, w->ahead_bytes);
	w->flight = malloc(sizeof(*w->flight));
	if (!w->flight)
		return -ENOMEM;
	erofs_flight_begin(w->flight, w->job, erofs_zflight_bytes(w, pcluster), &ops, w);
	if (w->o->dedupe && w->z.count) {
		err = erofs_twins_new(w, w->out.fd, w->out.start, &w->twins);
		erofs_flight_keep_to(w->flight, TWIN_DISTANCE);
	}
	return err ? err : erofs_packed_begin(w);
}

int erofs_files_end(struct writer *w)
{
	int err = send_batch(w);
	int landed = erofs_flight_end(w->flight);

	if (!err)
		err = landed;
	return err;
}

/* Also after errors. */
void erofs_files_fini(struct writer *w)
{
	unsigned int i;

	if (w->batch)
		release_batch(w, &w->batch->parcel);
	if (w->flight)
		erofs_flight_end(w->flight);
	erofs_packed_fini(w);
	for (i = 0; w->job && i < erofs_job_lanes(w->job); i++) {
		struct lane *lane = erofs_job_lane(w->job, i);

		if (lane)
			erofs_zlane_free(*erofs_lane_slot(lane));
	}
	if (w->job)
		erofs_job_end(w->job);
	free(w->flight);
	free(w->file.out.ext);
	erofs_twins_free(w->twins);
	erofs_table_fini(&w->known_fragments);
	w->batch = NULL;
	w->packed = NULL;
	w->job = NULL;
	w->flight = NULL;
	w->file.out.ext = NULL;
	w->twins = NULL;
}
