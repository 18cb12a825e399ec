// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of mkfs.erofs (cli.md 7). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "mkfs.h"

#define DEFAULT_TOLERANCE 2	/* inodes that may have an attribute each for itself */

enum {
	OPT_HELP = 1, OPT_VERSION, OPT_BLOCK, OPT_UUID, OPT_LABEL, OPT_TIME, OPT_ALL_TIME, OPT_MKFS_TIME,
	OPT_EXTENDED, OPT_TOLERANCE, OPT_ALL_ROOT, OPT_UID, OPT_GID, OPT_UID_OFFSET, OPT_GID_OFFSET,
	OPT_TAR, OPT_UNPACK, OPT_AUFS, OPT_STRIP, OPT_SORT, OPT_MOUNT, OPT_CONTEXTS, OPT_CONFIG, OPT_PRODUCT,
	OPT_BLOCK_LIST,
	OPT_PATH, OPT_REGEX, OPT_DEREFERENCE, OPT_IGNORE_MTIME, OPT_PRESERVE_MTIME, OPT_FSYNC, OPT_QUIET,
	OPT_LEVEL, OPT_VERBOSE, OPT_COMPRESS, OPT_PCLUSTER, OPT_HINTS, OPT_MAX_EXTENT, OPT_DIRS, OPT_SPARSE,
	OPT_CHUNK, OPT_BLOB, OPT_OFFSET, OPT_PREFIX, OPT_ROOM, OPT_DIGEST, OPT_VERIFY,
	OPT_MANIFEST, OPT_PRINT_DIGEST, OPT_ABSENT,
};

static const struct cli_option table[] = {
	CLI_MAIN_GROUP("Options"),
	{ OPT_COMPRESS, "", 'z', "ALG[,N]", "compress: lz4, lz4hc, lzma, deflate, libdeflate, zstd" },
	{ OPT_PCLUSTER, "", 'C', "SIZE", "largest pcluster, up to 1M (default a block)" },
	{ OPT_EXTENDED, "", 'E', "LIST", "ztailpacking, fragments, dedupe ... (see man page)" },
	CLI_VALUES("LIST ztailpacking fragments all-fragments dedupe noinline_data legacy-compress 48bit "
		   "force-inode-compact force-inode-extended nosbcrc ^xattr-name-filter"),
	{ OPT_BLOCK, "", 'b', "#", "block size, 512 to 65536 (default 4096)" },
	{ OPT_LABEL, "", 'L', "LABEL", "volume label, at most 15 bytes" },
	{ OPT_TIME, "", 'T', "#", "build time, seconds since 1970 (default now)" },
	{ OPT_UUID, "", 'U', "UUID", "UUID, clear, or random (default)" },
	CLI_VALUES("clear random"),
	{ OPT_TAR, "tar", 0, "[X]",
	  "--tar=f: SOURCE, or stdin, is a tar; i: index; headerball" },

	CLI_OTHER_GROUP("Source"),
	{ OPT_PATH, "exclude-path", 0, "X", "leave out this path" },
	{ OPT_REGEX, "exclude-regex", 0, "X", "leave out paths that match" },
	{ OPT_DEREFERENCE, "hard-dereference", 0, "", "each name gets an inode of its own" },
	{ OPT_SORT, "sort", 0, "X", "contents of an archive in order of path (default) or none: as they come" },
	{ OPT_UNPACK, "ungzip", 0, "[X]", "nothing: compressed archives are recognised; =X is not implemented" },
	{ OPT_UNPACK, "unxz", 0, "[X]", NULL },
	{ OPT_AUFS, "aufs", 0, "", "names of aufs that hide lower layers become marks of overlayfs" },
	{ OPT_STRIP, "ovlfs-strip", 0, "[0|1]", "leave out marks of overlayfs" },

	CLI_OTHER_GROUP("Metadata"),
	{ OPT_ALL_TIME, "all-time", 0, "", "-T is the time of all files too (default)" },
	{ OPT_MKFS_TIME, "mkfs-time", 0, "", "-T is the build time alone" },
	{ OPT_IGNORE_MTIME, "ignore-mtime", 0, "", "all files get the build time" },
	{ OPT_PRESERVE_MTIME, "preserve-mtime", 0, "", "files keep their times, but for -T" },
	{ OPT_ALL_ROOT, "all-root", 0, "", "root owns all files" },
	{ OPT_UID, "force-uid", 0, "#", "owner of all files" },
	{ OPT_GID, "force-gid", 0, "#", "group of all files" },
	{ OPT_UID_OFFSET, "uid-offset", 0, "#", "added to owners" },
	{ OPT_GID_OFFSET, "gid-offset", 0, "#", "added to groups" },
	{ OPT_TOLERANCE, "", 'x', "#", "share attributes of more than # inodes (default 2); < 0: none" },
	{ OPT_PREFIX, "xattr-prefix", 0, "X", "attributes whose names begin so are stored shorter" },
	{ OPT_ROOM, "root-xattr-isize", 0, "#", "least size of the root's attributes" },
	{ OPT_DIGEST, "xattr-inode-digest", 0, "[X]", "this attribute of each file is its SHA-256" },

	CLI_OTHER_GROUP("Android"),
	{ OPT_MOUNT, "mount-point", 0, "X", "where it will be mounted, for the following (default /)" },
	{ OPT_CONFIG, "fs-config-file", 0, "X", "owners, modes and capabilities (Android)" },
	{ OPT_CONTEXTS, "file-contexts", 0, "X", "labels of files (SELinux)" },
	{ OPT_PRODUCT, "product-out", 0, "X", "nothing beside --fs-config-file (Android)" },
	{ OPT_BLOCK_LIST, "block-list-file", 0, "X", "write which blocks each file has (Android)" },

	CLI_OTHER_GROUP("Layout"),
	{ OPT_DIRS, "zD", 0, "[0|1]", "1: compress directories too (default with no value)" },
	CLI_VALUES("0 1"),
	{ OPT_HINTS, "compress-hints", 0, "FILE", "lines of SIZE [ALGORITHM] REGEX for some files" },
	{ OPT_MAX_EXTENT, "max-extent-bytes", 0, "#", "most bytes of a file in one pcluster" },
	{ OPT_CHUNK, "chunksize", 0, "#", "in chunks of this size, equal ones once: what is not compressed" },
	{ OPT_BLOB, "blobdev", 0, "FILE", "the chunks into this file or device" },
	{ OPT_SPARSE, "android-sparse", 0, "", "write an Android sparse image" },
	{ OPT_OFFSET, "offset", 0, "#", "the image begins there in FILE" },

	CLI_OTHER_GROUP("Running"),
	{ CLI_WORKERS, "workers", 0, "W", "percpu, percpu-hipri, unbound, auto, or a number of threads" },
	{ CLI_MAX_MEMORY, "max-memory", 0, "SIZE", "limit of data in flight (K, M, G, %)" },
	{ CLI_STATS, "stats", 0, "[HOW]", "print figures to stderr; HOW: json, or a file to compare with" },
	CLI_VALUES("json FILE"),
	{ OPT_FSYNC, "fsync", 0, "", "flush before the image gets its name" },
	{ OPT_VERIFY, "verify", 0, "", "read the image back, compare it with SOURCE, then name it" },
	{ OPT_MANIFEST, "manifest", 0, "FILE", "write an mtree manifest of the image, with SHA-256" },
	CLI_JSON_OPTION,
	{ OPT_PRINT_DIGEST, "print-digest", 0, "", "print the fs-verity digest of the image file" },
	{ CLI_PROGRESS, "progress", 0, "", "show progress (default: on a terminal)" },
	{ CLI_NO_PROGRESS, "no-progress", 0, "", NULL },

	CLI_OTHER_GROUP("Messages"),
	{ OPT_LEVEL, "", 'd', "#", "message level 0 to 9 (default 2)" },
	{ OPT_QUIET, "quiet", 'q', "", "errors only, nothing on stdout" },
	{ OPT_VERBOSE, "verbose", 'v', "", "one message level more, may be repeated" },
	{ OPT_HELP, "help", 'h', "[all]", "show this help; all: describe every option" },
	{ OPT_VERSION, "version", 'V', "", "show versions" },

	/* refused by name, never ignored */
	CLI_OTHER_GROUP("Refused"),
	{ OPT_ABSENT, "", 'm', "#", "not implemented" },
	{ OPT_ABSENT, "dsunit", 0, "#", "not implemented" },
	{ OPT_ABSENT, "fsalignblks", 0, "#", "not implemented" },
	{ OPT_ABSENT, "zfeature-bits", 0, "#", "not implemented" },
	{ OPT_ABSENT, "MZ", 0, "[X]", "not implemented" },
	{ OPT_ABSENT, "clean", 0, "X", "not implemented" },
	{ OPT_ABSENT, "incremental", 0, "X", "not implemented" },
	{ OPT_ABSENT, "gzinfo", 0, "[X]", "not implemented" },
	{ OPT_ABSENT, "vmdk-desc", 0, "X", "not implemented" },
	{ OPT_ABSENT, "async-queue-limit", 0, "#", "not implemented" },
	{ OPT_ABSENT, "s3", 0, "X", "not implemented" },
	{ OPT_ABSENT, "oci", 0, "[X]", "not implemented" },
	{ 0 },
};

#ifndef CLI_TABLE_ONLY	/* doc/table.c takes what is above */

int mkfs_print_help(const struct cli *cli, bool all)
{
	/* short: one screen of 24 lines */
	printf("Usage: mkfs.erofs [OPTIONS] FILE SOURCE...%s\n", all ? "" : "  (more: --help=all, man page)");
	if (all)
		puts("Make an EROFS image of a directory, a tar archive or other images.");
	erofs_cli_print_options(table, all);
	return erofs_cli_close_stdout(cli) ? 1 : 0;
}

static int take_id(const struct cli_parse *p, uint32_t *ret)
{
	uint64_t v;

	if (!erofs_cli_number(p->arg, &v) || v > UINT32_MAX)
		return erofs_cli_bad_value(p, "a number of 32 bits");
	*ret = (uint32_t)v;
	return 1;
}

static bool read_uuid(const char *text, uint8_t uuid[16])
{
	unsigned int i, one;

	if (strlen(text) != 36)
		return false;
	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			if (*text++ != '-')
				return false;
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]) ||
		    sscanf(text, "%2x", &one) != 1)
			return false;
		uuid[i] = (uint8_t)one;
		text += 2;
	}
	return true;
}

static int take_uuid(const struct cli_parse *p, struct erofs_write_options *w)
{
	memset(w->uuid, 0, sizeof(w->uuid));
	w->has_uuid = strcmp(p->arg, "random") != 0;
	if (!w->has_uuid || !strcmp(p->arg, "clear") || read_uuid(p->arg, w->uuid))
		return 1;
	return erofs_cli_bad_value(p, "a UUID, clear or random");
}

static int take_time(const struct cli_parse *p, struct mkfs_options *o)
{
	uint64_t v;

	if (!erofs_cli_number(p->arg, &v) || v > INT64_MAX)
		return erofs_cli_bad_value(p, "seconds since 1970");
	o->write.has_time = 1;
	o->write.time = (int64_t)v;
	return 1;
}

static int take_tolerance(const struct cli_parse *p, struct erofs_write_options *w)
{
	const char *digits = p->arg + (*p->arg == '-');
	uint64_t v;

	if (!erofs_cli_number(digits, &v) || v > INT32_MAX)
		return erofs_cli_bad_value(p, "a number");
	w->no_xattrs = *p->arg == '-' && v;
	w->xattr_tolerance = w->no_xattrs ? DEFAULT_TOLERANCE : (uint32_t)v;
	return 1;
}

static int take_block(const struct cli_parse *p, struct erofs_write_options *w)
{
	uint64_t v;

	if (!erofs_cli_size(p->arg, &v) || v < 512 || v > 65536 || v & (v - 1))
		return erofs_cli_bad_value(p, "a power of two from 512 to 65536");
	w->block_size = (uint32_t)v;
	return 1;
}

static int take_owner(const struct cli_parse *p, struct mkfs_options *o)
{
	struct erofs_write_options *w = &o->write;

	switch (p->opt->id) {
	case OPT_ALL_ROOT: o->uid = o->gid = 0; w->force_uid = &o->uid; w->force_gid = &o->gid; return 1;
	case OPT_UID: w->force_uid = &o->uid; return take_id(p, &o->uid);
	case OPT_GID: w->force_gid = &o->gid; return take_id(p, &o->gid);
	case OPT_UID_OFFSET: return take_id(p, &w->uid_offset);
	case OPT_GID_OFFSET: return take_id(p, &w->gid_offset);
	case OPT_PATH: return erofs_cli_append(&o->paths, p->arg);
	case OPT_REGEX: return erofs_cli_append(&o->regexes, p->arg);
	case OPT_MOUNT: w->mount_point = p->arg; return 1;
	case OPT_CONTEXTS: w->file_contexts = p->arg; return 1;
	case OPT_CONFIG: w->fs_config_file = p->arg; return 1;
	case OPT_PRODUCT: o->product_out = true; return 1;
	case OPT_BLOCK_LIST: w->block_list_file = p->arg; return 1;
	case OPT_DEREFERENCE: w->hard_dereference = 1; return 1;
	case OPT_VERIFY: w->verify = 1; return 1;
	case OPT_FSYNC: w->fsync = 1; return 1;
	default: return 0;
	}
}

static int take_tar(const struct cli_parse *p, struct erofs_write_options *w)
{
	if (!p->arg || !strcmp(p->arg, "f"))
		w->source_type = EROFS_WRITE_TAR;
	else if (!strcmp(p->arg, "i"))
		w->source_type = EROFS_WRITE_TAR_INDEX;
	else if (!strcmp(p->arg, "headerball"))
		w->source_type = EROFS_WRITE_TAR_HEADERS;
	else
		return erofs_cli_bad_value(p, "f, i or headerball");
	return 1;
}

/* How an archive is compressed is seen by itself. */
static int take_unpack(const struct cli_parse *p)
{
	char name[32];

	if (!p->arg)
		return 1;
	erofs_cli_usage(p->cli, 1, "%s=%s is not implemented", erofs_cli_option_name(p->opt, name), p->arg);
	return -EINVAL;
}

/* No value: 1. */
static int take_switch(const struct cli_parse *p, int *ret)
{
	if (p->arg && strcmp(p->arg, "0") && strcmp(p->arg, "1"))
		return erofs_cli_bad_value(p, "0 or 1");
	*ret = !p->arg || *p->arg == '1';
	return 1;
}

static int take_layers(const struct cli_parse *p, struct erofs_write_options *w)
{
	switch (p->opt->id) {
	case OPT_TAR: return take_tar(p, w);
	case OPT_UNPACK: return take_unpack(p);
	case OPT_AUFS: w->aufs = 1; return 1;
	case OPT_STRIP: return take_switch(p, &w->ovlfs_strip);
	case OPT_SORT:
		if (strcmp(p->arg, "path") && strcmp(p->arg, "none"))
			return erofs_cli_bad_value(p, "path or none");
		w->sort = *p->arg == 'n' ? EROFS_WRITE_SORT_NONE : EROFS_WRITE_SORT_PATH;
		return 1;
	default: return 0;
	}
}

static int take_common(struct cli_parse *p, struct mkfs_options *o)
{
	uint64_t level;

	switch (p->opt->id) {
	case OPT_HELP: o->help = true; return erofs_cli_take_help(p, &o->help_all);
	case OPT_VERSION: o->version = true; return 1;
	case OPT_QUIET: o->quiet = true; return 1;
	case OPT_VERBOSE: p->cli->level += p->cli->level < 9; return 1;
	case OPT_LEVEL:
		if (!erofs_cli_number(p->arg, &level) || level > 9)
			return erofs_cli_bad_value(p, "a level from 0 to 9");
		p->cli->level = (int)level;
		return 1;
	default: return erofs_cli_common_option(p);
	}
}

static int take_pcluster(const struct cli_parse *p, struct erofs_write_options *w)
{
	uint64_t v;

	if (!erofs_cli_size(p->arg, &v) || !v || v > 1 << 20)
		return erofs_cli_bad_value(p, "a number of bytes up to 1M");
	w->pcluster_size = (uint32_t)v;
	return 1;
}

static int take_max_extent(const struct cli_parse *p, struct erofs_write_options *w)
{
	uint64_t v;

	if (!erofs_cli_size(p->arg, &v) || !v || v > UINT32_MAX)
		return erofs_cli_bad_value(p, "a number of bytes");
	w->max_extent_bytes = (uint32_t)v;
	return 1;
}

static int take_chunk(const struct cli_parse *p, struct erofs_write_options *w)
{
	uint64_t v;

	if (!erofs_cli_size(p->arg, &v) || !v || v > 1 << 30 || v & (v - 1))
		return erofs_cli_bad_value(p, "a power of two from the block size to 1G");
	w->chunk_size = (uint32_t)v;
	return 1;
}

static int take_compression(const struct cli_parse *p, struct erofs_write_options *w)
{
	switch (p->opt->id) {
	case OPT_COMPRESS: w->compressors = *p->arg ? p->arg : NULL; return 1;
	case OPT_PCLUSTER: return take_pcluster(p, w);
	case OPT_HINTS: w->compress_hints = p->arg; return 1;
	case OPT_MAX_EXTENT: return take_max_extent(p, w);
	case OPT_CHUNK: return take_chunk(p, w);
	case OPT_BLOB: w->blob = p->arg; return 1;
	case OPT_DIRS: return take_switch(p, &w->compress_dirs);
	default: return 0;
	}
}

static int take_place(const struct cli_parse *p, struct mkfs_options *o)
{
	uint64_t v;

	switch (p->opt->id) {
	case OPT_SPARSE: o->write.android_sparse = 1; return 1;
	case OPT_OFFSET:
		if (!erofs_cli_size(p->arg, &o->write.offset) || o->write.offset > INT64_MAX / 2)
			return erofs_cli_bad_value(p, "a number of bytes");
		return 1;
	case OPT_PREFIX: return erofs_cli_append(&o->prefixes, p->arg);
	case OPT_DIGEST: o->write.inode_digest = p->arg ? p->arg : "erofs.fingerprint.v1"; return 1;
	case OPT_ROOM:
		if (!erofs_cli_size(p->arg, &v) || v > UINT32_MAX)
			return erofs_cli_bad_value(p, "a number of bytes");
		o->write.root_xattr_room = (uint32_t)v;
		return 1;
	default: return 0;
	}
}

static int take_option(struct cli_parse *p, struct mkfs_options *o, struct mkfs_times *t)
{
	char name[32];
	int r = take_common(p, o);

	if (!r)
		r = take_owner(p, o);
	if (!r)
		r = take_layers(p, &o->write);
	if (!r)
		r = take_compression(p, &o->write);
	if (!r)
		r = take_place(p, o);
	if (!r)
		r = erofs_cli_take_json(p, &o->json);
	if (!r)
		r = erofs_cli_engine_option(p, &o->engine);
	if (r)
		return r;
	switch (p->opt->id) {
	case OPT_MANIFEST: o->manifest = p->arg; return 1;
	case OPT_PRINT_DIGEST: o->print_digest = true; return 1;
	case OPT_BLOCK: return take_block(p, &o->write);
	case OPT_EXTENDED: return mkfs_take_extended(p, o);
	case OPT_LABEL: o->write.label = p->arg; return 1;
	case OPT_TIME: return take_time(p, o);
	case OPT_UUID: return take_uuid(p, &o->write);
	case OPT_TOLERANCE: return take_tolerance(p, &o->write);
	case OPT_ALL_TIME: t->all = 1; return 1;
	case OPT_MKFS_TIME: t->all = 0; return 1;
	case OPT_IGNORE_MTIME: o->write.all_time = 1; return 1;
	case OPT_PRESERVE_MTIME: o->write.all_time = 0; return 1;
	default:
		erofs_cli_usage(p->cli, 1, "%s is not implemented", erofs_cli_option_name(p->opt, name));
		return -EINVAL;
	}
}

int mkfs_parse_options(int argc, char **argv, struct cli *cli, struct mkfs_options *ret)
{
	struct mkfs_times t = { .all = -1 };
	struct cli_parse p;
	int r, err;

	*ret = (struct mkfs_options){ .write = { .size = sizeof(ret->write), .xattr_tolerance = DEFAULT_TOLERANCE } };
	if (erofs_cli_parse_begin(&p, cli, table, 1))
		return 1;
	err = 0;
	while (!err && (r = erofs_cli_parse_next(&p, argc, argv))) {
		r = r < 0 ? r : take_option(&p, ret, &t);
		err = r < 0 ? r : 0;
	}
	erofs_cli_parse_end(&p);
	if (err)
		return 1;
	if (ret->quiet)
		cli->level = 0;
	if (ret->help || ret->version)
		return 0;
	ret->write.exclude_paths = ret->paths.words;
	ret->write.exclude_regexes = ret->regexes.words;
	ret->write.xattr_prefixes = ret->prefixes.words;
	return mkfs_settle_times(cli, ret, &t) ? 1 : mkfs_take_operands(argc, argv, &p, ret);
}

void mkfs_free_options(struct mkfs_options *o)
{
	free(o->paths.words);
	free(o->regexes.words);
	free(o->prefixes.words);
	free(o->sources.words);
}

#endif
