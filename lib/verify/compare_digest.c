// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Contents against digests: no source is needed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "verify/verify_priv.h"

#define ZEROS_AT_ONCE (UINT64_C(64) << 20)	/* between two looks at the cancel flag */
#define VERITY_BLOCK_BITS 12

static const struct verity_params params = { .kind = SHA_256, .block_bits = VERITY_BLOCK_BITS };

static int prepare(struct compare_lane *l, const struct wanted *w)
{
	if (w->has_sha256 && !l->sha256)
		l->sha256 = erofs_sha_new(SHA_256);
	if (w->has_sha512 && !l->sha512)
		l->sha512 = erofs_sha_new(SHA_512);
	if (w->has_verity && !l->hasher.sha && erofs_verity_hasher_init(&l->hasher, &params))
		erofs_verity_hasher_fini(&l->hasher);
	if ((w->has_sha256 && !l->sha256) || (w->has_sha512 && !l->sha512) || (w->has_verity && !l->hasher.sha))
		return -ENOMEM;
	if (w->has_sha256)
		erofs_sha_begin(l->sha256);
	if (w->has_sha512)
		erofs_sha_begin(l->sha512);
	if (w->has_verity)
		erofs_verity_begin(&l->tree, &l->hasher);
	return 0;
}

static int add_zeros(struct compare_lane *l, const struct wanted *w, uint64_t len)
{
	uint64_t n;

	if (w->has_verity)
		erofs_verity_add_zeros(&l->tree, len);
	for (; len && (w->has_sha256 || w->has_sha512); len -= n) {
		if (erofs_job_is_cancelled(l->c->job))
			return -ECANCELED;
		n = min_u64(len, ZEROS_AT_ONCE);
		if (w->has_sha256)
			erofs_sha_zeros(l->sha256, n);
		if (w->has_sha512)
			erofs_sha_zeros(l->sha512, n);
	}
	return 0;
}

static int add_run(struct compare_lane *l, const struct wanted *w, const struct run *run)
{
	if (erofs_job_is_cancelled(l->c->job))
		return -ECANCELED;
	if (!run->data)
		return add_zeros(l, w, run->len);
	if (w->has_verity)
		erofs_verity_add(&l->tree, run->data, (size_t)run->len);
	if (w->has_sha256)
		erofs_sha_update(l->sha256, run->data, (size_t)run->len);
	if (w->has_sha512)
		erofs_sha_update(l->sha512, run->data, (size_t)run->len);
	return 0;
}

static void put_digest(char *text, const char *word, const uint8_t *digest, size_t size)
{
	size_t i;

	text += sprintf(text, "%s:", word);
	for (i = 0; i < size; i++)
		text += sprintf(text, "%02x", digest[i]);
}

static void compare_digest(struct compare_parcel *p, size_t i, const char *word, const uint8_t *found,
			   const uint8_t *wanted, size_t size)
{
	char a[16 + 2 * SHA_MAX_SIZE], b[16 + 2 * SHA_MAX_SIZE];

	if (!memcmp(found, wanted, size))
		return;
	put_digest(a, word, found, size);
	put_digest(b, word, wanted, size);
	erofs_compare_note(p, i, "data", a, b);
}

static int compare_all(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	uint8_t digest[SHA_MAX_SIZE];
	int err;

	if (w->has_sha256 && !erofs_sha_final(l->sha256, digest))
		return -EIO;
	if (w->has_sha256)
		compare_digest(p, i, "sha256", digest, w->sha256, sizeof(w->sha256));
	if (w->has_sha512 && !erofs_sha_final(l->sha512, digest))
		return -EIO;
	if (w->has_sha512)
		compare_digest(p, i, "sha512", digest, w->sha512, sizeof(w->sha512));
	err = w->has_verity ? erofs_verity_final(&l->tree, digest) : 0;
	if (!err && w->has_verity)
		compare_digest(p, i, "fsverity", digest, w->verity, sizeof(w->verity));
	return err;
}

void erofs_compare_digests(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	const struct erofs_inode *ino = &p->items[i].ino;
	uint64_t done = 0;
	struct stream s;
	struct run run;
	int r;

	if (prepare(l, w)) {
		p->err = -ENOMEM;
		return;
	}
	r = ino->size ? erofs_stream_begin(&s, l->lane, ino, 0, ino->size) : 0;
	while (!r && done < ino->size && (r = erofs_stream_next(&s, &run)) > 0) {
		r = add_run(l, w, &run);
		done += run.len;
	}
	if (r == -ECANCELED)
		return;
	if (r < 0 || done != ino->size) {
		p->damaged = true;
		return;
	}
	p->bytes += done;
	r = compare_all(l, p, i, w);
	if (r == -ENOMEM)
		p->err = r;
	else if (r)
		p->failed = erofs_diag_fail(l->c->diag, r, AT_NID(ino->nid), "cannot compute digests");
}

/* ---- a large file, by all workers ---- */

void erofs_compare_hash_range(struct compare_lane *l, struct compare_parcel *p)
{
	static const struct wanted verity = { .has_verity = true };
	const struct erofs_inode *ino = &p->items[0].ino;
	struct stream s;
	struct run run;
	bool first = true;
	int r;

	p->la = p->from;
	erofs_verity_part_begin(&p->part, p->from);
	if (p->to - p->from > COMPARE_BATCH) {
		p->zeros = p->to - p->from;	/* only holes are that long */
		return;
	}
	if (prepare(l, &verity)) {
		p->err = -ENOMEM;
		return;
	}
	r = erofs_stream_begin(&s, l->lane, ino, p->from, p->to);
	while (!r && (r = erofs_stream_next(&s, &run)) > 0) {
		if (first) {
			p->la = run.la;
			erofs_verity_part_begin(&p->part, run.la);
		}
		first = false;
		r = erofs_job_is_cancelled(l->c->job) ? -ECANCELED :
		    erofs_verity_part_add(&p->part, &l->hasher, run.data, run.len);
		p->bytes += run.len;
	}
	if (r == -ENOMEM)
		p->err = r;
	else if (r && r != -ECANCELED)
		p->damaged = true;
}

int erofs_compare_add_hashes(struct compare *c, struct compare_parcel *p)
{
	struct compare_lane *l = &c->lanes[0];
	uint8_t digest[SHA_MAX_SIZE];
	struct wanted w;
	int err;

	if (!p->from && !l->hasher.sha && erofs_verity_hasher_init(&l->hasher, &params))
		return erofs_compare_no_memory(c);
	if (!p->from)
		erofs_verity_begin(&c->tree, &l->hasher);
	c->large_lost |= p->damaged;
	if (c->large_lost)
		return 0;
	if (p->zeros) {
		c->large_lost = p->from != c->tree.size;
		erofs_verity_add_zeros(&c->tree, p->zeros);
		c->res->bytes += p->zeros;
	} else if (p->part.pos > p->la) {
		c->large_lost = p->la != c->tree.size;
		erofs_verity_add_part(&c->tree, &p->part);
	}
	if (p->last && c->tree.size != p->items[0].ino.size)
		c->large_lost = true;
	if (c->large_lost) {
		c->damaged = true;
		return erofs_diag_damage(c->diag, EXTENT_RANGE, AT_NID(p->items[0].ino.nid),
					 "extents do not cover the file") && 0;
	}
	if (!p->last)
		return 0;
	err = erofs_verity_final(&c->tree, digest);
	if (err)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot compute digests");
	memcpy(&w, p->facts.data + p->items[0].record, sizeof(w));
	compare_digest(p, 0, "fsverity", digest, w.verity, sizeof(w.verity));
	return 0;
}
