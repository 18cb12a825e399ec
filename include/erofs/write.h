/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* write: make an image of a directory tree or a tar archive, the same byte for byte on every run. */
#ifndef EROFS_WRITE_H
#define EROFS_WRITE_H

#include <erofs/digest.h>
#include <erofs/engine.h>
#include <erofs/verify.h>

EROFS_BEGIN_DECLS

enum erofs_write_inodes {
	EROFS_WRITE_INODES_AUTO,	/* compact where nothing is lost */
	EROFS_WRITE_INODES_COMPACT,	/* times of files become the build time */
	EROFS_WRITE_INODES_EXTENDED,
};

enum erofs_write_source {
	EROFS_WRITE_DIRECTORY,
	EROFS_WRITE_TAR,		/* also compressed; source "-" is standard input */
	EROFS_WRITE_TAR_INDEX,		/* the same without contents: the archive, unpacked, is the image's device,
					   or is appended to it; blocks of 512 bytes */
	EROFS_WRITE_TAR_HEADERS,	/* headers without contents, not compressed: all files are holes */
	EROFS_WRITE_IMAGES,		/* later sources cover earlier ones; each is a device of the image */
};

enum erofs_write_sort {
	EROFS_WRITE_SORT_PATH,		/* contents in the order of the tree */
	EROFS_WRITE_SORT_NONE,		/* in that of the archive */
};

enum erofs_write_chunk_map {
	EROFS_WRITE_CHUNK_AUTO,		/* the shortest */
	EROFS_WRITE_CHUNK_BLOCKMAP,	/* 4 bytes a chunk; not with a blob */
	EROFS_WRITE_CHUNK_INDEXES,	/* 8 bytes */
};

struct erofs_write_options {
	size_t size;			/* sizeof(struct erofs_write_options) */
	const char *output;		/* file, device, or /dev/fd/N */
	const char *source;		/* directory, or what source_type says */
	const char *const *sources;	/* EROFS_WRITE_IMAGES, ends with NULL; their block size is the image's */
	uint32_t block_size;		/* 512 to 65536, 0: 4096 */
	int has_uuid;			/* 0: random */
	uint8_t uuid[16];
	const char *label;		/* at most 15 bytes, NULL: none */
	int has_time;			/* 0: now */
	int64_t time;			/* of the build, seconds since 1970 */
	int all_time;			/* all files get the build time */
	const uint32_t *force_uid, *force_gid;	/* NULL: as in the source */
	uint32_t uid_offset, gid_offset;	/* added to what is not forced, modulo 2^32 */
	int no_xattrs;			/* but what aufs asks for */
	uint32_t xattr_tolerance;	/* an attribute of more inodes than this is stored once */
	const char *const *exclude_paths;	/* relative to the source; ends with NULL, may be NULL */
	const char *const *exclude_regexes;	/* POSIX extended, searched in the relative path */
	enum erofs_write_inodes inodes;
	int no_inline_data;		/* data of regular files in whole blocks only */
	int no_checksum;		/* of the superblock */
	int no_xattr_filter;		/* no hints for the kernel which attributes an inode cannot have */
	enum erofs_write_source source_type;
	enum erofs_write_sort sort;
	int aufs;			/* names of aufs that hide lower layers become overlayfs's marks */
	int ovlfs_strip;		/* overlayfs's marks are left out */
	/* Android: lists of what is where on the device, by paths below the mount point */
	const char *mount_point;	/* "/vendor", "vendor", NULL: "/" */
	const char *fs_config_file;	/* owners, modes, capabilities of all files; NULL: the source's */
	const char *file_contexts;	/* labels; NULL: the source's */
	const char *block_list_file;	/* is written: blocks of regular files; NULL: none */
	int hard_dereference;		/* each name gets an inode of its own */
	int fsync;			/* flush before the image gets its name */
	/* compression; all of the rest needs @compressors */
	const char *compressors;	/* "lz4hc,9:zstd,level=19,dictsize=65536"; NULL: none */
	const char *compress_hints;	/* file of lines "SIZE [INDEX] REGEX"; NULL: none */
	uint32_t pcluster_size;		/* largest, bytes; 0: one block */
	uint32_t packed_pcluster_size;	/* of the packed file; 0: the same */
	uint32_t max_extent_bytes;	/* decoded; 0: as many as the format allows */
	int ztailpacking;		/* ends of files beside their inodes, compressed */
	int fragments;			/* ends of files into the packed file */
	int all_fragments;		/* all of every file into the packed file */
	int compress_dirs;		/* contents of directories into the packed file */
	int dedupe;			/* pclusters whose contents are equal only once */
	int legacy_compress;		/* full indexes, not compact ones */
	int encoded_extents;		/* 48-bit image */
	/* what is not compressed in chunks, of which equal ones are stored once and zeros not at all */
	uint32_t chunk_size;		/* power of two from the block size to 1 GiB; 0: no chunks */
	const char *blob;		/* file or device for the chunks; NULL: into the image */
	enum erofs_write_chunk_map chunk_map;
	uint64_t offset;		/* the image begins there in its file; what is in front stays */
	int android_sparse;		/* the output is an Android sparse image; it is made in TMPDIR */
	/* attributes */
	const char *const *xattr_prefixes;	/* stored once; ends with NULL, may be NULL */
	int plain_xattr_prefixes;	/* their table is never in the packed file */
	uint32_t root_xattr_room;	/* least bytes of the root's attributes, up to 262140 */
	const char *inode_digest;	/* attribute with the SHA-256 of each file's contents; NULL: none */
	int dot_omitted;		/* no "." in directories; 48-bit image */
	int no_fragment_dedupe;		/* equal fragments are stored each */
	/* what is done with the image before it gets its name */
	const struct erofs_mtree_options *manifest;	/* of all of it, is written first; NULL: none */
	int verify;			/* it is read back and compared with what was put in */
	erofs_compare_fn difference;	/* of that, may be NULL; in the calling thread */
	void *difference_priv;
};

struct erofs_write_result {
	uint64_t blocks, inodes, meta_blocks;
	uint64_t deduplicated;		/* bytes of the source that are in the image once */
	uint32_t block_size;
	uint8_t uuid[16];
	struct erofs_compare_result verified;	/* filled also after an error */
	/* inodes of each kind, names of hard links beyond the first, and the bytes of all regular files */
	uint64_t files, directories, symlinks, specials, hard_links, bytes;
	uint64_t image_bytes;		/* of the output; 0: it was not completed */
};

/**
 * erofs_write() - make an image
 * @eng:        erofs_engine_cancel() stops the run
 * @diag:       receives failures, and warnings of what was left out; not flushed
 * @ret_result: may be NULL
 * A regular output file is written under a temporary name and renamed at the end, so that an
 * unsuccessful run leaves the old file or none. Options are checked before anything is touched.
 * With verify the wanted metadata are those that the options make of the source; contents are read from it
 * again. What stays on other devices (EROFS_WRITE_TAR_INDEX, EROFS_WRITE_IMAGES) is not read.
 * SHA-256 in the manifest is of the bytes as they went into the image. With xattrs, which ask for fs-verity
 * too, and for EROFS_WRITE_IMAGES, all contents are read back from the image.
 * Return: 0; -EINVAL an option is wrong (reported); -ECANCELED; -EUCLEAN verify found differences, or
 * damage (reported); -ENOSPC… (reported).
 */
EROFS_API int erofs_write(const struct erofs_write_options *options, struct erofs_engine *eng,
			  struct erofs_diag *diag, struct erofs_write_result *ret_result);

/** erofs_compressors() - names that @compressors may hold, separated by a comma and a blank */
EROFS_API const char *erofs_compressors(void);

EROFS_END_DECLS

#endif
