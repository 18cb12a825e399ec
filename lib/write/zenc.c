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

#include "base/sha.h"
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
	erofs_sha_free(z->sha);
	erofs_codec_ctx_free(z->decoder);
	free(z->stored);
	free(z->decoded);
	free(z);
}

int erofs_zbuf_append(struct zbuf *b, const void *data, size_t len)
{
	if (!len)
		return 0;
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
	free(out->prints);
	*out = (struct zout){ 0 };
}

struct cutter {
	struct zlane *z;
	const struct zjob *job;
	struct zout *out;
	const uint8_t *at;
	size_t left;			/* of what is cut now: up to the next twin, or all */
	bool last;			/* the end of that is the end of the file */
	size_t most_beside;		/* bytes; format.md 6.2: the byte in front shares the block */
	int err;			/* of the search for twins */
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
	c->at += c->left;
	c->left = 0;
	return err;
}

static int leave_fragment(struct cutter *c)
{
	struct zext ext = { .dlen = (uint32_t)c->left, .kind = ZEXT_FRAGMENT };

	c->out->fragment = c->left;
	c->at += c->left;
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

	if (c->last && c->job->fragments && c->left <= c->job->p->pcluster)
		return leave_fragment(c);
	/* in blocks, nothing is smaller than one */
	if (c->left <= c->job->blksz && !(c->last && c->job->beside))
		return put_plain(c, c->left);
	got = fill(c, &take, c->z->coded, c->job->p->pcluster);
	if (got < 0)
		return got;
	if (!got)
		take = min_u64(c->left, c->job->p->pcluster);
	if (c->last && take == c->left) {
		r = put_end(c, (size_t)got);
		if (r)
			return r < 0 ? r : 0;
	}
	if (got && take > round_up_u64((uint64_t)got, c->job->blksz))
		return put_coded(c, take, c->z->coded, (size_t)got);
	return put_plain_run(c, take);
}

/* ---- twins ---- */

/*
 * Anchors are where a hash over the last WINDOW bytes has ANCHOR_BITS zeros: the same wherever the bytes are, and
 * so few that what is done there costs little. A pcluster is found by the first anchor in it.
 */
#define WINDOW 64			/* bytes: as many as the hash has bits */
#define ANCHOR_BITS 6
#define KEY_BYTES 256			/* from the window on: enough to be rare */
#define ANCHOR_REACH 16384		/* of the beginning of a pcluster; zeros have no anchors */
#define VAIN_SHARE 8			/* after n bytes decoded in vain, no more tries for n / 8 bytes */

static bool is_anchor(uint64_t hash)
{
	return !(hash >> (64 - ANCHOR_BITS));
}

static uint64_t key_of(const uint8_t *p)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15), v;
	size_t i;

	for (i = 0; i < KEY_BYTES; i += sizeof(v)) {
		/* the same on every host: which twins are found depends on it */
		v = bytes_le64(p + i);
		h = (h ^ v) * UINT64_C(0xbf58476d1ce4e5b9);
		h ^= h >> 31;
	}
	return h | 1;
}

/* Scans a segment for anchors. */
struct scan {
	const uint64_t *gear;
	const uint8_t *src;
	size_t at, end;			/* next byte to be taken in; no window ends behind @end */
	size_t from;			/* windows begin here */
	uint64_t hash;
};

static void scan_from(struct scan *s, size_t from)
{
	s->from = s->at = from;
	s->hash = 0;
}

/* The next anchor: where its window begins. false: none. */
static bool next_anchor(struct scan *s, size_t *ret)
{
	size_t warm = s->from + WINDOW - 1 < s->end ? s->from + WINDOW - 1 : s->end;
	uint64_t h = s->hash;
	size_t at = s->at;

	for (; at < warm; at++)
		h = (h << 1) + s->gear[s->src[at]];
	while (at < s->end) {
		h = (h << 1) + s->gear[s->src[at++]];
		if (is_anchor(h)) {
			s->at = at;
			s->hash = h;
			*ret = at - WINDOW;
			return true;
		}
	}
	s->at = at;
	s->hash = h;
	return false;
}

static struct scan make_scan(const struct cutter *c, size_t from, size_t to)
{
	struct scan s = { .gear = c->z->gear, .src = c->job->src };

	s.end = to > KEY_BYTES - WINDOW ? to - (KEY_BYTES - WINDOW) : 0;
	scan_from(&s, from);
	return s;
}

/* The next twin from @from on. Return: where, or the end. */
static size_t find_twin(struct cutter *c, struct scan *s, size_t from, struct zext *ret)
{
	const struct zjob *job = c->job;
	struct ztwin_query q = { .method = job->p->method, .serial = job->serial,
				 .partial_costs = job->partial_costs };
	size_t at, quiet = 0, back;

	ret->dlen = 0;
	if (s->from < from)
		scan_from(s, from);
	while (next_anchor(s, &at)) {
		uint32_t vain;

		q.key = key_of(job->src + at);
		if (at < quiet || !erofs_twins_may_have(job->twins, q.key))
			continue;
		q.at = job->src + at;
		q.before = at - from;
		q.after = job->len - at;
		vain = erofs_twins_find(job->twins, c->z, &q, job->blksz, ret, &back);
		c->err = q.err;
		if (c->err)
			break;
		if (ret->dlen)
			return at - back;
		quiet = at + vain / VAIN_SHARE;
	}
	return job->len;
}

/* No two extents may begin in one lcluster. */
static bool may_begin(const struct cutter *c, size_t at, size_t next)
{
	return at / c->job->blksz != next / c->job->blksz;
}

static int put_twin(struct cutter *c, const struct zext *twin, size_t *at)
{
	*at += twin->dlen;
	return erofs_zout_append(c->out, twin, 1);
}

static int run_with_twins(struct cutter *c)
{
	const struct zjob *job = c->job;
	struct scan s = make_scan(c, 0, job->len);
	struct zext twin = { 0 };
	size_t at = 0, next = find_twin(c, &s, 0, &twin);
	int err = 0;

	while (!err && !c->err && at < job->len) {
		if (twin.dlen && next == at) {
			err = put_twin(c, &twin, &at);
			next = find_twin(c, &s, at, &twin);
			continue;
		}
		while (twin.dlen && next - at < job->blksz && !may_begin(c, at, next))
			next = find_twin(c, &s, next + 1, &twin);
		c->at = job->src + at;
		c->left = next - at;
		c->last = job->last && next == job->len;
		err = put_next(c);
		at = (size_t)(c->at - job->src);
	}
	return err ? err : c->err;
}

static int make_prints(struct cutter *c)
{
	struct zout *out = c->out;
	size_t i, at = 0, anchor;

	out->prints = calloc(out->count + 1, sizeof(*out->prints));
	if (!out->prints)
		return -ENOMEM;
	for (i = 0; i < out->count; at += out->ext[i++].dlen) {
		const struct zext *e = &out->ext[i];
		struct scan s;

		if (e->kind != ZEXT_CODED || e->twin || e->beside)
			continue;
		s = make_scan(c, at, at + min_u64(e->dlen, ANCHOR_REACH));
		if (!next_anchor(&s, &anchor))
			continue;
		out->prints[i] = (struct zprint){ key_of(c->job->src + anchor), (uint32_t)(anchor - at) };
	}
	return 0;
}

static int prepare_for_twins(struct zlane *z)
{
	struct codec_config config = { .zero_padding = true };
	uint64_t seed = 0;
	unsigned int i;

	if (z->decoder)
		return 0;
	erofs_zconfig_decoder(z->config, &config);
	z->stored = malloc(z->config->max_pcluster);
	z->decoded = malloc(z->config->max_extent);
	if (!z->stored || !z->decoded || erofs_codec_ctx_new(&config, &z->decoder))
		return -ENOMEM;
	for (i = 0; i < 256; i++) {
		seed += UINT64_C(0x9e3779b97f4a7c15);
		z->gear[i] = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z->gear[i] ^= z->gear[i] >> 27;
	}
	return 0;
}

int erofs_zenc_run(struct zlane *z, const struct zjob *job, struct zout *out)
{
	struct cutter c = { .z = z, .job = job, .out = out, .at = job->src, .left = job->len, .last = job->last,
			    .most_beside = job->blksz - 64 };
	int err = 0;

	if (!job->twins) {
		while (!err && c.left)
			err = put_next(&c);
		return err;
	}
	err = prepare_for_twins(z);
	if (!err)
		err = run_with_twins(&c);
	return err ? err : make_prints(&c);
}
