// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The JSON writer: commas, line ends, escapes. What is written is the business of others. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "cli/json.h"

#define REPLACEMENT "\xef\xbf\xbd"	/* U+FFFD */

void erofs_json_init(struct cli_json *j, FILE *file, uint32_t lines)
{
	*j = (struct cli_json){ .file = file, .lines = lines };
}

void erofs_json_begin_apart(struct cli_json *apart, FILE *file, uint32_t lines, unsigned int depth)
{
	*apart = (struct cli_json){ .file = file, .lines = lines, .depth = depth };
}

int erofs_json_put_apart(struct cli_json *j, struct cli_json *apart)
{
	char buf[4096];
	size_t n;

	assert(j->depth == apart->depth);
	rewind(apart->file);
	while ((n = fread(buf, 1, sizeof(buf), apart->file)))
		fwrite(buf, 1, n, j->file);
	j->filled |= apart->filled & UINT32_C(1) << j->depth;
	return ferror(apart->file) ? -EIO : 0;
}

static bool has_line(const struct cli_json *j, unsigned int depth)
{
	return j->lines >> depth & 1;
}

static void begin_line(const struct cli_json *j, unsigned int depth)
{
	unsigned int i, indent = 0;

	for (i = 1; i <= depth; i++)
		indent += has_line(j, i) ? 2 : 0;
	fprintf(j->file, "\n%*s", (int)indent, "");
}

/* What stands before a value: comma, line end, key. */
static void begin_value(struct cli_json *j, const char *key)
{
	uint32_t bit = UINT32_C(1) << j->depth;

	if (j->depth && j->filled & bit)
		fputc(',', j->file);
	if (j->depth && has_line(j, j->depth))
		begin_line(j, j->depth);
	else if (j->depth && j->filled & bit)
		fputc(' ', j->file);
	j->filled |= bit;
	if (key)
		fprintf(j->file, "\"%s\": ", key);
}

static void open_value(struct cli_json *j, const char *key, char opening, char closing)
{
	begin_value(j, key);
	fputc(opening, j->file);
	assert(j->depth + 1 < JSON_DEPTH);
	j->closing[j->depth++] = closing;
	j->filled &= ~(UINT32_C(1) << j->depth);
}

void erofs_json_object(struct cli_json *j, const char *key)
{
	open_value(j, key, '{', '}');
}

void erofs_json_array(struct cli_json *j, const char *key)
{
	open_value(j, key, '[', ']');
}

void erofs_json_end(struct cli_json *j)
{
	bool filled = j->filled >> j->depth & 1;

	assert(j->depth);
	if (filled && has_line(j, j->depth))
		begin_line(j, j->depth - 1);
	fputc(j->closing[--j->depth], j->file);
	if (!j->depth)
		fputc('\n', j->file);
}

void erofs_json_unsigned(struct cli_json *j, const char *key, uint64_t v)
{
	begin_value(j, key);
	fprintf(j->file, "%" PRIu64, v);
}

void erofs_json_signed(struct cli_json *j, const char *key, int64_t v)
{
	begin_value(j, key);
	fprintf(j->file, "%" PRId64, v);
}

void erofs_json_real(struct cli_json *j, const char *key, double v)
{
	if (!isfinite(v)) {
		erofs_json_null(j, key);
		return;
	}
	begin_value(j, key);
	fprintf(j->file, "%.1f", v);
}

void erofs_json_bool(struct cli_json *j, const char *key, bool v)
{
	begin_value(j, key);
	fputs(v ? "true" : "false", j->file);
}

void erofs_json_null(struct cli_json *j, const char *key)
{
	begin_value(j, key);
	fputs("null", j->file);
}

/* What may drive a terminal is escaped too: JSON is looked at on terminals (R18). */
static void put_character(FILE *file, const char *at, size_t n, uint32_t c)
{
	if (c == '"' || c == '\\')
		fprintf(file, "\\%c", (int)c);
	else if (erofs_utf8_is_control(c))
		fprintf(file, "\\u%04" PRIx32, c);	/* none of these is above U+FFFF */
	else
		fwrite(at, 1, n, file);
}

/* false: some of it was no UTF-8. */
static bool put_string(FILE *file, const char *text, size_t len)
{
	bool valid = true;
	uint32_t c = 0;
	size_t i, n;

	fputc('"', file);
	for (i = 0; i < len; i += n) {
		n = erofs_utf8_decode(text + i, len - i, &c);
		if (n) {
			put_character(file, text + i, n, c);
		} else {
			fputs(REPLACEMENT, file);
			valid = false;
			n = 1;
		}
	}
	fputc('"', file);
	return valid;
}

void erofs_json_text(struct cli_json *j, const char *key, const char *text)
{
	if (!text) {
		erofs_json_null(j, key);
		return;
	}
	begin_value(j, key);
	(void)put_string(j->file, text, strlen(text));
}

static void put_base64(FILE *file, const uint8_t *p, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;

	for (i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < len ? p[i + 2] : 0;
		fputc(digits[v >> 18], file);
		fputc(digits[v >> 12 & 63], file);
		fputc(i + 1 < len ? digits[v >> 6 & 63] : '=', file);
		fputc(i + 2 < len ? digits[v & 63] : '=', file);
	}
}

void erofs_json_bytes(struct cli_json *j, const char *key, const char *bytes, size_t len)
{
	if (!bytes) {
		erofs_json_null(j, key);
		return;
	}
	begin_value(j, key);
	if (put_string(j->file, bytes, len))
		return;
	begin_value(j, NULL);
	fprintf(j->file, "\"%s_base64\": \"", key);
	put_base64(j->file, (const uint8_t *)bytes, len);
	fputc('"', j->file);
}

void erofs_json_nid(struct cli_json *j, const char *key, uint64_t nid)
{
	begin_value(j, key);
	fprintf(j->file, "\"%" PRIu64 "\"", nid);
}

void erofs_json_time(struct cli_json *j, const char *key, int64_t sec, uint32_t nsec)
{
	time_t t = (time_t)sec;
	char text[64] = "";
	struct tm tm;

	/* RFC 3339 has years of four digits */
	if ((int64_t)t == sec && gmtime_r(&t, &tm) && tm.tm_year >= -1900 && tm.tm_year <= 9999 - 1900)
		snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%09" PRIu32 "Z",
			 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			 tm.tm_sec, nsec);
	erofs_json_object(j, key);
	erofs_json_text(j, "time", *text ? text : NULL);
	erofs_json_signed(j, "sec", sec);
	erofs_json_unsigned(j, "nsec", nsec);
	erofs_json_end(j);
}
