// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The option that somebody meant: the nearest long name by edit distance. */
#include <string.h>

#include "cli/cli.h"

#define MAX_WORD 24	/* names are shorter */

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Letters to add, drop, replace, or swap with a neighbour. */
static unsigned int distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned int row[MAX_WORD + 1][MAX_WORD + 1];
	size_t i, j;

	for (i = 0; i <= alen; i++)
		row[i][0] = (unsigned int)i;
	for (j = 0; j <= blen; j++)
		row[0][j] = (unsigned int)j;
	for (i = 1; i <= alen; i++)
		for (j = 1; j <= blen; j++) {
			row[i][j] = min3(row[i - 1][j] + 1, row[i][j - 1] + 1,
					 row[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    row[i - 2][j - 2] + 1 < row[i][j])
				row[i][j] = row[i - 2][j - 2] + 1;
		}
	return row[alen][blen];
}

const char *erofs_cli_suggest(const struct cli_option *table, const char *word, size_t len)
{
	/* one slip in short words, up to three in long ones: beyond that it is another word */
	unsigned int d, best = len < 4 ? 2 : len < 8 ? 3 : 4;
	const struct cli_option *o;
	const char *near = NULL;

	if (len > MAX_WORD)
		return NULL;
	for (o = table; o->id; o++) {
		size_t name_len = strlen(o->name);

		if (!name_len)
			continue;
		d = distance(word, len, o->name, name_len);
		if (d < best) {
			best = d;
			near = o->name;
		}
	}
	return near;
}
