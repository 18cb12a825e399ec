// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Patterns against paths. Our own, as fnmatch(3) knows no "**", heeds the locale, and cannot say whether
 * something below a path could match.
 */
#include <stdint.h>

#include "walk/select_priv.h"

/* The end of the bracket expression behind '[', NULL: it has none, or is not one of ours. */
static const char *bracket_end(const char *p)
{
	const char *first;
	unsigned char low = 0;
	bool range = false;

	if (*p == '!' || *p == '^')
		p++;
	for (first = p; *p && (*p != ']' || p == first); p++) {
		if (*p == '[' && p[1] == ':')
			return NULL;
		if (*p == '-' && p != first && p[1] && p[1] != ']' && !range) {
			range = true;
			continue;
		}
		if (*p == '\\' && !*++p)
			return NULL;
		if (range && (unsigned char)*p < low)
			return NULL;
		low = (unsigned char)*p;
		range = false;
	}
	return *p ? p : NULL;
}

bool erofs_glob_is_valid(const char *pattern)
{
	const char *p;

	for (p = pattern; *p; p++) {
		if (*p == '\\') {
			if (!*++p)
				return false;
		} else if (*p == '[') {
			p = bracket_end(p + 1);
			if (!p)
				return false;
		}
	}
	return p > pattern;
}

static unsigned char take_byte(const char **p)
{
	if (**p == '\\')
		++*p;
	return (unsigned char)*(*p)++;
}

/* Is @c in the brackets? *p stands behind '[' and is moved behind ']'. */
static bool match_bracket(const char **p, unsigned char c)
{
	bool invert = **p == '!' || **p == '^', found = false, first = true;

	*p += invert;
	for (; **p != ']' || first; first = false) {
		unsigned char low = take_byte(p), high = low;

		if (**p == '-' && (*p)[1] != ']') {
			++*p;
			high = take_byte(p);
		}
		found |= c >= low && c <= high;
	}
	++*p;
	return found != invert && c != '/';
}

/* One byte against what is no star; *p is moved on if it matches. */
static bool match_byte(const char **p, unsigned char c)
{
	switch (**p) {
	case '\0':
		return false;
	case '?':
		++*p;
		return c != '/';
	case '[':
		++*p;
		return match_bracket(p, c);
	default:
		return take_byte(p) == c;
	}
}

/* A star, and up to where it reaches so far. */
struct star {
	const char *p;		/* behind it in the pattern, NULL: there was none */
	size_t at;
};

struct match {
	const char *path;
	size_t len;
	bool below;		/* an imaginary slash follows the path */
	struct star one, any;	/* '*', "**" */
	bool dirs;		/* the last "**" has a slash, so it takes whole parts */
};

static unsigned char byte_at(const struct match *m, size_t at)
{
	return at < m->len ? (unsigned char)m->path[at] : '/';
}

/* Stars at *p, if any: note them and move behind. */
static void take_stars(struct match *m, const char *pattern, const char **p, size_t at)
{
	bool starts_part = *p == pattern || (*p)[-1] == '/';

	if (**p != '*')
		return;
	if ((*p)[1] != '*') {
		m->one = (struct star){ ++*p, at };
		return;
	}
	while (**p == '*')
		++*p;
	m->dirs = starts_part && **p == '/';
	*p += m->dirs;
	m->any = (struct star){ *p, at };
	m->one.p = NULL;
}

/* Let the last star that can take one byte or part more, and go on behind it. false: none can. */
static bool stretch(struct match *m, size_t len, const char **p, size_t *at)
{
	if (m->one.p && m->one.at < len && byte_at(m, m->one.at) != '/') {
		*p = m->one.p;
		*at = ++m->one.at;
		return true;
	}
	m->one.p = NULL;
	if (!m->any.p || m->any.at >= len)
		return false;
	if (m->dirs)
		while (m->any.at < len && byte_at(m, m->any.at) != '/')
			m->any.at++;
	if (m->any.at >= len)
		return false;
	*p = m->any.p;
	*at = ++m->any.at;
	return true;
}

/*
 * Only the last star of each kind is stretched. That is enough: one that comes later can take whatever an
 * earlier one would have taken more, within a part for '*', anywhere for "**".
 */
static bool run_match(struct match *m, const char *pattern)
{
	size_t len = m->len + m->below, at = 0;
	const char *p = pattern;

	for (;;) {
		const char *before;

		do {
			before = p;
			take_stars(m, pattern, &p, at);
		} while (p != before);
		if (at == len && m->below)	/* what is left, or the star that was last, matches below */
			return *p || p == m->one.p || p == m->any.p;
		if (at == len && !*p)
			return true;
		before = p;
		if (at < len && match_byte(&p, byte_at(m, at))) {
			at++;
			continue;
		}
		p = before;
		if (!stretch(m, len, &p, &at))
			return false;
	}
}

bool erofs_glob_match(const char *pattern, const char *path, size_t len)
{
	struct match m = { .path = path, .len = len };

	return run_match(&m, pattern);
}

bool erofs_glob_may_match_below(const char *pattern, const char *path, size_t len)
{
	struct match m = { .path = path, .len = len, .below = true };

	return !len || run_match(&m, pattern);
}
