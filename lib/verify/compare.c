// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The owner's side: names go out in parcels; what is too much in the image comes at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "verify/verify_priv.h"

#define ITEM_COST (sizeof(struct compare_item) + 256)	/* and what is noted about it */
/*
 * An owner that runs far ahead opens folders which workers open again, in fresh memory: with this many parcels
 * comparing with a folder takes 0.93 of the time that it took without an end, and 24 of the 34 MiB.
 */
#define PARCELS_A_LANE 8
/* Shares of the state memory. A manifest with inode numbers and without link counts keeps all its paths. */
#define SOURCE_SHARE 2
#define IMAGE_SHARE 4
#define MARKS_SHARE 4

int erofs_compare_no_memory(const struct compare *c)
{
	return erofs_diag_fail(c->diag, -ENOMEM, AT_NOWHERE, "no memory for the comparison");
}

static const struct flight_ops flight_ops = { erofs_compare_fill, erofs_compare_deliver, erofs_compare_release };

/* ---- gathering ---- */

static int send_open(struct compare *c)
{
	struct compare_parcel *p = steal(c->open);

	c->open_bytes = 0;
	return p ? erofs_flight_send(&c->flight, &p->parcel) : 0;
}

int erofs_compare_make_path(struct tarbuf *path, const char *name)
{
	size_t len;
	int err = 0;

	for (; *name && !err; name += len + (name[len] == '/')) {
		len = strcspn(name, "/");
		if (!len || (len == 1 && *name == '.'))
			continue;
		if (len == 2 && !memcmp(name, "..", 2))
			return -EINVAL;
		if (path->len)
			err = erofs_tarbuf_add(path, "/", 1);
		if (!err)
			err = erofs_tarbuf_add(path, name, len);
	}
	if (!err)
		err = erofs_tarbuf_reserve(path, 1);
	if (!err)
		path->data[path->len] = '\0';
	return err;
}

static int add_path(struct compare_parcel *p, struct compare_item *at, const char *path, size_t len)
{
	int err = erofs_tarbuf_add(&p->names, "/", 1);

	at->path = p->names.len - 1;
	at->path_len = len + 1;
	if (!err)
		err = erofs_tarbuf_add(&p->names, path, len);
	return err ? err : erofs_tarbuf_add(&p->names, "", 1);
}

/* The record stands in facts with what it refers to behind it; whoever reads it copies it out. */
static int add_record(struct compare_parcel *p, struct compare_item *at, const struct wanted *w,
		      const struct tarbuf *buf)
{
	int err;

	at->record = p->facts.len;
	err = erofs_tarbuf_add(&p->facts, w, sizeof(*w));
	if (!err && buf)
		err = erofs_tarbuf_add(&p->facts, buf->data, buf->len);
	return err;
}

static int add_item(struct compare_parcel *p, const struct compare_item *item, const char *path, size_t len,
		    const struct wanted *w, const struct tarbuf *buf)
{
	struct compare_item *at;
	int err;

	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 16;
		struct compare_item *grown = realloc(p->items, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->items = grown;
		p->room = room;
	}
	at = &p->items[p->count];
	*at = *item;
	err = add_path(p, at, path, len);
	if (!err && w)
		err = add_record(p, at, w, buf);
	if (err)
		return err;
	p->count++;
	p->parcel.bytes += ITEM_COST + len + (w ? sizeof(*w) + (buf ? buf->len : 0) : 0);
	return 0;
}

/* What of the image has this path? */
static int look_up(struct compare *c, struct compare_item *item, const char *path, size_t len)
{
	uint64_t nid = 0;
	int r = erofs_imgnames_find(c->names, path, len, &nid, &item->again);

	if (r == -ENOMEM)
		return r;
	item->is_there = r != 0;
	item->broken = r < 0 || (r && erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(c->job, 0)), nid,
						       &item->ino));
	c->damaged |= item->broken;
	return 0;
}

/* Can the contents of a large file be compared range by range? Only fs-verity hashes blocks of their own. */
static bool is_for_ranges(const struct compare *c, const struct compare_item *item, const struct wanted *w)
{
	if (item->ino.size <= COMPARE_BATCH)
		return false;
	return c->source.in_ranges || (w && w->has_verity && !w->has_sha256 && !w->has_sha512 &&
				       (!(w->has & EROFS_COMPARE_SIZE) || w->size == item->ino.size));
}

static int note_ignored(struct compare *c, uint64_t nid)
{
	uint64_t *grown = realloc(c->ignored, (c->nignored + 1) * sizeof(*grown));

	if (!grown)
		return erofs_compare_no_memory(c);
	c->ignored = grown;
	c->ignored[c->nignored++] = nid;
	return 0;
}

/* From @at on: a hole of the image that reaches over a range is one range. */
static uint64_t hole_at(const struct compare *c, const struct erofs_inode *ino, uint64_t at)
{
	struct metabuf *mb = erofs_lane_metabuf(erofs_job_lane(c->job, 0));
	struct extent ext;
	struct map map;

	/* what is wrong there the range itself will report */
	if (erofs_map_begin(&map, ino, mb, false) || (at && erofs_map_seek(&map, at)) ||
	    erofs_map_next(&map, &ext) <= 0 || ext.kind != EXTENT_HOLE)
		return 0;
	return min_u64(ext.la + ext.len, ino->size) - at;
}

int erofs_compare_send_range(struct compare *c, const struct compare_item *item, const char *path, size_t len,
			     const struct wanted *w, const struct tarbuf *buf, uint64_t from, uint64_t to)
{
	int err = send_open(c);
	struct compare_parcel *p = err ? NULL : erofs_compare_new_parcel(c);

	if (err)
		return err;
	err = p ? add_item(p, item, path, len, w, buf) : -ENOMEM;
	if (err) {
		if (p)
			erofs_compare_free_parcel(p);
		return erofs_compare_no_memory(c);
	}
	if (c->source.hold)
		c->source.hold(c, &p->items[0]);
	p->is_range = true;
	p->from = from;
	p->to = to;
	p->last = to == item->ino.size;
	p->hashes = w && w->has_verity;
	return erofs_flight_send(&c->flight, &p->parcel);
}

/* The contents of a file that does not fit a parcel, a parcel for each range. */
static int send_ranges(struct compare *c, const struct compare_item *item, const char *path, size_t len,
		       const struct wanted *w, const struct tarbuf *buf)
{
	uint64_t at, n;
	int err = 0;

	for (at = 0; at < item->ino.size && !err; at += n) {
		n = max_u64(min_u64(COMPARE_BATCH, item->ino.size - at), hole_at(c, &item->ino, at));
		err = erofs_compare_send_range(c, item, path, len, w, buf, at, at + n);
	}
	return err;
}

int erofs_compare_look(struct compare *c, struct compare_item *item, const char *path, size_t len)
{
	int err = look_up(c, item, path, len);

	if (!err && item->ignore && item->is_there && !item->broken)
		err = note_ignored(c, item->ino.nid);
	return err;
}

static bool has_data(const struct compare *c, const struct compare_item *item)
{
	return item->is_there && !item->broken && !item->no_data && S_ISREG(item->ino.mode) &&
	       c->what & EROFS_COMPARE_DATA;
}

int erofs_compare_put(struct compare *c, const struct compare_item *item, const char *path, size_t len,
		      const struct wanted *w, const struct tarbuf *buf)
{
	if (!c->open)
		c->open = erofs_compare_new_parcel(c);
	if (!c->open || add_item(c->open, item, path, len, w, buf))
		return erofs_compare_no_memory(c);
	if (c->source.hold)
		c->source.hold(c, &c->open->items[c->open->count - 1]);
	c->open_bytes += has_data(c, item) && !item->in_ranges ? min_u64(item->ino.size, COMPARE_BATCH) : 0;
	return c->open_bytes >= COMPARE_BATCH || c->open->count == COMPARE_ITEMS ? send_open(c) : 0;
}

int erofs_compare_add(struct compare *c, const struct compare_item *known, const char *path, size_t len,
		      const struct wanted *w, const struct tarbuf *buf)
{
	struct compare_item item = *known;
	int err = erofs_compare_look(c, &item, path, len);

	if (err)
		return err;
	item.in_ranges = has_data(c, &item) && is_for_ranges(c, &item, w);
	err = erofs_compare_put(c, &item, path, len, w, buf);
	return !err && item.in_ranges ? send_ranges(c, &item, path, len, w, buf) : err;
}

/* ---- what the source does not have ---- */

static bool is_ignored(const struct compare *c, uint64_t nid)
{
	size_t i;

	for (i = 0; i < c->nignored; i++)
		if (c->ignored[i] == nid)
			return true;
	return false;
}

static int find_extra(struct compare *c, const struct erofs_inode *start)
{
	auto_free char *below = NULL;	/* it is ignored */
	struct sorted *names = NULL;
	const struct sorted_entry *e;
	char *path = NULL;
	int r, err = erofs_sorted_new(c->job, start, NULL, SORTED_NO_INODES, c->diag, &names);

	while (!err && (r = erofs_sorted_next(names, &e)) != 0) {
		if (r < 0) {
			err = r;
			break;
		}
		if (!e->len && is_ignored(c, e->nid))
			break;
		if (!e->len || (below && !strncmp(e->path, below, strlen(below)) && e->path[strlen(below)] == '/'))
			continue;
		if (erofs_imgnames_is_marked(c->names, e->parent_nid, e->off)) {
			if (is_ignored(c, e->nid)) {
				free(below);
				below = strdup(e->path);
				if (!below) {
					err = erofs_compare_no_memory(c);
					break;
				}
			}
			continue;
		}
		free(path);
		path = malloc(e->len + 2);
		if (!path) {
			err = erofs_compare_no_memory(c);
			break;
		}
		path[0] = '/';
		memcpy(path + 1, e->path, e->len + 1);
		erofs_compare_tell(c, &(struct erofs_difference){
			.path = path, .key = "extra", .found = erofs_compare_dirent(e->type), .wanted = "none",
			.nid = e->nid, .has_nid = 1,
		});
	}
	if (names)
		c->damaged |= erofs_sorted_damaged(names);
	erofs_sorted_free(names);
	free(path);
	return err;
}

/* ---- the run ---- */

static int set_up(struct compare *c, const struct erofs_inode *start)
{
	size_t bytes = erofs_job_state_bytes(c->job);
	unsigned int i, nlanes = erofs_job_lanes(c->job);

	c->in_source.max_bytes = bytes / SOURCE_SHARE;
	c->in_image.max_bytes = bytes / IMAGE_SHARE;
	c->lanes = calloc(nlanes, sizeof(*c->lanes));
	if (!c->lanes)
		return erofs_compare_no_memory(c);
	for (i = 0; i < nlanes; i++)
		c->lanes[i] = (struct compare_lane){ .c = c, .fd = -1 };
	if (erofs_imgnames_new(c->job, start, c->diag, bytes / MARKS_SHARE, &c->names))
		return erofs_compare_no_memory(c);
	return 0;
}

static int run(struct compare *c)
{
	uint64_t nid = c->opt->has_nid ? c->opt->nid : c->img->super->info.root_nid;
	struct erofs_inode start;
	int err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(c->job, 0)), nid, &start), landed;

	if (!err)
		err = set_up(c, &start);
	if (err)
		return err;
	erofs_flight_begin(&c->flight, c->job, erofs_job_flight_bytes(c->job), &flight_ops, c);
	erofs_flight_keep_to(&c->flight, PARCELS_A_LANE * erofs_job_lanes(c->job));
	err = c->source.run(c);
	if (!err)
		err = send_open(c);
	if (err)
		erofs_job_cancel(c->job);
	landed = erofs_flight_end(&c->flight);
	/* the first cause, not the cancel that followed it */
	if (!err || (err == -ECANCELED && landed))
		err = landed;
	if (!err && c->what & EROFS_COMPARE_NAMES)
		err = find_extra(c, &start);
	if (err)
		return err;
	c->res->complete = !c->damaged && !c->failed;
	return c->damaged || c->res->differences ? -EUCLEAN : c->failed ? -EIO : 0;
}

static void clean_up(struct compare *c, unsigned int nlanes)
{
	unsigned int i;

	if (c->open)
		erofs_compare_release(c, &c->open->parcel);
	while (c->spares) {
		struct compare_parcel *p = c->spares;

		c->spares = p->spare;
		erofs_compare_free_parcel(p);
	}
	for (i = 0; c->lanes && i < nlanes; i++)
		erofs_compare_lane_fini(&c->lanes[i]);
	if (c->source.free)
		c->source.free(c);
	free(c->lanes);
	free(c->ignored);
	erofs_verity_fini(&c->tree);
	erofs_imgnames_free(c->names);
	erofs_groups_fini(&c->in_source);
	erofs_groups_fini(&c->in_image);
}

static int open_source(struct compare *c, void *arg)
{
	(void)arg;
	switch (c->opt->kind) {
	case EROFS_COMPARE_DIR:
		return erofs_source_dir(c);
	case EROFS_COMPARE_MTREE:
		return erofs_source_mtree(c);
	case EROFS_COMPARE_TAR:
		return erofs_source_tar(c);
	default:
		return -EINVAL;
	}
}

int erofs_compare_with(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_compare_options *options,
		       int (*open)(struct compare *c, void *arg), void *arg, struct erofs_diag *diag,
		       struct erofs_compare_result *ret_result)
{
	struct erofs_compare_result unused;
	auto_free struct compare *c = calloc(1, sizeof(*c));
	unsigned int nlanes;
	int err;

	if (!c)
		return -ENOMEM;
	c->img = img;
	c->eng = eng;
	c->opt = options;
	c->diag = diag;
	c->what = options->what ? options->what : EROFS_COMPARE_ALL;
	c->res = ret_result ? ret_result : &unused;
	*c->res = (struct erofs_compare_result){ 0 };
	err = erofs_job_begin(eng, img, diag, &c->job);
	if (err)
		return err;
	nlanes = erofs_job_lanes(c->job);
	err = open(c, arg);
	if (!err)
		err = run(c);
	erofs_job_end(c->job);
	clean_up(c, nlanes);
	return err;
}

int erofs_compare(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_compare_options *options,
		  struct erofs_diag *diag, struct erofs_compare_result *ret_result)
{
	return erofs_compare_with(img, eng, options, open_source, NULL, diag, ret_result);
}
