/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * archive: an image's tree as a stream.
 *
 * The owner pulls names in path order and gathers them into packs; workers turn a pack into the very bytes
 * of the stream; the owner writes them in order. What a stream is made of is its own matter (struct
 * archive_ops); the run as such, the names, the packs and the output are here.
 */
#ifndef EROFS_ARCHIVE_PRIV_H
#define EROFS_ARCHIVE_PRIV_H

#include <erofs/archive.h>

#include "engine/flight.h"
#include "sink/tar_head.h"
#include "walk/sorted_priv.h"

/* Bytes of contents of small files in a pack: 1 MiB is 0.4 ms of LZ4. */
#define ARCHIVE_BATCH (UINT32_C(1) << 20)
#define ARCHIVE_KEEP ((size_t)4 << 20)	/* larger buffers are not kept for the next pack */
#define ARCHIVE_TARGET 4096	/* bytes of the longest target of a symlink */

/* ---- hard links (archive_links.c) ---- */

struct arch_link {
	struct arch_link *next;
	uint64_t nid;
	uint32_t left;		/* names still to come */
	size_t len;
	char path[];
};

#define ARCH_LINK_BUCKETS 4096

/* First names of inodes whose other names are still to come. */
struct arch_links {
	struct arch_link *buckets[ARCH_LINK_BUCKETS];
	size_t bytes, max_bytes;
};

/**
 * erofs_archlinks_claim() - a name of an inode with several was met
 * @ret_first: the path to link to, or NULL: this is the first
 * Return: 0; -ENOMEM: more than the limit holds.
 */
int erofs_archlinks_claim(struct arch_links *t, const struct erofs_inode *ino, const char *path, size_t len,
			  const struct arch_link **ret_first);
/* A name was seen: the last one frees what was kept. */
void erofs_archlinks_seen(struct arch_links *t, uint64_t nid);
void erofs_archlinks_fini(struct arch_links *t);

/* ---- packs (archive_run.c) ---- */

/* First member of what a stream sends: its entries, or a range of one large file. */
struct pack {
	struct parcel parcel;
	struct pack *spare;
	struct tarbuf names, out;	/* paths; bytes of the stream */
	uint64_t from, to;		/* the range of the file, if it is one */
	uint64_t la;			/* where its bytes begin: ranges begin and end with extents */
	bool is_range;
	bool damaged;			/* something that has no place in the stream could not be read */
	int err;			/* ends the run */
};

struct archive;

struct archive_ops {
	size_t pack_size;
	/* Make a pack that was used one that is empty; free what else it holds. */
	void (*reset)(struct pack *p);
	void (*free)(struct pack *p);
	/* Owner: take a name. Fill: the bytes, any lane. Deliver: owner, in the order sent. 0, negative errno. */
	int (*add)(struct archive *a, const struct sorted_entry *e);
	void (*fill)(struct archive *a, struct lane *lane, struct pack *p);
	int (*deliver)(struct archive *a, struct pack *p);
};

/* A run; the first member of what a stream keeps. All of it the owner's but img, job and ops. */
struct archive {
	struct erofs_image *img;
	struct erofs_engine *eng;
	struct erofs_diag *diag;
	const struct archive_ops *ops;
	const char *what;		/* "archive": for messages */
	const struct erofs_select *select;
	uint64_t nid;			/* of the start */
	const char *name;		/* of a start that is no directory */
	bool cut;			/* some names are left out beside what @select says */
	erofs_write_fn write;		/* NULL: to fd */
	void *write_arg;
	int fd;
	struct job *job;
	struct flight flight;
	struct pack *open;		/* is being gathered */
	struct pack *spares;
	struct arch_links links;
	uint64_t bytes;			/* written */
	bool output_failed;
	bool damaged;
};

/*
 * Take the engine. What a stream wants to make for each lane it makes between this and the run.
 * 0, negative errno (reported).
 */
int erofs_archive_begin(struct archive *a);
/* All names, gathered, filled and delivered. 0, the first error (reported); damage: see @damaged. */
int erofs_archive_run(struct archive *a);
void erofs_archive_end(struct archive *a);

/* Write to where the stream goes. 0, -ECANCELED, negative errno (reported). */
int erofs_archive_put(struct archive *a, const void *data, size_t len);
/* The path of an entry; that of a start that is no directory is its name. */
const char *erofs_archive_path(const struct archive *a, const struct sorted_entry *e, size_t *ret_len);
/* An empty pack; NULL: no memory (reported). */
struct pack *erofs_pack_new(struct archive *a);
/* Send the pack that is open, if there is one. As erofs_flight_send(). */
int erofs_pack_send_open(struct archive *a);
/* Make a range [from, to) of a new pack and send it. @cost: bytes it takes when filled */
int erofs_pack_send_range(struct archive *a, struct pack *p, uint64_t from, uint64_t to, size_t cost);
/* A pack that was not sent. */
void erofs_pack_free(struct archive *a, struct pack *p);
/* @entries, or where they are now, with room for one more of @size bytes. NULL: no memory (reported). */
void *erofs_pack_grow(struct archive *a, void *entries, size_t count, size_t *room, size_t size);

/* ---- with a lane (archive_read.c) ---- */

/*
 * Can all of a file be found? Whoever claims a size that the image does not hold would make us write or hash
 * without end. Faults are reported.
 */
bool erofs_archive_is_mappable(struct lane *lane, const struct erofs_inode *ino);

/*
 * Hand all xattrs of an inode to @add; what is hidden is not shown. What cannot be read is reported and makes
 * the pack damaged; sound attributes of a damaged area still come. An error of @add is the pack's.
 */
void erofs_pack_xattrs(struct pack *p, struct lane *lane, const struct erofs_inode *ino,
		       int (*add)(void *arg, const struct xattr_view *xa), void *arg);
/* The target of a symlink, ino->size bytes. 0, negative errno (reported). */
int erofs_archive_target(struct lane *lane, const struct erofs_inode *ino, char target[ARCHIVE_TARGET]);

#endif
