// SPDX-License-Identifier: GPL-2.0-or-later
/* One inode: what it says, its extents, its entries, its contents (cli.md 6). */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dump.h"

#define CAT_BYTES ((size_t)4 << 20)	/* a read that cuts an extent decodes it twice */
#define TARGET_BYTES 4096	/* inodes with longer targets are damage */

void dump_print_name(const char *name, size_t len)
{
	char *text;

	if (!isatty(STDOUT_FILENO)) {
		fwrite(name, 1, len, stdout);
		return;
	}
	text = erofs_cli_escape(name, len);
	if (text)
		fputs(text, stdout);
	free(text);
}

static const char *type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "regular file";
	case S_IFDIR: return "directory";
	case S_IFLNK: return "symlink file";
	case S_IFCHR: return "char dev";
	case S_IFBLK: return "block dev";
	case S_IFIFO: return "FIFO file";
	case S_IFSOCK: return "SOCK file";
	default: return "unknown type";
	}
}

void dump_format_mode(uint32_t mode, char text[10])
{
	static const char letters[] = "rwxrwxrwx";
	unsigned int i;

	for (i = 0; i < 9; i++)
		text[i] = mode & 0400 >> i ? letters[i] : '-';
	text[9] = '\0';
	if (mode & S_ISUID)
		text[2] = mode & 0100 ? 's' : 'S';
	if (mode & S_ISGID)
		text[5] = mode & 0010 ? 's' : 'S';
	if (mode & S_ISVTX)
		text[8] = mode & 0001 ? 't' : 'T';
}

static void print_time(int64_t seconds, uint32_t nsec)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[64];

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		printf("Timestamp: %s.%09" PRIu32 "\n", text, nsec);
	else
		printf("Timestamp: %" PRId64 ".%09" PRIu32 "\n", seconds, nsec);
}

void dump_print_inode(const struct erofs_stat *st, const char *path)
{
	double ratio = st->size ? 100.0 * (double)st->stored / (double)st->size : 100.0;
	char mode[10];

	dump_format_mode(st->mode, mode);
	printf("Path : ");
	dump_print_name(path, strlen(path));
	printf("\nSize: %" PRIu64 "  On-disk size: %" PRIu64 "  %s\n", st->size, st->stored,
	       type_name(st->mode));
	printf("NID: %" PRIu64 "   Links: %" PRIu32 "   Layout: %u   Compression ratio: %.2f%%\n", st->nid,
	       st->nlink, st->layout, ratio);
	printf("Inode size: %u   Xattr size: %u\n", st->inode_size, st->xattr_size);
	printf("Uid: %" PRIu32 "   Gid: %" PRIu32 "  Access: %04o/%s\n", st->uid, st->gid, st->mode & 07777,
	       mode);
	print_time(st->mtime, st->mtime_nsec);
}

static void print_extent(unsigned int number, const struct erofs_extent_info *e)
{
	printf("%4u: %8" PRIu64 "..%8" PRIu64 " | %7" PRIu64 " : %10" PRIu64 "..%10" PRIu64 " | %7" PRIu64,
	       number, e->la, e->la + e->len, e->len, e->pa, e->pa + e->plen, e->plen);
	if (e->dev)
		printf("  # device %u", e->dev);
	putchar('\n');
}

int dump_print_extents(const struct erofs_inode *ino, struct erofs_diag *diag, const char *path)
{
	struct erofs_extents *extents;
	struct erofs_extent_info e;
	unsigned int count = 0;
	int r = erofs_extents_open(ino, diag, &extents);

	if (r)
		return r;
	puts("\n Ext:   logical offset   |  length :     physical offset    |  length");
	while ((r = erofs_extents_next(extents, &e)) > 0)
		print_extent(count++, &e);
	erofs_extents_close(extents);
	dump_print_name(path, strlen(path));
	printf(": %u extents found\n", count);
	return r;
}

int dump_print_entries(const struct erofs_inode *ino, struct erofs_diag *diag)
{
	struct erofs_entry entry;
	struct erofs_dir *dir;
	int r = erofs_dir_open(ino, diag, &dir);

	if (r)
		return r;
	puts("\n       NID TYPE  FILENAME");
	while ((r = erofs_dir_next(dir, &entry)) > 0) {
		printf("%10" PRIu64 " %4u  ", entry.nid, entry.type);
		dump_print_name(entry.name, entry.len);
		putchar('\n');
	}
	erofs_dir_close(dir);
	return r;
}

/* A target is a name: escaped on a terminal (R18). */
static int print_target(const struct erofs_inode *ino, struct erofs_diag *diag)
{
	char target[TARGET_BYTES];
	ssize_t n = erofs_pread(ino, diag, target, sizeof(target), 0);

	if (n > 0)
		dump_print_name(target, (size_t)n);
	return n < 0 ? (int)n : 0;
}

static int copy_contents(const struct erofs_inode *ino, struct cli_work *work, struct erofs_diag *diag)
{
	uint64_t off = 0;
	ssize_t n;
	char *buf = malloc(CAT_BYTES);

	if (!buf)
		return -ENOMEM;
	while ((n = erofs_pread(ino, diag, buf, CAT_BYTES, off)) > 0) {
		if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			break;		/* told at the end, with its reason */
		off += (uint64_t)n;
		atomic_store_explicit(&work->bytes, off, memory_order_relaxed);
	}
	free(buf);
	return n < 0 ? (int)n : 0;
}

int dump_print_contents(const struct cli *cli, const struct erofs_inode *ino, struct erofs_diag *diag)
{
	struct cli_work work = { .verb = "reading", .to_stdout = true };
	struct cli_progress *progress;
	struct erofs_stat st;
	int err;

	erofs_inode_stat(ino, &st);
	if (S_ISDIR(st.mode))
		return -EISDIR;
	if (S_ISLNK(st.mode))
		return print_target(ino, diag);
	if (!S_ISREG(st.mode))
		return 0;
	work.total_bytes = st.size;
	progress = erofs_cli_progress_start(cli, &work);
	err = copy_contents(ino, &work, diag);
	erofs_cli_progress_stop(progress);
	return err;
}
