// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Contents against the digests that the image records (format.md 8.8). */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha.h"
#include "check/check_priv.h"

#define TAG "sha256:"
#define TAG_LEN 7

static void free_sha(struct sha **sha)
{
	erofs_sha_free(*sha);
}

/* 1 found, 0 there is none, negative errno (reported). */
static int find_digest(struct check *c, struct lane *lane, const struct erofs_inode *ino,
		       uint8_t digest[SHA256_SIZE])
{
	struct xattr_iter *it = erofs_lane_xattrs(lane);
	struct xattr_view view;
	int r = it ? erofs_xattr_begin(it, ino) : -ENOMEM;

	while (!r && (r = erofs_xattr_next(it, &view)) > 0) {
		r = 0;
		if (!view.is_digest)
			continue;
		if (view.size != TAG_LEN + SHA256_SIZE || memcmp(view.value, TAG, TAG_LEN))
			return erofs_diag_damage(c->diag, DATA_DIGEST, AT_NID(ino->nid),
						 "the recorded digest is no SHA-256 (%zu bytes)", view.size);
		memcpy(digest, view.value + TAG_LEN, SHA256_SIZE);
		return 1;
	}
	return r;
}

static int hash_contents(struct check *c, struct lane *lane, const struct erofs_inode *ino,
			 struct sha *sha)
{
	struct stream s;
	struct run run;
	int r = ino->size ? erofs_stream_begin(&s, lane, ino, 0, ino->size) : 0;

	while (!r && ino->size && (r = erofs_stream_next(&s, &run)) > 0) {
		r = erofs_job_is_cancelled(c->job) ? -ECANCELED : 0;
		if (run.data)
			erofs_sha_update(sha, run.data, (size_t)run.len);
		else
			erofs_sha_zeros(sha, run.len);
	}
	return r;
}

void erofs_check_digest(struct check *c, struct lane *lane, const struct erofs_inode *ino)
{
	auto_call(free_sha) struct sha *sha = NULL;
	uint8_t want[SHA256_SIZE], have[SHA256_SIZE];
	int r = find_digest(c, lane, ino, want);

	if (r <= 0)
		return;
	sha = erofs_sha_new(SHA_256);
	r = sha ? hash_contents(c, lane, ino, sha) : -ENOMEM;
	if (!r && !erofs_sha_final(sha, have))
		r = -ENOMEM;
	if (r == -ENOMEM)
		erofs_diag_fail(c->diag, r, AT_NID(ino->nid), "cannot compute the digest");
	if (!r && memcmp(want, have, SHA256_SIZE))
		erofs_diag_damage(c->diag, DATA_DIGEST, AT_NID(ino->nid),
				  "the contents do not have the recorded digest");
}
