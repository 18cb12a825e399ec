// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The tree of hashes: every level keeps the one block that is not whole yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fsverity.h"

#define DESCRIPTOR 256
#define SALT_AT 80

static size_t block_size(const struct verity_hasher *h)
{
	return (size_t)1 << h->params.block_bits;
}

/* The hash of @len bytes, filled up with zeros to a block. */
static void hash_block(struct verity_hasher *h, const uint8_t *data, size_t len, uint8_t *ret)
{
	erofs_sha_begin(h->sha);
	erofs_sha_update(h->sha, h->first, h->first_len);
	erofs_sha_update(h->sha, data, len);
	erofs_sha_zeros(h->sha, block_size(h) - len);
	h->failed |= !erofs_sha_final(h->sha, ret);
}

int erofs_verity_hasher_init(struct verity_hasher *h, const struct verity_params *params)
{
	size_t block = erofs_sha_block(params->kind);

	memset(h, 0, sizeof(*h));
	h->params = *params;
	memcpy(h->first, params->salt, params->salt_size);
	h->first_len = params->salt_size ? (size_t)round_up_u64(params->salt_size, block) : 0;
	h->sha = erofs_sha_new(params->kind);
	if (!h->sha)
		return -ENOMEM;
	hash_block(h, h->first, 0, h->zero);
	return h->failed ? -ENOMEM : 0;
}

void erofs_verity_hasher_fini(struct verity_hasher *h)
{
	erofs_sha_free(h->sha);
	h->sha = NULL;
}

/* ---- parts ---- */

void erofs_verity_part_begin(struct verity_part *p, uint64_t pos)
{
	p->pos = pos;
	p->head_len = p->tail_len = p->count = 0;
	p->aligned = false;
}

void erofs_verity_part_fini(struct verity_part *p)
{
	free(p->head);
	free(p->tail);
	free(p->hashes);
	memset(p, 0, sizeof(*p));
}

static uint8_t *next_hash(struct verity_part *p, size_t size)
{
	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 64;
		uint8_t *grown = realloc(p->hashes, room * size);

		if (!grown)
			return NULL;
		p->hashes = grown;
		p->room = room;
	}
	return p->hashes + p->count++ * size;
}

/* Put up to @len bytes behind the @have of a block that is not whole. */
static void fill(uint8_t *block, size_t have, const uint8_t *data, size_t len)
{
	if (data)
		memcpy(block + have, data, len);
	else
		memset(block + have, 0, len);
}

/* Bytes that belong to the block in which the part begins. Return: how many were taken. */
static size_t take_head(struct verity_part *p, size_t block, const uint8_t *data, uint64_t len)
{
	size_t left = (size_t)(-p->pos & (block - 1));
	size_t n = (size_t)min_u64(left, len);

	fill(p->head, p->head_len, data, n);
	p->head_len += n;
	p->pos += n;
	p->aligned = n == left;
	return n;
}

int erofs_verity_part_add(struct verity_part *p, struct verity_hasher *h, const uint8_t *data, uint64_t len)
{
	size_t block = block_size(h), size = erofs_sha_size(h->params.kind), n;
	uint8_t *hash;

	if (!p->head)
		p->head = malloc(block);
	if (!p->tail)
		p->tail = malloc(block);
	if (!p->head || !p->tail)
		return -ENOMEM;
	for (; len; len -= n, data = data ? data + n : NULL) {
		if (!p->aligned) {
			n = take_head(p, block, data, len);
			continue;
		}
		n = (size_t)min_u64(len, block - p->tail_len);
		p->pos += n;
		if (n < block) {
			fill(p->tail, p->tail_len, data, n);
			p->tail_len += n;
			if (p->tail_len < block)
				continue;
		}
		hash = next_hash(p, size);
		if (!hash)
			return -ENOMEM;
		if (p->tail_len)
			hash_block(h, p->tail, block, hash);
		else if (data)
			hash_block(h, data, block, hash);
		else
			memcpy(hash, h->zero, size);
		p->tail_len = 0;
	}
	return 0;
}

/* ---- the tree ---- */

void erofs_verity_begin(struct verity_tree *t, struct verity_hasher *h)
{
	unsigned int i;

	t->h = h;
	t->size = 0;
	t->data_len = 0;
	t->no_memory = false;
	for (i = 0; i < VERITY_MAX_LEVELS; i++)
		t->levels[i].count = t->levels[i].total = 0;
}

void erofs_verity_fini(struct verity_tree *t)
{
	unsigned int i;

	free(t->data);
	for (i = 0; i < VERITY_MAX_LEVELS; i++)
		free(t->levels[i].block);
	memset(t, 0, sizeof(*t));
}

static bool has_block(struct verity_tree *t, uint8_t **block)
{
	if (!*block)
		*block = malloc(block_size(t->h));
	t->no_memory |= !*block;
	return *block;
}

/* Add one hash to a level; a block that is whole becomes a hash of the next one. */
static void push_hash(struct verity_tree *t, unsigned int at, const uint8_t *hash)
{
	size_t size = erofs_sha_size(t->h->params.kind);
	uint8_t up[SHA_MAX_SIZE];

	memcpy(up, hash, size);
	for (; at < VERITY_MAX_LEVELS; at++) {
		struct verity_level *l = &t->levels[at];

		if (!has_block(t, &l->block))
			return;
		memcpy(l->block + l->count++ * size, up, size);
		l->total++;
		if (l->count * size < block_size(t->h))
			return;
		hash_block(t->h, l->block, block_size(t->h), up);
		l->count = 0;
	}
}

/* The same @count times: whole blocks of them are all alike, and so on upwards. */
static void push_same(struct verity_tree *t, const uint8_t *hash, uint64_t count)
{
	size_t size = erofs_sha_size(t->h->params.kind), per_block = block_size(t->h) / size, i;
	uint8_t same[SHA_MAX_SIZE], up[SHA_MAX_SIZE];
	unsigned int at;

	memcpy(same, hash, size);
	for (at = 0; count && at < VERITY_MAX_LEVELS; at++) {
		struct verity_level *l = &t->levels[at];

		if (!has_block(t, &l->block))
			return;
		for (; count && l->count; count--)
			push_hash(t, at, same);
		if (count < per_block) {
			for (; count; count--)
				push_hash(t, at, same);
			return;
		}
		for (i = 0; i < per_block; i++)
			memcpy(l->block + i * size, same, size);
		hash_block(t->h, l->block, block_size(t->h), up);
		l->total += count;
		l->count = count % per_block;	/* they stand in the block already */
		count /= per_block;
		memcpy(same, up, size);
	}
}

static void add(struct verity_tree *t, const uint8_t *data, size_t len)
{
	size_t block = block_size(t->h), n;
	uint8_t hash[SHA_MAX_SIZE];

	t->size += len;
	if (!has_block(t, &t->data))
		return;
	for (; len; len -= n, data = data ? data + n : NULL) {
		n = (size_t)min_u64(len, block - t->data_len);
		if (n == block && data) {
			hash_block(t->h, data, block, hash);
			push_hash(t, 0, hash);
			continue;
		}
		fill(t->data, t->data_len, data, n);
		t->data_len += n;
		if (t->data_len < block)
			continue;
		hash_block(t->h, t->data, block, hash);
		push_hash(t, 0, hash);
		t->data_len = 0;
	}
}

void erofs_verity_add(struct verity_tree *t, const uint8_t *data, size_t len)
{
	add(t, data, len);
}

void erofs_verity_add_zeros(struct verity_tree *t, uint64_t len)
{
	unsigned int bits = t->h->params.block_bits;
	size_t n = (size_t)min_u64(len, -t->size & (block_size(t->h) - 1));

	add(t, NULL, n);
	len -= n;
	push_same(t, t->h->zero, len >> bits);
	t->size += len >> bits << bits;
	add(t, NULL, (size_t)(len & (block_size(t->h) - 1)));
}

void erofs_verity_add_part(struct verity_tree *t, const struct verity_part *p)
{
	size_t size = erofs_sha_size(t->h->params.kind), i;

	add(t, p->head, p->head_len);
	for (i = 0; i < p->count; i++)
		push_hash(t, 0, p->hashes + i * size);
	t->size += (uint64_t)p->count << t->h->params.block_bits;
	add(t, p->tail, p->tail_len);
}

/* Close all levels: the first one that ever had one hash only has the root. */
static void find_root(struct verity_tree *t, uint8_t *root)
{
	size_t size = erofs_sha_size(t->h->params.kind);
	unsigned int at;
	uint8_t up[SHA_MAX_SIZE];

	if (t->data_len) {
		hash_block(t->h, t->data, t->data_len, up);
		push_hash(t, 0, up);
	}
	for (at = 0; at < VERITY_MAX_LEVELS; at++) {
		struct verity_level *l = &t->levels[at];

		if (l->total == 1) {
			memcpy(root, l->block, size);
			return;
		}
		if (!l->count)
			continue;
		hash_block(t->h, l->block, l->count * size, up);
		push_hash(t, at + 1, up);
	}
}

int erofs_verity_final(struct verity_tree *t, uint8_t digest[SHA_MAX_SIZE])
{
	const struct verity_params *params = &t->h->params;
	uint8_t d[DESCRIPTOR] = { 1, params->kind == SHA_256 ? 1 : 2, (uint8_t)params->block_bits,
				  (uint8_t)params->salt_size };
	unsigned int i;

	for (i = 0; i < 8; i++)
		d[8 + i] = (uint8_t)(t->size >> 8 * i);
	if (t->size && !t->no_memory)
		find_root(t, d + 16);
	if (t->no_memory)
		return -ENOMEM;
	memcpy(d + SALT_AT, params->salt, params->salt_size);
	erofs_sha_begin(t->h->sha);
	erofs_sha_update(t->h->sha, d, sizeof(d));
	return !erofs_sha_final(t->h->sha, digest) || t->h->failed ? -EIO : 0;
}
