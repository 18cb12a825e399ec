// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The data check: batches of pclusters in physical order, each read and decoded once, kept nowhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "engine/lane_priv.h"

/*
 * A batch ends at BATCH_DECODED bytes of output or BATCH_SPAN bytes of image, whichever comes first.
 * At 2.8 GB/s a core, 1 MiB is 0.4 ms of LZ4: queueing (some 5 us) costs about one per cent.
 * The span is what one pread fetches.
 */
#define BATCH_DECODED (UINT32_C(1) << 20)
#define BATCH_SPAN (UINT32_C(512) << 10)
#define BATCH_GAP (UINT32_C(32) << 10)		/* read over gaps up to this, metadata mostly */
#define BATCH_RAW (UINT32_C(8) << 20)		/* plain data that one batch reads */

struct batch {
	struct work work;
	const struct verify *verify;
	size_t count;
	unsigned int dev;
	uint64_t pa;		/* of the first byte on the device */
	uint64_t span;		/* bytes of the device */
	bool raw;		/* one long run of plain data, or a part of it */
	struct pcref refs[];
};

static void tell_fault(const struct batch *b, const struct pcref *ref, int err, const char *text)
{
	b->verify->fault(b->verify->arg, ref, err, text);
}

static void tell_unreadable(const struct batch *b, const struct pcref *ref, int err)
{
	char text[120], why[80];

	snprintf(text, sizeof(text), "cannot be read: %s", err == -ERANGE ? "behind the end of the device" :
		 erofs_diag_strerror(err, why, sizeof(why)));
	tell_fault(b, ref, err, text);
}

static uint8_t *get_output(struct lane *lane, const struct pcref *ref)
{
	size_t len = pcref_dlen(ref);
	uint8_t *out = NULL;

	if (pcref_alg(ref) == CODEC_LZ4 && lane->pages)
		out = erofs_ring_get(&lane->ring, lane->pages, &lane->pool, len);
	if (!out && !erofs_lane_reserve(lane, len))
		out = lane->out;
	return out;
}

/* Kernel policy: every page of output is a gap. false: this machine cannot, use linear memory. */
static bool decode_by_pages(struct lane *lane, const struct batch *b, const struct pcref *ref, const uint8_t *src)
{
	struct lz4_request req = {
		.src = src,
		.in_len = (size_t)pcref_plen(ref),
		.out_len = pcref_dlen(ref),
		.partial = pcref_partial(ref),
		.max_distance = lane->img->super->codec.lz4_max_distance,
		.blksz = lane->img->blksz,
		.zero_padding = lane->img->super->codec.zero_padding,
	};
	struct codec_fault fault;
	int err;

	if (!lane->out_pages)
		lane->out_pages = calloc(PAGES_MAX_OUTPUT, sizeof(*lane->out_pages));
	if (!lane->out_pages)
		return false;
	req.out = lane->out_pages;
	req.nout = (unsigned int)((req.out_len + lane->pages->size - 1) / lane->pages->size);
	err = erofs_lz4_decode_pages(&lane->by_pages, &req, &fault);
	if (err == -ENOSYS)
		return false;
	lane->pclusters++;
	lane->bytes_in += req.in_len;
	lane->bytes_out += req.out_len;
	if (err)
		tell_fault(b, ref, err, err == -ENOMEM ? "no memory to decode" : fault.text);
	return true;
}

static void decode_ref(struct lane *lane, const struct batch *b, const struct pcref *ref, const uint8_t *src)
{
	struct codec_request req = {
		.alg = pcref_alg(ref),
		.src = src,
		.src_len = (size_t)pcref_plen(ref),
		.dst_len = pcref_dlen(ref),
		.partial = pcref_partial(ref),
		.blksz = lane->img->blksz,
	};
	struct codec_fault fault;
	int err;

	if (req.alg >= CODEC_SHIFTED)
		return;		/* plain bytes: to have read them is all */
	if (lane->kernel_policy && req.alg == CODEC_LZ4 && decode_by_pages(lane, b, ref, src))
		return;
	req.dst = get_output(lane, ref);
	if (!req.dst) {
		tell_fault(b, ref, -ENOMEM, "no memory to decode");
		return;
	}
	lane->pclusters++;
	lane->bytes_in += req.src_len;
	lane->bytes_out += req.dst_len;
	err = erofs_codec_decode(lane->codec, &req, &fault);
	if (err)
		tell_fault(b, ref, err, err == -ENOMEM ? "no memory to decode" : fault.text);
}

static void run_refs(struct lane *lane, const struct batch *b)
{
	const uint8_t *src;
	size_t i;

	if (b->span <= LANE_IN)
		(void)erofs_lane_fetch(lane, b->dev, b->pa, (size_t)b->span, &src);
	for (i = 0; i < b->count && !erofs_job_is_cancelled(lane->job); i++) {
		const struct pcref *ref = &b->refs[i];
		int err = erofs_lane_fetch(lane, b->dev, b->pa + (ref->addr - b->refs[0].addr),
					   (size_t)pcref_plen(ref), &src);

		if (err)
			tell_unreadable(b, ref, err);
		else if (!pcref_is_raw(ref))
			decode_ref(lane, b, ref, src);
	}
}

static void run_raw(struct lane *lane, const struct batch *b)
{
	uint64_t done;

	for (done = 0; done < b->span && !erofs_job_is_cancelled(lane->job); done += LANE_IN) {
		const uint8_t *src;
		int err = erofs_lane_fetch(lane, b->dev, b->pa + done,
					   (size_t)min_u64(b->span - done, LANE_IN), &src);

		if (err) {
			tell_unreadable(b, b->refs, err);
			return;
		}
	}
}

static void run_batch(struct lane *lane, struct work *work)
{
	struct batch *b = (struct batch *)work;
	size_t bytes = b->work.bytes;

	if (!erofs_job_is_cancelled(lane->job)) {
		if (lane->kernel_policy)
			erofs_pagepool_fill(lane->pages, &lane->pool,
					    erofs_lz4_window_pages(lane->img->super->codec.lz4_max_distance,
								   lane->pages->size));
		if (b->raw)
			run_raw(lane, b);
		else
			run_refs(lane, b);
		erofs_lane_count(lane, 0, bytes);
		if (lane->kernel_policy)
			erofs_pagepool_release(lane->pages, &lane->pool);
	}
	free(b);
}

/* The device that holds a linear address. */
static unsigned int find_device(const struct erofs_image *img, uint64_t addr)
{
	unsigned int lo = 0, hi = img->ndevs;

	while (hi - lo > 1) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (img->devs[mid].linear <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int submit_batch(const struct verify *v, struct erofs_image *img, const struct batch *b,
			const struct pcref *refs, size_t bytes)
{
	struct batch *heap = malloc(sizeof(*heap) + b->count * sizeof(*refs));

	if (!heap)
		return -ENOMEM;
	*heap = *b;
	memcpy(heap->refs, refs, b->count * sizeof(*refs));
	heap->verify = v;
	heap->work.run = run_batch;
	heap->work.bytes = bytes;
	erofs_image_readahead(img, b->dev, b->pa, b->span);
	erofs_job_submit(v->job, &heap->work);
	return 0;
}

static int submit_raw(const struct verify *v, struct erofs_image *img, const struct pcref *ref)
{
	unsigned int dev = find_device(img, ref->addr);
	struct batch b = { .count = 1, .dev = dev, .raw = true };
	uint64_t done, len = pcref_plen(ref);
	int err;

	for (done = 0; done < len; done += b.span) {
		if (erofs_job_is_cancelled(v->job))
			return -ECANCELED;
		b.pa = ref->addr - img->devs[dev].linear + done;
		b.span = min_u64(len - done, BATCH_RAW);
		err = submit_batch(v, img, &b, ref, LANE_IN);
		if (err)
			return err;
	}
	return 0;
}

/* How many references from @refs on make one batch? */
static size_t gather(struct erofs_image *img, const struct pcref *refs, size_t count, struct batch *b,
		     size_t *ret_bytes)
{
	uint64_t end = refs[0].addr;
	size_t i, bytes = 0;

	b->dev = find_device(img, refs[0].addr);
	b->pa = refs[0].addr - img->devs[b->dev].linear;
	for (i = 0; i < count; i++) {
		const struct pcref *r = &refs[i];
		uint64_t stop = max_u64(end, r->addr + pcref_plen(r));

		if (i && (bytes >= BATCH_DECODED || stop - refs[0].addr > BATCH_SPAN ||
			  r->addr > end + BATCH_GAP || pcref_plen(r) > BATCH_SPAN ||
			  r->addr - img->devs[b->dev].linear >= img->devs[b->dev].size))
			break;
		bytes += pcref_is_raw(r) ? pcref_plen(r) : pcref_dlen(r);
		end = stop;
	}
	b->count = i;
	b->span = end - refs[0].addr;
	*ret_bytes = bytes;
	return i;
}

void erofs_verify_begin(struct verify *v, struct job *job, verify_fault_fn fault, void *arg)
{
	*v = (struct verify){ .job = job, .fault = fault, .arg = arg };
}

int erofs_verify_submit(struct verify *v, const struct pcref *refs, size_t count)
{
	struct erofs_image *img = erofs_job_lane(v->job, 0)->img;
	size_t i = 0;
	int err = 0;

	while (i < count && !err && !erofs_job_is_cancelled(v->job)) {
		struct batch b = { 0 };
		size_t bytes, n;

		if (pcref_is_raw(&refs[i]) && pcref_plen(&refs[i]) > BATCH_SPAN) {
			err = submit_raw(v, img, &refs[i++]);
			continue;
		}
		n = gather(img, refs + i, count - i, &b, &bytes);
		err = submit_batch(v, img, &b, refs + i, bytes);
		i += n;
	}
	return err;
}

int erofs_verify_end(struct verify *v, int err)
{
	erofs_job_wait(v->job);
	return err ? err : erofs_job_is_cancelled(v->job) ? -ECANCELED : 0;
}

int erofs_lane_verify_extent(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext)
{
	int err;

	if (ext->kind != EXTENT_ENCODED)
		return 0;
	err = erofs_lane_reserve(lane, (size_t)ext->len);
	return err ? err : erofs_lane_decode(lane, ino, ext, lane->out, (size_t)ext->len);
}
