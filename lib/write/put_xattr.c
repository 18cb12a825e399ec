// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Extended attributes: each pair of name and value once in memory, shared in the image where that pays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "write/write_priv.h"

#define MAX_SHARED 255		/* h_shared_count has a byte */

static const struct {
	const char *prefix;
	uint8_t index;
	bool whole;		/* nothing follows */
} spaces[] = {
	{ "user.", 1, false },
	{ "system.posix_acl_access", 2, true },
	{ "system.posix_acl_default", 3, true },
	{ "trusted.", 4, false },
	{ "security.", 6, false },
};

uint8_t erofs_xattr_split(const char *name, const char **ret_suffix)
{
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		size_t len = strlen(spaces[i].prefix);

		if (strncmp(name, spaces[i].prefix, len) || (spaces[i].whole && name[len]))
			continue;
		*ret_suffix = name + len;
		return spaces[i].index;
	}
	return 0;
}

static size_t item_size(const struct xattr_item *x)
{
	return (size_t)round_up_u64(sizeof(struct disk_xattr_entry) + x->name_len - x->infix_len + x->value_len,
				    DISK_XATTR_ALIGN);
}

static int grow_heads(struct writer *w)
{
	size_t room = w->xattr_nheads ? 4 * w->xattr_nheads : 256, i;
	struct xattr_item **heads = calloc(room, sizeof(*heads)), *x, *next;

	if (!heads)
		return -ENOMEM;
	for (i = 0; i < w->xattr_nheads; i++) {
		for (x = w->xattr_heads[i]; x; x = next) {
			next = x->next;
			x->next = heads[x->hash & (room - 1)];
			heads[x->hash & (room - 1)] = x;
		}
	}
	free(w->xattr_heads);
	w->xattr_heads = heads;
	w->xattr_nheads = room;
	return 0;
}

/* The longest that fits. */
static void choose_prefix(const struct writer *w, struct xattr_item *x)
{
	unsigned int i;

	for (i = 0; i < w->nprefixes; i++) {
		const struct xattr_prefix *p = &w->prefixes[i];

		if (p->base != x->index || p->len > x->name_len || memcmp(p->infix, x->bytes, p->len) ||
		    p->len <= x->infix_len)
			continue;
		x->infix_len = (uint8_t)p->len;
		x->disk_index = (uint8_t)(DISK_XATTR_LONG | i);
	}
}

static struct xattr_item *new_item(struct writer *w, uint64_t hash, uint8_t index, const char *suffix,
				   const void *value, size_t len)
{
	size_t name_len = strlen(suffix);
	struct xattr_item *x;

	if (w->xattr_count >= w->xattr_nheads && grow_heads(w))
		return NULL;
	x = calloc(1, sizeof(*x) + name_len + len);
	if (!x)
		return NULL;
	x->hash = hash;
	x->index = x->disk_index = index;
	x->name_len = (uint8_t)name_len;
	x->value_len = (uint16_t)len;
	memcpy(x->bytes, suffix, name_len);
	if (len)
		memcpy(x->bytes + name_len, value, len);
	choose_prefix(w, x);
	x->next = w->xattr_heads[hash & (w->xattr_nheads - 1)];
	w->xattr_heads[hash & (w->xattr_nheads - 1)] = x;
	w->xattr_count++;
	return x;
}

static struct xattr_item *find_item(struct writer *w, uint8_t index, const char *suffix, const void *value,
				    size_t len)
{
	size_t name_len = strlen(suffix);
	uint64_t hash = erofs_hash_bytes(value, len, erofs_hash_bytes(suffix, name_len, index));
	struct xattr_item *x = w->xattr_nheads ? w->xattr_heads[hash & (w->xattr_nheads - 1)] : NULL;

	for (; x; x = x->next)
		if (x->hash == hash && x->index == index && x->name_len == name_len && x->value_len == len &&
		    !x->promised && !memcmp(x->bytes, suffix, name_len) &&
		    !memcmp(x->bytes + name_len, value, len))
			return x;
	return new_item(w, hash, index, suffix, value, len);
}

static int append_item(struct node *node, struct xattr_item *x)
{
	uint32_t n = node->nxattrs;

	if (!(n & (n - 1))) {
		struct xattr_item **grown = realloc(node->xattrs, (n ? 2 * (size_t)n : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		node->xattrs = grown;
	}
	node->xattrs[node->nxattrs++] = x;
	x->refs++;
	return 0;
}

int erofs_xattr_add(struct writer *w, struct node *node, const char *name, const void *value, size_t len)
{
	const char *suffix;
	uint8_t index = erofs_xattr_split(name, &suffix);
	struct xattr_item *x;

	if (!index) {
		auto_free char *path = erofs_node_path(node);

		return erofs_diag_warn_path(w->diag, path ? path : "?",
					    "attribute %s is of no namespace that images have, left out", name);
	}
	if (strlen(suffix) > DISK_XATTR_NAME_MAX || len > DISK_XATTR_VALUE_MAX)
		return -E2BIG;
	x = find_item(w, index, suffix, value, len);
	return x ? append_item(node, x) : -ENOMEM;
}

/* Take away those of which @is_dropped says so. */
static void filter(struct node *node, bool (*is_dropped)(const struct xattr_item *x, const void *arg), const void *arg)
{
	uint32_t i, n = 0;

	for (i = 0; i < node->nxattrs; i++) {
		if (is_dropped(node->xattrs[i], arg))
			node->xattrs[i]->refs--;
		else
			node->xattrs[n++] = node->xattrs[i];
	}
	node->nxattrs = n;
	if (n)
		return;
	/* the room of an array is told by its count */
	free(node->xattrs);
	node->xattrs = NULL;
}

struct full_name {
	const void *suffix;
	size_t len;
	uint8_t index;
};

static bool has_name(const struct xattr_item *x, const void *arg)
{
	const struct full_name *name = arg;

	return x->index == name->index && x->name_len == name->len && !memcmp(x->bytes, name->suffix, name->len);
}

void erofs_xattr_remove(struct node *node, const struct xattr_prefix *name)
{
	filter(node, has_name, &(struct full_name){ name->infix, name->len, name->base });
}

/* @x may be NULL: there was no memory for it. */
static int replace_item(struct node *node, struct xattr_item *x)
{
	if (!x)
		return -ENOMEM;
	filter(node, has_name, &(struct full_name){ x->bytes, x->name_len, x->index });
	return append_item(node, x);
}

int erofs_xattr_replace(struct writer *w, struct node *node, const struct xattr_prefix *name, const void *value,
			size_t len)
{
	return replace_item(node, find_item(w, name->base, name->infix, value, len));
}

int erofs_xattr_promise(struct writer *w, struct node *node, const struct xattr_prefix *name, const void *value,
			size_t len)
{
	/* where it lies among the others is of no interest, as nobody looks for it */
	uint64_t hash = erofs_hash_bytes(name->infix, name->len, (uintptr_t)node);
	struct xattr_item *x = new_item(w, hash, name->base, name->infix, value, len);

	if (x)
		x->promised = node->promised = true;
	return replace_item(node, x);
}

void erofs_xattr_fulfil(struct node *node, const void *end, size_t len)
{
	uint32_t i;

	for (i = 0; i < node->nxattrs; i++) {
		struct xattr_item *x = node->xattrs[i];

		if (x->promised)
			memcpy(x->bytes + x->name_len + x->value_len - len, end, len);
	}
}

void erofs_xattr_name(const struct xattr_item *x, char name[XATTR_ITEM_NAME])
{
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
		if (spaces[i].index == x->index)
			snprintf(name, XATTR_ITEM_NAME, "%s%.*s", spaces[i].prefix, x->name_len,
				 (const char *)x->bytes);
}

struct name_test {
	bool (*is_dropped)(const char *name);	/* NULL: all are */
};

static bool has_dropped_name(const struct xattr_item *x, const void *arg)
{
	const struct name_test *test = arg;
	char name[XATTR_ITEM_NAME];

	if (!test->is_dropped)
		return true;
	erofs_xattr_name(x, name);
	return test->is_dropped(name);
}

void erofs_xattr_drop(struct node *node, bool (*is_dropped)(const char *name))
{
	filter(node, has_dropped_name, &(struct name_test){ is_dropped });
}

int erofs_xattr_copy(struct node *to, const struct node *from)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < from->nxattrs; i++)
		err = append_item(to, from->xattrs[i]);
	return err;
}

static int compare_items(const struct xattr_item *a, const struct xattr_item *b)
{
	size_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
	int r = a->index - b->index;

	if (!r)
		r = memcmp(a->bytes, b->bytes, len);
	if (!r)
		r = a->name_len - b->name_len;
	if (r)
		return r;
	len = a->value_len < b->value_len ? a->value_len : b->value_len;
	r = memcmp(a->bytes + a->name_len, b->bytes + b->name_len, len);
	return r ? r : a->value_len - b->value_len;
}

static int compare_by_name(const void *va, const void *vb)
{
	return compare_items(*(struct xattr_item *const *)va, *(struct xattr_item *const *)vb);
}

static int compare_in_node(const void *va, const void *vb)
{
	const struct xattr_item *a = *(struct xattr_item *const *)va, *b = *(struct xattr_item *const *)vb;

	return a->shared != b->shared ? b->shared - a->shared : compare_items(a, b);
}

void erofs_xattr_order(struct node *node)
{
	uint32_t i;

	if (!node->nxattrs)
		return;
	qsort(node->xattrs, node->nxattrs, sizeof(*node->xattrs), compare_in_node);
	for (i = 0; i < node->nxattrs && node->xattrs[i]->shared; i++)
		;
	node->nshared = i < MAX_SHARED ? i : MAX_SHARED;
}

static void fill_entry(const struct xattr_item *x, uint8_t *dst)
{
	struct disk_xattr_entry *e = (struct disk_xattr_entry *)dst;

	e->e_name_len = x->name_len - x->infix_len;
	e->e_name_index = x->disk_index;
	e->e_value_size = le16_of(x->value_len);
	memcpy(dst + sizeof(*e), x->bytes + x->infix_len, (size_t)x->name_len - x->infix_len + x->value_len);
}

void erofs_xattr_share(struct writer *w)
{
	struct xattr_item *x;
	size_t i;

	for (i = 0; i < w->xattr_nheads; i++)
		for (x = w->xattr_heads[i]; x; x = x->next)
			x->shared = x->refs > w->o->xattr_tolerance;
}

/* Collect what is shared, sorted. */
static int collect_shared(struct writer *w, struct xattr_item ***ret, size_t *ret_count, size_t *ret_bytes)
{
	struct xattr_item **all = malloc((w->xattr_count + 1) * sizeof(*all)), *x;
	size_t i, n = 0, bytes = 0;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < w->xattr_nheads; i++) {
		for (x = w->xattr_heads[i]; x; x = x->next) {
			if (!x->shared)
				continue;
			all[n++] = x;
			bytes += item_size(x);
		}
	}
	if (n)
		qsort(all, n, sizeof(*all), compare_by_name);
	*ret = all;
	*ret_count = n;
	*ret_bytes = bytes;
	return 0;
}

/* Ids count from the start of the image: xattr_blkaddr is 0. */
int erofs_xattr_put_shared(struct writer *w)
{
	auto_free struct xattr_item **all = NULL;
	auto_free uint8_t *area = NULL;
	size_t count, bytes, i;
	uint64_t pos, at = 0;
	int err = collect_shared(w, &all, &count, &bytes);

	if (err || !count)
		return err;
	area = calloc(1, bytes);
	if (!area)
		return -ENOMEM;
	err = erofs_space_meta(&w->space, bytes, 0, &pos);
	if (err)
		return err;
	if ((pos + bytes) / DISK_XATTR_ALIGN > UINT32_MAX)
		return erofs_diag_fail(w->diag, -EFBIG, AT_NOWHERE, "more than 16 GiB of shared attributes");
	for (i = 0; i < count; i++) {
		all[i]->id = (uint32_t)((pos + at) / DISK_XATTR_ALIGN);
		fill_entry(all[i], area + at);
		at += item_size(all[i]);
	}
	return erofs_output_write(w, area, bytes, pos);
}

size_t erofs_xattr_size(const struct node *node)
{
	size_t size = sizeof(struct disk_xattr_header) + 4 * (size_t)node->nshared;
	uint32_t i;

	if (!node->nxattrs && !node->xattr_room)
		return 0;
	for (i = node->nshared; i < node->nxattrs; i++)
		size += item_size(node->xattrs[i]);
	return max_u64(size, node->xattr_room * UINT64_C(4));
}

/* A cleared bit says that a name of this hash may be there (format.md 8.7). */
static uint32_t make_filter(const struct node *node)
{
	uint32_t filter = UINT32_MAX, i;

	for (i = 0; i < node->nxattrs; i++) {
		const struct xattr_item *x = node->xattrs[i];

		filter &= ~(UINT32_C(1) << (erofs_hash_xxh32(x->bytes, x->name_len,
							     DISK_XATTR_FILTER_SEED + x->index) % 32));
	}
	return filter;
}

void erofs_xattr_fill(const struct writer *w, const struct node *node, uint8_t *dst)
{
	struct disk_xattr_header *h = (struct disk_xattr_header *)dst;
	uint32_t i;

	if (!node->nxattrs)
		return;
	if (!w->o->no_xattr_filter)
		h->h_name_filter = le32_of(make_filter(node));
	h->h_shared_count = (uint8_t)node->nshared;
	dst += sizeof(*h);
	for (i = 0; i < node->nshared; i++, dst += 4)
		put_le32(dst, node->xattrs[i]->id);
	for (; i < node->nxattrs; i++) {
		fill_entry(node->xattrs[i], dst);
		dst += item_size(node->xattrs[i]);
	}
}

void erofs_xattr_fini(struct writer *w)
{
	struct xattr_item *x, *next;
	size_t i;

	for (i = 0; i < w->xattr_nheads; i++) {
		for (x = w->xattr_heads[i]; x; x = next) {
			next = x->next;
			free(x);
		}
	}
	free(w->xattr_heads);
}
