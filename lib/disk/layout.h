/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * disk: structs as they lie on disk, with the field names of format.md, and numbers of the format.
 *
 * All members are arrays of bytes, so there is no padding and no alignment; assertions prove it.
 * Only meta, map and write include this; it knows nothing of reading.
 */
#ifndef EROFS_DISK_LAYOUT_H
#define EROFS_DISK_LAYOUT_H

#include <stdint.h>

#include "base/wire.h"

#define DISK_SIZE_IS(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes) && _Alignof(struct type) == 1, #type)

/* ---- superblock, format.md 2 ---- */

#define DISK_SUPER_OFFSET 1024
#define DISK_SUPER_MAGIC UINT32_C(0xe0f5e1e2)
#define DISK_SUPER_BASE 128		/* bytes without extension slots */
#define DISK_SUPER_SLOT 16		/* bytes of one extension slot */
#define DISK_SUPER_MAX_SLOTS 184	/* superblock and boot area fit one page of 4 KiB */
#define DISK_MIN_BLKBITS 9
#define DISK_MAX_BLKBITS 16

struct disk_super {
	struct le32 magic;
	struct le32 checksum;
	struct le32 feature_compat;
	uint8_t blkszbits;
	uint8_t sb_extslots;
	struct le16 rootnid_2b;		/* or blocks_hi */
	struct le64 inos;
	struct le64 epoch;
	struct le32 fixed_nsec;
	struct le32 blocks_lo;
	struct le32 meta_blkaddr;
	struct le32 xattr_blkaddr;
	uint8_t uuid[16];
	uint8_t volume_name[16];
	struct le32 feature_incompat;
	struct le16 compr_algs;		/* available_compr_algs, or lz4_max_distance */
	struct le16 extra_devices;
	struct le16 devt_slotoff;
	uint8_t dirblkbits;
	uint8_t xattr_prefix_count;
	struct le32 xattr_prefix_start;
	struct le64 packed_nid;
	uint8_t xattr_filter_reserved;
	uint8_t ishare_xattr_prefix_id;
	uint8_t reserved[2];
	struct le32 build_time;
	struct le64 rootnid_8b;
	uint8_t reserved2[8];
	struct le64 metabox_nid;	/* from here on: extension slots */
	uint8_t reserved3[8];
};
DISK_SIZE_IS(disk_super, DISK_SUPER_BASE + DISK_SUPER_SLOT);

/* ---- compression configuration records, format.md 3; each follows a le16 length ---- */

struct disk_config_lz4 {
	struct le16 max_distance;
	struct le16 max_pclusterblks;
	uint8_t reserved[10];
};
DISK_SIZE_IS(disk_config_lz4, 14);

struct disk_config_lzma {
	struct le32 dict_size;
	struct le16 format;
	uint8_t reserved[8];
};
DISK_SIZE_IS(disk_config_lzma, 14);

struct disk_config_deflate {
	uint8_t windowbits;
	uint8_t reserved[5];
};
DISK_SIZE_IS(disk_config_deflate, 6);

struct disk_config_zstd {
	uint8_t format;
	uint8_t windowlog;		/* minus 10 */
	uint8_t reserved[4];
};
DISK_SIZE_IS(disk_config_zstd, 6);

#define DISK_LZ4_MAX_PCLUSTERBLKS 256
#define DISK_LZMA_MIN_DICT UINT32_C(4096)
#define DISK_LZMA_MAX_DICT (UINT32_C(8) << 20)
#define DISK_DEFLATE_MAX_WINDOWBITS 15
#define DISK_ZSTD_WINDOWLOG_BASE 10
#define DISK_ZSTD_MAX_WINDOWLOG 10	/* above the base: 1 MiB */

/* ---- device slots, format.md 4.1 ---- */

#define DISK_DEVICE_SLOT 128

struct disk_device {
	uint8_t tag[64];
	struct le32 blocks_lo;
	struct le32 uniaddr_lo;
	struct le16 blocks_hi;
	struct le16 uniaddr_hi;
	uint8_t reserved[52];
};
DISK_SIZE_IS(disk_device, DISK_DEVICE_SLOT);

/* ---- inodes, format.md 5 ---- */

#define DISK_NID_SHIFT 5		/* log2 of an inode slot */

#define DISK_INODE_EXTENDED 0x01u	/* i_format */
#define DISK_INODE_LAYOUT_SHIFT 1
#define DISK_INODE_LAYOUT_MASK 7u
#define DISK_INODE_BIT4 0x10u		/* directory: no "."; compact file: i_nb is an address */
#define DISK_INODE_FORMAT_ALL 0x1fu

struct disk_inode_compact {
	struct le16 i_format;
	struct le16 i_xattr_icount;
	struct le16 i_mode;
	struct le16 i_nb;
	struct le32 i_size;
	struct le32 i_mtime;
	struct le32 i_u;
	struct le32 i_ino;
	struct le16 i_uid;
	struct le16 i_gid;
	uint8_t reserved[4];
};
DISK_SIZE_IS(disk_inode_compact, 32);

struct disk_inode_extended {
	struct le16 i_format;
	struct le16 i_xattr_icount;
	struct le16 i_mode;
	struct le16 i_nb;
	struct le64 i_size;
	struct le32 i_u;
	struct le32 i_ino;
	struct le32 i_uid;
	struct le32 i_gid;
	struct le64 i_mtime;
	struct le32 i_mtime_nsec;
	struct le32 i_nlink;
	uint8_t reserved[16];
};
DISK_SIZE_IS(disk_inode_extended, 64);

#define DISK_NULL_BLK32 UINT32_C(0xffffffff)
#define DISK_NULL_BLK48 UINT64_C(0xffffffffffff)
#define DISK_SYMLINK_MAX 4095

/* ---- chunks, format.md 6.3 ---- */

#define DISK_CHUNK_BITS 0x1fu
#define DISK_CHUNK_INDEXES 0x20u
#define DISK_CHUNK_48BIT 0x40u
#define DISK_CHUNK_ALL 0x7fu

struct disk_chunk_index {
	struct le16 startblk_hi;
	struct le16 device_id;
	struct le32 startblk_lo;
};
DISK_SIZE_IS(disk_chunk_index, 8);

/* ---- directories, format.md 7 ---- */

#define DISK_NAME_MAX 255

struct disk_dirent {
	struct le64 nid;
	struct le16 nameoff;
	uint8_t file_type;
	uint8_t reserved;
};
DISK_SIZE_IS(disk_dirent, 12);

/* ---- xattrs, format.md 8 ---- */

struct disk_xattr_header {
	struct le32 h_name_filter;
	uint8_t h_shared_count;
	uint8_t reserved[7];
	/* le32 ids and entries follow */
};
DISK_SIZE_IS(disk_xattr_header, 12);

struct disk_xattr_entry {
	uint8_t e_name_len;
	uint8_t e_name_index;
	struct le16 e_value_size;
	/* suffix and value follow */
};
DISK_SIZE_IS(disk_xattr_entry, 4);

struct disk_xattr_prefix {
	struct le16 len;		/* of base_index and infix */
	uint8_t base_index;
	/* infix follows */
};
DISK_SIZE_IS(disk_xattr_prefix, 3);

#define DISK_XATTR_ALIGN 4
#define DISK_XATTR_LONG 0x80u		/* e_name_index: the rest is a long prefix's id */
#define DISK_XATTR_FILTER_SEED UINT32_C(0x25bbe08f)
#define DISK_XATTR_NAME_MAX 255
#define DISK_XATTR_VALUE_MAX 65535

/* ---- compressed files, format.md 9 ---- */

struct disk_map_header {
	struct le32 h_fragmentoff;	/* or h_extents_lo; its upper half is h_idata_size */
	struct le16 h_advise;
	uint8_t h_algorithmtype;	/* this and the next byte: h_extents_hi */
	uint8_t h_clusterbits;
};
DISK_SIZE_IS(disk_map_header, 8);

struct disk_full_index {
	struct le16 di_advise;
	struct le16 di_clusterofs;
	struct le32 di_u;		/* blkaddr, or delta[0] and delta[1] */
};
DISK_SIZE_IS(disk_full_index, 8);

/* Record of an encoded extent. Shorter forms are its first 4, 8 or 16 bytes. */
struct disk_extent {
	struct le32 plen;
	struct le32 pstart_lo;
	struct le32 pstart_hi;
	struct le32 lstart_lo;
	struct le32 lstart_hi;
	uint8_t reserved[12];
};
DISK_SIZE_IS(disk_extent, 32);

#endif
