// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Formats that are taken for EROFS images by mistake, by magic number. */
#include <stddef.h>
#include <string.h>

#include "image/container.h"

struct format {
	uint32_t at;
	uint8_t len;
	char magic[9];
	const char *name;
};

static const struct format formats[] = {
	{ 0, 4, "PK\3\4", "a zip file" },
	{ 0, 2, "\x1f\x8b", "compressed with gzip" },
	{ 0, 6, "\xfd" "7zXZ", "compressed with xz" },
	{ 0, 4, "\x28\xb5\x2f\xfd", "compressed with zstd" },
	{ 0, 4, "\x04\x22\x4d\x18", "compressed with lz4" },
	{ 0, 3, "BZh", "compressed with bzip2" },
	{ 0, 4, "hsqs", "a squashfs image" },
	{ 0, 4, "XFSB", "an XFS image" },
	{ 0, 4, "QFI\xfb", "a qcow2 disk image" },
	{ 0, 8, "ANDROID!", "an Android boot image" },
	{ 257, 5, "ustar", "a tar archive" },
	{ 512, 8, "EFI PART", "a disk with a partition table (--offset=auto looks for an image in it)" },
	{ 1024, 4, "\x10\x20\xf5\xf2", "an F2FS image" },
	{ 1080, 2, "\x53\xef", "an ext4 image (or ext2, ext3)" },
	{ 4096, 4, "gDla", "an Android super partition (--offset=auto looks for an image in it)" },
	{ 32769, 5, "CD001", "an ISO 9660 image" },
};

const char *erofs_container_name(const struct source *src, uint64_t at)
{
	char found[8];
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct format *f = &formats[i];

		if (src->ops->read(src, at + f->at, found, f->len) == f->len &&
		    !memcmp(found, f->magic, f->len))
			return f->name;
	}
	return NULL;
}
