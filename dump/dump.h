/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dump.erofs: its options, and what it prints. */
#ifndef EROFS_DUMP_H
#define EROFS_DUMP_H

#include <erofs/erofs.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "cli/tree_options.h"

#define DUMP_PARTLY 1		/* answered, negatively or in part (cli.md 3) */
#define DUMP_TROUBLE 2

/* --digest */
struct dump_digest {
	bool wanted, is_verity;
	enum erofs_digest_algorithm algorithm;
	unsigned int block;		/* 0: the default */
	const char *salt_text;		/* as it was given; NULL: none */
	uint8_t salt[32];
	size_t salt_size;
};

struct dump_options {
	struct cli_input input;
	bool help, help_all, version;
	bool super, statistics, extents, list, cat, udev;	/* actions */
	bool print_digest;		/* of the image file itself */
	bool to_tar;
	const char *tar_file;		/* NULL: standard output, "-": even if it is a terminal */
	bool to_mtree, mtree_xattrs;
	const char *mtree_file;		/* NULL, "-": standard output */
	struct dump_digest digest;
	bool extract;
	const char *target;		/* NULL: EXTRACT_DEFAULT, which must be new or empty */
	struct cli_select select;
	struct cli_extract how;
	const char *android_dir;	/* with --extract: for the files beside the tree, NULL: none */
	const char *mount_point;	/* as given */
	char *mount;			/* as it is used */
	bool recursive, details, print0;	/* with --ls */
	struct cli_engine engine;
	struct cli_json_option json;
};

/* --digest, --fsverity-block, --salt (digest_options.c). 1, negative: a usage error was reported. */
int dump_take_digest(const struct cli_parse *p, struct dump_digest *d);
int dump_take_block(const struct cli_parse *p, struct dump_digest *d);
int dump_take_salt(const struct cli_parse *p, struct dump_digest *d);

/* 0, or the exit status after a usage error. */
int dump_parse_options(int argc, char **argv, struct cli *cli, struct dump_options *ret);
void dump_free_options(struct dump_options *o);
int dump_print_help(const struct cli *cli, bool all);

/* Do what the options say. Return: the exit status. */
int dump_run(struct cli *cli, const struct dump_options *o);

/* All print to stdout; errors are reported to @diag by the library. 0, negative errno. */
void dump_print_super(const struct erofs_super_info *info);
void dump_print_udev(const struct erofs_super_info *info);
void dump_print_statistics(const struct erofs_statistics *s);
void dump_print_inode(const struct erofs_stat *st, const char *path);
int dump_print_extents(const struct erofs_inode *ino, struct erofs_diag *diag, const char *path);
int dump_print_entries(const struct erofs_inode *ino, struct erofs_diag *diag);
/* --recursive, --long, --print0: one name a line, no header. @path: of the start */
int dump_print_list(const struct cli *cli, struct erofs_image *img, struct erofs_engine *eng,
		    const struct dump_options *o, uint64_t nid, const char *path, struct erofs_diag *diag);
int dump_print_contents(const struct cli *cli, const struct erofs_inode *ino, struct erofs_diag *diag);
/* How many files there will be, if that is known: all, as the superblock says. @part: not from the root */
void dump_count_total(const struct dump_options *o, const struct erofs_image *img, bool part,
		      struct cli_work *work);

/* Is one of the actions that write a stream wanted? */
static inline bool dump_is_stream(const struct dump_options *o)
{
	return o->to_tar || o->to_mtree || o->digest.wanted;
}

/*
 * Write the tree, its manifest or its digests as a stream. 0; -EUCLEAN: some of it is not there, or is
 * damaged; other errors: it is not whole (all reported).
 */
int dump_write_stream(struct cli *cli, const struct dump_options *o, struct erofs_image *img,
		      struct erofs_engine *eng, struct erofs_diag *diag);
/*
 * Write the tree into a folder. 0; -EUCLEAN: some of it is not there (all reported); -EIO: nothing is;
 * -ECANCELED.
 */
int dump_extract(struct cli *cli, const struct dump_options *o, struct erofs_image *img,
		 struct erofs_engine *eng, struct erofs_diag *diag);
/* Where is the image mounted? Into o->mount. 0, or the exit status after a usage error. */
int dump_choose_mount(const struct cli *cli, struct dump_options *o, int usage_status);
/* Write what --android-config asks for. As dump_extract(), but -EIO also if the files are not there at all. */
int dump_write_android(const struct dump_options *o, struct erofs_image *img, struct erofs_engine *eng,
		       const struct erofs_extract_options *tree, struct erofs_diag *diag);
/* "rwsr-xr-x" */
void dump_format_mode(uint32_t mode, char text[10]);

/* What a report tells of a run; what was not asked for, or could not be had, is absent. */
struct dump_facts {
	const struct dump_options *o;
	int status, signal;	/* signal: that cancelled, 0: none */
	uint64_t wall_ns;
	struct erofs_engine *eng;	/* NULL: not made */
	struct erofs_image *img;
	const struct erofs_inode *ino;
	struct erofs_stat st;		/* of ino */
	const char *path;
	bool has_super, has_statistics, has_inode, has_extents, has_entries;
	struct erofs_statistics statistics;
	uint64_t extents, entries;	/* that can be read */
};

/*
 * Look whether the lists that were asked for can be read; write those that are streams. 0, negative errno
 * (reported to @diag, which may be NULL).
 */
int dump_look(struct dump_facts *f, struct cli_report *r, struct erofs_diag *diag);
/* Write the report of --json, and flush @diag. 0, negative errno (reported). */
int dump_write_report(struct cli_report *r, struct erofs_diag *diag, const struct dump_facts *f);

/* A name or path: as it is into files, escaped on terminals (R18). */
void dump_print_name(const char *name, size_t len);

#endif
