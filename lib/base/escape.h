/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* File names for people: bytes that could drive a terminal or break a line become \ooo. */
#ifndef EROFS_BASE_ESCAPE_H
#define EROFS_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * erofs_escape_name() - escape one name or path
 * @name: bytes, no terminator needed
 * @len:  their count
 * @buf:  receives text with a terminator; cut at a whole escape if too small
 * @size: of @buf; 4 * @len + 1 always suffices
 * Bytes below 0x20, 0x7f, the backslash and bytes that are not part of valid UTF-8 are escaped.
 * Return: length of the text.
 */
size_t erofs_escape_name(const char *name, size_t len, char *buf, size_t size);

/** erofs_escape_text() - the same for a text whose names may be escaped already: a backslash stays one */
size_t erofs_escape_text(const char *text, size_t len, char *buf, size_t size);

/** erofs_is_utf8() - is all of it valid UTF-8 (no overlong forms, no surrogates)? */
bool erofs_is_utf8(const void *text, size_t len);

/* The character at @text, @left > 0 bytes. Its length, 0: no valid UTF-8 (then one byte is wrong). */
size_t erofs_utf8_decode(const char *text, size_t left, uint32_t *ret_point);

/* Could it drive a terminal or break a line: C0, DEL, C1, line separators, direction marks? */
bool erofs_utf8_is_control(uint32_t point);

#endif
