// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --ls with --recursive, --long or --print0: one name a line and nothing else, for scripts. One thread
 * writes here: stdio's locks would take a fifth of the time.
 */
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

struct listing {
	const struct dump_options *o;
	struct cli_work work;
	const char *start;	/* path in front of the names, without a slash at its end; NULL: none */
	size_t start_len;
	bool terminal;
};

static void put_name(const struct listing *l, const char *name, size_t len)
{
	if (l->terminal)
		dump_print_name(name, len);
	else
		fwrite_unlocked(name, 1, len, stdout);
}

static void put_time(int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[64];

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		printf(" %s ", text);
	else
		printf(" %19" PRId64 " ", seconds);
}

static char type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return '-';
	case S_IFDIR: return 'd';
	case S_IFLNK: return 'l';
	case S_IFCHR: return 'c';
	case S_IFBLK: return 'b';
	case S_IFIFO: return 'p';
	case S_IFSOCK: return 's';
	default: return '?';
	}
}

/* Numbers, not names: the users of this machine are not those of the image. */
static void put_details(const struct erofs_stat *st)
{
	char owner[32], size[32], mode[10];

	if (!st) {
		printf("%-10s %-11s %10s %19s ", "?", "?", "?", "?");
		return;
	}
	dump_format_mode(st->mode, mode);
	snprintf(owner, sizeof(owner), "%" PRIu32 "/%" PRIu32, st->uid, st->gid);
	if (S_ISCHR(st->mode) || S_ISBLK(st->mode))
		snprintf(size, sizeof(size), "%" PRIu32 ",%" PRIu32, st->rdev_major, st->rdev_minor);
	else
		snprintf(size, sizeof(size), "%" PRIu64, st->size);
	printf("%c%s %-11s %10s", type_letter(st->mode), mode, owner, size);
	put_time(st->mtime);
}

static int put_entry(void *priv, const struct erofs_name *name)
{
	struct listing *l = priv;
	uint64_t files = atomic_load_explicit(&l->work.files, memory_order_relaxed);

	/* nobody else writes it */
	atomic_store_explicit(&l->work.files, files + 1, memory_order_relaxed);
	if (l->o->details)
		put_details(name->stat);
	if (l->start) {
		if (l->start_len)
			put_name(l, l->start, l->start_len);
		putchar_unlocked('/');
	}
	put_name(l, name->path, name->len);
	if (l->o->details && name->target) {
		fputs(" -> ", stdout);
		put_name(l, name->target, name->target_len);
	}
	putchar_unlocked(l->o->print0 ? '\0' : '\n');
	return ferror_unlocked(stdout) ? -EPIPE : 0;	/* told when it is closed, with its reason */
}

void dump_count_total(const struct dump_options *o, const struct erofs_image *img, bool part,
		      struct cli_work *work)
{
	struct erofs_super_info info;

	erofs_image_super(img, &info);
	work->total_files = part || o->select.select ? 0 : info.inodes;
}

int dump_print_list(const struct cli *cli, struct erofs_image *img, struct erofs_engine *eng,
		    const struct dump_options *o, uint64_t nid, const char *path, struct erofs_diag *diag)
{
	struct erofs_list_options options = { .size = sizeof(options), .nid = nid, .has_nid = 1,
					      .one_level = !o->recursive, .stat = o->details,
					      .select = o->select.select };
	struct listing l = { .o = o, .terminal = isatty(STDOUT_FILENO),
			     .work = { .verb = "listing", .to_stdout = true } };
	struct cli_progress *progress;
	int err;

	if (o->recursive) {
		l.start = strcmp(path, "/") ? path : "";
		dump_count_total(o, img, *l.start, &l.work);
	}
	l.start_len = l.start ? strlen(l.start) : 0;
	progress = erofs_cli_progress_start(cli, &l.work);
	err = erofs_list(img, eng, &options, put_entry, &l, diag);
	erofs_cli_progress_stop(progress);
	return err;
}
