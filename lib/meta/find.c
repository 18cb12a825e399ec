// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Images that lie somewhere in a file: in stored entries of a zip file, or at any multiple of 512 bytes
 * of anything else. The latter reads the file once from end to end; what lies inside of an image that
 * was found is part of it and passed over.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "diag/diag_priv.h"
#include "image/container.h"
#include "meta/super_priv.h"

#define FIND_STEP 512
#define FIND_BUFFER (UINT32_C(1) << 20)
#define FIND_SHOWN 16		/* candidates that are named */

struct finder {
	const struct source *src;
	struct erofs_diag *diag;	/* candidates are told to it; NULL: to nobody */
	bool several;			/* as what is wrong, not by the way */
	unsigned int count;
	uint64_t offset, size;		/* of the first one */
	struct zip_entry first;		/* if it is an entry */
	char packed[ZIP_NAME];		/* an entry that looks like an image, but is compressed */
};

/* Could this be a superblock? Then the bytes of its image, else 0. */
static uint64_t plausible_size(const struct disk_super *raw)
{
	uint64_t blocks = le32_get(raw->blocks_lo);
	uint32_t incompat = le32_get(raw->feature_incompat);

	if (le32_get(raw->magic) != DISK_SUPER_MAGIC || raw->blkszbits < DISK_MIN_BLKBITS ||
	    raw->blkszbits > DISK_MAX_BLKBITS || raw->dirblkbits ||
	    raw->sb_extslots > DISK_SUPER_MAX_SLOTS || incompat & ~EROFS_INCOMPAT_ALL)
		return 0;
	if (incompat & EROFS_INCOMPAT_48BIT && le64_get(raw->rootnid_8b))
		blocks |= (uint64_t)le16_get(raw->rootnid_2b) << 32;
	return blocks << raw->blkszbits;
}

static void note(struct finder *f, uint64_t offset, uint64_t size, const struct zip_entry *entry)
{
	char name[4 * ZIP_NAME];

	if (!f->count++) {
		f->offset = offset;
		f->size = size;
		if (entry)
			f->first = *entry;
	}
	if (!f->several || f->count > FIND_SHOWN)
		return;
	erofs_escape_name(entry ? entry->name : "", entry ? strlen(entry->name) : 0, name, sizeof(name));
	erofs_diag_report(f->diag, EROFS_FINDING_FAIL, -ENOTUNIQ, AT_OFF(offset),
			  "an EROFS image of %" PRIu64 " bytes%s%s: --offset=%" PRIu64 " reads it", size,
			  entry ? ", entry " : "", name, offset);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len >= n && !strcmp(name + len - n, suffix);
}

static int look_at_entry(void *arg, const struct zip_entry *e)
{
	struct finder *f = arg;
	struct disk_super raw;

	if (!e->stored) {
		if (!*f->packed && (has_suffix(e->name, ".img") || has_suffix(e->name, ".erofs") ||
				    !strcmp(e->name, "original_apex")))
			memcpy(f->packed, e->name, sizeof(f->packed));
		return 0;
	}
	if (e->size < DISK_SUPER_OFFSET + sizeof(raw) ||
	    f->src->ops->read(f->src, e->pos + DISK_SUPER_OFFSET, &raw, sizeof(raw)) != sizeof(raw))
		return 0;
	if (plausible_size(&raw))
		note(f, e->pos, e->size, e);
	return 0;
}

/* What a superblock at @offset takes: @buf has the bytes from its superblock on. */
static uint64_t look_at_sector(struct finder *f, uint64_t offset, const uint8_t *buf, size_t len)
{
	struct disk_super raw = { 0 };
	uint64_t size;

	memcpy(&raw, buf, (size_t)min_u64(len, sizeof(raw)));
	size = plausible_size(&raw);
	if (!size)
		return FIND_STEP;
	note(f, offset, size, NULL);
	return range_ok(offset, size, f->src->size) ? round_up_u64(size, FIND_STEP) : FIND_STEP;
}

static int scan(struct finder *f)
{
	auto_free uint8_t *buf = malloc(FIND_BUFFER);
	uint64_t offset = 0;

	if (!buf)
		return -ENOMEM;
	while (range_ok(offset, DISK_SUPER_OFFSET + DISK_SUPER_BASE, f->src->size)) {
		uint64_t pos = offset + DISK_SUPER_OFFSET, at;
		ssize_t n = f->src->ops->read(f->src, pos, buf, FIND_BUFFER);

		if (n < 0)
			return erofs_diag_fail(f->diag, (int)n, AT_OFF(pos), "cannot read");
		for (at = 0; at < (uint64_t)n && (uint64_t)n - at >= DISK_SUPER_BASE;)
			at += look_at_sector(f, pos + at - DISK_SUPER_OFFSET, buf + at, (size_t)((uint64_t)n - at));
		/* sectors divide the buffer, so at most the end of the file is left over */
		offset += at ? at : FIND_STEP;
	}
	return 0;
}

static int find_all(struct finder *f)
{
	int err;

	if (!erofs_zip_is(f->src))
		return scan(f);
	err = erofs_zip_walk(f->src, look_at_entry, f);
	return err == -EINVAL ? erofs_diag_report(f->diag, EROFS_FINDING_FAIL, err, AT_NOWHERE,
						  "a zip file whose directory cannot be read") : err;
}

int erofs_super_find(struct erofs_image *img, struct erofs_diag *diag)
{
	struct image_device *dev = &img->devs[0];
	struct finder f = { .src = dev->src, .diag = diag };
	char name[4 * ZIP_NAME];
	int err = find_all(&f);

	if (err)
		return err;
	erofs_escape_name(f.count ? f.first.name : f.packed, strlen(f.count ? f.first.name : f.packed), name,
			  sizeof(name));
	if (!f.count)
		return erofs_diag_report(diag, EROFS_FINDING_SB_MAGIC, -EINVAL, AT_NOWHERE,
					 "no EROFS image found in it%s%s%s", *name ? ": entry " : "", name,
					 *name ? " is compressed, unpack it first" : "");
	if (f.count > 1) {
		f = (struct finder){ .src = dev->src, .diag = diag, .several = true };
		(void)find_all(&f);
		return erofs_diag_report(diag, EROFS_FINDING_FAIL, -ENOTUNIQ, AT_NOWHERE,
					 "%u EROFS images found: choose one with --offset", f.count);
	}
	erofs_diag_note(diag, IMAGE_FOUND, AT_OFF(f.offset), "an EROFS image of %" PRIu64 " bytes%s%s", f.size,
			*name ? ", entry " : "", name);
	dev->start = f.offset;
	/* an entry ends where the next one begins; elsewhere nobody knows better than the superblock */
	dev->size = *f.first.name ? f.size : dev->src->size - f.offset;
	return 0;
}

void erofs_super_hint(const struct erofs_image *img, char *buf, size_t size)
{
	const struct image_device *dev = &img->devs[0];
	struct finder f = { .src = dev->src };
	const char *what = erofs_container_name(dev->src, dev->start);
	char name[4 * ZIP_NAME];

	*buf = '\0';
	if (what)
		snprintf(buf, size, ": this is %s", what);
	if (dev->start || !erofs_zip_is(dev->src) || erofs_zip_walk(dev->src, look_at_entry, &f))
		return;
	erofs_escape_name(f.count ? f.first.name : f.packed, strlen(f.count ? f.first.name : f.packed), name,
			  sizeof(name));
	if (f.count)
		snprintf(buf, size, ": this is a zip file with an EROFS image at %" PRIu64
			 ": --offset=%" PRIu64 " or --offset=auto reads it (entry %s)", f.offset, f.offset,
			 name);
	else if (*name)
		snprintf(buf, size, ": this is a zip file whose entry %s is compressed, unpack it first", name);
}
