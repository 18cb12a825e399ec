/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * JSON, written as it is said: nothing is kept, keys come in the order of the calls, 64-bit numbers stay
 * whole. Whoever writes closes what was opened, and asks the file for errors at the end (R11).
 */
#ifndef EROFS_CLI_JSON_H
#define EROFS_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 32	/* levels of nesting; a document here has five */

struct cli_json {
	FILE *file;		/* borrowed */
	uint32_t lines;		/* bit n: values at depth n begin a line; the outermost has depth 0 */
	uint32_t filled;	/* bit n: there is a value at depth n already */
	unsigned int depth;
	char closing[JSON_DEPTH];
};

void erofs_json_init(struct cli_json *j, FILE *file, uint32_t lines);

/* Begin to write elements of an array at @depth of a later document, apart from it; and put them there. */
void erofs_json_begin_apart(struct cli_json *apart, FILE *file, uint32_t lines, unsigned int depth);
/* @apart: its file is read from the beginning. 0, negative errno. */
int erofs_json_put_apart(struct cli_json *j, struct cli_json *apart);

/* @key: constant, without anything to escape; NULL in arrays and for the outermost value. */
void erofs_json_object(struct cli_json *j, const char *key);
void erofs_json_array(struct cli_json *j, const char *key);
/* Close the innermost object or array; behind the outermost comes a newline. */
void erofs_json_end(struct cli_json *j);

void erofs_json_unsigned(struct cli_json *j, const char *key, uint64_t v);
void erofs_json_signed(struct cli_json *j, const char *key, int64_t v);
void erofs_json_real(struct cli_json *j, const char *key, double v);
void erofs_json_bool(struct cli_json *j, const char *key, bool v);
void erofs_json_null(struct cli_json *j, const char *key);

/* Text; bytes that are no UTF-8 become U+FFFD, one each. NULL: null. */
void erofs_json_text(struct cli_json *j, const char *key, const char *text);

/* Bytes: text as above, and if they are no UTF-8 also KEY_base64. NULL: null. */
void erofs_json_bytes(struct cli_json *j, const char *key, const char *bytes, size_t len);

/* A nid: a string, since readers with floating point numbers would round those of metabox images. */
void erofs_json_nid(struct cli_json *j, const char *key, uint64_t nid);

/* {"time": RFC 3339 in UTC, or null where that has no form, "sec": N, "nsec": N} (R19) */
void erofs_json_time(struct cli_json *j, const char *key, int64_t sec, uint32_t nsec);

#endif
