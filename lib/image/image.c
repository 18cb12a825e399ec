// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Sources of an image and its devices, and the translation of addresses to them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/wire.h"
#include "diag/diag_priv.h"
#include "image/image_priv.h"

/* NULL if @mode may hold an image, else what it is. */
static const char *refuse_type(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory, not an image";
	if (S_ISCHR(mode))
		return "a character device, not an image";
	if (S_ISFIFO(mode) || S_ISSOCK(mode))
		return "a pipe; an image must be seekable: redirect it from a file, or use --spool";
	return NULL;
}

static int open_file(const char *path, bool spool, struct erofs_diag *diag, struct source **ret_src)
{
	/* to be spooled, a FIFO must wait for its writer; else nothing may block */
	int flags = O_RDONLY | O_CLOEXEC | (spool ? 0 : O_NONBLOCK);
	auto_close int fd = strcmp(path, "-") ? open(path, flags) :
					       fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	const char *type;
	struct stat st;
	off_t end;
	int err;

	if (fd < 0)
		return erofs_diag_fail(diag, -errno, AT_NOWHERE, "cannot open");
	if (fstat(fd, &st))
		return erofs_diag_fail(diag, -errno, AT_NOWHERE, "cannot stat");
	if (spool && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		int copy = erofs_image_spool(fd, diag);

		if (copy < 0)
			return copy;
		close(fd);
		fd = copy;
		st.st_mode = S_IFREG;
	}
	type = refuse_type(st.st_mode);
	if (type)
		return erofs_diag_fail(diag, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, AT_NOWHERE,
				       "is %s", type);
	end = lseek(fd, 0, SEEK_END);
	if (end < 0)
		return erofs_diag_fail(diag, -errno, AT_NOWHERE, "cannot seek");
	err = erofs_source_fd_new(fd, (uint64_t)end, ret_src);
	if (!err)
		(void)steal_fd(&fd);
	return err;
}

/* The expanded image, if the file is a sparse one. */
static int unfold(struct source **src, struct erofs_diag *diag)
{
	uint8_t magic[4];

	/* what can't be read here is reported by who reads the superblock */
	if ((*src)->ops->read(*src, 0, magic, sizeof(magic)) != sizeof(magic) ||
	    bytes_le32(magic) != SPARSE_MAGIC)
		return 0;
	return erofs_source_sparse_new(*src, diag, src);
}

static int open_device(struct image_device *dev, const char *path, uint64_t start, bool spool,
		       struct erofs_diag *diag)
{
	int err;

	dev->name = strdup(path);
	if (!dev->name)
		return -ENOMEM;
	err = open_file(path, spool, diag, &dev->src);
	if (!err)
		err = unfold(&dev->src, diag);
	if (err)
		return err;
	if (start > dev->src->size)
		return erofs_diag_fail(diag, -EINVAL, AT_NOWHERE, "offset %" PRIu64
				       " is behind the end of the image file (%" PRIu64 " bytes)", start,
				       dev->src->size);
	dev->start = start;
	dev->size = dev->src->size - start;
	return 0;
}

void erofs_image_free(struct erofs_image *img)
{
	unsigned int i;

	if (!img)
		return;
	for (i = 0; i < img->ndevs; i++) {
		erofs_source_free(img->devs[i].src);
		free(img->devs[i].name);
	}
	free(img->devs);
	free(img);
}

static void free_image(struct erofs_image **img)
{
	erofs_image_free(*img);
}

int erofs_image_open(const char *path, uint64_t offset, bool spool, struct erofs_diag *diag,
		     struct erofs_image **ret_img)
{
	auto_call(free_image) struct erofs_image *img = calloc(1, sizeof(*img));
	int err;

	if (!img)
		return -ENOMEM;
	img->devs = calloc(1, sizeof(*img->devs));
	if (!img->devs)
		return -ENOMEM;
	img->ndevs = 1;
	err = open_device(&img->devs[0], path, offset, spool, diag);
	if (err)
		return err;
	*ret_img = steal(img);
	return 0;
}

int erofs_image_add_device(struct erofs_image *img, unsigned int index, const char *path,
			   struct erofs_diag *diag)
{
	struct image_device *dev = &img->devs[index];
	int err = open_device(dev, path, 0, false, NULL);

	if (!err)
		return 0;
	return erofs_diag_fail(diag, err, AT_NOWHERE, "cannot use extra device %u, %s", index, path);
}

static bool is_flat(const struct erofs_image *img)
{
	unsigned int i;

	for (i = 1; i < img->ndevs; i++) {
		const struct image_device *dev = &img->devs[i];
		uint64_t len;

		if (dev->src || !mul_ok(dev->blocks, (uint64_t)img->blksz, &len) ||
		    !range_ok(dev->uniaddr, len, img->devs[0].size))
			return false;
	}
	return img->ndevs > 1;
}

int erofs_image_settle(struct erofs_image *img, struct erofs_diag *diag)
{
	uint64_t at = 0;
	unsigned int i;

	img->flat = is_flat(img);
	for (i = 0; i < img->ndevs; i++) {
		img->devs[i].linear = at;
		if (!add_ok(at, img->devs[i].size, &at))
			return erofs_diag_damage(diag, SB_DEVICE, AT_NOWHERE,
						 "the devices are larger than 2^64 bytes together");
	}
	return 0;
}

/* Is [pa, pa + len) readable on device @dev? */
static int place(const struct erofs_image *img, unsigned int dev, uint64_t pa, uint64_t len,
		 unsigned int *ret_dev, uint64_t *ret_pa)
{
	if (!img->devs[dev].src)
		return -ENODEV;
	if (!range_ok(pa, len, img->devs[dev].size))
		return -ERANGE;
	*ret_dev = dev;
	*ret_pa = pa;
	return 0;
}

int erofs_image_resolve(const struct erofs_image *img, unsigned int dev_id, uint64_t pa, uint64_t len,
			unsigned int *ret_dev, uint64_t *ret_pa)
{
	unsigned int i;

	if (dev_id >= img->ndevs && dev_id)
		return -ENODEV;
	if (img->flat) {
		if (dev_id && !add_ok(pa, img->devs[dev_id].uniaddr, &pa))
			return -ERANGE;
		return place(img, 0, pa, len, ret_dev, ret_pa);
	}
	if (dev_id)
		return place(img, dev_id, pa, len, ret_dev, ret_pa);
	for (i = 1; i < img->ndevs; i++) {
		const struct image_device *dev = &img->devs[i];
		uint64_t bytes;

		if (!dev->uniaddr || pa < dev->uniaddr ||
		    !mul_ok(dev->blocks, (uint64_t)img->blksz, &bytes) || pa - dev->uniaddr >= bytes)
			continue;
		return place(img, i, pa - dev->uniaddr, len, ret_dev, ret_pa);
	}
	return place(img, 0, pa, len, ret_dev, ret_pa);
}

ssize_t erofs_image_read_some(const struct erofs_image *img, unsigned int dev, uint64_t pa, void *buf,
			      size_t len)
{
	const struct image_device *d = &img->devs[dev];

	if (!d->src)
		return -ENODEV;
	if (!range_ok(pa, len, d->size))
		return -ERANGE;
	return d->src->ops->read(d->src, d->start + pa, buf, len);
}

int erofs_image_read(const struct erofs_image *img, unsigned int dev, uint64_t pa, void *buf, size_t len)
{
	ssize_t n = erofs_image_read_some(img, dev, pa, buf, len);

	if (n < 0)
		return (int)n;
	/* the file shrank while we read it */
	return (size_t)n == len ? 0 : -EIO;
}

void erofs_image_readahead(const struct erofs_image *img, unsigned int dev, uint64_t pa, uint64_t len)
{
	const struct image_device *d = &img->devs[dev];

	if (d->src && range_ok(pa, len, d->size))
		d->src->ops->readahead(d->src, d->start + pa, len);
}
