/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * image: bytes without meaning.
 *
 * Owns the sources (source.h) of the primary file and of the extra devices, their sizes, and the translation
 * of (device id, address) to a device and a position on it. Everything in struct erofs_image is
 * constant once erofs_open() has returned; reads are preads, so any thread may read.
 * Rooms behind it hang their own constant parts onto it: meta the superblock, meta the xattr prefixes.
 */
#ifndef EROFS_IMAGE_PRIV_H
#define EROFS_IMAGE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <erofs/image.h>

#include "image/source.h"

#define IMAGE_MAX_DEVICES 65536

struct image_device {
	struct source *src;	/* owned; NULL: not given */
	uint64_t start;		/* byte of the source where the device begins */
	uint64_t size;		/* bytes readable from there on; 0 if not given */
	uint64_t blocks;	/* as its slot says; primary: as the superblock says */
	uint64_t uniaddr;	/* first byte in the unified address space, 0: not mapped there */
	uint64_t linear;	/* first byte in the order of all devices, for sorting by address */
	char *name;		/* path, for messages */
};

struct super;			/* meta_priv.h */
struct look;			/* engine/look.h */
struct xattr_prefixes;		/* meta_priv.h */

struct erofs_image {
	unsigned int blkbits;		/* log2 of the block size, 9..16 */
	uint32_t blksz;			/* bytes */
	unsigned int ndevs;		/* devs[0] is the primary device */
	struct image_device *devs;
	bool flat;			/* extra devices lie behind the primary one in its file */
	struct super *super;		/* owned, made by meta */
	struct xattr_prefixes *prefixes;	/* owned, made by meta; NULL: none */
	struct look *look;		/* owned, made by engine: see engine/look.h */
};

/**
 * erofs_image_open() - open the primary file
 * @offset: bytes before the image
 * @spool:  copy a pipe to a temporary file
 * Refuses directories, character devices and, without @spool, pipes by type, in words.
 * Return: 0, negative errno (reported).
 */
int erofs_image_open(const char *path, uint64_t offset, bool spool, struct erofs_diag *diag,
		     struct erofs_image **ret_img);

/** erofs_image_spool() - copy a pipe to an unlinked temporary file. Its descriptor, negative errno (reported) */
int erofs_image_spool(int fd, struct erofs_diag *diag);

/** erofs_image_free() - close everything; super and prefixes are freed by meta before */
void erofs_image_free(struct erofs_image *img);

/**
 * erofs_image_add_device() - open the file for devs[index] (index >= 1, made by meta from the table)
 * Return: 0, negative errno (reported).
 */
int erofs_image_add_device(struct erofs_image *img, unsigned int index, const char *path,
			   struct erofs_diag *diag);

/**
 * erofs_image_settle() - all devices are known: decide flat mode, lay out the linear order
 * Flat only if no extra device was given and the primary file reaches the end of every slot
 * (format.md 4.2). Return: 0, -EUCLEAN if sizes overflow (reported).
 */
int erofs_image_settle(struct erofs_image *img, struct erofs_diag *diag);

/**
 * erofs_image_resolve() - format.md 4.2: device id and byte address to a device and a position on it
 * @dev_id:  0: primary or unified address; masked by the caller
 * @pa:      byte address
 * @len:     bytes wanted there, for choosing and for the range check
 * @ret_dev: index into devs
 * @ret_pa:  byte position on that device
 * Return: 0; -ENODEV no such slot or its file is missing; -ERANGE not inside the device. Reports nothing.
 */
int erofs_image_resolve(const struct erofs_image *img, unsigned int dev_id, uint64_t pa, uint64_t len,
			unsigned int *ret_dev, uint64_t *ret_pa);

/**
 * erofs_image_read() - read exactly @len bytes of a device
 * Return: 0; -ERANGE behind the end of the device; -ENODEV; errno of pread. Reports nothing.
 */
int erofs_image_read(const struct erofs_image *img, unsigned int dev, uint64_t pa, void *buf, size_t len);

/**
 * erofs_image_read_some() - the same where a file that shrank since it was opened is read as far as it goes
 * Return: bytes read; negative errno as above.
 */
ssize_t erofs_image_read_some(const struct erofs_image *img, unsigned int dev, uint64_t pa, void *buf,
			      size_t len);

/** erofs_image_readahead() - tell the kernel that this range is wanted soon; errors do not matter */
void erofs_image_readahead(const struct erofs_image *img, unsigned int dev, uint64_t pa, uint64_t len);

#endif
