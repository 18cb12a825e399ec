// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Long name prefixes (format.md 8.6), and digests of contents as attributes (8.8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/sha.h"
#include "write/write_priv.h"

#define MAX_PREFIXES 128
#define READ_BYTES (UINT32_C(1) << 18)

/* ---- prefixes ---- */

static int add_prefix(struct writer *w, const char *name, unsigned int *ret_id)
{
	struct xattr_prefix p = { .infix = name };
	unsigned int i;

	p.base = erofs_xattr_split(name, &p.infix);
	p.len = strlen(p.infix);
	if (p.len > DISK_XATTR_NAME_MAX)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "the prefix %s is longer than 255 bytes", name);
	for (i = 0; i < w->nprefixes; i++)
		if (!strcmp(w->prefixes[i].infix, p.infix) && w->prefixes[i].base == p.base)
			break;
	*ret_id = i;
	if (i < w->nprefixes)
		return 0;
	if (i == MAX_PREFIXES)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "more than %d prefixes of attributes",
				       MAX_PREFIXES);
	w->prefixes[w->nprefixes++] = p;
	return 0;
}

int erofs_prefixes_take(struct writer *w)
{
	const struct erofs_write_options *o = w->o;
	unsigned int i, id;
	int err = 0;

	w->prefixes = calloc(MAX_PREFIXES, sizeof(*w->prefixes));
	if (!w->prefixes)
		return -ENOMEM;
	for (i = 0; !err && o->xattr_prefixes && o->xattr_prefixes[i]; i++)
		err = add_prefix(w, o->xattr_prefixes[i], &id);
	if (err || !o->inode_digest)
		return err;
	if (!erofs_sha_is_there())
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "built without SHA-256 (libcrypto)");
	if (o->source_type >= EROFS_WRITE_TAR_INDEX)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE,
				       "digests, but the image has no contents of its own");
	err = add_prefix(w, o->inode_digest, &w->digest_prefix);
	if (!err && !w->prefixes[w->digest_prefix].len)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "'%s' is no name for a digest", o->inode_digest);
	return err;
}

/* The records, each at a multiple of 4. */
static int fill_table(const struct writer *w, uint8_t **ret, size_t *ret_len)
{
	uint8_t *table = calloc(w->nprefixes, 4 + DISK_XATTR_NAME_MAX + sizeof(struct disk_xattr_prefix));
	size_t at = 0;
	unsigned int i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < w->nprefixes; i++) {
		const struct xattr_prefix *p = &w->prefixes[i];
		struct disk_xattr_prefix *d = (struct disk_xattr_prefix *)(table + at);

		d->len = le16_of((uint16_t)(p->len + 1));
		d->base_index = p->base;
		memcpy(d + 1, p->infix, p->len);
		at = (size_t)round_up_u64(at + sizeof(*d) + p->len, DISK_XATTR_ALIGN);
	}
	*ret = table;
	*ret_len = at;
	return 0;
}

int erofs_prefixes_put(struct writer *w)
{
	auto_free uint8_t *table = NULL;
	size_t len = 0;
	uint64_t pos = 0;
	int err;

	if (!w->nprefixes)
		return 0;
	err = fill_table(w, &table, &len);
	if (err)
		return err;
	/* kernels before 6.17 look for them in the packed file, if there is one */
	w->prefixes_packed = w->packs && !w->o->plain_xattr_prefixes;
	if (w->prefixes_packed) {
		err = erofs_packed_add(w, table, len, &pos);
	} else {
		err = erofs_space_meta(&w->space, len, 0, &pos);
		if (!err)
			err = erofs_output_write(w, table, len, pos);
	}
	w->prefix_start = (uint32_t)(pos / DISK_XATTR_ALIGN);
	return err;
}

/* ---- digests ---- */

/* How many files are that large. */
struct same_size {
	uint64_t size;
	uint32_t count;
};

struct digest {
	struct writer *w;
	struct table sizes;
	struct sha *sha;
	uint8_t *buf;
};

static int hash_node(struct digest *d, const struct node *node, uint8_t *digest)
{
	struct contents c = { .fd = -1 };
	uint64_t off;
	ssize_t got = 0;
	int err = d->w->feed.ops->open(&d->w->feed, node, &c);

	if (err)
		return err;
	erofs_sha_begin(d->sha);
	for (off = 0; off < node->size; off += (uint64_t)got) {
		got = erofs_fdio_pread(c.fd, d->buf, (size_t)min_u64(READ_BYTES, node->size - off), c.off + off);
		/* who puts the file meets this too, and says so */
		if (got <= 0 || erofs_write_is_cancelled(d->w))
			break;
		erofs_sha_update(d->sha, d->buf, (size_t)got);
	}
	if (c.owned)
		close(c.fd);
	if (got < 0)
		return erofs_diag_fail(d->w->diag, (int)got, AT_NOWHERE, "cannot read a file for its digest");
	if (erofs_write_is_cancelled(d->w))
		return -ECANCELED;
	return erofs_sha_final(d->sha, digest) ? 0 : -ENOMEM;
}

static struct same_size *find_size(const struct table *sizes, uint64_t size)
{
	struct same_size *s;
	uint32_t at = 0;

	while ((s = erofs_table_next(sizes, erofs_table_hash(size), &at)) && s->size != size)
		;
	return s;
}

static int count_node(struct digest *d, struct node *node)
{
	struct same_size *s = find_size(&d->sizes, node->size);

	if (!s) {
		s = erofs_table_add(&d->sizes, erofs_table_hash(node->size));
		if (!s)
			return -ENOMEM;
		s->size = node->size;
	}
	s->count++;
	return 0;
}

static int digest_node(struct digest *d, struct node *node)
{
	const struct xattr_prefix *name = &d->w->prefixes[d->w->digest_prefix];
	uint8_t value[7 + SHA256_SIZE] = "sha256:";
	int err;

	/* an empty file has no digest, and what the source calls so is none */
	if (!node->size) {
		erofs_xattr_remove(node, name);
		return 0;
	}
	if (find_size(&d->sizes, node->size)->count <= d->w->o->xattr_tolerance)
		return erofs_xattr_promise(d->w, node, name, value, sizeof(value));
	err = hash_node(d, node, value + 7);
	return err ? err : erofs_xattr_replace(d->w, node, name, value, sizeof(value));
}

static int each_file(struct digest *d, int (*act)(struct digest *d, struct node *node))
{
	uint32_t i;
	size_t k;
	int err = 0;

	for (k = 0; !err && k < d->w->ndirs; k++) {
		const struct node *dir = d->w->dirs[k];

		for (i = 0; !err && i < dir->nchildren; i++) {
			struct node *child = dir->children[i];

			if (S_ISREG(child->mode) && !child->link)
				err = act(d, child);
		}
	}
	return err;
}

/*
 * Which attributes are shared must be known before anything is placed. A digest is shared only if more
 * files than -x says have the same contents, and so the same size: these are read twice, now and when
 * they are put. All others get theirs while their contents pass through (digests.c).
 */
int erofs_digests_add(struct writer *w)
{
	struct digest d = { .w = w, .sizes.size = sizeof(struct same_size) };
	int err;

	if (!w->o->inode_digest)
		return 0;
	d.sha = erofs_sha_new(SHA_256);
	d.buf = malloc(READ_BYTES);
	err = d.sha && d.buf ? each_file(&d, count_node) : -ENOMEM;
	if (!err)
		err = each_file(&d, digest_node);
	erofs_table_fini(&d.sizes);
	erofs_sha_free(d.sha);
	free(d.buf);
	return err;
}
