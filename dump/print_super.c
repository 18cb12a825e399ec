// SPDX-License-Identifier: GPL-2.0-or-later
/* The superblock: labels and columns that scripts cut apart (cli.md 6). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/features.h"
#include "dump.h"

#define LABEL 46	/* columns */

static void print_words(const struct cli_feature *list, uint32_t bits)
{
	for (; list->bit; list++)
		if (bits & list->bit)
			printf("%s ", list->words);
	putchar('\n');
}

static void print_label(const char *label)
{
	printf("%-*s", LABEL, label);
}

static void print_count(const char *label, uint64_t v)
{
	print_label(label);
	printf("%" PRIu64 "\n", v);
}

static void print_algorithms(const struct erofs_super_info *info)
{
	const struct cli_feature *a;
	const char *comma = "";

	if (!(info->feature_incompat & EROFS_INCOMPAT_COMPR_CFGS)) {
		print_count("Filesystem lz4_max_distance:", info->lz4_max_distance);
		return;
	}
	print_label("Filesystem compr_algs:");
	for (a = erofs_cli_algorithms; a->bit; a++) {
		if (!(info->compr_algs & a->bit))
			continue;
		printf("%s%s", comma, a->words);
		comma = ", ";
	}
	putchar('\n');
}

/* asctime()'s form in the local zone, whatever the locale. */
static void print_created(int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[64];

	print_label("Filesystem created:");
	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm))
		puts(text);
	else
		printf("%" PRId64 "\n", seconds);
}

static void print_uuid(const uint8_t uuid[16])
{
	char text[37];

	puts(erofs_cli_format_uuid(uuid, text));
}

static void print_kernel(const struct erofs_super_info *info)
{
	unsigned int kernel = erofs_cli_kernel(info);

	if (!kernel)
		return;
	print_label("Required upstream Linux kernel version:");
	printf("%u.%u\n", kernel / 100, kernel % 100);
}

void dump_print_super(const struct erofs_super_info *info)
{
	print_label("Filesystem magic number:");
	puts("0xE0F5E1E2");
	print_count("Filesystem blocksize:", info->block_size);
	print_count("Filesystem blocks:", info->total_blocks);
	print_count("Filesystem inode metadata start block:", info->meta_block);
	print_count("Filesystem shared xattr metadata start block:", info->xattr_block);
	print_count("Filesystem root nid:", info->root_nid);
	if (info->packed_nid)
		print_count("Filesystem packed nid:", info->packed_nid);
	if (info->metabox_nid)
		print_count("Filesystem metabox nid:", info->metabox_nid);
	print_algorithms(info);
	print_count("Filesystem sb_size:", info->super_size);
	print_count("Filesystem inode count:", info->inodes);
	print_created(info->build_time);
	print_label("Filesystem compatible features:");
	print_words(erofs_cli_compatible, info->feature_compat);
	print_label("Filesystem incompatible features:");
	print_words(erofs_cli_incompatible, info->feature_incompat);
	print_label("Filesystem UUID:");
	print_uuid(info->uuid);
	print_kernel(info);
	if (!info->volume_name[0])
		return;
	print_label("Filesystem volume name:");
	dump_print_name(info->volume_name, strlen(info->volume_name));
	putchar('\n');
}

/* ---- udev ---- */

static bool is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("#+-.:=@_", c)) || c >= 0x80;
}

static void print_encoded(const char *text)
{
	for (; *text; text++)
		printf(is_plain((unsigned char)*text) ? "%c" : "\\x%02x", (unsigned char)*text);
	putchar('\n');
}

static void print_safe(const char *text)
{
	for (; *text; text++)
		putchar(is_plain((unsigned char)*text) || strchr("/ $%?,'", *text) ?
			(*text == ' ' ? '_' : *text) : '_');
	putchar('\n');
}

void dump_print_udev(const struct erofs_super_info *info)
{
	printf("ID_FS_UUID=");
	print_uuid(info->uuid);
	printf("ID_FS_UUID_ENC=");
	print_uuid(info->uuid);
	puts("ID_FS_TYPE=erofs\nID_FS_USAGE=filesystem");
	if (!info->volume_name[0])
		return;
	printf("ID_FS_LABEL=");
	print_safe(info->volume_name);
	printf("ID_FS_LABEL_ENC=");
	print_encoded(info->volume_name);
}
