/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * engine: threads, memory and decoding.
 *
 * A *lane* is all that one thread needs to read and decode an image: metadata buffer, codec contexts,
 * input window, output scratch, LZ4 ring, pagepool. It is never shared. Every worker has one; the
 * calling thread has one of its own (inline runs, foreground work).
 *
 * A *job* is one run over one image. *Work* is what is queued: a batch of requests or a part of a walk,
 * sized in decoded bytes, run to its end by one worker. Work may submit more work of its job. A job is
 * done when nothing of it is queued or running. Cancelled jobs still run their queued work, which looks
 * at erofs_job_is_cancelled() and returns early: so no work is ever lost, and its owner always frees it.
 *
 * Work never waits for other work, so any number of workers finishes any job.
 *
 * Lock order: engine.lock, then nothing. dcache.lock, then nothing. No lock is held while decoding,
 * reading or calling back.
 */
#ifndef EROFS_ENGINE_PRIV_H
#define EROFS_ENGINE_PRIV_H

#include <erofs/engine.h>

#include "codec/codec_priv.h"
#include "map/map_priv.h"

/* ---- lanes (lane.c, read.c) ---- */

struct lane;
struct dcache;
struct job;

/**
 * erofs_lane_new() - make a lane for @img outside any engine (public reading functions, open)
 * @cache: decoded extents of the packed and metabox files, shared by lanes of the image; may be NULL
 * Return: 0, -ENOMEM.
 */
int erofs_lane_new(struct erofs_image *img, struct dcache *cache, struct erofs_diag *diag,
		   struct lane **ret_lane);
void erofs_lane_free(struct lane *lane);

struct metabuf *erofs_lane_metabuf(struct lane *lane);
struct erofs_diag *erofs_lane_diag(struct lane *lane);
/* Let the lane report to @diag from now on. Return: where it reported to. */
struct erofs_diag *erofs_lane_divert(struct lane *lane, struct erofs_diag *diag);
struct xattr_iter *erofs_lane_xattrs(struct lane *lane);	/* NULL: no memory */

/* What the run hangs on a lane (collectors, buffers): set and read by the job's owner, NULL at job start. */
void **erofs_lane_slot(struct lane *lane);

/* Number of the lane within its job, 0 .. erofs_job_lanes() - 1; 0 is the calling thread's. */
unsigned int erofs_lane_index(const struct lane *lane);

/**
 * erofs_lane_read() - read bytes of a file, directory or symlink through map, decoders and caches
 * Return: 0 all @len bytes were read; -EUCLEAN… (reported); -EINVAL behind the end of the file.
 */
int erofs_lane_read(struct lane *lane, const struct erofs_inode *ino, uint64_t off, void *buf, size_t len);

/* ---- streams: a file's contents in order, extent by extent (stream.c) ---- */

struct run {
	uint64_t la, len;	/* bytes of the file */
	const uint8_t *data;	/* NULL: a hole. Valid until the next call on this lane */
};

struct stream {
	struct lane *lane;
	const struct erofs_inode *ino;
	struct map map;
	uint64_t end;		/* stop in front of the first extent that begins at or behind it */
	uint64_t raw_done;	/* RAW, HOLE, FRAGMENT longer than a run: bytes of ext handed out */
	bool has_ext;
	struct extent ext;
};

#define STREAM_RUN (UINT32_C(1) << 20)	/* bytes a run gathers; a single longer ENCODED extent is one run */

/**
 * erofs_stream_begin() - read the extents of [from, to) of a file
 * Extents that begin in front of @from are left out and the last one is read whole, so that ranges that
 * share a border deliver every byte once: [0, a), [a, b), [b, size). Exception: from == 0 begins at 0.
 * RAW, HOLE and FRAGMENT extents are cut at @from and @to instead.
 */
int erofs_stream_begin(struct stream *s, struct lane *lane, const struct erofs_inode *ino, uint64_t from,
		       uint64_t to);

/**
 * erofs_stream_next() - the next run: neighbouring extents decoded behind each other, up to STREAM_RUN
 * bytes, or a hole, or a piece of raw data
 * Return: 1, 0 at the end, negative errno (reported). After an error the stream can't go on.
 */
int erofs_stream_next(struct stream *s, struct run *ret_run);

/* ---- what can be read of a damaged file (salvage.c) ---- */

struct salvage {
	struct lane *lane;
	const struct erofs_inode *ino;
	struct erofs_diag *diag;	/* receives what is lost */
	struct erofs_diag *filter;
	struct diag_cause cause;	/* of the piece at hand */
	struct map map;
	bool unmapped;			/* nothing of the file can be found */
	uint64_t next;			/* bytes of the file that are done */
	struct extent ext;		/* holds @next, if @has_ext */
	bool has_ext;
	size_t step;			/* bytes of raw data to be tried at once */
	uint64_t total;			/* bytes lost so far */
	struct {
		uint64_t la, len;	/* len 0: none */
		unsigned int pieces;
		enum erofs_finding_id id;
		int err;
		char text[400];
	} lost;				/* not reported yet: the next piece may belong to it */
};

/**
 * erofs_salvage_begin() - read a file past its damage, in order, in one thread
 * Reports of the lane are diverted until erofs_salvage_end(), which must be called also after errors.
 * Return: 0, -ENOMEM.
 */
int erofs_salvage_begin(struct salvage *s, struct lane *lane, const struct erofs_inode *ino);

/**
 * erofs_salvage_next() - the next piece that can be read; holes and what is lost are passed over
 * Every range that is lost is reported as DATA_HOLE; neighbours with the same cause are one.
 * Return: 1, 0 at the end, -ENOMEM (reported).
 */
int erofs_salvage_next(struct salvage *s, struct run *ret_run);

/** erofs_salvage_end() - return: how many bytes are lost */
uint64_t erofs_salvage_end(struct salvage *s);

/* ---- the data check (verify.c) ---- */

/*
 * One pcluster, or one run of raw data, to be read and decoded: 16 bytes, so that hundreds of thousands
 * fit the memory bound. Sorted by @addr, then @word descending (the longest reference first).
 */
struct pcref {
	uint64_t addr;		/* linear address: devs[dev].linear + pa */
	uint64_t word;		/* PCREF_*; raw: bit 63 and 63 bits of length */
};

#define PCREF_RAW (UINT64_C(1) << 63)

/* ENCODED: bit 62 clear: exact; dlen 24 bits at 38, plen 21 bits at 17, alg 3 bits at 14, partial bit 13 */
static inline uint64_t pcref_pack(unsigned int alg, bool partial, uint64_t plen, uint64_t dlen)
{
	return dlen << 38 | plen << 17 | (uint64_t)alg << 14 | (uint64_t)partial << 13;
}

static inline bool pcref_is_raw(const struct pcref *r)
{
	return r->word & PCREF_RAW;
}

static inline uint64_t pcref_plen(const struct pcref *r)
{
	return pcref_is_raw(r) ? r->word & ~PCREF_RAW : r->word >> 17 & 0x1fffff;
}

static inline uint32_t pcref_dlen(const struct pcref *r)
{
	return (uint32_t)(r->word >> 38 & 0xffffff);
}

static inline unsigned int pcref_alg(const struct pcref *r)
{
	return (unsigned int)(r->word >> 14 & 7);
}

static inline bool pcref_partial(const struct pcref *r)
{
	return r->word >> 13 & 1;
}

/* Called for every reference that could not be read or decoded, with what is wrong. Any worker. */
typedef void (*verify_fault_fn)(void *arg, const struct pcref *ref, int err, const char *text);

struct verify {
	struct job *job;
	verify_fault_fn fault;
	void *arg;
};

/**
 * erofs_verify_submit() - read and decode everything once, in the order given
 * @refs: sorted, no two alike; copied
 * Must be called by the thread that owns the job, outside of its work; forms batches and queues them.
 * Return: 0, -ECANCELED, -ENOMEM. Faults go to the fault function alone.
 */
void erofs_verify_begin(struct verify *v, struct job *job, verify_fault_fn fault, void *arg);
int erofs_verify_submit(struct verify *v, const struct pcref *refs, size_t count);
/* Wait until all is decoded. Return: @err, or -ECANCELED. */
int erofs_verify_end(struct verify *v, int err);

/**
 * erofs_lane_verify_extent() - decode one ENCODED or RAW extent that lies in metadata (inline tail)
 * Return: 0, -EUCLEAN… (reported).
 */
int erofs_lane_verify_extent(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext);

/* ---- jobs and work (engine.c, workers.c) ---- */

struct work {
	struct work *next;
	void (*run)(struct lane *lane, struct work *work);	/* frees @work or hands it on */
	struct job *job;
	size_t bytes;		/* decoded bytes it is good for, an estimate; for back-pressure */
	uint64_t queued_ns;	/* set by erofs_job_submit() */
	bool path;		/* makes system calls on paths: not at real-time priority (A2) */
};

/**
 * erofs_job_begin() - start a run on @eng over @img
 * Takes the engine until erofs_job_end(). Workers are used only if the image is large enough to gain.
 * Return: 0, -ENOMEM, -ECANCELED (the engine was cancelled).
 */
int erofs_job_begin(struct erofs_engine *eng, struct erofs_image *img, struct erofs_diag *diag,
		    struct job **ret_job);
void erofs_job_end(struct job *job);

/*
 * The same for work that is to be done after a cancel too (names for findings): it does not look at the
 * engine's cancel flag. A second signal still ends a tool.
 */
int erofs_job_begin_late(struct erofs_engine *eng, struct erofs_image *img, struct erofs_diag *diag,
			 struct job **ret_job);

/*
 * A job without an image: its lanes decode nothing, their slot is all that the run gets of them. For
 * writers. Submitting does not wait: who submits bounds what is in flight.
 */
int erofs_job_begin_plain(struct erofs_engine *eng, struct erofs_diag *diag, struct job **ret_job);

/* Queue @work (work->run and bytes are set). May be called by the owner or by work of this job. */
void erofs_job_submit(struct job *job, struct work *work);

/* Help to run, and wait until nothing of the job is queued or running. Owner only. */
void erofs_job_wait(struct job *job);

/*
 * Help to run until @is_ready says so; it is asked after each work of the job that ended, and must not
 * take locks. Owner only. Return: is it ready? false: nothing is queued or running any more.
 */
bool erofs_job_wait_for(struct job *job, bool (*is_ready)(void *arg), void *arg);

/* Would a worker be glad of more work right now? A hint, cheap enough for every directory entry. */
bool erofs_job_is_hungry(struct job *job);

/* Progress: so many inodes and bytes there will be, 0: not known. */
void erofs_job_expect(struct job *job, uint64_t inodes, uint64_t bytes);

/* Progress: so many more inodes and bytes are done. Told to the engine now and then. */
void erofs_lane_count(struct lane *lane, uint64_t inodes, uint64_t bytes);

bool erofs_job_is_cancelled(const struct job *job);
/* Stop this job (fail-fast, first fatal error): like the engine's cancel, but only for this job. */
void erofs_job_cancel(struct job *job);

/* One behind the largest lane index there may be; and how many lanes work at a time. */
unsigned int erofs_job_lanes(const struct job *job);
unsigned int erofs_job_active_lanes(const struct job *job);
struct lane *erofs_job_lane(struct job *job, unsigned int index);	/* owner only, when nothing runs */

/* Bytes that the run may still take for state that covers the image (engine.md E5), out of --max-memory. */
size_t erofs_job_state_bytes(const struct job *job);

/* Bytes that may be in flight in an ordered result (flight.h); 0: the calling thread does it all. */
size_t erofs_job_flight_bytes(const struct job *job);

#endif
