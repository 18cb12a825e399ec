// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: any bytes as a file with an image somewhere: as an Android sparse image, as a zip file, as
 * a dump. What opens is read in pieces, and an image is looked for in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/diag_priv.h"
#include "fuzz.h"
#include "image/image_priv.h"
#include "meta/super_priv.h"

#define PIECES 200
#define PIECE 1021		/* no multiple of a block */

const char *const fuzz_suffix = ".box";

static void read_pieces(const struct erofs_image *img)
{
	uint64_t size = img->devs[0].size, step = size / PIECES + 1, at;
	uint8_t *buf = malloc(PIECE);

	for (at = 0; buf && at < size; at += step) {
		size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;

		erofs_image_readahead(img, 0, at, len);
		(void)erofs_image_read(img, 0, at, buf, len);
	}
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("source", MFD_CLOEXEC);
	struct erofs_image *img = NULL;
	struct erofs_diag *diag = NULL;
	char path[40], hint[1400];

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size && !erofs_diag_new(NULL, NULL, &diag) &&
	    !erofs_image_open(path, 0, false, diag, &img)) {
		read_pieces(img);
		erofs_super_hint(img, hint, sizeof(hint));
		/* a search through what is not in the file would only take time */
		if (img->devs[0].size <= 1 << 24)
			(void)erofs_super_find(img, diag);
	}
	erofs_image_free(img);
	erofs_diag_free(diag);
	close(fd);
	return 0;
}
