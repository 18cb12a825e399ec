// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The device table (format.md 4): slots become img->devs[1] and so on. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "diag/diag_priv.h"
#include "image/image_priv.h"
#include "meta/super_priv.h"

#define SLOTS_AT_ONCE 32	/* 4 KiB */

static int grow_devices(struct erofs_image *img, unsigned int extra)
{
	struct image_device *devs = realloc(img->devs, (1 + (size_t)extra) * sizeof(*devs));

	if (!devs)
		return -ENOMEM;
	memset(devs + 1, 0, extra * sizeof(*devs));
	img->devs = devs;
	img->ndevs = 1 + extra;
	return 0;
}

static void fill_device(const struct super_loader *l, const struct disk_device *raw,
			struct image_device *dev)
{
	uint64_t addr = le32_get(raw->uniaddr_lo);

	dev->blocks = le32_get(raw->blocks_lo);
	if (l->sb->info.feature_incompat & EROFS_INCOMPAT_48BIT) {
		dev->blocks |= (uint64_t)le16_get(raw->blocks_hi) << 32;
		addr |= (uint64_t)le16_get(raw->uniaddr_hi) << 32;
	}
	dev->uniaddr = addr << l->img->blkbits;	/* 48 + 16 bits at most */
}

static int load_slots(const struct super_loader *l, uint64_t pos, unsigned int extra)
{
	struct disk_device raw[SLOTS_AT_ONCE];
	unsigned int done, i, n;
	int err;

	for (done = 0; done < extra; done += n) {
		n = (unsigned int)min_u64(extra - done, SLOTS_AT_ONCE);
		err = erofs_super_read(l, pos + (uint64_t)done * sizeof(*raw), raw,
				       n * sizeof(*raw));
		if (err)
			return err;
		for (i = 0; i < n; i++)
			fill_device(l, &raw[i], &l->img->devs[1 + done + i]);
	}
	return 0;
}

static int load_table(const struct super_loader *l)
{
	uint64_t pos = (uint64_t)le16_get(l->raw.devt_slotoff) * DISK_DEVICE_SLOT;
	uint64_t len = (uint64_t)l->sb->info.extra_devices * DISK_DEVICE_SLOT;
	int err;

	if (!range_ok(pos, len, l->img->devs[0].size))
		return erofs_diag_damage(l->diag, SB_DEVICE, AT_OFF(pos),
					 "table of %u extra devices: behind the end of the image (%"
					 PRIu64 " bytes)", l->sb->info.extra_devices,
					 l->img->devs[0].size);
	err = grow_devices(l->img, l->sb->info.extra_devices);
	if (err)
		return err;
	return load_slots(l, pos, l->sb->info.extra_devices);
}

static int open_devices(const struct super_loader *l)
{
	const struct erofs_open_options *o = l->options;
	unsigned int i;
	int err;

	if (o->device_count > l->sb->info.extra_devices)
		return erofs_diag_fail(l->diag, -EINVAL, AT_NOWHERE,
				       "%u extra devices given, the image has %u", o->device_count,
				       l->sb->info.extra_devices);
	for (i = 0; i < o->device_count; i++) {
		err = erofs_image_add_device(l->img, 1 + i, o->devices[i], l->diag);
		if (err)
			return err;
	}
	return 0;
}

int erofs_super_load_devices(const struct super_loader *l)
{
	struct super *sb = l->sb;
	unsigned int i;
	int err;

	l->img->devs[0].blocks = sb->info.blocks;
	if (sb->info.feature_incompat & EROFS_INCOMPAT_DEVICE_TABLE)
		sb->info.extra_devices = le16_get(l->raw.extra_devices);
	/* the smallest 2^n - 1 that holds every id */
	while (sb->dev_mask < sb->info.extra_devices)
		sb->dev_mask = (uint16_t)(sb->dev_mask << 1 | 1);
	if (sb->info.extra_devices) {
		err = load_table(l);
		if (err)
			return err;
	}
	if (!l->options->super_only) {
		err = open_devices(l);
		if (err)
			return err;
	}
	for (i = 0; i < l->img->ndevs; i++)
		sb->info.total_blocks += l->img->devs[i].blocks;	/* 65536 times 48 bits at most */
	return erofs_image_settle(l->img, l->diag);
}
