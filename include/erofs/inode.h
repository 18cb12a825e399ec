/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* inode, directory, xattr, extents, contents: looking inside an image. */
#ifndef EROFS_INODE_H
#define EROFS_INODE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <erofs/image.h>

EROFS_BEGIN_DECLS

/* An inode never changes once loaded; any number of threads may use it. It must not outlive its image. */
struct erofs_inode;

struct erofs_stat {
	uint64_t nid;
	uint64_t size;			/* bytes */
	uint64_t stored;		/* bytes on disk, as far as the inode tells */
	uint32_t mode;			/* type and permission bits */
	uint32_t nlink, uid, gid;
	uint32_t rdev_major, rdev_minor;
	int64_t mtime;			/* seconds since 1970 */
	uint32_t mtime_nsec;
	unsigned int layout;		/* format.md 5.2: 0 to 4 */
	unsigned int inode_size;	/* bytes, 32 or 64 */
	unsigned int xattr_size;	/* bytes of the inline xattr area */
};

/** erofs_inode_open() - load the inode @nid; free with erofs_inode_close(). 0, -EUCLEAN, -EOPNOTSUPP, -EIO, -ENOMEM. */
EROFS_API int erofs_inode_open(struct erofs_image *img, uint64_t nid, struct erofs_diag *diag,
			       struct erofs_inode **ret_ino);
EROFS_API void erofs_inode_close(struct erofs_inode *ino);
EROFS_API void erofs_inode_stat(const struct erofs_inode *ino, struct erofs_stat *ret_stat);

/**
 * erofs_lookup() - find the nid of a path, without following symlinks
 * @path: bytes; with or without a leading slash; empty parts, "." and ".." are resolved inside the image
 * Return: 0, -ENOENT, -ENOTDIR (a part is no directory), -EUCLEAN, …
 */
EROFS_API int erofs_lookup(struct erofs_image *img, const char *path, struct erofs_diag *diag,
			   uint64_t *ret_nid);

/**
 * erofs_pread() - read contents of a regular file, a symlink's target or a directory's raw blocks
 * Any number of threads may read one inode.
 * Return: bytes read, 0 at or behind the end; -EUCLEAN, -EOPNOTSUPP, -ENODEV, -EIO, -ENOMEM.
 */
EROFS_API ssize_t erofs_pread(const struct erofs_inode *ino, struct erofs_diag *diag, void *buf, size_t len,
			      uint64_t off);

struct erofs_entry {
	uint64_t nid;
	unsigned int type;		/* format.md 7.1: 0 unknown, 1 file, 2 directory, … */
	const char *name;		/* not terminated, valid until the next call */
	size_t len;
};

struct erofs_dir;

/** erofs_dir_open() - list a directory in stored order. 0, -ENOTDIR, -ENOMEM. */
EROFS_API int erofs_dir_open(const struct erofs_inode *ino, struct erofs_diag *diag, struct erofs_dir **ret_dir);
EROFS_API void erofs_dir_close(struct erofs_dir *dir);
/** erofs_dir_next() - 1 an entry, 0 the end, negative errno. One thread per struct erofs_dir. */
EROFS_API int erofs_dir_next(struct erofs_dir *dir, struct erofs_entry *ret_entry);

struct erofs_extent_info {
	uint64_t la, len;		/* bytes of the file */
	uint64_t pa, plen;		/* bytes on the device; fragments: 0, 0 */
	unsigned int dev;		/* 0: the primary device */
	int hole, fragment, compressed;	/* flags */
};

struct erofs_extents;

/** erofs_extents_open() - list a file's extents in order. 0, -EUCLEAN, -ENOMEM. */
EROFS_API int erofs_extents_open(const struct erofs_inode *ino, struct erofs_diag *diag,
				 struct erofs_extents **ret_extents);
EROFS_API void erofs_extents_close(struct erofs_extents *extents);
/** erofs_extents_next() - 1 an extent, 0 the end, negative errno. One thread per struct erofs_extents. */
EROFS_API int erofs_extents_next(struct erofs_extents *extents, struct erofs_extent_info *ret_extent);

struct erofs_xattr {
	const char *name;		/* terminated, valid until the next call */
	const void *value;
	size_t size;
};

struct erofs_xattrs;

/** erofs_xattrs_open() - list an inode's extended attributes (not the hidden ones). 0, -EUCLEAN, -ENOMEM. */
EROFS_API int erofs_xattrs_open(const struct erofs_inode *ino, struct erofs_diag *diag,
				struct erofs_xattrs **ret_xattrs);
EROFS_API void erofs_xattrs_close(struct erofs_xattrs *xattrs);
EROFS_API int erofs_xattrs_next(struct erofs_xattrs *xattrs, struct erofs_xattr *ret_xattr);

EROFS_END_DECLS

#endif
