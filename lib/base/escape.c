// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Escaping of names for messages and terminals. */
#include <stdint.h>

#include "base/escape.h"

/* Length of the valid UTF-8 sequence at @p (no overlong forms, no surrogates), 0 if there is none. */
static size_t utf8_len(const uint8_t *p, size_t left)
{
	uint32_t c;
	size_t n, i;

	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	c = p[0] & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c < 0xe000))
		return 0;
	/* C1 controls and direction marks drive terminals as well as C0 does */
	if (c < 0xa0 || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

size_t erofs_escape_name(const char *name, size_t len, char *buf, size_t size)
{
	const uint8_t *p = (const uint8_t *)name;
	size_t i, k, n, out = 0;

	for (i = 0; i < len; i += n) {
		n = utf8_len(p + i, len - i);
		if (n && p[i] >= 0x20 && p[i] != 0x7f && p[i] != '\\') {
			if (out + n >= size)
				break;
			for (k = 0; k < n; k++)
				buf[out++] = (char)p[i + k];
			continue;
		}
		n = 1;
		if (out + 4 >= size)
			break;
		buf[out++] = '\\';
		buf[out++] = (char)('0' + (p[i] >> 6));
		buf[out++] = (char)('0' + (p[i] >> 3 & 7));
		buf[out++] = (char)('0' + (p[i] & 7));
	}
	if (size)
		buf[out] = '\0';
	return out;
}

bool erofs_is_utf8(const void *text, size_t len)
{
	const uint8_t *p = text;
	size_t n, i;

	for (i = 0; i < len; i += n) {
		n = p[i] < 0x80 ? 1 : utf8_len(p + i, len - i);
		if (!n)
			return false;
	}
	return true;
}
