/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * image: an opened EROFS image and its extra devices.
 *
 * A struct erofs_image never changes once opened: any number of threads may use one, and one program
 * may open any number of images.
 */
#ifndef EROFS_IMAGE_H
#define EROFS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/diag.h>
#include <erofs/version.h>

EROFS_BEGIN_DECLS

struct erofs_image;

struct erofs_open_options {
	size_t size;			/* sizeof(struct erofs_open_options) */
	uint64_t offset;		/* bytes before the image in its file */
	const char *const *devices;	/* extra devices in the order of their slots, may be NULL */
	unsigned int device_count;
	int ignore_checksum;		/* accept a wrong superblock checksum in silence */
	int super_only;			/* only superblock: no root, no devices, checksum faults warned of */
	int spool;			/* a pipe is copied to an unlinked file in TMPDIR first */
	int find;			/* look for the image in its file; offset is 0 */
};

/**
 * erofs_open() - open an image
 * @path:    file, Android sparse image or block device, "-" is standard input; opened read-only and
 *           never written
 * @options: may be NULL
 * @diag:    receives findings, may be NULL
 * @ret_img: receives the image; close it with erofs_close()
 * Superblock, configuration records, device table, packed and metabox inode, long xattr prefixes and
 * root inode are read and checked.
 * With find, the image may be a stored entry of a zip file (an APEX is one), or begin at any multiple of
 * 512 bytes of another file, which is read once from end to end. Where it is, is told to @diag.
 * Return: 0; -EUCLEAN damaged; -ENOTUNIQ find: several images, all named; -EINVAL no EROFS image (or an
 * option is wrong, or there are more devices than slots); -EOPNOTSUPP feature unknown here; -ENOMEM; errno
 * of open or read.
 */
EROFS_API int erofs_open(const char *path, const struct erofs_open_options *options,
			 struct erofs_diag *diag, struct erofs_image **ret_img);

/** erofs_close() - close an image; nothing made from it may be in use any more. NULL is fine. */
EROFS_API void erofs_close(struct erofs_image *img);

/* The superblock in host order. Source: format.md 2. */
struct erofs_super_info {
	uint32_t block_size;		/* bytes */
	uint32_t super_size;		/* bytes, 128 + 16 * slots */
	uint64_t blocks;		/* of the primary device */
	uint64_t total_blocks;		/* of all devices */
	uint64_t meta_block;		/* base of nids, in blocks */
	uint64_t xattr_block;		/* base of shared xattrs, in blocks */
	uint64_t root_nid, packed_nid, metabox_nid;	/* 0: none (packed, metabox) */
	uint64_t inodes;
	int64_t build_time;		/* seconds since 1970: epoch + build_time */
	uint32_t build_time_nsec;
	uint32_t feature_compat, feature_incompat;
	uint16_t compr_algs;		/* bitmap; only with EROFS_INCOMPAT_COMPR_CFGS */
	uint16_t lz4_max_distance;	/* bytes, 0: default; otherwise only without it */
	uint16_t extra_devices;
	uint8_t uuid[16];
	char volume_name[17];		/* terminated */
	int checksum_ok;		/* 1 right, 0 wrong, -1 the image has none */
};

#define EROFS_COMPAT_SB_CHKSUM			0x01u
#define EROFS_COMPAT_MTIME			0x02u
#define EROFS_COMPAT_XATTR_FILTER		0x04u
#define EROFS_COMPAT_SHARED_EA_IN_METABOX	0x08u
#define EROFS_COMPAT_PLAIN_XATTR_PFX		0x10u
#define EROFS_COMPAT_ISHARE_XATTRS		0x20u

#define EROFS_INCOMPAT_ZERO_PADDING		0x001u
#define EROFS_INCOMPAT_COMPR_CFGS		0x002u	/* also big pclusters */
#define EROFS_INCOMPAT_CHUNKED_FILE		0x004u
#define EROFS_INCOMPAT_DEVICE_TABLE		0x008u	/* also HEAD2 */
#define EROFS_INCOMPAT_ZTAILPACKING		0x010u
#define EROFS_INCOMPAT_FRAGMENTS		0x020u	/* also dedupe */
#define EROFS_INCOMPAT_XATTR_PREFIXES		0x040u
#define EROFS_INCOMPAT_48BIT			0x080u
#define EROFS_INCOMPAT_METABOX			0x100u
#define EROFS_INCOMPAT_ALL			0x1ffu

/** erofs_image_super() - copy out the superblock. Any thread. */
EROFS_API void erofs_image_super(const struct erofs_image *img, struct erofs_super_info *ret_info);

EROFS_END_DECLS

#endif
