// SPDX-License-Identifier: GPL-2.0-or-later
/* The words of -E. */
#include <errno.h>
#include <string.h>

#include "mkfs.h"

enum {
	WORD_ABSENT, WORD_INLINE, WORD_NO_INLINE, WORD_COMPACT, WORD_EXTENDED, WORD_NO_CHECKSUM, WORD_FILTER,
};

static const struct {
	char name[24];		/* in the structure, see struct cli_option */
	int id;
} words[] = {
	{ "inline_data", WORD_INLINE },
	{ "noinline_data", WORD_NO_INLINE },
	{ "force-inode-compact", WORD_COMPACT },
	{ "force-inode-extended", WORD_EXTENDED },
	{ "nosbcrc", WORD_NO_CHECKSUM },
	{ "xattr-name-filter", WORD_FILTER },
	/* refused by name, never ignored */
	{ "48bit", WORD_ABSENT },
	{ "all-fragments", WORD_ABSENT },
	{ "dedupe", WORD_ABSENT },
	{ "dot-omitted", WORD_ABSENT },
	{ "force-chunk-indexes", WORD_ABSENT },
	{ "force-inode-blockmap", WORD_ABSENT },
	{ "fragdedupe", WORD_ABSENT },
	{ "fragments", WORD_ABSENT },
	{ "legacy-compress", WORD_ABSENT },
	{ "plain-xattr-prefixes", WORD_ABSENT },
	{ "ztailpacking", WORD_ABSENT },
};

/* false: the word cannot be negated */
static bool apply(struct erofs_write_options *w, int id, bool on)
{
	switch (id) {
	case WORD_INLINE: w->no_inline_data = !on; return true;
	case WORD_NO_INLINE: w->no_inline_data = on; return true;
	case WORD_COMPACT: w->inodes = EROFS_WRITE_INODES_COMPACT; return on;
	case WORD_EXTENDED: w->inodes = EROFS_WRITE_INODES_EXTENDED; return on;
	case WORD_NO_CHECKSUM: w->no_checksum = on; return true;
	case WORD_FILTER: w->no_xattr_filter = !on; return true;
	default: return false;
	}
}

static int take_word(const struct cli_parse *p, struct mkfs_options *o, const char *word, size_t len)
{
	bool negated = len && *word == '^';
	const char *name = word + negated;
	size_t key = strcspn(name, "=,"), i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].name) != key || memcmp(words[i].name, name, key))
			continue;
		if (words[i].id == WORD_ABSENT) {
			erofs_cli_usage(p->cli, 1, "-E %.*s is not implemented", (int)len, word);
			return -EINVAL;
		}
		if (name + key == word + len && apply(&o->write, words[i].id, !negated))
			return 1;
		break;
	}
	erofs_cli_usage(p->cli, 1, "-E %.*s: unknown word", (int)len, word);
	return -EINVAL;
}

int mkfs_take_extended(const struct cli_parse *p, struct mkfs_options *o)
{
	const char *at = p->arg;
	int r;

	do {
		size_t len = strcspn(at, ",");

		r = take_word(p, o, at, len);
		at += len + (at[len] == ',');
	} while (r > 0 && *at);
	return r;
}
