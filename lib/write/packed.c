// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The packed file: ends of files, whole small ones, and directories, compressed together (format.md 9.10). What is
 * compressed waits in an unlinked file of TMPDIR, since its pclusters must lie one behind the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "engine/flight.h"
#include "write/write_priv.h"

#define COPY_BYTES (UINT32_C(1) << 20)

struct segment {
	struct parcel parcel;		/* first member */
	struct writer *w;
	size_t len;
	bool last;
	uint32_t serial;
	int err;
	struct zout out;
	uint8_t data[];
};

struct packed {
	struct node *node;
	struct zparams params;
	size_t segment_bytes;
	struct segment *at;		/* being gathered */
	struct twins *twins;		/* blocks counted from the start of the file */
	uint32_t serial;
	struct flight flight;
	int fd;
	uint64_t stored;		/* bytes in the file */
	struct zout out;		/* extents, and the end that lies beside the inode */
};

static void fill_segment(struct lane *lane, struct parcel *parcel)
{
	struct segment *s = (struct segment *)parcel;
	struct writer *w = s->w;
	struct zjob job = { .p = &w->packed->params, .blksz = w->blksz, .src = s->data, .len = s->len,
			    .last = s->last, .beside = w->o->ztailpacking && !w->o->encoded_extents,
			    .twins = w->packed->twins, .serial = s->serial,
			    /* how large the file will be nobody knows yet */
			    .partial_costs = erofs_zmap_partial_costs(w, UINT64_C(1) << 40) };
	struct zlane *z;

	s->err = erofs_zlane_of(w, lane, &z);
	if (!s->err)
		s->err = erofs_zenc_run(z, &job, &s->out);
}

static int deliver_segment(void *arg, struct parcel *parcel)
{
	struct segment *s = (struct segment *)parcel;
	struct writer *w = arg;
	struct packed *p = w->packed;
	int err = s->err ? s->err : erofs_zout_append(&p->out, s->out.ext, s->out.count);

	if (!err && s->out.beside.len)
		err = erofs_zbuf_append(&p->out.beside, s->out.beside.data, s->out.beside.len);
	if (!err && s->out.blocks.len) {
		err = erofs_fdio_pwrite(p->fd, s->out.blocks.data, s->out.blocks.len, p->stored);
		if (err)
			err = erofs_diag_fail(w->diag, err, AT_NOWHERE, "cannot write a temporary file");
	}
	if (!err && p->twins)
		err = erofs_zout_publish(w, p->twins, &s->out, p->stored >> w->blkbits, s->serial);
	p->stored += s->out.blocks.len;
	return err;
}

static void release_segment(void *arg, struct parcel *parcel)
{
	struct segment *s = (struct segment *)parcel;

	(void)arg;
	erofs_zout_free(&s->out);
	free(s);
}

static const struct flight_ops ops = { fill_segment, deliver_segment, release_segment };

int erofs_packed_begin(struct writer *w)
{
	struct packed *p;
	int err;

	if (!w->packs)
		return 0;
	w->packed = p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->fd = -1;
	p->params = (struct zparams){ 0, w->z.packed_pcluster };
	p->segment_bytes = erofs_zsegment(w->z.packed_pcluster);
	p->node = erofs_node_new("", 0);
	if (!p->node)
		return -ENOMEM;
	p->node->mode = S_IFREG | 0644;
	p->node->mtime = w->build_time;
	err = erofs_write_temp(w, &p->fd);
	if (err)
		return err;
	erofs_flight_begin(&p->flight, w->job, erofs_zflight_bytes(w, w->z.packed_pcluster), &ops, w);
	if (!w->twins)
		return 0;
	erofs_flight_keep_to(&p->flight, TWIN_DISTANCE);
	return erofs_twins_new(w, p->fd, 0, &p->twins);
}

static int send_segment(struct packed *p, bool last)
{
	struct segment *s = steal(p->at);

	if (!s)
		return 0;
	s->last = last;
	s->serial = p->serial++;
	s->parcel.bytes = sizeof(*s) + 2 * s->len;
	return erofs_flight_send(&p->flight, &s->parcel);
}

int erofs_packed_add(struct writer *w, const uint8_t *data, size_t len, uint64_t *ret_offset)
{
	struct packed *p = w->packed;
	int err = 0;

	*ret_offset = p->node->size;
	p->node->size += len;
	while (!err && len) {
		size_t n;

		if (p->at && p->at->len == p->segment_bytes) {
			err = send_segment(p, false);
			if (err)
				break;
		}
		if (!p->at) {
			p->at = calloc(1, sizeof(*p->at) + p->segment_bytes);
			if (!p->at)
				return -ENOMEM;
			p->at->w = w;
		}
		n = min_u64(len, p->segment_bytes - p->at->len);
		memcpy(p->at->data + p->at->len, data, n);
		p->at->len += n;
		data += n;
		len -= n;
	}
	return err;
}

static int copy_blocks(struct writer *w, uint64_t from, uint64_t len, uint64_t to)
{
	struct packed *p = w->packed;
	auto_free uint8_t *buf = malloc(COPY_BYTES);
	uint64_t off;
	size_t n;
	int err = buf ? 0 : -ENOMEM;

	for (off = 0; !err && off < len; off += n) {
		n = (size_t)min_u64(COPY_BYTES, len - off);
		if (erofs_write_is_cancelled(w))
			return -ECANCELED;
		if (erofs_fdio_pread(p->fd, buf, n, from + off) != (ssize_t)n)
			return erofs_diag_fail(w->diag, -EIO, AT_NOWHERE, "cannot read a temporary file");
		err = erofs_output_write(w, buf, n, to + off);
	}
	return err;
}

/* ---- twins in the packed file ---- */

static uint64_t stored_bytes(const struct writer *w, const struct zext *e)
{
	return (uint64_t)erofs_zext_blocks(e, w->blkbits) << w->blkbits;
}

/* Of pclusters that are there for another extent. */
static uint64_t twin_bytes(const struct writer *w, const struct zout *out)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < out->count; i++)
		sum += out->ext[i].twin ? stored_bytes(w, &out->ext[i]) : 0;
	return sum;
}

/* The map has more bytes for each block if there are any. */
static int twins_pay(const struct writer *w, const struct zmap *m, uint64_t saved, bool *ret)
{
	struct body body = { 0 };
	int err = saved ? erofs_zmap_make(w, m, &body) : 0;

	*ret = !saved || body.map_len <= erofs_zmap_estimate(w, m->size) + saved;
	free((void *)body.map);
	return err;
}

/* All extents one behind the other, to byte @to: pclusters of twins once more. */
static int copy_without_twins(struct writer *w, struct zout *out, uint64_t to)
{
	uint64_t own = 0, run = 0, n;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < out->count; i++) {
		struct zext *e = &out->ext[i];

		n = stored_bytes(w, e);
		if (!e->twin) {
			run += n;
			continue;
		}
		err = copy_blocks(w, own, run, to);
		if (!err)
			err = copy_blocks(w, e->block << w->blkbits, n, to + run);
		to += run + n;
		own += run;
		run = 0;
		e->twin = false;
		w->deduplicated -= e->dlen;
	}
	return err ? err : copy_blocks(w, own, run, to);
}

int erofs_packed_finish(struct writer *w)
{
	struct packed *p = w->packed;
	struct zmap m;
	struct body body = { 0 };
	uint64_t saved;
	bool pay = true;
	int err, landed;

	if (!p || !p->node->size)
		return 0;
	err = send_segment(p, true);
	landed = erofs_flight_end(&p->flight);
	if (err || landed)
		return err ? err : landed;
	p->node->ino = ++w->ninodes;
	err = erofs_inode_choose(w, p->node);
	if (err)
		return err;
	m = (struct zmap){ .ext = p->out.ext, .count = p->out.count, .size = p->node->size,
			   .head = erofs_inode_head(p->node), .alg = w->z.methods[0].enc->alg,
			   .legacy = w->o->legacy_compress, .encoded = w->o->encoded_extents };
	saved = twin_bytes(w, &p->out);
	err = twins_pay(w, &m, saved, &pay);
	if (err)
		return err;
	m.block = erofs_space_blocks(&w->space, (p->stored + (pay ? 0 : saved)) >> w->blkbits);
	m.twin_base = m.block;
	body.tail = p->out.beside.data;
	body.tail_len = p->out.beside.len;
	w->has_compressed = true;
	w->has_beside |= body.tail_len != 0;
	err = pay ? copy_blocks(w, 0, p->stored, m.block << w->blkbits) :
		    copy_without_twins(w, &p->out, m.block << w->blkbits);
	if (!err)
		err = erofs_zmap_make(w, &m, &body);
	if (!err)
		err = erofs_inode_put(w, p->node, &body);
	free((void *)body.map);
	w->packed_nid = p->node->nid;
	return err;
}

void erofs_packed_fini(struct writer *w)
{
	struct packed *p = w->packed;

	if (!p)
		return;
	if (p->flight.job)
		erofs_flight_end(&p->flight);
	free(p->at);
	erofs_node_free(p->node);
	if (p->fd >= 0)
		close(p->fd);
	erofs_zout_free(&p->out);
	erofs_twins_free(p->twins);
	free(p);
}
