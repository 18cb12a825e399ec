/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* The inside of <erofs/select.h>: globs, and the verdict on one path. */
#ifndef EROFS_SELECT_PRIV_H
#define EROFS_SELECT_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include <erofs/select.h>

enum select_verdict {
	SELECT_NO,	/* neither it nor anything below it */
	SELECT_PARENT,	/* not itself, but something below it may be */
	SELECT_YES,	/* it and, unless excluded, all below it */
};

/*
 * What is to become of @path? Relative to the start, no slash in front, "" is the start.
 * @s:      NULL: everything is selected
 * @inside: the verdict on an ancestor was SELECT_YES
 * Not asked for what lies below a SELECT_NO. Any thread, no locks.
 */
enum select_verdict erofs_select_match(const struct erofs_select *s, const char *path, size_t len, bool inside);

/* May an entry of this type be more than what it is itself? 0: the directory does not say. */
static inline bool erofs_select_may_be(enum select_verdict verdict, unsigned int type)
{
	return verdict == SELECT_YES || (verdict == SELECT_PARENT && (!type || type == 2));
}

/* ---- globs (glob.c) ---- */

/* Is @pattern one that erofs_glob_match() can use? No slash in front or behind, none doubled. */
bool erofs_glob_is_valid(const char *pattern);

/* Does it match all of @path? */
bool erofs_glob_match(const char *pattern, const char *path, size_t len);

/* May it match something below @path? */
bool erofs_glob_may_match_below(const char *pattern, const char *path, size_t len);

#endif
