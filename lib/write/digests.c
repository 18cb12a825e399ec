// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * SHA-256 of files, of the very bytes that go into the image: by the worker that has all of a file in
 * memory. The hash of a segment goes on from that of the segment in front of it, so those of a large
 * file are hashed by the owner, to whom they come in order: nobody waits, and no state is handed on.
 *
 * Memory for a manifest: 52 bytes for each regular file that is not empty, twice that while the table
 * grows. An attribute has its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/sums_priv.h"
#include "write/file_priv.h"

struct known_digest {
	uint64_t nid;
	uint8_t sha[SHA256_SIZE];
};

struct digests {
	bool keep;			/* for the manifest */
	struct table known;
	struct sha *chain;		/* of the file whose segments are being delivered */
};

int erofs_digests_begin(struct writer *w)
{
	/*
	 * With fs-verity, which is asked for together with attributes, contents are read back and hashed
	 * then. Without libcrypto the manifest fails, and says so.
	 */
	bool keep = w->o->manifest && !w->o->manifest->xattrs && erofs_sha_is_there();
	struct digests *d;

	if (!keep && !w->o->inode_digest)
		return 0;
	w->digests = d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->keep = keep;
	d->known.size = sizeof(struct known_digest);
	d->chain = erofs_sha_new(SHA_256);
	return d->chain ? 0 : -ENOMEM;
}

void erofs_digests_fini(struct writer *w)
{
	if (!w->digests)
		return;
	erofs_table_fini(&w->digests->known);
	erofs_sha_free(w->digests->chain);
	free(w->digests);
}

/* Larger ones have no digest in any manifest. */
static bool is_kept(const struct writer *w, const struct item *it)
{
	return w->digests && w->digests->keep && it->len && it->node->size <= SUMS_MAX_BYTES;
}

static bool is_wanted(const struct writer *w, const struct item *it)
{
	return it->node->promised || is_kept(w, it);
}

bool erofs_digest_is_chained(const struct writer *w, const struct item *it)
{
	return is_wanted(w, it) && !(it->first && it->last);
}

static int finish(const struct writer *w, struct sha *sha, struct item *it)
{
	return erofs_sha_final(sha, it->sha) ? 0 :
	       erofs_diag_fail(w->diag, -EIO, AT_NOWHERE, "cannot make the digests");
}

int erofs_digest_whole(const struct writer *w, struct zlane *z, struct item *it,
		       const uint8_t *data)
{
	if (!is_wanted(w, it) || erofs_digest_is_chained(w, it))
		return 0;
	if (!z->sha)
		z->sha = erofs_sha_new(SHA_256);
	if (!z->sha)
		return -ENOMEM;
	erofs_sha_begin(z->sha);
	erofs_sha_update(z->sha, data, it->len);
	return finish(w, z->sha, it);
}

static int add_segment(struct writer *w, struct item *it)
{
	struct sha *chain = w->digests->chain;

	if (it->first)
		erofs_sha_begin(chain);
	erofs_sha_update(chain, it->whole ? it->whole : it->raw, it->len);
	return it->last ? finish(w, chain, it) : 0;
}

int erofs_digest_take(struct writer *w, struct item *it)
{
	int err = erofs_digest_is_chained(w, it) ? add_segment(w, it) : 0;

	if (!err && it->last && it->node->promised)
		erofs_xattr_fulfil(it->node, it->sha, sizeof(it->sha));
	return err;
}

int erofs_digest_keep(struct writer *w, const struct item *it)
{
	struct known_digest *d;

	if (!it->last || !is_kept(w, it))
		return 0;
	d = erofs_table_add(&w->digests->known, erofs_table_hash(it->node->nid));
	if (!d)
		return -ENOMEM;
	d->nid = it->node->nid;
	memcpy(d->sha, it->sha, sizeof(d->sha));
	return 0;
}

const uint8_t *erofs_digest_find(const struct writer *w, uint64_t nid)
{
	const struct known_digest *d = NULL;
	uint32_t at = 0;

	while (w->digests && (d = erofs_table_next(&w->digests->known, erofs_table_hash(nid), &at)))
		if (d->nid == nid)
			break;
	return d ? d->sha : NULL;
}
