// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What workers do: files to digests, entries to lines, ranges of large files to hashes of blocks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "archive/sums_priv.h"

#define ZEROS_AT_ONCE (UINT64_C(64) << 20)	/* between two looks at the cancel flag */

int erofs_sums_lane_init(const struct sums *s, struct sums_lane *l)
{
	if (s->want_sha && !l->sha)
		l->sha = erofs_sha_new(s->kind);
	if (s->want_verity && !l->hasher.sha && erofs_verity_hasher_init(&l->hasher, &s->params))
		erofs_verity_hasher_fini(&l->hasher);
	return (s->want_sha && !l->sha) || (s->want_verity && !l->hasher.sha) ? -ENOMEM : 0;
}

void erofs_sums_lane_fini(struct sums_lane *l)
{
	erofs_sha_free(l->sha);
	erofs_verity_hasher_fini(&l->hasher);
	erofs_verity_fini(&l->tree);
}

/* ---- whole files ---- */

static int report_end(struct lane *lane, const struct erofs_inode *ino, uint64_t at)
{
	return erofs_diag_damage(erofs_lane_diag(lane), EXTENT_RANGE, AT_NID(ino->nid),
				 "extents end at %" PRIu64 ", the file at %" PRIu64, at, ino->size);
}

static int add_zeros(const struct sums *s, struct sums_lane *l, uint64_t len)
{
	uint64_t n;

	if (s->want_verity)
		erofs_verity_add_zeros(&l->tree, len);
	for (; s->want_sha && len; len -= n) {
		if (erofs_job_is_cancelled(s->archive.job))
			return -ECANCELED;
		n = min_u64(len, ZEROS_AT_ONCE);
		erofs_sha_zeros(l->sha, n);
	}
	return 0;
}

/* Hand all contents to the hashes. 0, an error that was reported. */
static int hash_contents(const struct sums *s, struct sums_lane *l, struct lane *lane,
			 const struct erofs_inode *ino)
{
	uint64_t pos = 0, len;
	struct stream st;
	struct run run;
	int r = ino->size ? erofs_stream_begin(&st, lane, ino, 0, ino->size) : 0;

	while (!r && ino->size && (r = erofs_stream_next(&st, &run)) > 0) {
		r = erofs_job_is_cancelled(s->archive.job) ? -ECANCELED : 0;
		if (r || run.la != pos || pos == ino->size)
			break;
		len = min_u64(run.len, ino->size - pos);
		if (!run.data)
			r = add_zeros(s, l, len);
		if (run.data && s->want_sha)
			erofs_sha_update(l->sha, run.data, (size_t)len);
		if (run.data && s->want_verity)
			erofs_verity_add(&l->tree, run.data, (size_t)len);
		pos += len;
		erofs_lane_count(lane, 0, len);
	}
	return r < 0 ? r : pos == ino->size ? 0 : report_end(lane, ino, pos);
}

static bool may_hash(const struct sums *s, struct lane *lane, const struct erofs_inode *ino)
{
	bool is_large = ino->size > SUMS_RANGE;

	if (s->want_sha && ino->size > SUMS_MAX_BYTES) {
		erofs_diag_fail(erofs_lane_diag(lane), -EFBIG, AT_NID(ino->nid),
				"%" PRIu64 " bytes are too many for SHA", ino->size);
		return false;
	}
	/* what is wrong with an index whose data can be read all the same is reported */
	return !(is_large || erofs_inode_is_compressed(ino)) || erofs_archive_is_mappable(lane, ino) || !is_large;
}

static int hash_file(const struct sums *s, struct lane *lane, struct sums_item *item)
{
	struct sums_lane *l = &s->lanes[erofs_lane_index(lane)];
	struct sums_value *v = &item->value;
	int err = erofs_sums_lane_init(s, l);

	if (err)
		return err;
	if (s->want_sha)
		erofs_sha_begin(l->sha);
	if (s->want_verity)
		erofs_verity_begin(&l->tree, &l->hasher);
	item->failed = !may_hash(s, lane, &item->ino) || hash_contents(s, l, lane, &item->ino);
	if (item->failed)
		return 0;
	if (s->want_sha && !erofs_sha_final(l->sha, v->sha))
		return -EIO;
	err = s->want_verity ? erofs_verity_final(&l->tree, v->verity) : 0;
	v->has_sha = s->want_sha && !err;
	v->has_verity = s->want_verity && !err;
	return err;
}

/* ---- lines ---- */

/* An attribute of an item: a line for erofs_pack_xattrs(). */
struct comment {
	struct sums_pack *p;
	const struct sums_item *item;
};

static const char *path_of(const struct sums_pack *p, const struct sums_item *item)
{
	return (const char *)p->pack.names.data + item->path;
}

static int add_comment(void *arg, const struct xattr_view *xa)
{
	const struct comment *c = arg;

	return erofs_sums_comment(&c->p->comments, path_of(c->p, c->item), c->item->path_len, xa->name, xa->value,
				  xa->size);
}

/* In an order that does not depend on how the image stores them. */
static void add_xattrs(struct sums_pack *p, struct lane *lane, const struct sums_item *item)
{
	struct comment c = { p, item };

	p->comments.len = 0;
	erofs_pack_xattrs(&p->pack, lane, &item->ino, add_comment, &c);
	if (!p->pack.err && p->comments.len)
		p->pack.err = erofs_sums_sorted(&p->pack.out, &p->comments);
}

static void fill_mtree(const struct sums *s, struct sums_pack *p, struct lane *lane, struct sums_item *item)
{
	struct pack *pack = &p->pack;
	char target[ARCHIVE_TARGET];
	bool is_link = S_ISLNK(item->ino.mode);

	if (is_link)
		item->failed = erofs_archive_target(lane, &item->ino, target);
	pack->err = erofs_sums_mtree_line(&pack->out, path_of(p, item), item,
					  is_link && !item->failed ? target : NULL);
	if (s->xattrs && !pack->err)
		add_xattrs(p, lane, item);
	if (item->value.has_verity && !pack->err)
		pack->err = erofs_sums_comment(&pack->out, path_of(p, item), item->path_len, NULL,
					       item->value.verity, erofs_sha_size(s->params.kind));
}

static void fill_items(const struct sums *s, struct sums_pack *p, struct lane *lane)
{
	struct pack *pack = &p->pack;
	size_t i;

	for (i = 0; i < p->count && !pack->err && !erofs_job_is_cancelled(s->archive.job); i++) {
		struct sums_item *item = &p->items[i];

		if (S_ISREG(item->ino.mode) && !item->known)
			pack->err = hash_file(s, lane, item);
		if (pack->err)
			return;
		if (s->mtree)
			fill_mtree(s, p, lane, item);
		else if (!item->failed)
			pack->err = erofs_sums_digest_line(s, &pack->out, path_of(p, item), item);
		erofs_lane_count(lane, 1, 0);
	}
}

/* ---- ranges ---- */

static int add_run(struct sums_pack *p, struct verity_hasher *h, struct lane *lane, const struct run *run)
{
	const struct erofs_inode *ino = &p->items[0].ino;
	struct verity_part *part = &p->part;

	if (run->la != part->pos || run->la > ino->size)
		return report_end(lane, ino, part->pos);
	p->pack.err = erofs_verity_part_add(part, h, run->data, min_u64(run->len, ino->size - run->la));
	erofs_lane_count(lane, 0, run->len);
	return p->pack.err;
}

static void fill_range(const struct sums *s, struct sums_pack *p, struct lane *lane)
{
	struct sums_lane *l = &s->lanes[erofs_lane_index(lane)];
	struct pack *pack = &p->pack;
	bool first = true;
	struct stream st;
	struct run run;
	int r;

	pack->err = p->zeros ? 0 : erofs_sums_lane_init(s, l);
	if (pack->err || p->zeros)
		return;
	r = erofs_stream_begin(&st, lane, &p->items[0].ino, pack->from, pack->to);
	while (!r && (r = erofs_stream_next(&st, &run)) > 0) {
		if (first)
			erofs_verity_part_begin(&p->part, pack->la = run.la);
		first = false;
		r = erofs_job_is_cancelled(s->archive.job) ? -ECANCELED : add_run(p, &l->hasher, lane, &run);
	}
	p->items[0].failed = r < 0;
	if (!pack->err && l->hasher.failed)
		pack->err = -EIO;
}

void erofs_sums_fill(struct archive *a, struct lane *lane, struct pack *pack)
{
	if (pack->is_range)
		fill_range((const struct sums *)a, (struct sums_pack *)pack, lane);
	else
		fill_items((const struct sums *)a, (struct sums_pack *)pack, lane);
}
