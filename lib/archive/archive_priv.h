/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * archive: an image's tree as a stream.
 *
 * The owner pulls names in path order and gathers them into parcels; workers turn a parcel into the very
 * bytes of the archive; the owner writes them in order. A file above TAR_BATCH is cut into ranges, a
 * parcel each, so that all workers decode it.
 */
#ifndef EROFS_ARCHIVE_PRIV_H
#define EROFS_ARCHIVE_PRIV_H

#include <erofs/archive.h>

#include "engine/flight.h"
#include "sink/tar_head.h"
#include "walk/sorted_priv.h"

/*
 * Bytes of contents in a parcel, and of a range: 1 MiB is 0.4 ms of LZ4; to set a range up (a seek in the
 * map) takes some 10 us.
 */
#define TAR_BATCH (UINT32_C(1) << 20)
#define TAR_KEEP ((size_t)4 << 20)	/* larger buffers are not kept for the next parcel */

/* One entry of a parcel. Offsets, since the buffers move as they grow. */
struct tar_item {
	struct erofs_inode ino;
	size_t path, path_len;		/* in names */
	size_t link, link_len;		/* in names; of a hard link: the path it leads to */
	bool is_link;
	bool contents_follow;		/* in parcels of their own */
	int err;			/* left out: its contents or target cannot be read */
	size_t off, len;		/* what it became, in out */
};

struct tar_parcel {
	struct parcel parcel;
	struct tar_parcel *spare;
	struct tarbuf names;
	struct tar_item *items;
	size_t count, room;
	bool has_links;
	bool is_range;			/* [from, to) of items[0] */
	uint64_t from, to;
	uint64_t la;			/* of the first byte in out: ranges begin and end with extents */
	int range_err;			/* bytes are missing behind those in out */
	bool damaged;			/* an attribute could not be read */
	int err;			/* no memory */
	struct tarbuf out, records;
};

/* Fill a parcel: the fill of the flight. */
void erofs_tar_fill(struct lane *lane, struct parcel *parcel);

/* ---- hard links (tar_links.c) ---- */

struct tar_link {
	struct tar_link *next;
	uint64_t nid;
	uint32_t left;		/* names still to come */
	size_t len;
	char path[];
};

#define TAR_LINK_BUCKETS 4096

/* First names of inodes whose other names are still to come. */
struct tar_links {
	struct tar_link *buckets[TAR_LINK_BUCKETS];
	size_t bytes, max_bytes;
};

/**
 * erofs_tarlinks_claim() - a name of an inode with several was met
 * @ret_first: the path to link to, or NULL: this is the first
 * Return: 0; -ENOMEM: more than the limit holds.
 */
int erofs_tarlinks_claim(struct tar_links *t, const struct erofs_inode *ino, const char *path, size_t len,
			 const struct tar_link **ret_first);
/* A name was seen: the last one frees what was kept. */
void erofs_tarlinks_seen(struct tar_links *t, uint64_t nid);
void erofs_tarlinks_fini(struct tar_links *t);

#endif
