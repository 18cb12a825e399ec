// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Equal contents: fragments and pclusters (format.md 9.12). A hash only says where to look; then fragments
 * are compared with what is in the source, pclusters with what they decode to.
 *
 * Workers look while the owner adds. What they may see must not depend on how fast anyone is: what came of
 * a batch is seen by those sent TWIN_DISTANCE batches later, when it surely was added.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/hash.h"
#include "base/table.h"
#include "write/write_priv.h"

/* ---- fragments ---- */

struct fragment {
	const struct node *node;	/* whose end it is */
	uint64_t offset;
	uint32_t len;
};

/* 1: it does, 0: no, negative errno: who knows. */
static int ends_with(struct writer *w, const struct node *node, const uint8_t *data, size_t len)
{
	struct contents c = { .fd = -1 };
	auto_free uint8_t *buf = malloc(len);
	ssize_t got;
	int err;

	if (!buf)
		return -ENOMEM;
	err = w->feed.ops->open(&w->feed, node, &c);
	if (err)
		return err;
	got = erofs_fdio_pread(c.fd, buf, len, c.off + node->size - len);
	if (c.owned)
		close(c.fd);
	if (got < 0)
		return erofs_diag_fail(w->diag, (int)got, AT_NOWHERE, "cannot read a source again");
	return got == (ssize_t)len && !memcmp(buf, data, len);
}

uint32_t erofs_fragment_hash(const uint8_t *data, size_t len)
{
	return erofs_hash_xxh32(data, len, (uint32_t)len);
}

int erofs_fragment_put(struct writer *w, const struct node *node, uint32_t hash, const uint8_t *data, size_t len,
		       uint64_t *ret_offset)
{
	struct table *t = &w->known_fragments;
	struct fragment *f;
	uint32_t at = 0;
	int err;

	t->size = sizeof(*f);
	while (!w->o->no_fragment_dedupe && (f = erofs_table_next(t, hash, &at))) {
		err = f->len == len ? ends_with(w, f->node, data, len) : 0;
		if (err < 0)
			return err;
		if (!err)
			continue;
		*ret_offset = f->offset;
		w->deduplicated += len;
		return 0;
	}
	err = erofs_packed_add(w, data, len, ret_offset);
	if (err)
		return err;
	f = erofs_table_add(t, hash);
	if (!f)
		return -ENOMEM;
	*f = (struct fragment){ node, *ret_offset, (uint32_t)len };
	return 0;
}

/* ---- pclusters ---- */

#define FILTER_BITS 22			/* half a MiB: stays in the cache of second level */
#define MAX_TRIES 4			/* pclusters with this beginning that are looked at */

struct twin {
	uint64_t key, block;
	uint32_t dlen, plen, anchor, serial;
	uint8_t method;
};

struct twins {
	struct erofs_diag *diag;
	int fd;				/* where the pclusters are */
	uint64_t start;			/* and from where on their addresses count, in bytes */
	pthread_rwlock_t lock;		/* of all but the filter */
	struct table known;
	atomic_uint filter[1u << (FILTER_BITS - 5)];
};

int erofs_twins_new(const struct writer *w, int fd, uint64_t start, struct twins **ret)
{
	struct twins *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->diag = w->diag;
	t->start = start;
	t->known.size = sizeof(struct twin);
	pthread_rwlock_init(&t->lock, NULL);
	*ret = t;
	return 0;
}

void erofs_twins_free(struct twins *t)
{
	if (!t)
		return;
	pthread_rwlock_destroy(&t->lock);
	erofs_table_fini(&t->known);
	free(t);
}

/* The bits of a key that the filter does not take. */
static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)(key >> 8);
}

static int add_twin(struct twins *t, const struct zprint *print, const struct zext *e, uint64_t block, uint32_t serial)
{
	uint64_t bit = print->key >> (64 - FILTER_BITS);
	struct twin *x;

	pthread_rwlock_wrlock(&t->lock);
	x = erofs_table_add(&t->known, hash_of(print->key));
	if (x) {
		*x = (struct twin){ .key = print->key, .block = block, .dlen = e->dlen, .plen = e->plen,
				    .anchor = print->anchor, .serial = serial, .method = e->method };
		atomic_fetch_or_explicit(&t->filter[bit / 32], 1u << bit % 32, memory_order_relaxed);
	}
	pthread_rwlock_unlock(&t->lock);
	return x ? 0 : -ENOMEM;
}

int erofs_zout_publish(struct writer *w, struct twins *t, const struct zout *out, uint64_t block, uint32_t serial)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < out->count; i++) {
		const struct zext *e = &out->ext[i];

		if (e->twin) {
			w->deduplicated += e->dlen;
			w->has_twins = true;
			continue;
		}
		if (e->kind == ZEXT_CODED && out->prints[i].key)
			err = add_twin(t, &out->prints[i], e, block, serial);
		block += erofs_zext_blocks(e, w->blkbits);
	}
	return err;
}

bool erofs_twins_may_have(struct twins *t, uint64_t key)
{
	uint64_t bit = key >> (64 - FILTER_BITS);

	return atomic_load_explicit(&t->filter[bit / 32], memory_order_relaxed) >> bit % 32 & 1;
}

/* Those that a batch of this number may see, longest first. */
static unsigned int find_candidates(struct twins *t, const struct ztwin_query *q, struct twin found[MAX_TRIES])
{
	unsigned int n = 0, at;
	const struct twin *x;
	uint32_t i = 0;

	pthread_rwlock_rdlock(&t->lock);
	while ((x = erofs_table_next(&t->known, hash_of(q->key), &i))) {
		if (x->key != q->key || x->method != q->method || x->anchor > q->before ||
		    x->serial + TWIN_DISTANCE > q->serial)
			continue;
		for (at = n; at && (found[at - 1].dlen < x->dlen ||
				    (found[at - 1].dlen == x->dlen && found[at - 1].block > x->block)); at--)
			if (at < MAX_TRIES)
				found[at] = found[at - 1];
		if (at < MAX_TRIES)
			found[at] = *x;
		n += n < MAX_TRIES;
	}
	pthread_rwlock_unlock(&t->lock);
	return n;
}

/* Into z->decoded. 0: it was read; -EIO, -ENOMEM; 1: it is of no use. */
static int decode(struct twins *t, struct zlane *z, const struct twin *x, uint32_t blksz)
{
	uint32_t stored = (uint32_t)round_up_u64(x->plen, blksz);
	struct codec_request req = {
		.alg = z->config->methods[x->method].enc->alg, .src = z->stored, .src_len = stored,
		.dst = z->decoded, .dst_len = x->dlen, .blksz = blksz,
	};
	struct codec_fault fault;
	int err;

	if (erofs_fdio_pread(t->fd, z->stored, stored, t->start + x->block * blksz) != (ssize_t)stored)
		return erofs_diag_fail(t->diag, -EIO, AT_NOWHERE, "cannot read again what was written");
	err = erofs_codec_decode(z->decoder, &req, &fault);
	return err == -ENOMEM ? err : err != 0;
}

static uint32_t common_length(const uint8_t *a, const uint8_t *b, uint32_t most)
{
	uint32_t n = 0;

	while (most - n >= 64 && !memcmp(a + n, b + n, 64))
		n += 64;
	while (n < most && a[n] == b[n])
		n++;
	return n;
}

static bool is_worth(const struct ztwin_query *q, uint32_t len, const struct twin *x, uint32_t blksz)
{
	if (len == x->dlen)
		return true;
	/* room for the count of blocks in its indexes, and not for the sake of a little */
	if (len < 3 * blksz || len < x->dlen / 4)
		return false;
	return (uint64_t)x->plen * len / x->dlen > q->partial_costs;
}

uint32_t erofs_twins_find(struct twins *t, struct zlane *z, struct ztwin_query *q, uint32_t blksz,
			  struct zext *ret, size_t *ret_back)
{
	struct twin found[MAX_TRIES];
	unsigned int n = find_candidates(t, q, found), i;
	uint32_t vain = 0, best = 0;

	ret->dlen = 0;
	for (i = 0; !q->err && i < n; i++) {
		const struct twin *x = &found[i];
		uint32_t most = (uint32_t)min_u64(x->dlen, q->after + x->anchor), len;
		int r;

		if (most <= best)
			continue;
		r = decode(t, z, x, blksz);
		if (r < 0)
			q->err = r;
		if (r)
			continue;
		vain += x->dlen;
		len = common_length(z->decoded, q->at - x->anchor, most);
		if (len <= best || !is_worth(q, len, x, blksz))
			continue;
		best = len;
		*ret = (struct zext){ .dlen = len, .plen = x->plen, .kind = ZEXT_CODED, .method = x->method,
				      .twin = true, .partial = len < x->dlen, .block = x->block };
		*ret_back = x->anchor;
	}
	return vain;
}
