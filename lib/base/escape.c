// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Escaping of names for messages and terminals. */
#include "base/escape.h"

size_t erofs_utf8_decode(const char *text, size_t left, uint32_t *ret_point)
{
	const uint8_t *p = (const uint8_t *)text;
	uint32_t c;
	size_t n, i;

	if (p[0] < 0x80) {
		*ret_point = p[0];
		return 1;
	}
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
	*ret_point = c;
	return n;
}

/* C1 controls and direction marks drive terminals as well as C0 does. */
bool erofs_utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static size_t escape(const char *name, size_t len, bool backslash, char *buf, size_t size)
{
	const uint8_t *p = (const uint8_t *)name;
	size_t i, k, n, out = 0;
	uint32_t c;

	for (i = 0; i < len; i += n) {
		n = erofs_utf8_decode(name + i, len - i, &c);
		if (n && !erofs_utf8_is_control(c) && !(backslash && c == '\\')) {
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

size_t erofs_escape_name(const char *name, size_t len, char *buf, size_t size)
{
	return escape(name, len, true, buf, size);
}

size_t erofs_escape_text(const char *text, size_t len, char *buf, size_t size)
{
	return escape(text, len, false, buf, size);
}

bool erofs_is_utf8(const void *text, size_t len)
{
	const char *p = text;
	size_t n, i;
	uint32_t c;

	for (i = 0; i < len; i += n) {
		n = erofs_utf8_decode(p + i, len - i, &c);
		if (!n)
			return false;
	}
	return true;
}
