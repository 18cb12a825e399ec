// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * One segment of a file into extents: each takes as much input as fits its pcluster.
 *
 * Rules of indexes (format.md 9.1, 12.3) that the cutting keeps: no two extents begin in one lcluster, and
 * what is stored in several blocks spans several lclusters. An extent that is coded decodes to more than
 * the blocks it is stored in, and a plain one to a whole block, so both hold by themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/write_priv.h"

int erofs_zlane_new(const struct zconfig *config, struct zlane **ret)
{
	struct zlane *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->config = config;
	z->coded = malloc(2 * (size_t)config->max_pcluster + 1);
	if (!z->coded) {
		free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

void erofs_zlane_free(struct zlane *z)
{
	unsigned int i;

	if (!z)
		return;
	for (i = 0; i < z->config->count; i++)
		if (z->state[i])
			z->config->methods[i].enc->free(z->state[i]);
	free(z->coded);
	free(z->input);
	free(z);
}

int erofs_zbuf_append(struct zbuf *b, const void *data, size_t len)
{
	if (b->room - b->len < len) {
		size_t room = b->room + b->room / 2 + len;
		uint8_t *grown = realloc(b->data, room);

		if (!grown)
			return -ENOMEM;
		b->data = grown;
		b->room = room;
	}
	if (data)
		memcpy(b->data + b->len, data, len);
	else
		memset(b->data + b->len, 0, len);
	b->len += len;
	return 0;
}

int erofs_zout_append(struct zout *out, const struct zext *ext, size_t count)
{
	if (out->room - out->count < count) {
		size_t room = out->room + out->room / 2 + count;
		struct zext *grown = realloc(out->ext, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		out->ext = grown;
		out->room = room;
	}
	memcpy(out->ext + out->count, ext, count * sizeof(*ext));
	out->count += count;
	return 0;
}

void erofs_zout_free(struct zout *out)
{
	free(out->ext);
	free(out->blocks.data);
	free(out->beside.data);
	*out = (struct zout){ 0 };
}

struct cutter {
	struct zlane *z;
	const struct zjob *job;
	struct zout *out;
	const uint8_t *at;
	size_t left;
	size_t most_beside;		/* bytes; format.md 6.2: the byte in front shares the block */
};

static int fill(struct cutter *c, size_t *len, uint8_t *dst, size_t room)
{
	unsigned int i = c->job->p->method;
	const struct zmethod *m = &c->z->config->methods[i];
	int err = 0;

	if (!c->z->state[i])
		err = m->enc->make(&m->config, &c->z->state[i]);
	return err ? err : m->enc->fill(c->z->state[i], c->at, len, dst, room);
}

static int put_plain(struct cutter *c, size_t len)
{
	struct zext ext = { .dlen = (uint32_t)len, .plen = (uint32_t)len, .kind = ZEXT_PLAIN };
	size_t pad = (c->job->blksz - len % c->job->blksz) % c->job->blksz;
	int err = erofs_zbuf_append(&c->out->blocks, c->at, len);

	if (!err)
		err = erofs_zbuf_append(&c->out->blocks, NULL, pad);
	if (!err)
		err = erofs_zout_append(c->out, &ext, 1);
	c->at += len;
	c->left -= len;
	return err;
}

/* Input that does not shrink: a block each, of all that the encoder looked at. */
static int put_plain_run(struct cutter *c, size_t len)
{
	size_t blksz = c->job->blksz, whole = len / blksz;
	int err = put_plain(c, min_u64(blksz, c->left));

	/* what remains may still shrink, or lie beside the inode */
	while (!err && whole-- > 1)
		err = put_plain(c, blksz);
	return err;
}

static int put_coded(struct cutter *c, size_t dlen, const uint8_t *stream, size_t plen)
{
	struct zext ext = { .dlen = (uint32_t)dlen, .plen = (uint32_t)plen, .kind = ZEXT_CODED,
			    .method = (uint8_t)c->job->p->method };
	size_t pad = (c->job->blksz - plen % c->job->blksz) % c->job->blksz;
	/* the stream ends where its last block ends (format.md 9.7) */
	int err = erofs_zbuf_append(&c->out->blocks, NULL, pad);

	if (!err)
		err = erofs_zbuf_append(&c->out->blocks, stream, plen);
	if (!err)
		err = erofs_zout_append(c->out, &ext, 1);
	c->at += dlen;
	c->left -= dlen;
	return err;
}

static int put_beside(struct cutter *c, const uint8_t *data, size_t plen, int kind)
{
	struct zext ext = { .dlen = (uint32_t)c->left, .plen = (uint32_t)plen, .kind = (uint8_t)kind,
			    .method = (uint8_t)c->job->p->method, .beside = true };
	int err = erofs_zbuf_append(&c->out->beside, data, plen);

	if (!err)
		err = erofs_zout_append(c->out, &ext, 1);
	c->left = 0;
	return err;
}

static int leave_fragment(struct cutter *c)
{
	struct zext ext = { .dlen = (uint32_t)c->left, .kind = ZEXT_FRAGMENT };

	c->out->fragment = c->left;
	c->left = 0;
	return erofs_zout_append(c->out, &ext, 1);
}

/* Whole blocks of what is left, so that the rest of it fits beside the inode. 1: done, 0: it does not pay. */
static int put_whole_blocks(struct cutter *c, size_t got)
{
	size_t whole = got - got % c->job->blksz, take = c->left;
	uint8_t *second = c->z->coded + c->z->config->max_pcluster;

	int r;

	if (!whole || whole == got)
		return 0;
	r = fill(c, &take, second, whole);
	if (r <= 0)
		return r;
	if (take <= whole || take == c->left)
		return 0;
	r = put_coded(c, take, second, (size_t)r);
	return r ? r : 1;
}

/* All that is left fits one pcluster: @got bytes, 0: it does not shrink. 1: done, 0: nothing special. */
static int put_end(struct cutter *c, size_t got)
{
	int err;

	if (c->job->fragments)
		err = leave_fragment(c);
	else if (!c->job->beside)
		return 0;
	else if (got && got < c->left && got <= c->most_beside)
		err = put_beside(c, c->z->coded, got, ZEXT_CODED);
	else if (c->left <= c->most_beside)
		err = put_beside(c, c->at, c->left, ZEXT_PLAIN);
	else
		return put_whole_blocks(c, got);
	return err ? err : 1;
}

static int put_next(struct cutter *c)
{
	size_t take = min_u64(c->left, c->z->config->max_extent);
	int got, r;

	if (c->job->last && c->job->fragments && c->left <= c->job->p->pcluster)
		return leave_fragment(c);
	got = fill(c, &take, c->z->coded, c->job->p->pcluster);
	if (got < 0)
		return got;
	if (!got)
		take = min_u64(c->left, c->job->p->pcluster);
	if (c->job->last && take == c->left) {
		r = put_end(c, (size_t)got);
		if (r)
			return r < 0 ? r : 0;
	}
	if (got && take > round_up_u64((uint64_t)got, c->job->blksz))
		return put_coded(c, take, c->z->coded, (size_t)got);
	return put_plain_run(c, take);
}

int erofs_zenc_run(struct zlane *z, const struct zjob *job, struct zout *out)
{
	struct cutter c = { .z = z, .job = job, .out = out, .at = job->src, .left = job->len,
			    .most_beside = job->blksz - 64 };
	int err = 0;

	while (!err && c.left)
		err = put_next(&c);
	return err;
}
