// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Lines, words and keywords of mtree(5). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "verify/mtree.h"

#define READ_ROOM 4096

/* ---- lines ---- */

/* Add what is left of a line of the file, without its end. 1, 0 at the end of the file, negative errno. */
static int add_line(struct mtree_line *l)
{
	struct tarbuf *b = &l->text;
	size_t start = b->len;

	for (;;) {
		char *at;
		size_t n;

		if (b->len - start > MTREE_MAX_LINE)
			return -EOVERFLOW;
		if (erofs_tarbuf_reserve(b, READ_ROOM))
			return -ENOMEM;
		at = (char *)b->data + b->len;
		if (!fgets(at, READ_ROOM, l->file))
			return ferror(l->file) ? -EIO : b->len > start;
		n = strlen(at);
		b->len += n;
		l->bytes += n;
		if (n && at[n - 1] == '\n') {
			b->data[--b->len] = '\0';
			l->next++;
			return 1;
		}
		if (n == READ_ROOM - 1)
			continue;
		/* a NUL: more was read than shows */
		if (!feof(l->file) || ftello(l->file) != (off_t)l->bytes)
			return -EINVAL;
		l->next++;
		return 1;
	}
}

/* Does it go on in the next line? Two backslashes are one of the name's. */
static bool is_continued(const struct tarbuf *b)
{
	size_t n = 0;

	while (n < b->len && b->data[b->len - 1 - n] == '\\')
		n++;
	return n & 1;
}

int erofs_mtree_next(struct mtree_line *l)
{
	int r;

	do {
		l->text.len = 0;
		l->number = l->next + 1;
		r = add_line(l);
		while (r > 0 && *l->text.data != '#' && is_continued(&l->text)) {
			l->text.data[l->text.len - 1] = ' ';
			if (l->text.len > MTREE_MAX_LINE)
				return -EOVERFLOW;
			r = add_line(l);
			if (!r) {
				r = 1;	/* the end of the file is the line's */
				break;
			}
		}
	} while (r > 0 && !l->text.data[strspn((const char *)l->text.data, " \t\r")]);
	return r;
}

/* Words are a few bytes long: strspn() and strcspn() take four times as long as this for setting themselves up. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

char *erofs_mtree_word(char **at)
{
	char *word = *at, *end;

	while (is_blank(*word))
		word++;
	for (end = word; *end && !is_blank(*end); end++)
		;
	*at = *end ? end + 1 : end;
	*end = '\0';
	return *word ? word : NULL;
}

static int letter_of(char c)
{
	static const char letters[] = "abfnrtvs", bytes[] = "\a\b\f\n\r\t\v ";
	const char *at = c ? strchr(letters, c) : NULL;

	if (at)
		return (unsigned char)bytes[at - letters];
	/* marks stand for themselves */
	return c > ' ' && c < 0x7f && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') ? c : -1;
}

static bool is_octal(const char *text)
{
	return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' && text[2] >= '0' &&
	       text[2] <= '7';
}

ssize_t erofs_mtree_unescape(char *text)
{
	char *from = text, *to = text;

	while (*from) {
		int c;

		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		if (is_octal(from + 1)) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
			continue;
		}
		c = letter_of(from[1]);
		if (c < 0)
			return -EINVAL;
		*to++ = (char)c;
		from += 2;
	}
	*to = '\0';
	return to - text;
}

/* ---- keywords ---- */

static bool number(const char *text, int base, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return !*end && !errno;
}

static bool number_u32(const char *text, uint32_t *ret)
{
	uint64_t v;

	if (!number(text, 10, &v) || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool erofs_mtree_hex(const char *text, uint8_t *ret, size_t len)
{
	size_t i;

	if (strlen(text) != 2 * len)
		return false;
	for (i = 0; i < len; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool take_type(struct mtree_facts *f, const char *value)
{
	static const struct {
		const char *word;
		uint32_t mode;
	} types[] = {
		{ "file", S_IFREG }, { "dir", S_IFDIR }, { "link", S_IFLNK }, { "char", S_IFCHR },
		{ "block", S_IFBLK }, { "fifo", S_IFIFO }, { "socket", S_IFSOCK },
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].word, value)) {
			f->w.mode = (f->w.mode & 07777) | types[i].mode;
			f->w.has |= EROFS_COMPARE_TYPE;
			return true;
		}
	return false;
}

static bool take_mode(struct mtree_facts *f, const char *value)
{
	uint64_t v;

	if (!number(value, 8, &v) || v > 07777)
		return false;
	f->w.mode = (f->w.mode & S_IFMT) | (uint32_t)v;
	return true;
}

/* SECONDS, or SECONDS.NANOSECONDS */
static bool take_time(struct mtree_facts *f, char *value)
{
	char *point = strchr(value, '.');
	bool minus = *value == '-';
	uint64_t sec, nsec = 0;

	if (point)
		*point = '\0';
	if (!number(value + minus, 10, &sec) || sec > INT64_MAX || (point && !number(point + 1, 10, &nsec)) ||
	    nsec > 999999999)
		return false;
	f->w.mtime = minus ? -(int64_t)sec : (int64_t)sec;
	f->w.mtime_nsec = (uint32_t)nsec;
	return true;
}

/* FORMAT,MAJOR,MINOR, MAJOR,MINOR, or the number that stat() gives here. */
static bool take_device(struct mtree_facts *f, char *value)
{
	static const char formats[] = " 386bsd 4bsd bsdos freebsd hpux isc linux native netbsd osf1 sco solaris "
				      "sunos svr3 svr4 ultrix ";
	char *comma = strchr(value, ','), name[16];
	uint64_t v;

	if (!comma) {
		if (!number(value, 0, &v))
			return false;
		f->w.major = major(v);
		f->w.minor = minor(v);
		return true;
	}
	if (*value < '0' || *value > '9' || strchr(comma + 1, ',')) {
		if (comma - value > 10)
			return false;
		snprintf(name, sizeof(name), " %.*s ", (int)(comma - value), value);
		if (!strstr(formats, name))
			return false;
		value = comma + 1;
		comma = strchr(value, ',');
		if (!comma)
			return false;
	}
	*comma = '\0';
	return number_u32(value, &f->w.major) && number_u32(comma + 1, &f->w.minor);
}

enum keyword {
	KEY_IGNORED, KEY_TYPE, KEY_MODE, KEY_UID, KEY_GID, KEY_SIZE, KEY_TIME, KEY_LINK, KEY_NLINK, KEY_INODE,
	KEY_DEVICE, KEY_SHA256, KEY_SHA512, KEY_OPTIONAL, KEY_IGNORE,
};

static const struct {
	const char *word;
	enum keyword key;
	bool has_value;
	unsigned int has;
} keywords[] = {
	{ "type", KEY_TYPE, true, EROFS_COMPARE_TYPE },
	{ "mode", KEY_MODE, true, EROFS_COMPARE_MODE },
	{ "uid", KEY_UID, true, EROFS_COMPARE_UID },
	{ "gid", KEY_GID, true, EROFS_COMPARE_GID },
	{ "size", KEY_SIZE, true, EROFS_COMPARE_SIZE },
	{ "time", KEY_TIME, true, EROFS_COMPARE_TIME },
	{ "link", KEY_LINK, true, EROFS_COMPARE_LINK },
	{ "nlink", KEY_NLINK, true, 0 },
	{ "inode", KEY_INODE, true, EROFS_COMPARE_HARDLINK },
	{ "device", KEY_DEVICE, true, EROFS_COMPARE_DEVICE },
	{ "sha256digest", KEY_SHA256, true, EROFS_COMPARE_DATA },
	{ "sha256", KEY_SHA256, true, EROFS_COMPARE_DATA },
	{ "sha512digest", KEY_SHA512, true, EROFS_COMPARE_DATA },
	{ "sha512", KEY_SHA512, true, EROFS_COMPARE_DATA },
	{ "optional", KEY_OPTIONAL, false, 0 },
	{ "ignore", KEY_IGNORE, false, 0 },
	/* names of owners depend on the machine; other digests are no proof any more */
	{ "uname", KEY_IGNORED, true, 0 }, { "gname", KEY_IGNORED, true, 0 }, { "flags", KEY_IGNORED, true, 0 },
	{ "md5", KEY_IGNORED, true, 0 }, { "md5digest", KEY_IGNORED, true, 0 },
	{ "sha1", KEY_IGNORED, true, 0 }, { "sha1digest", KEY_IGNORED, true, 0 },
	{ "sha384", KEY_IGNORED, true, 0 }, { "sha384digest", KEY_IGNORED, true, 0 },
	{ "rmd160", KEY_IGNORED, true, 0 }, { "rmd160digest", KEY_IGNORED, true, 0 },
	{ "ripemd160digest", KEY_IGNORED, true, 0 }, { "cksum", KEY_IGNORED, true, 0 },
	{ "contents", KEY_IGNORED, true, 0 }, { "resdevice", KEY_IGNORED, true, 0 },
	{ "tags", KEY_IGNORED, true, 0 }, { "content", KEY_IGNORED, true, 0 },
	{ "nochange", KEY_IGNORED, false, 0 },
};

#define KEYWORDS (sizeof(keywords) / sizeof(*keywords))

static size_t find_keyword(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < KEYWORDS; i++)
		if (strlen(keywords[i].word) == len && !memcmp(keywords[i].word, word, len))
			return i;
	return KEYWORDS;
}

static bool take_value(struct mtree_facts *f, enum keyword key, char *value)
{
	switch (key) {
	case KEY_TYPE: return take_type(f, value);
	case KEY_MODE: return take_mode(f, value);
	case KEY_UID: return number_u32(value, &f->w.uid);
	case KEY_GID: return number_u32(value, &f->w.gid);
	case KEY_SIZE: return number(value, 10, &f->w.size);
	case KEY_TIME: return take_time(f, value);
	case KEY_LINK: f->link = value; return true;
	case KEY_NLINK: return number(value, 10, &f->w.nlink);
	case KEY_INODE: return number(value, 10, &f->w.group[0]);
	case KEY_DEVICE: return take_device(f, value);
	case KEY_SHA256: return f->w.has_sha256 = erofs_mtree_hex(value, f->w.sha256, sizeof(f->w.sha256));
	case KEY_SHA512: return f->w.has_sha512 = erofs_mtree_hex(value, f->w.sha512, sizeof(f->w.sha512));
	case KEY_OPTIONAL: return f->optional = true;
	case KEY_IGNORE: return f->ignore = true;
	default: return true;
	}
}

int erofs_mtree_take(struct mtree_facts *f, char *word, const char **ret_why)
{
	size_t len = strcspn(word, "="), k = find_keyword(word, len);

	*ret_why = "is no keyword of mtree(5)";
	if (k == KEYWORDS)
		return -EINVAL;
	*ret_why = keywords[k].has_value ? "needs a value" : "takes no value";
	if (keywords[k].has_value != (word[len] == '='))
		return -EINVAL;
	*ret_why = "has a wrong value";
	if (!take_value(f, keywords[k].key, word + len + (word[len] == '=')))
		return -EINVAL;
	f->w.has |= keywords[k].has;
	return 0;
}

int erofs_mtree_unset(struct mtree_facts *f, const char *word)
{
	size_t k = find_keyword(word, strlen(word));

	if (!strcmp(word, "all")) {
		*f = (struct mtree_facts){ 0 };
		return 0;
	}
	if (k == KEYWORDS)
		return -EINVAL;
	f->w.has &= ~keywords[k].has;
	if (keywords[k].key == KEY_NLINK)
		f->w.nlink = 0;
	if (keywords[k].key == KEY_SHA256)
		f->w.has_sha256 = false;
	if (keywords[k].key == KEY_SHA512)
		f->w.has_sha512 = false;
	if (keywords[k].key == KEY_OPTIONAL)
		f->optional = false;
	if (keywords[k].key == KEY_IGNORE)
		f->ignore = false;
	if (f->w.has_sha256 || f->w.has_sha512)
		f->w.has |= EROFS_COMPARE_DATA;
	return 0;
}
