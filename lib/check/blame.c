// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Whose data is damaged: a second walk, run only if there is damage, that reports each file whose
 * extents touch a damaged range, also through the packed file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "check/check_priv.h"

/* A damaged range of the packed file, in its bytes. */
struct packed_damage {
	uint64_t la, len;
	const struct damage *why;	/* NULL: the packed file's own map is broken there */
};

struct blame {
	struct check *check;
	struct packed_damage *packed;	/* sorted by la */
	size_t npacked;
};

/* First damage that ends behind @addr. The longest range is a pcluster: some MiB at most. */
static size_t first_damage(const struct damage_list *d, uint64_t addr)
{
	size_t i = 0;

	while (i < d->count && d->list[i].addr + d->list[i].len <= addr)
		i++;
	return i;
}

static void report_damage(struct check *c, uint64_t nid, uint64_t la, const struct extent *ext,
			  const struct damage *d)
{
	const struct image_device *dev = &c->img->devs[ext->dev];
	uint64_t pa = d->addr - dev->linear;
	const char *what = ext->kind == EXTENT_RAW ? "plain data" : erofs_codec_name(ext->alg);

	if (d->err != -EUCLEAN)
		erofs_diag_fail(c->diag, d->err, AT(nid, la), "%s at 0x%" PRIx64 " of device %u, %" PRIu64
				" bytes for %" PRIu64 ": %s", what, pa, ext->dev, ext->plen, ext->len,
				d->text);
	else
		erofs_diag_report(c->diag, d->id, d->err, AT(nid, la), "%s pcluster at 0x%" PRIx64
				  " of device %u, %" PRIu64 " bytes for %" PRIu64 ": %s", what, pa,
				  ext->dev, ext->plen, ext->len, d->text);
}

static void blame_stored(struct blame *b, const struct erofs_inode *ino, const struct extent *ext)
{
	struct check *c = b->check;
	uint64_t addr = c->img->devs[ext->dev].linear + ext->pa;
	size_t i;

	for (i = first_damage(&c->damage, addr); i < c->damage.count; i++) {
		const struct damage *d = &c->damage.list[i];

		if (d->addr >= addr + ext->plen)
			break;
		/* faults of a pcluster belong to those who use that pcluster */
		if (d->id == EROFS_FINDING_DATA_DECODE && ext->kind == EXTENT_ENCODED && d->addr != addr)
			continue;
		report_damage(c, ino->nid, ext->la, ext, d);
	}
}

static void blame_fragment(struct blame *b, const struct erofs_inode *ino, const struct extent *ext)
{
	size_t i;

	for (i = 0; i < b->npacked; i++) {
		const struct packed_damage *p = &b->packed[i];

		if (p->la >= ext->pa + ext->len || p->la + p->len <= ext->pa)
			continue;
		erofs_diag_damage(b->check->diag, DATA_DECODE, AT(ino->nid, ext->la),
				  "its %" PRIu64 " bytes at %" PRIu64 " of the packed file are damaged: %s",
				  ext->len, ext->pa, p->why ? p->why->text : "that part cannot be read right");
	}
}

static void blame_inode(struct blame *b, struct lane *lane, const struct erofs_inode *ino)
{
	struct extent ext;
	struct map map;

	if (!S_ISREG(ino->mode) && !S_ISDIR(ino->mode) && !S_ISLNK(ino->mode))
		return;
	if (erofs_map_begin(&map, ino, erofs_lane_metabuf(lane), false))
		return;
	map.absent_ok = !b->check->data;
	while (!erofs_job_is_cancelled(b->check->job) && erofs_map_next(&map, &ext) > 0) {
		if (ext.kind == EXTENT_FRAGMENT)
			blame_fragment(b, ino, &ext);
		else if (ext.kind != EXTENT_HOLE && !ext.meta && !ext.absent)
			blame_stored(b, ino, &ext);
	}
}

static int add_packed(struct blame *b, uint64_t la, uint64_t len, const struct damage *why)
{
	struct packed_damage *grown;

	if (b->npacked == DAMAGE_MAX)
		return 0;
	grown = realloc(b->packed, (b->npacked + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	b->packed = grown;
	b->packed[b->npacked++] = (struct packed_damage){ .la = la, .len = len, .why = why };
	return 0;
}

/* Which bytes of the packed file do the damaged ranges hold? */
static int find_packed_damage(struct blame *b)
{
	struct check *c = b->check;
	const struct erofs_inode *packed = c->img->super->packed;
	struct extent ext;
	struct map map;
	int err = 0;

	if (!packed)
		return 0;
	if (c->packed_broken < packed->size)
		err = add_packed(b, c->packed_broken, packed->size - c->packed_broken, NULL);
	if (err || erofs_map_begin(&map, packed, erofs_lane_metabuf(erofs_job_lane(c->job, 0)), false))
		return err;
	while (!err && erofs_map_next(&map, &ext) > 0) {
		uint64_t addr = c->img->devs[ext.dev].linear + ext.pa;
		size_t i;

		if (ext.kind == EXTENT_HOLE || ext.meta)
			continue;
		for (i = first_damage(&c->damage, addr); !err && i < c->damage.count; i++) {
			if (c->damage.list[i].addr >= addr + ext.plen)
				break;
			err = add_packed(b, ext.la, ext.len, &c->damage.list[i]);
		}
	}
	return err;
}

static int blame_enter(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	blame_inode(w->arg, lane, &dir->ino);
	return 0;
}

static void blame_entry(struct walk *w, struct lane *lane, struct walk_dir *dir,
			const struct dirent_view *de, const struct erofs_inode *ino)
{
	(void)dir;
	(void)de;
	blame_inode(w->arg, lane, ino);
}

int erofs_check_blame(struct check *c, const struct erofs_inode *start)
{
	static const struct walk_ops ops = { .enter = blame_enter, .entry = blame_entry };
	struct blame b = { .check = c };
	struct walk w = { .job = c->job, .diag = c->diag, .ops = &ops, .arg = &b };
	struct lane *lane = erofs_job_lane(c->job, 0);
	int err;

	if (!c->damage.count && c->packed_broken == UINT64_MAX)
		return 0;
	err = find_packed_damage(&b);
	if (!err && c->img->super->packed)
		blame_inode(&b, lane, c->img->super->packed);
	if (!err && c->img->super->metabox)
		blame_inode(&b, lane, c->img->super->metabox);
	if (!err && S_ISDIR(start->mode))
		err = erofs_walk_run(&w, start);
	else if (!err)
		blame_inode(&b, lane, start);
	free(b.packed);
	return err;
}
