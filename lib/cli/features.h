/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Words for what a superblock says: for dump.erofs -s, and for reports. */
#ifndef EROFS_CLI_FEATURES_H
#define EROFS_CLI_FEATURES_H

#include <erofs/image.h>

struct cli_feature {
	uint32_t bit;
	const char *words;	/* one or more, separated by blanks */
	unsigned int kernel;	/* first Linux that has it: major * 100 + minor, 0: no matter */
};

/* Each ends with bit 0. */
extern const struct cli_feature erofs_cli_compatible[], erofs_cli_incompatible[], erofs_cli_algorithms[];

/* First Linux that reads the image: major * 100 + minor, 0: any with EROFS. */
unsigned int erofs_cli_kernel(const struct erofs_super_info *info);

/* Lower case, with hyphens. Return: @text. */
const char *erofs_cli_format_uuid(const uint8_t uuid[16], char text[37]);

#endif
