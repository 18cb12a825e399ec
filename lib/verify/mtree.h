/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * mtree(5), as libarchive and FreeBSD write it, a line at a time.
 *
 * Facts: words are separated by blanks, a backslash at the end of a line joins it with the next one; the first
 * word is a name, in which bytes may stand as \ooo (or as in C, with \s for a blank). A name with a slash is a
 * path from the top; one without is in the current folder, and becomes that itself if it is one; ".." leaves it.
 * "/set" gives words that hold for the names that follow, "/unset" takes them back. Of the time, what stands
 * behind the point is a number of nanoseconds.
 */
#ifndef EROFS_VERIFY_MTREE_H
#define EROFS_VERIFY_MTREE_H

#include <stdio.h>

#include "verify/verify_priv.h"

#define MTREE_MAX_LINE ((size_t)4 << 20)

/* What the words of a name say. */
struct mtree_facts {
	struct wanted w;
	bool has_type, has_mode, has_inode, optional, ignore;
	const char *link;		/* escaped, in the line; NULL: none */
};

struct mtree_line {
	FILE *file;
	struct tarbuf text;		/* terminated */
	uint64_t number;		/* of the line where it begins */
	uint64_t next;
	uint64_t bytes;			/* of the file, taken */
};

/* The next line that is not empty, joined. 1, 0 at the end, negative errno. -EOVERFLOW: too long. */
int erofs_mtree_next(struct mtree_line *l);

/* The next word of *@at, terminated in place; NULL: none. */
char *erofs_mtree_word(char **at);

/* Undo escapes in place. Return: the length, -EINVAL. */
ssize_t erofs_mtree_unescape(char *text);

/* Take one word. 0; -EINVAL, *@ret_why: what is wrong with it. */
int erofs_mtree_take(struct mtree_facts *f, char *word, const char **ret_why);
/* Forget what a keyword set. */
int erofs_mtree_unset(struct mtree_facts *f, const char *word);

/* Hexadecimal digits to bytes, exactly @len. */
bool erofs_mtree_hex(const char *text, uint8_t *ret, size_t len);

#endif
