// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* One inode: symlink target, xattrs, extents. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "check/check_priv.h"

#define SYMLINK_MAX 4095	/* bytes; longer ones were refused when the inode was loaded */

static void check_symlink(struct check *c, struct lane *lane, const struct erofs_inode *ino)
{
	char target[SYMLINK_MAX];
	const char *nul;

	if (!ino->size || ino->size > sizeof(target) || erofs_lane_read(lane, ino, 0, target, ino->size))
		return;
	nul = memchr(target, 0, ino->size);
	if (nul)
		erofs_diag_damage(c->diag, SYMLINK_TARGET, AT(ino->nid, (uint64_t)(nul - target)),
				  "a NUL byte in the symlink's target");
}

static void collect(struct check *c, struct lane *lane, const struct extent *ext)
{
	struct check_lane *cl = &c->lanes[erofs_lane_index(lane)];
	struct pcref ref = { .addr = c->img->devs[ext->dev].linear + ext->pa };

	ref.word = ext->kind == EXTENT_RAW ? PCREF_RAW | ext->len :
					     pcref_pack(ext->alg, ext->partial, ext->plen, ext->len);
	if (erofs_refs_add(&cl->refs, &c->window, &ref)) {
		erofs_diag_fail(c->diag, -ENOMEM, AT_NOWHERE, "no memory to note pclusters");
		erofs_job_cancel(c->job);
	}
}

/* Map all of a file. Return: 0, or what mapping said (reported), with the offset of the trouble. */
static int check_extents(struct check *c, struct lane *lane, const struct erofs_inode *ino, bool first,
			 uint64_t *ret_la)
{
	struct check_lane *cl = &c->lanes[erofs_lane_index(lane)];
	struct extent ext;
	struct map map;
	int r = erofs_map_begin(&map, ino, erofs_lane_metabuf(lane), first);

	map.absent_ok = !c->data;
	while (!r && !erofs_job_is_cancelled(c->job)) {
		r = erofs_map_next(&map, &ext);
		if (r <= 0)
			break;
		r = 0;
		if (ext.kind != EXTENT_RAW && ext.kind != EXTENT_ENCODED)
			continue;
		if (first && erofs_inode_is_compressed(ino))
			cl->stored_bytes += ext.plen;
		if (!ext.meta && !ext.absent)
			collect(c, lane, &ext);
		if (!ext.meta || !first)
			continue;
		if (c->data)	/* reported there; the next extent may be sound */
			(void)erofs_lane_verify_extent(lane, ino, &ext);
	}
	*ret_la = map.next_la;
	return r;
}

static bool has_contents(const struct erofs_inode *ino)
{
	return S_ISREG(ino->mode) || S_ISDIR(ino->mode) || S_ISLNK(ino->mode);
}

static void count_inode(struct check_lane *cl, const struct erofs_inode *ino)
{
	cl->inodes++;
	cl->directories += S_ISDIR(ino->mode);
	cl->files += S_ISREG(ino->mode);
	if (!has_contents(ino))
		return;
	cl->decoded_bytes += ino->size;
	if (!erofs_inode_is_compressed(ino))
		cl->stored_bytes += ino->size;
}

/* @first: the first pass, in which what the inode alone shows is reported and counted. */
static void check_inode(struct check *c, struct lane *lane, const struct erofs_inode *ino, bool first)
{
	uint64_t la;

	if (first) {
		struct xattr_iter *xattrs = erofs_lane_xattrs(lane);

		count_inode(&c->lanes[erofs_lane_index(lane)], ino);
		erofs_lane_count(lane, 1, 0);
		if (!xattrs)
			erofs_diag_fail(c->diag, -ENOMEM, AT_NID(ino->nid), "no memory for xattrs");
		else if (ino->xattr_size)
			(void)erofs_xattr_check(xattrs, ino);
		if (S_ISLNK(ino->mode))
			check_symlink(c, lane, ino);
		if (c->digests && S_ISREG(ino->mode) && ino->xattr_size)
			erofs_check_digest(c, lane, ino);
	}
	if (has_contents(ino))
		(void)check_extents(c, lane, ino, first, &la);
}

void erofs_check_visit(struct check *c, struct lane *lane, const struct erofs_inode *ino)
{
	/* later passes only count names and collect references: the first has told what it saw */
	if (erofs_links_add(&c->links, ino->nid, ino->nlink) != LINKS_SEEN)
		check_inode(c, lane, ino, !c->pass);
}

void erofs_check_visit_dir(struct check *c, struct lane *lane, const struct erofs_inode *ino)
{
	check_inode(c, lane, ino, !c->pass);
}

void erofs_check_visit_special(struct check *c, struct lane *lane)
{
	const struct super *super = c->img->super;
	uint64_t la;

	if (super->metabox)
		(void)check_extents(c, lane, super->metabox, !c->pass, &la);
	if (super->packed && check_extents(c, lane, super->packed, !c->pass, &la) == -EUCLEAN)
		c->packed_broken = la;
}
