// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: any bytes as an archive. An image is made of it, which must be sound whatever the archive is, and
 * compared with the archive, and with a manifest: what begins with "#mtree", behind the archive's end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <erofs/erofs.h>

#include "fuzz.h"

#define MAX_IMAGE (UINT64_C(64) << 20)	/* holes of an archive cost it nothing */

#define MARK "#mtree"

const char *const fuzz_suffix = ".tar";

struct run {
	char archive[40], image[40], manifest[40];
	struct erofs_engine *eng;
	struct erofs_diag *diag;
};

static int make_image(const struct run *r)
{
	struct erofs_write_options w = {
		.size = sizeof(w), .output = r->image, .source = r->archive, .source_type = EROFS_WRITE_TAR,
		.has_uuid = 1, .has_time = 1, .xattr_tolerance = 2, .chunk_size = 1 << 20,
	};

	return erofs_write(&w, r->eng, r->diag, NULL);
}

static void demand_sound(const struct run *r, struct erofs_image *img)
{
	struct erofs_check_options full = { .size = sizeof(full), .data = 1 };

	if (!erofs_check(img, r->eng, &full, r->diag, NULL))
		return;
	fprintf(stderr, "the image of the archive is damaged\n");
	abort();
}

static void compare(const struct run *r, struct erofs_image *img, enum erofs_compare_kind kind, const char *source)
{
	struct erofs_compare_options c = { .size = sizeof(c), .kind = kind, .source = source };

	(void)erofs_compare(img, r->eng, &c, r->diag, NULL);
}

static void take(const struct run *r)
{
	struct erofs_image *img;

	if (make_image(r))
		return;
	if (erofs_open(r->image, NULL, r->diag, &img)) {
		fprintf(stderr, "the image of the archive does not open\n");
		abort();
	}
	demand_sound(r, img);
	compare(r, img, EROFS_COMPARE_TAR, r->archive);
	compare(r, img, EROFS_COMPARE_MTREE, r->manifest);
	erofs_close(img);
}

/* A file of memory and what it is called. -1: there is none. */
static int put(char *path, size_t room, const char *folder, const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	snprintf(path, room, "%s/%d", folder, fd);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "1" };
	const struct rlimit limit = { MAX_IMAGE, MAX_IMAGE };
	const uint8_t *text = size ? memmem(data, size, MARK, sizeof(MARK) - 1) : NULL;
	struct run r = { .eng = NULL };
	int fds[3], i;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	fds[0] = put(r.archive, sizeof(r.archive), "/proc/self/fd", data, size);
	fds[1] = put(r.image, sizeof(r.image), "/dev/fd", data, 0);
	fds[2] = put(r.manifest, sizeof(r.manifest), "/proc/self/fd", text, text ? size - (size_t)(text - data) : 0);
	if (fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0 && !erofs_diag_new(NULL, NULL, &r.diag) &&
	    !erofs_engine_new(&options, r.diag, &r.eng))
		take(&r);
	erofs_engine_free(r.eng);
	erofs_diag_free(r.diag);
	for (i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return 0;
}
