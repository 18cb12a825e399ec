/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * write, compressed files: from bytes to extents (zenc.c), from extents to a map (zmap.c), by the
 * algorithms and sizes that the options name (zconfig.c).
 *
 * A file is cut into segments of a fixed size, so that what comes out does not depend on who compresses.
 * Streams of the format do not refer to one another, so a cut costs half a block at most.
 */
#ifndef EROFS_WRITE_Z_PRIV_H
#define EROFS_WRITE_Z_PRIV_H

#include "codec/enc.h"

struct body;
struct job;
struct lane;
struct node;
struct writer;

#define Z_MAX_METHODS 8

/* What -z, -C and the hints say of one file. */
struct zparams {
	unsigned int method;		/* index into zconfig.methods */
	uint32_t pcluster;		/* bytes, a multiple of the block size */
};

struct zmethod {
	const struct enc_method *enc;
	struct enc_config config;
};

struct zhint;

struct zconfig {
	struct zmethod methods[Z_MAX_METHODS];
	unsigned int count;		/* 0: no compression */
	struct zparams usual;
	uint32_t packed_pcluster;	/* bytes */
	uint32_t max_pcluster;		/* over all files */
	uint32_t max_extent;		/* decoded bytes */
	uint32_t algs;			/* bits by enum codec_alg: announced by the superblock */
	struct zhint *hints;
	size_t nhints;
};

/* From the options. 0, -EINVAL (reported), -ENOMEM. */
int erofs_zconfig_init(struct writer *w);
void erofs_zconfig_fini(struct zconfig *z);
/* 1: this file is to be compressed, 0, -ENOMEM */
int erofs_zconfig_for(const struct writer *w, const struct node *node, struct zparams *ret);
/* Configuration records behind the superblock (format.md 3). Return: bytes, 0: none are needed. */
size_t erofs_zconfig_records(const struct writer *w, uint8_t dst[128]);

/* What a decoder must know to read what these encoders make. */
void erofs_zconfig_decoder(const struct zconfig *z, struct codec_config *ret);

/* ---- extents (zenc.c) ---- */

enum { ZEXT_PLAIN, ZEXT_CODED, ZEXT_FRAGMENT };

struct zext {
	uint32_t dlen, plen;		/* bytes: decoded; stored, without padding */
	uint8_t kind;
	uint8_t method;
	bool beside;			/* in the inode's block, not in blocks of its own */
	bool twin, partial;		/* the pcluster of another extent; which goes on */
	uint64_t block;			/* twins: where it is */
};

/* Blocks that its pcluster takes, whoever stored it. */
static inline uint32_t erofs_zext_blocks(const struct zext *e, unsigned int blkbits)
{
	return e->beside || e->kind == ZEXT_FRAGMENT ? 0 : (uint32_t)div_up_pow2(e->plen, blkbits);
}

/* What an extent is found by: the hash of some of its first bytes. */
struct zprint {
	uint64_t key;			/* 0: it cannot be found */
	uint32_t anchor;		/* where these bytes are in it */
};

/* Bytes that grow. */
struct zbuf {
	uint8_t *data;
	size_t len, room;
};

struct zout {
	struct zext *ext;
	size_t count, room;
	struct zbuf blocks;		/* whole blocks, in order */
	struct zbuf beside;		/* stream or bytes of the last extent */
	size_t fragment;		/* so many of the last bytes are left to the packed file */
	struct zprint *prints;		/* one for each extent; NULL without dedupe */
};

/* Encoders of one lane. */
struct zlane {
	const struct zconfig *config;
	void *state[Z_MAX_METHODS];
	uint8_t *coded;			/* two times max_pcluster bytes */
	uint8_t *input;			/* one segment, or a batch's files one by one */
	size_t input_room;
	struct sha *sha;		/* NULL: not asked for yet */
	/* for twins */
	struct codec_ctx *decoder;
	uint8_t *stored, *decoded;	/* one pcluster */
	uint64_t gear[256];
};

int erofs_zlane_new(const struct zconfig *config, struct zlane **ret);
void erofs_zlane_free(struct zlane *z);
/* The one of this lane; made when it is asked for. 0, -ENOMEM. */
int erofs_zlane_of(struct writer *w, struct lane *lane, struct zlane **ret);
/* Bytes of a segment of files with such pclusters. */
size_t erofs_zsegment(uint32_t pcluster);
/* Bytes that may be in flight. */
size_t erofs_zflight_bytes(const struct writer *w, uint32_t pcluster);

struct zjob {
	const struct zparams *p;
	uint32_t blksz;
	const uint8_t *src;
	size_t len;
	bool last;			/* of its file */
	bool beside, fragments;		/* what may become of the end of the file */
	struct twins *twins;		/* NULL: none are looked for */
	uint64_t partial_costs;		/* bytes of the map that the first partial twin costs the file */
	uint32_t serial;		/* of the batch */
};

/* Cut and compress one segment. 0, -ENOMEM… */
int erofs_zenc_run(struct zlane *z, const struct zjob *job, struct zout *out);
int erofs_zout_append(struct zout *out, const struct zext *ext, size_t count);
int erofs_zbuf_append(struct zbuf *b, const void *data, size_t len);
void erofs_zout_free(struct zout *out);

/* ---- maps (zmap.c) ---- */

struct zmap {
	const struct zext *ext;
	size_t count;
	uint64_t size;			/* of the file */
	uint64_t block;			/* of the first pcluster; the others follow */
	uint64_t twin_base;		/* added to the addresses of twins */
	uint64_t fragment;		/* offset in the packed file, if the last extent is one */
	size_t head;			/* bytes of the inode in front of the map */
	unsigned int alg;
	bool legacy, encoded;		/* indexes of the full form; encoded extents */
};

/* Header and indexes, 8-aligned. Fills layout, u, map, map_len, map_align of @body; free body->map. */
int erofs_zmap_make(const struct writer *w, const struct zmap *m, struct body *body);
/* How long it will be with compact indexes and without twins, give or take what aligns their packs. */
uint64_t erofs_zmap_estimate(const struct writer *w, uint64_t size);
/* Bytes by which the map of a file grows because one of its extents goes on in another: only full indexes say that. */
uint64_t erofs_zmap_partial_costs(const struct writer *w, uint64_t size);
/* The map of a file that is a fragment as a whole: 16 bytes. */
void erofs_zmap_whole_fragment(uint64_t offset, uint8_t dst[16]);

/* ---- equal contents (dedupe.c) ---- */

struct twins;

#define TWIN_DISTANCE 8u		/* batches */

uint32_t erofs_fragment_hash(const uint8_t *data, size_t len);
/* The last bytes of @node into the packed file, unless they are there. Owner. */
int erofs_fragment_put(struct writer *w, const struct node *node, uint32_t hash, const uint8_t *data, size_t len,
		       uint64_t *ret_offset);

/* @fd: where the pclusters are read from, from byte @start on; not owned */
int erofs_twins_new(const struct writer *w, int fd, uint64_t start, struct twins **ret);
void erofs_twins_free(struct twins *t);
/* The pclusters of a segment that was put into blocks from @block on. Owner. */
int erofs_zout_publish(struct writer *w, struct twins *t, const struct zout *out, uint64_t block, uint32_t serial);
/* Is it worth while to look? Any thread. */
bool erofs_twins_may_have(struct twins *t, uint64_t key);

struct ztwin_query {
	uint64_t key;
	const uint8_t *at;		/* the bytes of that hash */
	size_t before, after;		/* bytes that may belong to the twin in front of it, and from it on */
	uint64_t partial_costs;		/* as in struct zjob */
	unsigned int method;
	uint32_t serial;
	int err;			/* set where looking failed */
};

/*
 * The pcluster that decodes to most of what lies around q->at; it begins *ret_back bytes in front. Any thread.
 * ret->dlen is 0 if there is none. Return: how many bytes were looked at.
 */
uint32_t erofs_twins_find(struct twins *t, struct zlane *z, struct ztwin_query *q, uint32_t blksz,
			  struct zext *ret, size_t *ret_back);

/* ---- the packed file (packed.c) ---- */

int erofs_packed_begin(struct writer *w);
int erofs_packed_add(struct writer *w, const uint8_t *data, size_t len, uint64_t *ret_offset);
/* The rest, and its inode. Nothing is done if nothing was added. */
int erofs_packed_finish(struct writer *w);
void erofs_packed_fini(struct writer *w);

#endif
