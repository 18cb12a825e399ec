// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The owner's side of digests: what goes into packs, and what of them is written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "archive/sums_priv.h"

#define ITEM_COST (sizeof(struct sums_item) + 512)	/* and its line */
#define MAX_ITEMS 256

/* ---- delivery ---- */

static const char *path_of(const struct sums_pack *p, const struct sums_item *item)
{
	return (const char *)p->pack.names.data + item->path;
}

static void note_item(struct sums *s, const struct sums_pack *p, const struct sums_item *item)
{
	const struct sums_value *v = &item->value;

	/* whatever the link count says: a damaged one must not make us hash a file a million times */
	if (v->has_sha || v->has_verity)
		s->known[v->nid % SUMS_KNOWN] = *v;
	s->res->entries += s->mtree || !item->failed;
	if (!item->failed)
		return;
	s->res->failed++;
	erofs_diag_warn_path(s->archive.diag, item->path_len ? path_of(p, item) : ".", !s->mtree ?
			     "left out: cannot be read" : S_ISLNK(item->ino.mode) ?
			     "without its target in the manifest: cannot be read" :
			     "without a digest in the manifest: cannot be read");
}

static int deliver_items(struct sums *s, struct sums_pack *p)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		note_item(s, p, &p->items[i]);
	return erofs_archive_put(&s->archive, p->pack.out.data, p->pack.out.len);
}

/* All ranges were there: the line. */
static int end_large(struct sums *s, struct sums_pack *p)
{
	struct sums_item *item = &p->items[0];
	int err;

	item->failed = s->broken || s->tree.size != item->ino.size;
	if (item->failed && !s->broken)
		erofs_diag_damage(s->archive.diag, EXTENT_RANGE, AT_NID(item->ino.nid),
				  "extents do not cover the file");
	if (!item->failed) {
		err = erofs_verity_final(&s->tree, item->value.verity);
		if (!err)
			err = erofs_sums_digest_line(s, &p->pack.out, path_of(p, item), item);
		if (err)
			return erofs_diag_fail(s->archive.diag, err, AT_NOWHERE, "cannot make the digests");
		item->value.has_verity = true;
	}
	return deliver_items(s, p);
}

/* Ranges come in order; what one lacks shows when the next one begins behind it. */
static int deliver_range(struct sums *s, struct sums_pack *p)
{
	const struct pack *pack = &p->pack;

	if (!pack->from) {
		s->broken = false;
		erofs_verity_begin(&s->tree, &s->lanes[0].hasher);
	}
	s->broken |= p->items[0].failed;
	if (!s->broken && p->zeros) {
		s->broken = pack->from != s->tree.size;
		erofs_verity_add_zeros(&s->tree, p->zeros);
	} else if (!s->broken && p->part.pos > pack->la) {
		/* a range within an extent that began in front of it is empty */
		s->broken = pack->la != s->tree.size;
		erofs_verity_add_part(&s->tree, &p->part);
	}
	return pack->to == p->items[0].ino.size ? end_large(s, p) : 0;
}

static int deliver(struct archive *a, struct pack *pack)
{
	struct sums_pack *p = (struct sums_pack *)pack;
	struct sums *s = (struct sums *)a;

	return pack->is_range ? deliver_range(s, p) : deliver_items(s, p);
}

/* ---- gathering ---- */

static void reset_pack(struct pack *pack)
{
	struct sums_pack *p = (struct sums_pack *)pack;

	if (p->comments.room > ARCHIVE_KEEP)
		erofs_tarbuf_free(&p->comments);
	p->count = 0;
	p->contents = p->zeros = 0;
	erofs_verity_part_begin(&p->part, 0);
}

static void free_pack(struct pack *pack)
{
	struct sums_pack *p = (struct sums_pack *)pack;

	erofs_tarbuf_free(&p->comments);
	erofs_verity_part_fini(&p->part);
	free(p->items);
}

static int add_item(struct sums *s, struct sums_pack *p, const struct sums_item *item, const char *path)
{
	struct tarbuf *names = &p->pack.names;
	struct sums_item *at = erofs_pack_grow(&s->archive, p->items, p->count, &p->room, sizeof(*p->items));
	int err;

	if (!at)
		return -ENOMEM;
	p->items = at;
	at += p->count;
	*at = *item;
	at->path = names->len;
	err = erofs_tarbuf_add(names, path, item->path_len);
	if (!err)
		err = erofs_tarbuf_add(names, "", 1);	/* messages need an end */
	if (err)
		return erofs_diag_fail(s->archive.diag, err, AT_NOWHERE, "no memory for the %s", s->archive.what);
	p->count++;
	p->pack.parcel.bytes += ITEM_COST + 5 * item->path_len;
	if (S_ISLNK(item->ino.mode))
		p->pack.parcel.bytes += 4 * (size_t)item->ino.size;
	return 0;
}

/* The hole that begins at or in front of @at: bytes of it behind @at, 0: there is none. */
static uint64_t hole_at(const struct sums *s, const struct erofs_inode *ino, uint64_t at)
{
	struct metabuf *mb = erofs_lane_metabuf(erofs_job_lane(s->archive.job, 0));
	struct extent ext;
	struct map map;

	/* what is wrong there the range itself will report */
	if (erofs_map_begin(&map, ino, mb, false) || (at && erofs_map_seek(&map, at)) ||
	    erofs_map_next(&map, &ext) <= 0 || ext.kind != EXTENT_HOLE || ext.la > at)
		return 0;
	return min_u64(ext.la + ext.len, ino->size) - at;
}

/* A large file, a pack for each range; a hole that reaches over a range is one. */
static int send_ranges(struct sums *s, const struct sums_item *item, const char *path)
{
	unsigned int bits = s->params.block_bits;
	size_t cost = (size_t)(SUMS_RANGE >> bits) * SHA_MAX_SIZE + ((size_t)2 << bits) + ITEM_COST;
	struct archive *a = &s->archive;
	uint64_t at = 0, len;
	int err = erofs_pack_send_open(a);

	for (; at < item->ino.size && !err; at += len) {
		struct sums_pack *p = (struct sums_pack *)erofs_pack_new(a);
		uint64_t hole = hole_at(s, &item->ino, at);

		if (!p)
			return -ENOMEM;
		err = add_item(s, p, item, path);
		if (err) {
			erofs_pack_free(a, &p->pack);
			return err;
		}
		len = min_u64(SUMS_RANGE, item->ino.size - at);
		if (hole > len)
			p->zeros = len = hole;
		err = erofs_pack_send_range(a, &p->pack, at, at + len, cost);
	}
	return err;
}

/* Nothing is hashed that somebody knows, nor for further names of an inode whose digest was delivered. */
static void recall(const struct sums *s, struct sums_item *item)
{
	const struct sums_value *v = &s->known[item->ino.nid % SUMS_KNOWN];
	const uint8_t *sha = s->find ? s->find(s->find_arg, item->ino.nid) : NULL;

	item->value.nid = item->ino.nid;
	if (sha && !s->want_verity) {
		memcpy(item->value.sha, sha, SHA256_SIZE);
		item->known = item->value.has_sha = true;
		return;
	}
	if (v->nid != item->ino.nid || !(v->has_sha || v->has_verity))
		return;
	item->known = true;
	item->value = *v;
}

/* Names are counted as long as that fits the memory limit: a check, of which the lines say nothing. */
static void count_link(struct sums *s, const struct erofs_inode *ino)
{
	const struct arch_link *first;

	if (s->links_full)
		return;
	s->links_full = erofs_archlinks_claim(&s->archive.links, ino, "", 0, &first);
	s->archive.cut |= s->links_full;
	erofs_archlinks_seen(&s->archive.links, ino->nid);
}

static int add(struct archive *a, const struct sorted_entry *e)
{
	struct sums *s = (struct sums *)a;
	struct sums_item item = { .ino = e->ino };
	const char *path = erofs_archive_path(a, e, &item.path_len);
	struct sums_pack *p;
	int err;

	if (!S_ISDIR(e->ino.mode) && e->ino.nlink > 1)
		count_link(s, &e->ino);
	if (!s->mtree && !S_ISREG(e->ino.mode))
		return 0;
	if (S_ISREG(e->ino.mode))
		recall(s, &item);
	if (!s->want_sha && !item.known && e->ino.size > SUMS_RANGE &&
	    erofs_archive_is_mappable(erofs_job_lane(a->job, 0), &e->ino))
		return send_ranges(s, &item, path);
	if (!a->open)
		a->open = erofs_pack_new(a);
	p = (struct sums_pack *)a->open;
	err = p ? add_item(s, p, &item, path) : -ENOMEM;
	if (err)
		return err;
	if (S_ISREG(e->ino.mode) && !item.known)
		p->contents += min_u64(e->ino.size, ARCHIVE_BATCH);
	return p->contents >= ARCHIVE_BATCH || p->count == MAX_ITEMS ? erofs_pack_send_open(a) : 0;
}

/* ---- the run ---- */

static int run(struct sums *s)
{
	struct archive *a = &s->archive;
	int err = erofs_archive_begin(a);

	if (err)
		return err;
	s->nlanes = erofs_job_lanes(a->job);
	s->lanes = calloc(s->nlanes, sizeof(*s->lanes));
	s->known = calloc(SUMS_KNOWN, sizeof(*s->known));
	if (!s->lanes || !s->known || erofs_sums_lane_init(s, &s->lanes[0]))
		return erofs_diag_fail(a->diag, -ENOMEM, AT_NOWHERE, "no memory for the %s", a->what);
	if (s->mtree)
		err = erofs_archive_put(a, "#mtree\n", 7);
	if (!err)
		err = erofs_archive_run(a);
	return err ? err : a->damaged || s->res->failed ? -EUCLEAN : 0;
}

static int run_all(struct sums *s, struct erofs_digest_result *ret_result)
{
	static const struct archive_ops ops = { sizeof(struct sums_pack), reset_pack, free_pack, add,
						erofs_sums_fill, deliver };
	struct erofs_digest_result unused;
	unsigned int i;
	int err;

	s->res = ret_result ? ret_result : &unused;
	*s->res = (struct erofs_digest_result){ 0 };
	if (!erofs_sha_is_there())
		return erofs_diag_fail(s->archive.diag, -EOPNOTSUPP, AT_NOWHERE, "no digests without libcrypto");
	s->archive.ops = &ops;
	err = run(s);
	s->res->output_failed = s->archive.output_failed;
	erofs_archive_end(&s->archive);
	for (i = 0; s->lanes && i < s->nlanes; i++)
		erofs_sums_lane_fini(&s->lanes[i]);
	erofs_verity_fini(&s->tree);
	free(s->lanes);
	free(s->known);
	return err;
}

/* 0, -EINVAL */
static int set_params(const struct erofs_digest_options *o, struct sums *s)
{
	unsigned int block = o->fsverity_block ? o->fsverity_block : 4096;

	if (block < VERITY_MIN_BLOCK || block > VERITY_MAX_BLOCK || (block & (block - 1)) ||
	    o->salt_size > VERITY_MAX_SALT || o->algorithm > EROFS_DIGEST_FSVERITY_SHA512)
		return -EINVAL;
	s->want_verity = o->algorithm == EROFS_DIGEST_FSVERITY || o->algorithm == EROFS_DIGEST_FSVERITY_SHA512;
	s->want_sha = !s->want_verity;
	s->kind = o->algorithm == EROFS_DIGEST_SHA256 || o->algorithm == EROFS_DIGEST_FSVERITY ? SHA_256 : SHA_512;
	s->params.kind = s->kind;
	s->params.block_bits = (unsigned int)__builtin_ctz(block);
	s->params.salt_size = (unsigned int)o->salt_size;
	if (o->salt_size)
		memcpy(s->params.salt, o->salt, o->salt_size);
	return 0;
}

static uint64_t start_of(const struct erofs_image *img, int has_nid, uint64_t nid)
{
	return has_nid ? nid : img->super->info.root_nid;
}

int erofs_digest_files(struct erofs_image *img, struct erofs_engine *eng,
		       const struct erofs_digest_options *options, struct erofs_diag *diag,
		       struct erofs_digest_result *ret_result)
{
	auto_free struct sums *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->archive = (struct archive){
		.img = img, .eng = eng, .diag = diag, .what = "digests", .select = options->select,
		.nid = start_of(img, options->has_nid, options->nid), .name = options->name, .fd = options->fd,
		.write = options->write, .write_arg = options->write_arg,
	};
	err = set_params(options, s);
	return err ? err : run_all(s, ret_result);
}

int erofs_sums_to_mtree(struct erofs_image *img, struct erofs_engine *eng,
			const struct erofs_mtree_options *options, sums_find_fn find, void *find_arg,
			struct erofs_diag *diag, struct erofs_digest_result *ret_result)
{
	auto_free struct sums *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->archive = (struct archive){
		.img = img, .eng = eng, .diag = diag, .what = "manifest", .select = options->select,
		.nid = start_of(img, options->has_nid, options->nid), .name = options->name, .fd = options->fd,
		.write = options->write, .write_arg = options->write_arg,
	};
	s->mtree = s->want_sha = true;
	s->xattrs = s->want_verity = options->xattrs;
	s->kind = s->params.kind = SHA_256;
	s->params.block_bits = 12;
	s->find = find;
	s->find_arg = find_arg;
	return run_all(s, ret_result);
}

int erofs_to_mtree(struct erofs_image *img, struct erofs_engine *eng,
		   const struct erofs_mtree_options *options, struct erofs_diag *diag,
		   struct erofs_digest_result *ret_result)
{
	return erofs_sums_to_mtree(img, eng, options, NULL, NULL, diag, ret_result);
}
