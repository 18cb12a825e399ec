// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of --digest. */
#include <string.h>

#include "dump.h"

int dump_take_digest(const struct cli_parse *p, struct dump_digest *d)
{
	static const char *const names[] = { "sha256", "sha512", "fsverity", "fsverity-sha512" };
	static const enum erofs_digest_algorithm algorithms[] = {
		EROFS_DIGEST_SHA256, EROFS_DIGEST_SHA512, EROFS_DIGEST_FSVERITY, EROFS_DIGEST_FSVERITY_SHA512,
	};
	unsigned int i;

	for (i = 0; i < 4; i++) {
		if (strcmp(p->arg, names[i]))
			continue;
		d->wanted = true;
		d->algorithm = algorithms[i];
		d->is_verity = i > 1;
		return 1;
	}
	return erofs_cli_bad_value(p, "sha256, sha512, fsverity or fsverity-sha512");
}

int dump_take_block(const struct cli_parse *p, struct dump_digest *d)
{
	uint64_t n;

	if (!erofs_cli_size(p->arg, &n) || n < 1024 || n > 65536 || (n & (n - 1)))
		return erofs_cli_bad_value(p, "a power of two from 1024 to 65536");
	d->block = (unsigned int)n;
	return 1;
}

int dump_take_salt(const struct cli_parse *p, struct dump_digest *d)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = p->arg, *high, *low;
	size_t n = 0;

	for (; *at && n < sizeof(d->salt); at += 2) {
		high = strchr(digits, at[0]);
		low = at[1] ? strchr(digits, at[1]) : NULL;
		if (!high || !low)
			break;
		d->salt[n++] = (uint8_t)(((high - digits) & 15) << 4 | ((low - digits) & 15));
	}
	if (*at)
		return erofs_cli_bad_value(p, "up to 32 bytes, two digits each");
	d->salt_text = p->arg;
	d->salt_size = n;
	return 1;
}
