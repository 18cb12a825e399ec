// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * The superblock: read, checked in the order of format.md 2.7, and turned into struct super.
 * Configuration records are in super_config.c, the device table in super_devices.c. Inodes that the
 * superblock names are not looked at here: the engine, which can decode, loads them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/crc32c.h"
#include "diag/diag_priv.h"
#include "disk/layout.h"
#include "image/image_priv.h"
#include "meta/meta_priv.h"
#include "meta/super_priv.h"

#define NSEC_PER_SEC 1000000000u

/* Where a field of the superblock is, for reports. */
#define AT_FIELD(field) AT_OFF(DISK_SUPER_OFFSET + offsetof(struct disk_super, field))

int erofs_super_read(const struct super_loader *l, uint64_t off, void *buf, size_t len)
{
	int err = erofs_image_read(l->img, 0, off, buf, len);

	if (err)
		return erofs_diag_fail(l->diag, err, AT_OFF(off), "cannot read the superblock");
	return 0;
}

static int read_raw(struct super_loader *l)
{
	uint64_t size = l->img->devs[0].size, rest;
	char hint[1400];
	int err;

	if (size < DISK_SUPER_OFFSET + DISK_SUPER_BASE)
		return erofs_diag_report(l->diag, EROFS_FINDING_SB_MAGIC, -EINVAL, AT_NOWHERE,
					 "no EROFS image: %" PRIu64
					 " bytes are too few for a superblock (%d)", size,
					 DISK_SUPER_OFFSET + DISK_SUPER_BASE);
	rest = min_u64(size - DISK_SUPER_OFFSET, sizeof(l->raw));
	memset(&l->raw, 0, sizeof(l->raw));
	err = erofs_super_read(l, DISK_SUPER_OFFSET, &l->raw, (size_t)rest);
	if (err)
		return err;
	if (le32_get(l->raw.magic) == DISK_SUPER_MAGIC)
		return 0;
	erofs_super_hint(l->img, hint, sizeof(hint));
	return erofs_diag_report(l->diag, EROFS_FINDING_SB_MAGIC, -EINVAL, AT_OFF(DISK_SUPER_OFFSET),
				 "no EROFS image: wrong magic number (0x%08" PRIx32 ", wanted 0x%08" PRIx32
				 ")%s", le32_get(l->raw.magic), DISK_SUPER_MAGIC, hint);
}

static int check_block_size(const struct super_loader *l)
{
	unsigned int bits = l->raw.blkszbits;

	if (bits < DISK_MIN_BLKBITS)
		return erofs_diag_damage(l->diag, SB_BLKSZ, AT_FIELD(blkszbits),
					 "block size bits are %u (wanted %d to %d)", bits,
					 DISK_MIN_BLKBITS, DISK_MAX_BLKBITS);
	if (bits > DISK_MAX_BLKBITS)
		return erofs_diag_unsupported(l->diag, SB_BLKSZ, AT_FIELD(blkszbits),
					      "block size bits are %u: larger than 64 KiB (wanted"
					      " %d to %d)", bits, DISK_MIN_BLKBITS,
					      DISK_MAX_BLKBITS);
	if (l->raw.dirblkbits)
		return erofs_diag_damage(l->diag, SB_BLKSZ, AT_FIELD(dirblkbits),
					 "directory block bits are %u (wanted 0)",
					 l->raw.dirblkbits);
	l->img->blkbits = bits;
	l->img->blksz = UINT32_C(1) << bits;
	l->sb->info.block_size = l->img->blksz;
	return 0;
}

/* The sum that the block should have, its own field counted as zeros (format.md 2.2). */
static uint32_t sum_block(uint8_t *block, size_t len)
{
	memset(block + offsetof(struct disk_super, checksum), 0, sizeof(struct le32));
	return erofs_crc32c(UINT32_C(0xffffffff), block, len);
}

static int check_checksum(const struct super_loader *l)
{
	uint32_t bs = l->img->blksz, found = le32_get(l->raw.checksum), wanted;
	size_t len = bs > DISK_SUPER_OFFSET ? bs - DISK_SUPER_OFFSET : bs;
	bool quiet = l->options->ignore_checksum || l->options->super_only;
	uint64_t have = l->img->devs[0].size - DISK_SUPER_OFFSET;
	auto_free uint8_t *block = NULL;
	int err;

	l->sb->info.checksum_ok = -1;
	if (!(l->sb->info.feature_compat & EROFS_COMPAT_SB_CHKSUM))
		return 0;
	l->sb->info.checksum_ok = 0;
	if (have < len) {
		if (quiet)
			return 0;
		return erofs_diag_damage(l->diag, SB_CHECKSUM, AT_OFF(DISK_SUPER_OFFSET + have),
					 "the image ends inside the superblock's block: %" PRIu64
					 " of %zu bytes for the checksum", have, len);
	}
	block = malloc(len);
	if (!block)
		return -ENOMEM;
	err = erofs_super_read(l, DISK_SUPER_OFFSET, block, len);
	if (err)
		return err;
	wanted = sum_block(block, len);
	l->sb->info.checksum_ok = found == wanted;
	if (found == wanted || quiet)
		return 0;
	return erofs_diag_damage(l->diag, SB_CHECKSUM, AT_FIELD(checksum),
				 "wrong superblock checksum (0x%08" PRIx32 ", wanted 0x%08" PRIx32
				 ")", found, wanted);
}

static int check_features(struct super_loader *l)
{
	uint32_t unknown = l->sb->info.feature_incompat & ~EROFS_INCOMPAT_ALL;
	unsigned int slots = l->raw.sb_extslots;

	if (unknown)
		return erofs_diag_unsupported(l->diag, SB_FEATURE, AT_FIELD(feature_incompat),
					      "unknown incompatible feature bits 0x%" PRIx32,
					      unknown);
	if (slots > DISK_SUPER_MAX_SLOTS)
		return erofs_diag_damage(l->diag, SB_FIELD, AT_FIELD(sb_extslots),
					 "%u superblock extension slots (at most %d)", slots,
					 DISK_SUPER_MAX_SLOTS);
	l->sb->info.super_size = DISK_SUPER_BASE + DISK_SUPER_SLOT * slots;
	if (!slots)
		memset(&l->raw.metabox_nid, 0, sizeof(l->raw.metabox_nid));
	return 0;
}

/* Root, packed and metabox nid, format.md 2.5 and 10. Loading them shows if inodes are there. */
static int load_nids(const struct super_loader *l)
{
	struct erofs_super_info *info = &l->sb->info;
	uint64_t root = le64_get(l->raw.rootnid_8b);

	info->blocks = le32_get(l->raw.blocks_lo);
	if (info->feature_incompat & EROFS_INCOMPAT_48BIT && root) {
		info->root_nid = root;
		info->blocks |= (uint64_t)le16_get(l->raw.rootnid_2b) << 32;
	} else {
		info->root_nid = le16_get(l->raw.rootnid_2b);
	}
	if (info->feature_incompat & EROFS_INCOMPAT_FRAGMENTS)
		info->packed_nid = le64_get(l->raw.packed_nid);
	if (info->packed_nid & NID_BOX)
		return erofs_diag_damage(l->diag, SB_SPECIAL, AT_FIELD(packed_nid), "packed nid 0x%"
					 PRIx64 " lies in the metabox", info->packed_nid);
	if (!(info->feature_incompat & EROFS_INCOMPAT_METABOX))
		return 0;
	if (info->super_size <= DISK_SUPER_BASE)
		return erofs_diag_damage(l->diag, SB_SPECIAL, AT_FIELD(sb_extslots),
					 "metabox without a superblock extension slot for its nid");
	info->metabox_nid = le64_get(l->raw.metabox_nid);
	if (!info->metabox_nid || info->metabox_nid & NID_BOX)
		return erofs_diag_damage(l->diag, SB_SPECIAL, AT_FIELD(metabox_nid),
					 "metabox nid 0x%" PRIx64 " %s", info->metabox_nid,
					 info->metabox_nid ? "lies in the metabox" : "is none");
	return 0;
}

static void load_times(const struct super_loader *l)
{
	struct super *sb = l->sb;

	sb->epoch = (int64_t)le64_get(l->raw.epoch);
	sb->fixed_nsec = le32_get(l->raw.fixed_nsec);
	if (sb->fixed_nsec >= NSEC_PER_SEC) {
		/* no reader refuses it; all compact inodes get whole seconds */
		erofs_diag_damage(l->diag, SB_FIELD, AT_FIELD(fixed_nsec),
				  "%" PRIu32 " nanoseconds (at most 999999999)", sb->fixed_nsec);
		sb->fixed_nsec = 0;
	}
	sb->info.build_time = sb->epoch;
	sb->info.build_time_nsec = sb->fixed_nsec;
	if (sb->info.feature_incompat & EROFS_INCOMPAT_48BIT)
		sb->info.build_time = (int64_t)((uint64_t)sb->epoch + le32_get(l->raw.build_time));
}

static int load_xattr_fields(const struct super_loader *l)
{
	const struct disk_super *raw = &l->raw;
	struct super *sb = l->sb;
	uint32_t compat = sb->info.feature_compat;

	sb->xattr_base = sb->info.xattr_block << l->img->blkbits;
	sb->xattr_in_box = compat & EROFS_COMPAT_SHARED_EA_IN_METABOX;
	sb->xattr_filter = compat & EROFS_COMPAT_XATTR_FILTER && !raw->xattr_filter_reserved;
	if (sb->info.feature_incompat & EROFS_INCOMPAT_XATTR_PREFIXES) {
		sb->prefix_count = raw->xattr_prefix_count;
		sb->prefix_pos = (uint64_t)le32_get(raw->xattr_prefix_start) * DISK_XATTR_ALIGN;
	}
	sb->ishare_prefix = -1;
	if (!(compat & EROFS_COMPAT_ISHARE_XATTRS))
		return 0;
	if (raw->ishare_xattr_prefix_id >= sb->prefix_count)
		return erofs_diag_damage(l->diag, SB_FIELD, AT_FIELD(ishare_xattr_prefix_id),
					 "content digests have long prefix %u (there are %u)",
					 raw->ishare_xattr_prefix_id, sb->prefix_count);
	sb->ishare_prefix = raw->ishare_xattr_prefix_id;
	return 0;
}

/* Fields that can't be wrong, or only together with others. */
static void load_plain_fields(const struct super_loader *l)
{
	struct erofs_super_info *info = &l->sb->info;
	const struct disk_super *raw = &l->raw;

	info->feature_compat = le32_get(raw->feature_compat);
	info->feature_incompat = le32_get(raw->feature_incompat);
	info->meta_block = le32_get(raw->meta_blkaddr);
	info->xattr_block = le32_get(raw->xattr_blkaddr);
	info->inodes = le64_get(raw->inos);
	memcpy(info->uuid, raw->uuid, sizeof(info->uuid));
	memcpy(info->volume_name, raw->volume_name, sizeof(raw->volume_name));
	info->volume_name[sizeof(raw->volume_name)] = '\0';
	l->sb->meta_base = info->meta_block << l->img->blkbits;
}

static int load_super(struct super_loader *l)
{
	int err = read_raw(l);

	if (err)
		return err;
	err = check_block_size(l);
	if (err)
		return err;
	load_plain_fields(l);
	err = check_checksum(l);
	if (err)
		return err;
	err = check_features(l);
	if (err)
		return err;
	err = load_nids(l);
	if (err)
		return err;
	load_times(l);
	err = load_xattr_fields(l);
	if (err)
		return err;
	err = erofs_super_load_configs(l);
	if (err)
		return err;
	return erofs_super_load_devices(l);
}

int erofs_super_load(struct erofs_image *img, const struct erofs_open_options *options,
		     struct erofs_diag *diag)
{
	auto_free struct super *sb = calloc(1, sizeof(*sb));
	struct super_loader l = { .img = img, .sb = sb, .options = options, .diag = diag };
	int err;

	if (!sb)
		return -ENOMEM;
	err = load_super(&l);
	if (err)
		return err;
	img->super = steal(sb);
	return 0;
}

void erofs_super_free(struct erofs_image *img)
{
	if (img->super) {
		free(img->super->packed);
		free(img->super->metabox);
	}
	free(img->super);
	free(img->prefixes);
	img->super = NULL;
	img->prefixes = NULL;
}

int erofs_super_check_size(const struct erofs_image *img, struct erofs_diag *diag)
{
	/* block counts have 48 bits and block sizes 17 */
	uint64_t size = img->devs[0].size, blocks = img->super->info.blocks;

	if (blocks <= size >> img->blkbits)
		return 0;
	return erofs_diag_damage(diag, SB_SIZE, AT_OFF(size),
				 "the image ends early: %" PRIu64 " bytes, the superblock says %"
				 PRIu64 " blocks of %" PRIu32 " bytes", size, blocks, img->blksz);
}

void erofs_image_super(const struct erofs_image *img, struct erofs_super_info *ret_info)
{
	*ret_info = img->super->info;
}
