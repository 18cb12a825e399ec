// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Lanes: one thread's buffers and decoders, fetching and decoding of single extents. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "engine/lane_priv.h"

static int late_read_metabox(void *arg, uint64_t off, void *buf, size_t len)
{
	struct lane *lane = arg;
	const struct erofs_inode *box = lane->img->super->metabox;

	if (!box || !range_ok(off, len, box->size))
		return -ERANGE;
	return erofs_lane_read_special(lane, box, off, buf, len);
}

static int late_read_packed(void *arg, uint64_t off, void *buf, size_t len)
{
	struct lane *lane = arg;
	const struct erofs_inode *packed = lane->img->super->packed;

	if (!packed || !range_ok(off, len, packed->size))
		return -ERANGE;
	return erofs_lane_read_special(lane, packed, off, buf, len);
}

int erofs_lane_make(struct erofs_image *img, struct dcache *cache, struct pages *pages,
		    struct erofs_diag *diag, struct lane **ret_lane)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int err;

	if (!lane)
		return -ENOMEM;
	lane->img = img;
	lane->cache = cache;
	lane->pages = pages;
	lane->diag = diag;
	if (!img) {
		*ret_lane = lane;
		return 0;
	}
	err = erofs_metabuf_init(&lane->mb, img, diag);
	if (!err) {
		lane->mb.late.arg = lane;
		lane->mb.late.read_metabox = late_read_metabox;
		lane->mb.late.read_packed = late_read_packed;
		err = erofs_codec_ctx_new(&img->super->codec, &lane->codec);
	}
	if (!err && !cache && (img->super->packed || img->super->metabox)) {
		err = erofs_dcache_new(LANE_CACHE, &lane->own_cache);
		lane->cache = lane->own_cache;
	}
	if (err) {
		erofs_lane_free(lane);
		return err;
	}
	*ret_lane = lane;
	return 0;
}

int erofs_lane_new(struct erofs_image *img, struct dcache *cache, struct erofs_diag *diag,
		   struct lane **ret_lane)
{
	return erofs_lane_make(img, cache, NULL, diag, ret_lane);
}

void erofs_lane_free(struct lane *lane)
{
	if (!lane)
		return;
	erofs_ring_drop(&lane->ring, &lane->pool);
	erofs_lz4_pages_fini(&lane->by_pages);
	free(lane->out_pages);
	if (lane->pages)
		erofs_pagepool_release(lane->pages, &lane->pool);
	erofs_xattr_iter_free(lane->xattrs);
	erofs_codec_ctx_free(lane->codec);
	erofs_metabuf_fini(&lane->mb);
	erofs_dcache_free(lane->own_cache);
	free(lane->in);
	free(lane->tail);
	free(lane->out);
	free(lane);
}

struct metabuf *erofs_lane_metabuf(struct lane *lane)
{
	return &lane->mb;
}

struct erofs_diag *erofs_lane_diag(struct lane *lane)
{
	return lane->diag;
}

struct erofs_diag *erofs_lane_divert(struct lane *lane, struct erofs_diag *diag)
{
	struct erofs_diag *old = lane->diag;

	lane->diag = diag;
	lane->mb.diag = diag;
	return old;
}

struct xattr_iter *erofs_lane_xattrs(struct lane *lane)
{
	if (!lane->xattrs && erofs_xattr_iter_new(&lane->mb, &lane->xattrs))
		return NULL;
	return lane->xattrs;
}

void **erofs_lane_slot(struct lane *lane)
{
	return &lane->slot;
}

unsigned int erofs_lane_index(const struct lane *lane)
{
	return lane->index;
}

int erofs_lane_reserve(struct lane *lane, size_t size)
{
	size_t room = lane->out_room ? lane->out_room : STREAM_RUN;
	uint8_t *grown;

	if (size <= lane->out_room)
		return 0;
	while (room < size)
		room *= 2;
	grown = realloc(lane->out, room);
	if (!grown)
		return erofs_diag_fail(lane->diag, -ENOMEM, AT_NOWHERE, "no memory for %zu bytes of output",
				       room);
	lane->out = grown;
	lane->out_room = room;
	return 0;
}

/* How much to read at @pa: a lot if we come from just before it. */
static size_t choose_read(const struct lane *lane, unsigned int dev, uint64_t pa, size_t len)
{
	uint64_t end = lane->in_pa + lane->in_len, want;

	want = dev == lane->in_dev && pa >= lane->in_pa && pa < end + LANE_READ ? LANE_READ :
									       LANE_READ_RANDOM;
	return (size_t)max_u64(len, min_u64(want, lane->img->devs[dev].size - pa));
}

int erofs_lane_fetch(struct lane *lane, unsigned int dev, uint64_t pa, size_t len, const uint8_t **ret)
{
	size_t size;
	int err;

	if (dev == lane->in_dev && lane->in_len && pa >= lane->in_pa &&
	    range_ok(pa - lane->in_pa, len, lane->in_len)) {
		*ret = lane->in + (pa - lane->in_pa);
		return 0;
	}
	if (!range_ok(pa, len, lane->img->devs[dev].size) || len > LANE_IN)
		return -ERANGE;
	if (!lane->in)
		lane->in = malloc(LANE_IN);
	if (!lane->in)
		return -ENOMEM;
	size = choose_read(lane, dev, pa, len);
	lane->in_len = 0;
	err = erofs_image_read(lane->img, dev, pa, lane->in, size);
	if (err && size > len) {
		/* what was read ahead may be what is broken */
		size = len;
		err = erofs_image_read(lane->img, dev, pa, lane->in, size);
	}
	if (err)
		return err;
	lane->in_dev = dev;
	lane->in_pa = pa;
	lane->in_len = size;
	*ret = lane->in;
	return 0;
}

int erofs_lane_report_read(struct lane *lane, const struct erofs_inode *ino, uint64_t la, unsigned int dev,
			   uint64_t pa, int err)
{
	if (err == -ERANGE)
		return erofs_diag_damage(lane->diag, EXTENT_RANGE, AT(ino->nid, la),
					 "data at 0x%" PRIx64 " of device %u is behind its end", pa, dev);
	return erofs_diag_fail(lane->diag, err, AT(ino->nid, la),
			       "cannot read data at 0x%" PRIx64 " of device %u", pa, dev);
}

/* The stored bytes of an ENCODED extent. */
static int fetch_stored(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
			const uint8_t **ret)
{
	int err;

	if (!ext->meta) {
		err = erofs_lane_fetch(lane, ext->dev, ext->pa, (size_t)ext->plen, ret);
		return err ? erofs_lane_report_read(lane, ino, ext->la, ext->dev, ext->pa, err) : 0;
	}
	if (!lane->tail)
		lane->tail = malloc(lane->img->blksz);
	if (!lane->tail)
		return erofs_diag_fail(lane->diag, -ENOMEM, AT_NOWHERE, "no memory for a block");
	if (ext->plen > lane->img->blksz)
		return -EINVAL;
	*ret = lane->tail;
	return erofs_metabuf_read(&lane->mb, ino->in_box, ino->nid, ext->pa, lane->tail, (size_t)ext->plen);
}

int erofs_lane_decode(struct lane *lane, const struct erofs_inode *ino, const struct extent *ext,
		      uint8_t *dst, size_t len)
{
	struct codec_request req = {
		.alg = ext->alg,
		.src_len = (size_t)ext->plen,
		.dst = dst,
		.dst_len = len,
		.partial = ext->partial || len < ext->len,
		.blksz = lane->img->blksz,
		.interlace = ext->interlace,
	};
	struct codec_fault fault;
	int err = fetch_stored(lane, ino, ext, &req.src);

	if (err)
		return err;
	lane->pclusters++;
	lane->bytes_in += ext->plen;
	lane->bytes_out += len;
	err = erofs_codec_decode(lane->codec, &req, &fault);
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return erofs_diag_fail(lane->diag, err, AT(ino->nid, ext->la), "no memory to decode");
	return erofs_diag_report(lane->diag, EROFS_FINDING_DATA_DECODE, err, AT(ino->nid, ext->la),
				 "%s pcluster at 0x%" PRIx64 "%s, %" PRIu64 " bytes for %" PRIu64
				 " decoded: %s", erofs_codec_name(ext->alg), ext->pa,
				 ext->meta ? " (inline)" : "", ext->plen, ext->len, fault.text);
}
