// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What the workers do: read files and segments of files, compress them, decide what becomes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hash.h"
#include "write/file_priv.h"

#define RAW_BYTES 24			/* a file of up to so many is smaller beside its inode than in a fragment */

static void close_contents(struct contents *c)
{
	if (c->owned && c->fd >= 0)
		close(c->fd);
}

static int fail_file(const struct writer *w, const struct node *node, int err, const char *what)
{
	auto_free char *path = erofs_node_path(node);

	return erofs_diag_fail_path(w->diag, err, path ? path : "?", "%s", what);
}

/* What was read must be one state of the file. */
static int check_unchanged(const struct writer *w, const struct node *node, const struct contents *c)
{
	auto_free char *path = NULL;
	struct stat st;

	if (!c->owned || fstat(c->fd, &st))
		return 0;
	if ((uint64_t)st.st_size != node->size)
		return fail_file(w, node, -EIO, "changed its size while it was read");
	if (contents_stamp(&st) == c->stamp)
		return 0;
	path = erofs_node_path(node);
	erofs_diag_warn_path(w->diag, path ? path : "?", "changed while it was read");
	return 0;
}

static int read_item(struct writer *w, struct zlane *z, struct item *it, uint8_t *dst)
{
	auto_call(close_contents) struct contents c = { .fd = -1 };
	int err = w->feed.ops->open(&w->feed, it->node, &c);
	ssize_t got;

	if (err)
		return err;
	got = erofs_fdio_pread(c.fd, dst, it->len, c.off + it->off);
	if (got < 0)
		return fail_file(w, it->node, (int)got, "cannot read");
	/* a shorter file changed under our hands, and the image would lie */
	if ((size_t)got != it->len)
		return fail_file(w, it->node, -EIO, "became shorter while it was read");
	err = erofs_digest_whole(w, z, it, dst);
	return err || !it->last ? err : check_unchanged(w, it->node, &c);
}

static int keep_raw(struct item *it, const uint8_t *data, size_t len)
{
	it->raw = malloc(len);
	if (!it->raw)
		return -ENOMEM;
	memcpy(it->raw, data, len);
	return 0;
}

static int keep_fragment(struct item *it, const uint8_t *data)
{
	it->hash = erofs_fragment_hash(data, it->out.fragment);
	return keep_raw(it, data, it->out.fragment);
}

bool erofs_takes_tail(const struct writer *w, const struct node *node, size_t tail)
{
	if (!tail || (w->o->no_inline_data && S_ISREG(node->mode)))
		return false;
	return erofs_inode_head(node) + tail <= w->blksz || tail <= w->blksz - 64;
}

/* What lies in the image as it is lies there in chunks, unless it is so small that it fits beside its inode. */
static int cut_raw(const struct writer *w, struct item *it)
{
	bool beside = it->node->size < w->blksz && erofs_takes_tail(w, it->node, it->len);

	it->how = HOW_RAW;
	if (!w->chunks || (beside && !w->o->blob))
		return 0;
	it->how = HOW_CHUNKS;
	return erofs_chunks_print(w, it->raw, it->len, &it->prints);
}

static uint64_t raw_cost(const struct writer *w, const struct node *node)
{
	size_t tail = (size_t)(node->size % w->blksz);

	return node->size - tail + (erofs_takes_tail(w, node, tail) ? tail : tail ? w->blksz : 0);
}

static bool has_twins(const struct zout *out)
{
	size_t i;

	for (i = 0; i < out->count; i++)
		if (out->ext[i].twin)
			return true;
	return false;
}

/* Whole files only: of a large one nothing is known before its last segment. */
static bool pays(const struct writer *w, const struct item *it)
{
	const struct zout *out = &it->out;

	if (out->fragment || !it->first || !it->last || has_twins(out))
		return true;
	return out->blocks.len + out->beside.len + erofs_zmap_estimate(w, it->len) < raw_cost(w, it->node);
}

/* The next item gets another buffer: cheaper than a copy. */
static void give_input(struct zlane *z, struct item *it)
{
	it->whole = steal(z->input);
	z->input_room = 0;
}

static int compress_item(struct writer *w, struct zlane *z, struct item *it, uint32_t serial)
{
	struct zjob job = { .p = &it->params, .blksz = w->blksz, .src = z->input, .len = it->len, .last = it->last,
			    .fragments = w->fragments, .twins = w->twins, .serial = serial,
			    .partial_costs = erofs_zmap_partial_costs(w, it->node->size),
			    .beside = w->o->ztailpacking && !w->o->encoded_extents && !w->o->no_inline_data };
	int err = erofs_zenc_run(z, &job, &it->out);

	if (err)
		return err;
	if (pays(w, it)) {
		it->how = HOW_CODED;
		if (it->out.fragment == it->len && it->first)
			it->how = HOW_FRAGMENT;
		if (it->out.fragment)
			err = keep_fragment(it, z->input + it->len - it->out.fragment);
		if (erofs_digest_is_chained(w, it))
			give_input(z, it);
		return err;
	}
	erofs_zout_free(&it->out);
	err = keep_raw(it, z->input, it->len);
	return err ? err : cut_raw(w, it);
}

static int read_raw(struct writer *w, struct zlane *z, struct item *it, enum how how)
{
	int err;

	it->how = how;
	it->raw = malloc(it->len);
	err = it->raw ? read_item(w, z, it, it->raw) : -ENOMEM;
	if (!err && how == HOW_FRAGMENT)
		it->hash = erofs_fragment_hash(it->raw, it->len);
	return err || how != HOW_RAW ? err : cut_raw(w, it);
}

static int make_room(struct zlane *z, size_t len)
{
	if (z->input_room >= len)
		return 0;
	free(z->input);
	z->input_room = 0;
	z->input = malloc(len);
	if (!z->input)
		return -ENOMEM;
	z->input_room = len;
	return 0;
}

static int fill_item(struct writer *w, struct zlane *z, struct item *it, uint32_t serial)
{
	int err;

	if (!it->len)
		return 0;
	if (!it->compress || (w->fragments && it->node->size <= RAW_BYTES))
		return read_raw(w, z, it, HOW_RAW);
	if (w->o->all_fragments && w->fragments)
		return read_raw(w, z, it, HOW_FRAGMENT);
	err = make_room(z, it->len);
	if (!err)
		err = read_item(w, z, it, z->input);
	return err ? err : compress_item(w, z, it, serial);
}

int erofs_zlane_of(struct writer *w, struct lane *lane, struct zlane **ret)
{
	void **slot = erofs_lane_slot(lane);
	struct zlane *z = *slot;
	int err = z ? 0 : erofs_zlane_new(&w->z, &z);

	*slot = *ret = z;
	return err;
}

void erofs_batch_fill(struct lane *lane, struct parcel *parcel)
{
	struct batch *b = (struct batch *)parcel;
	struct zlane *z;
	size_t i;

	b->err = erofs_zlane_of(b->w, lane, &z);
	for (i = 0; !b->err && i < b->count && !erofs_job_is_cancelled(b->w->job); i++) {
		b->err = fill_item(b->w, z, &b->items[i], b->serial);
		erofs_lane_count(lane, b->items[i].last, b->items[i].len);
	}
}
