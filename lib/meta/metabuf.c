// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Metadata reads: a small direct-mapped cache of pages of the primary device, and the way into the
 * metabox file, which the engine decodes and caches itself.
 *
 * Neighbouring pages have neighbouring slots, so one pread can fill several.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/checked.h"
#include "diag/diag_priv.h"
#include "meta/meta_priv.h"

#define METABUF_PAGE (UINT32_C(1) << METABUF_BITS)
/*
 * Pages that one pread fetches, aligned. A walk of the linux tree (80 MB of metadata and inline data) took
 * 50 ms with two workers and 64 with one; with 1 page 47 and 62 but four times the system calls, with 16
 * pages 58 and 76.
 */
#define METABUF_GROUP 4

int erofs_metabuf_init(struct metabuf *mb, struct erofs_image *img, struct erofs_diag *diag)
{
	memset(mb, 0, sizeof(*mb));
	mb->img = img;
	mb->diag = diag;
	mb->mask = METABUF_SLOTS - 1;
	mb->mem = malloc((size_t)METABUF_SLOTS << METABUF_BITS);
	return mb->mem ? 0 : -ENOMEM;
}

void erofs_metabuf_jump(struct metabuf *mb)
{
	mb->jumps = true;
	mb->mask = METABUF_JUMP_SLOTS - 1;
}

void erofs_metabuf_fini(struct metabuf *mb)
{
	free(mb->mem);
	mb->mem = NULL;
}

uint64_t erofs_metabuf_end(const struct metabuf *mb, bool in_box)
{
	const struct super *sb = mb->img->super;

	if (!in_box)
		return mb->img->devs[0].size;
	/* the metabox inode itself is loaded before there is a box, and can't lie in it */
	return mb->late.read_metabox && sb && sb->metabox ? sb->metabox->size : 0;
}

static unsigned int slot_of(const struct metabuf *mb, uint64_t page)
{
	return (unsigned int)page & mb->mask;
}

/* Read @pages pages from @page on into their slots. 0, -EIO… */
static int read_pages(struct metabuf *mb, uint64_t page, unsigned int pages)
{
	unsigned int slot = slot_of(mb, page), i;
	uint64_t pos = page << METABUF_BITS;
	uint64_t size = min_u64((uint64_t)pages << METABUF_BITS, mb->img->devs[0].size - pos);
	ssize_t n;

	for (i = 0; i < pages; i++)
		mb->tag[slot + i] = 0;
	n = erofs_image_read_some(mb->img, 0, pos, mb->mem + ((size_t)slot << METABUF_BITS), (size_t)size);
	if (n < 0)
		return (int)n;
	for (i = 0; i < pages && n > 0; i++) {
		uint32_t valid = (uint32_t)min_u64((uint64_t)n, METABUF_PAGE);

		mb->tag[slot + i] = page + i + 1;
		mb->valid[slot + i] = valid;
		n -= valid;
	}
	return 0;
}

/* Read @page and its neighbours. */
static int fill_slots(struct metabuf *mb, uint64_t page)
{
	int err = mb->jumps ? -EIO : read_pages(mb, page & ~(uint64_t)(METABUF_GROUP - 1), METABUF_GROUP);

	/* one of the neighbours may be what is broken */
	return err ? read_pages(mb, page, 1) : 0;
}

/* Copy from pages; [off, off + len) lies inside the device. */
static int copy_pages(struct metabuf *mb, uint64_t off, uint8_t *buf, size_t len)
{
	while (len) {
		uint64_t page = off >> METABUF_BITS;
		unsigned int slot = slot_of(mb, page);
		uint32_t in_page = (uint32_t)off & (METABUF_PAGE - 1);
		size_t n = (size_t)min_u64(len, METABUF_PAGE - in_page);
		int err;

		if (mb->tag[slot] != page + 1) {
			err = fill_slots(mb, page);
			if (err)
				return err;
		}
		/* the file shrank since it was opened */
		if (mb->tag[slot] != page + 1 || in_page + n > mb->valid[slot])
			return -EIO;
		memcpy(buf, mb->mem + ((size_t)slot << METABUF_BITS) + in_page, n);
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

int erofs_metabuf_read(struct metabuf *mb, bool in_box, uint64_t nid, uint64_t off, void *buf,
		       size_t len)
{
	uint64_t page = off >> METABUF_BITS, end;
	unsigned int slot = slot_of(mb, page);
	uint32_t in_page = (uint32_t)off & (METABUF_PAGE - 1);
	int err;

	if (!in_box && mb->tag[slot] == page + 1 && range_ok(in_page, len, mb->valid[slot])) {
		memcpy(buf, mb->mem + ((size_t)slot << METABUF_BITS) + in_page, len);
		return 0;
	}
	end = erofs_metabuf_end(mb, in_box);
	if (!range_ok(off, len, end))
		return erofs_diag_damage(mb->diag, META_RANGE, AT(nid, off),
					 "%zu bytes of metadata: behind the end of the %s (%" PRIu64
					 " bytes)", len, in_box ? "metabox" : "image", end);
	if (!len)
		return 0;
	if (in_box)
		return mb->late.read_metabox(mb->late.arg, off, buf, len);
	err = copy_pages(mb, off, buf, len);
	if (err)
		return erofs_diag_fail(mb->diag, err, AT(nid, off), "cannot read metadata");
	return 0;
}

ssize_t erofs_metabuf_peek(struct metabuf *mb, bool in_box, uint64_t off, void *buf, size_t len)
{
	uint64_t end = erofs_metabuf_end(mb, in_box);
	int err;

	if (off >= end)
		return 0;
	len = (size_t)min_u64(len, end - off);
	err = in_box ? mb->late.read_metabox(mb->late.arg, off, buf, len) :
		       copy_pages(mb, off, buf, len);
	return err ? err : (ssize_t)len;
}
