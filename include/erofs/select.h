/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* select: which names of a tree are meant (cli.md 8). */
#ifndef EROFS_SELECT_H
#define EROFS_SELECT_H

#include <erofs/image.h>

EROFS_BEGIN_DECLS

struct erofs_select;	/* patterns and what became of them */

/*
 * A pattern is compared with the whole path from the start of the run; slashes in front of it and behind
 * it, doubled ones and "." between them do not matter, "/" is the start itself. '*' and '?' stand for
 * bytes other than '/', "**" for any (and its slash may be missing: "**" "/x" is x as well), [a-z], [!a-z]
 * and [^a-z] for one byte but '/', a backslash takes the next byte as it is. What is selected or left out
 * is so with all below it. Members and includes add up; none of either is everything; excludes win.
 */
struct erofs_select_options {
	size_t size;				/* sizeof(struct erofs_select_options) */
	const char *const *members;		/* each list ends with NULL, and may be NULL */
	const char *const *includes;
	const char *const *excludes;
};

/**
 * erofs_select_new() - take patterns; they are copied
 * Any number of threads may ask it. Many patterns without '*', '?' and '[' cost as little as one.
 * Return: 0; -EINVAL a pattern is empty, ends within [...] or with a single backslash, or has a range that
 * runs backwards or a [:class:]; -ENOMEM.
 */
EROFS_API int erofs_select_new(const struct erofs_select_options *options, struct erofs_select **ret_select);
EROFS_API void erofs_select_free(struct erofs_select *select);

/**
 * erofs_select_unmatched() - patterns that matched nothing, after a run
 * Return: the @index-th of them as it was given (members first, then includes), NULL behind the last.
 */
EROFS_API const char *erofs_select_unmatched(const struct erofs_select *select, unsigned int index);

EROFS_END_DECLS

#endif
