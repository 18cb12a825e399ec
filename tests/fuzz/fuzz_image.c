// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: any bytes as an image. Opened without the checksum, checked with all data decoded, looked
 * into by the public functions. Must never crash, hang or take more than the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <erofs/erofs.h>

#include "fuzz.h"

#define MAX_ENTRIES 64		/* looked into below the root */
#define READ_BYTES 4096

const char *const fuzz_suffix = ".erofs";

static void look_at_inode(struct erofs_image *img, struct erofs_diag *diag, uint64_t nid)
{
	struct erofs_extent_info extent;
	struct erofs_extents *extents;
	struct erofs_xattr xattr;
	struct erofs_xattrs *xattrs;
	struct erofs_inode *ino;
	struct erofs_stat st;
	char buf[READ_BYTES];
	unsigned int n = 0;

	if (erofs_inode_open(img, nid, diag, &ino))
		return;
	erofs_inode_stat(ino, &st);
	(void)erofs_pread(ino, diag, buf, sizeof(buf), 0);
	(void)erofs_pread(ino, diag, buf, sizeof(buf), st.size / 2);
	if (st.size)
		(void)erofs_pread(ino, diag, buf, sizeof(buf), st.size - 1);
	if (!erofs_extents_open(ino, diag, &extents)) {
		while (n++ < 1000 && erofs_extents_next(extents, &extent) > 0)
			;
		erofs_extents_close(extents);
	}
	if (!erofs_xattrs_open(ino, diag, &xattrs)) {
		while (erofs_xattrs_next(xattrs, &xattr) > 0)
			;
		erofs_xattrs_close(xattrs);
	}
	erofs_inode_close(ino);
}

static void look_inside(struct erofs_image *img, struct erofs_diag *diag)
{
	struct erofs_super_info info;
	struct erofs_entry entry;
	struct erofs_inode *root;
	struct erofs_dir *dir;
	unsigned int n = 0;

	erofs_image_super(img, &info);
	if (erofs_inode_open(img, info.root_nid, diag, &root))
		return;
	if (!erofs_dir_open(root, diag, &dir)) {
		while (n++ < MAX_ENTRIES && erofs_dir_next(dir, &entry) > 0)
			look_at_inode(img, diag, entry.nid);
		erofs_dir_close(dir);
	}
	erofs_inode_close(root);
}

static void check(struct erofs_image *img, struct erofs_diag *diag)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "1",
						.max_memory = 8 << 20 };
	struct erofs_check_options full = { .size = sizeof(full), .data = 1 };
	struct erofs_super_info info;
	struct erofs_engine *eng;

	if (erofs_engine_new(&options, diag, &eng))
		return;
	erofs_image_super(img, &info);
	(void)erofs_check(img, eng, &full, diag, NULL);
	(void)erofs_name_findings(img, eng, diag, info.root_nid);
	erofs_engine_free(eng);
}

static void format_finding(void *priv, const struct erofs_finding *finding)
{
	char text[300];

	(void)priv;
	erofs_diag_format(finding, text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct erofs_open_options options = { .size = sizeof(options), .ignore_checksum = 1 };
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct erofs_image *img = NULL;
	struct erofs_diag *diag;
	char path[40];

	if (fd < 0)
		return 0;
	if (write(fd, data, size) != (ssize_t)size || erofs_diag_new(format_finding, NULL, &diag)) {
		close(fd);
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!erofs_open(path, &options, diag, &img)) {
		check(img, diag);
		look_inside(img, diag);
	}
	erofs_close(img);
	erofs_diag_flush(diag);
	erofs_diag_free(diag);
	close(fd);
	return 0;
}
