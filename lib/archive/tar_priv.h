/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* A tar archive: its entries, and ranges of files above TAR_RANGE, which all workers decode. */
#ifndef EROFS_TAR_PRIV_H
#define EROFS_TAR_PRIV_H

#include "archive/archive_priv.h"

/* To set a range up (a seek in the map) takes some 10 us. */
#define TAR_RANGE ARCHIVE_BATCH

/* One entry of a pack. Offsets, since the buffers move as they grow. */
struct tar_item {
	struct erofs_inode ino;
	size_t path, path_len;		/* in names */
	size_t link, link_len;		/* in names; of a hard link: the path it leads to */
	bool is_link;
	bool contents_follow;		/* in packs of their own */
	int err;			/* left out: its contents or target cannot be read */
	size_t off, len;		/* what it became, in out */
};

struct tar_pack {
	struct pack pack;		/* a range is one of items[0] */
	struct tar_item *items;
	size_t count, room;
	int range_err;			/* bytes are missing behind those in out */
	struct tarbuf records;
};

/* archive_ops.fill */
void erofs_tar_fill(struct archive *a, struct lane *lane, struct pack *pack);

#endif
