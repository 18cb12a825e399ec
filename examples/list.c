/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists the root folder of an image, or prints one of its files, through the public interface alone.
 *
 *	cc list.c $(pkg-config --cflags --libs liberofs) -o list
 *	./list IMAGE [FILE]
 */
#include <erofs/erofs.h>

#include <stdio.h>
#include <string.h>

static void print_finding(void *priv, const struct erofs_finding *finding)
{
	char text[1024];

	erofs_diag_format(finding, text, sizeof(text));
	fprintf(stderr, "%s: %s\n", (const char *)priv, text);
}

static int print_entries(const struct erofs_inode *ino, struct erofs_diag *diag)
{
	struct erofs_entry entry;
	struct erofs_dir *dir;
	int r;

	r = erofs_dir_open(ino, diag, &dir);
	if (r < 0)
		return r;
	while ((r = erofs_dir_next(dir, &entry)) > 0)
		printf("%10llu  %.*s\n", (unsigned long long)entry.nid, (int)entry.len, entry.name);
	erofs_dir_close(dir);
	return r;
}

static int print_contents(const struct erofs_inode *ino, struct erofs_diag *diag)
{
	char buf[65536];
	uint64_t off = 0;
	ssize_t n;

	while ((n = erofs_pread(ino, diag, buf, sizeof(buf), off)) > 0) {
		fwrite(buf, 1, (size_t)n, stdout);
		off += (uint64_t)n;
	}
	return (int)n;
}

static int show(struct erofs_image *img, const char *path, struct erofs_diag *diag)
{
	struct erofs_inode *ino;
	uint64_t nid;
	int err;

	err = erofs_lookup(img, path ? path : "/", diag, &nid);
	if (!err)
		err = erofs_inode_open(img, nid, diag, &ino);
	if (err)
		return err;
	err = path ? print_contents(ino, diag) : print_entries(ino, diag);
	erofs_inode_close(ino);
	return err;
}

int main(int argc, char **argv)
{
	struct erofs_image *img;
	struct erofs_diag *diag;
	int err;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s IMAGE [FILE]\n", argv[0]);
		return 2;
	}
	err = erofs_diag_new(print_finding, argv[1], &diag);
	if (err)
		return 2;
	err = erofs_open(argv[1], NULL, diag, &img);
	if (!err) {
		err = show(img, argc > 2 ? argv[2] : NULL, diag);
		erofs_close(img);
	}
	erofs_diag_flush(diag);
	erofs_diag_free(diag);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
	return err ? 1 : 0;
}
