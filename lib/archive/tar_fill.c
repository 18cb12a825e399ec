// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What workers do: entries to the bytes of the archive, ranges of large files to contents. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "archive/tar_priv.h"

static enum tar_type type_of(const struct tar_item *item)
{
	if (item->is_link)
		return TAR_LINK;
	switch (item->ino.mode & S_IFMT) {
	case S_IFDIR:
		return TAR_DIR;
	case S_IFLNK:
		return TAR_SYMLINK;
	case S_IFCHR:
		return TAR_CHAR;
	case S_IFBLK:
		return TAR_BLOCKDEV;
	case S_IFIFO:
		return TAR_FIFO;
	default:
		return TAR_FILE;
	}
}

/* The runs of a stream behind each other; the first one decides p->la. */
static int add_runs(struct stream *s, struct pack *p)
{
	bool first = true;
	struct run run;
	int err, r;

	while ((r = erofs_stream_next(s, &run)) > 0) {
		if (erofs_job_is_cancelled(p->parcel.flight->job))
			return -ECANCELED;
		if (first)
			p->la = run.la;
		first = false;
		err = erofs_tarbuf_reserve(&p->out, (size_t)run.len);
		if (err)
			return p->err = err;
		if (run.data)
			memcpy(p->out.data + p->out.len, run.data, (size_t)run.len);
		else
			memset(p->out.data + p->out.len, 0, (size_t)run.len);
		p->out.len += (size_t)run.len;
	}
	return r;
}

/* All contents of a file that fits a pack. */
static int add_contents(struct pack *p, struct lane *lane, const struct erofs_inode *ino)
{
	size_t size = (size_t)ino->size;
	struct stream s;
	int err = erofs_tarbuf_reserve(&p->out, size + TAR_BLOCK);

	if (err)
		return p->err = err;
	if (erofs_inode_is_compressed(ino)) {
		/* report also what is wrong with an index whose data can be read all the same */
		(void)erofs_archive_is_mappable(lane, ino);
		/* decoded straight to its place */
		err = erofs_lane_read(lane, ino, 0, p->out.data + p->out.len, size);
		p->out.len += size;
	} else {
		size_t before = p->out.len;

		err = size ? erofs_stream_begin(&s, lane, ino, 0, size) : 0;
		if (!err && size)
			err = add_runs(&s, p);
		if (!err && p->out.len - before != size)
			err = erofs_diag_damage(erofs_lane_diag(lane), EXTENT_RANGE, AT_NID(ino->nid),
						"extents end at %zu, the file at %zu", p->out.len - before, size);
	}
	if (!err)
		p->err = erofs_tarbuf_pad(&p->out);
	return err;
}

static int add_record(void *records, const struct xattr_view *xa)
{
	return erofs_tar_xattr(records, xa);
}

static int add_head(struct tar_pack *p, struct lane *lane, const struct tar_item *item, const char *link,
		    size_t link_len)
{
	struct tar_head head = {
		.path = (const char *)p->pack.names.data + item->path,
		.path_len = item->path_len,
		.link = link,
		.link_len = link_len,
		.type = type_of(item),
		.ino = &item->ino,
	};

	p->records.len = 0;
	if (!item->is_link)
		erofs_pack_xattrs(&p->pack, lane, &item->ino, add_record, &p->records);
	if (head.type == TAR_FILE)
		head.size = item->ino.size;
	if (!p->pack.err)
		p->pack.err = erofs_tar_put_head(&p->pack.out, &head, &p->records);
	return p->pack.err;
}

static int fill_item(struct tar_pack *p, struct lane *lane, struct tar_item *item)
{
	const struct erofs_inode *ino = &item->ino;
	char target[ARCHIVE_TARGET];
	int err;

	if (item->is_link)
		return add_head(p, lane, item, (const char *)p->pack.names.data + item->link, item->link_len);
	if (S_ISLNK(ino->mode)) {
		err = erofs_archive_target(lane, ino, target);
		return err ? err : add_head(p, lane, item, target, (size_t)ino->size);
	}
	err = add_head(p, lane, item, NULL, 0);
	if (!err && S_ISREG(ino->mode) && !item->contents_follow)
		err = add_contents(&p->pack, lane, ino);
	return err;
}

static void fill_items(struct tar_pack *p, struct lane *lane)
{
	struct tarbuf *out = &p->pack.out;
	size_t i;

	for (i = 0; i < p->count && !p->pack.err && !erofs_job_is_cancelled(p->pack.parcel.flight->job); i++) {
		struct tar_item *item = &p->items[i];

		item->off = out->len;
		item->err = fill_item(p, lane, item);
		if (item->err)
			out->len = item->off;
		item->len = out->len - item->off;
		erofs_lane_count(lane, 1, item->len);
	}
}

static void fill_range(struct tar_pack *p, struct lane *lane)
{
	struct pack *pack = &p->pack;
	struct stream s;
	int err;

	pack->la = pack->from;
	err = erofs_stream_begin(&s, lane, &p->items[0].ino, pack->from, pack->to);
	p->range_err = err ? err : add_runs(&s, pack);
	erofs_lane_count(lane, 0, pack->out.len);
}

void erofs_tar_fill(struct archive *a, struct lane *lane, struct pack *pack)
{
	(void)a;
	if (pack->is_range)
		fill_range((struct tar_pack *)pack, lane);
	else
		fill_items((struct tar_pack *)pack, lane);
}
