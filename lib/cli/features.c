// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Features and algorithms by name, and since when Linux has them. */
#include <stdio.h>

#include "cli/features.h"

const struct cli_feature erofs_cli_compatible[] = {
	{ EROFS_COMPAT_SB_CHKSUM, "sb_csum", 0 },
	{ EROFS_COMPAT_MTIME, "mtime", 0 },
	{ EROFS_COMPAT_XATTR_FILTER, "xattr_filter", 0 },
	{ EROFS_COMPAT_SHARED_EA_IN_METABOX, "shared_ea_in_metabox", 0 },
	{ EROFS_COMPAT_PLAIN_XATTR_PFX, "plain_xattr_pfx", 0 },
	{ EROFS_COMPAT_ISHARE_XATTRS, "ishare_xattrs", 0 },
	{ 0 },
};

const struct cli_feature erofs_cli_incompatible[] = {
	{ EROFS_INCOMPAT_ZERO_PADDING, "lz4_0padding", 504 },
	{ EROFS_INCOMPAT_COMPR_CFGS, "compr_cfgs big_pcluster", 513 },
	{ EROFS_INCOMPAT_CHUNKED_FILE, "chunked_file", 515 },
	{ EROFS_INCOMPAT_DEVICE_TABLE, "device_table", 516 },
	{ EROFS_INCOMPAT_ZTAILPACKING, "ztailpacking", 517 },
	{ EROFS_INCOMPAT_FRAGMENTS, "fragments dedupe", 601 },
	{ EROFS_INCOMPAT_XATTR_PREFIXES, "xattr_prefixes", 604 },
	{ EROFS_INCOMPAT_48BIT, "48bit", 615 },
	{ EROFS_INCOMPAT_METABOX, "metabox", 617 },
	{ 0 },
};

/* By number; each with the first Linux that decodes it. */
const struct cli_feature erofs_cli_algorithms[] = {
	{ 1u << 0, "lz4", 0 },
	{ 1u << 1, "lzma", 516 },
	{ 1u << 2, "deflate", 606 },
	{ 1u << 3, "zstd", 610 },
	{ 0 },
};

static unsigned int newest(const struct cli_feature *list, uint32_t bits, unsigned int kernel)
{
	for (; list->bit; list++)
		if ((bits & list->bit) && list->kernel > kernel)
			kernel = list->kernel;
	return kernel;
}

unsigned int erofs_cli_kernel(const struct erofs_super_info *info)
{
	unsigned int kernel = newest(erofs_cli_incompatible, info->feature_incompat, 0);

	if (info->feature_incompat & EROFS_INCOMPAT_COMPR_CFGS)
		kernel = newest(erofs_cli_algorithms, info->compr_algs, kernel);
	return kernel;
}

const char *erofs_cli_format_uuid(const uint8_t uuid[16], char text[37])
{
	unsigned int i;
	char *at = text;

	for (i = 0; i < 16; i++)
		at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return text;
}
