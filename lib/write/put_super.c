// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The superblock, written last: what lacks it is no image. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <erofs/image.h>

#include "base/crc32c.h"
#include "write/foreign.h"

static void fill_compression(const struct writer *w, bool records, struct disk_super *sb)
{
	uint32_t incompat = w->has_compressed ? EROFS_INCOMPAT_ZERO_PADDING : 0;

	if (records)
		incompat |= EROFS_INCOMPAT_COMPR_CFGS;
	if (w->has_beside)
		incompat |= EROFS_INCOMPAT_ZTAILPACKING;
	if (w->packed_nid || w->has_twins)
		incompat |= EROFS_INCOMPAT_FRAGMENTS;
	if (w->o->encoded_extents)
		incompat |= EROFS_INCOMPAT_48BIT;
	sb->feature_incompat = le32_of(incompat);
	sb->packed_nid = le64_of(w->packed_nid);
	/* the bitmap, or without records the largest distance of LZ4 */
	sb->compr_algs = le16_of(records ? (uint16_t)w->z.algs : w->z.count ? UINT16_MAX : 0);
}

static void fill_super(const struct writer *w, bool records, struct disk_super *sb)
{
	uint32_t compat = EROFS_COMPAT_MTIME;

	if (!w->o->no_checksum)
		compat |= EROFS_COMPAT_SB_CHKSUM;
	if (w->xattr_count && !w->o->no_xattr_filter)
		compat |= EROFS_COMPAT_XATTR_FILTER;
	if (w->nprefixes && !w->prefixes_packed)
		compat |= EROFS_COMPAT_PLAIN_XATTR_PFX;
	if (w->o->inode_digest) {
		compat |= EROFS_COMPAT_ISHARE_XATTRS;
		sb->ishare_xattr_prefix_id = (uint8_t)w->digest_prefix;
	}
	sb->xattr_prefix_count = (uint8_t)w->nprefixes;
	sb->xattr_prefix_start = le32_of(w->prefix_start);
	sb->magic = le32_of(DISK_SUPER_MAGIC);
	sb->feature_compat = le32_of(compat);
	sb->blkszbits = (uint8_t)w->blkbits;
	sb->rootnid_2b = le16_of((uint16_t)w->feed.root->nid);
	sb->inos = le64_of(w->ninodes);
	sb->epoch = le64_of((uint64_t)w->build_time);
	sb->blocks_lo = le32_of((uint32_t)w->space.next);
	memcpy(sb->uuid, w->uuid, sizeof(sb->uuid));
	fill_compression(w, records, sb);
	if (w->o->label)
		memcpy(sb->volume_name, w->o->label, strlen(w->o->label));
}

static void fill_devices(const struct writer *w, struct disk_super *sb)
{
	uint32_t incompat = le32_get(sb->feature_incompat);

	if (w->o->source_type >= EROFS_WRITE_TAR_INDEX || w->has_chunks)
		incompat |= EROFS_INCOMPAT_CHUNKED_FILE;
	if (w->nprefixes)
		incompat |= EROFS_INCOMPAT_XATTR_PREFIXES;
	if (w->o->dot_omitted)
		incompat |= EROFS_INCOMPAT_48BIT;
	if (w->ndevices)
		incompat |= EROFS_INCOMPAT_DEVICE_TABLE;
	sb->feature_incompat = le32_of(incompat);
	if (!w->ndevices)
		return;
	sb->extra_devices = le16_of((uint16_t)w->ndevices);
	sb->devt_slotoff = le16_of((uint16_t)(round_up_u64(w->super_end, sizeof(struct disk_device)) /
					      sizeof(struct disk_device)));
}

/* Covers the rest of the first block, whatever lies there (format.md 2.2). */
int erofs_super_put(struct writer *w)
{
	uint8_t config[128];
	size_t records = erofs_zconfig_records(w, config);
	size_t len = w->blksz > DISK_SUPER_OFFSET ? w->blksz - DISK_SUPER_OFFSET : w->blksz;
	auto_free uint8_t *buf = NULL;
	struct disk_super sb = { 0 };
	int err;

	if (len < DISK_SUPER_BASE)
		len = DISK_SUPER_BASE;
	if (w->ndevices) {
		err = erofs_device_put(w);
		if (err)
			return err;
	}
	buf = malloc(len);
	if (!buf)
		return -ENOMEM;
	err = erofs_output_write(w, config, records, DISK_SUPER_OFFSET + DISK_SUPER_BASE);
	if (!err)
		err = erofs_output_read(w, &w->out, buf, len, DISK_SUPER_OFFSET);
	if (err)
		return err;
	fill_super(w, records, &sb);
	fill_devices(w, &sb);
	memcpy(buf, &sb, DISK_SUPER_BASE);
	if (!w->o->no_checksum) {
		sb.checksum = le32_of(erofs_crc32c(UINT32_MAX, buf, len));
		memcpy(buf, &sb, DISK_SUPER_BASE);
	}
	return erofs_output_write(w, buf, DISK_SUPER_BASE, DISK_SUPER_OFFSET);
}
