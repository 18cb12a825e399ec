// SPDX-License-Identifier: GPL-2.0-or-later
/* The words of -E. */
#include <errno.h>
#include <string.h>

#include "mkfs.h"

enum {
	WORD_INLINE, WORD_NO_INLINE, WORD_COMPACT, WORD_EXTENDED, WORD_NO_CHECKSUM, WORD_FILTER,
	WORD_ZTAIL, WORD_FRAGMENTS, WORD_ALL_FRAGMENTS, WORD_LEGACY, WORD_48BIT, WORD_DEDUPE,
	WORD_INDEXES, WORD_BLOCKMAP, WORD_PLAIN, WORD_DOT, WORD_FRAGDEDUPE,
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
	{ "48bit", WORD_48BIT },
	{ "all-fragments", WORD_ALL_FRAGMENTS },
	{ "legacy-compress", WORD_LEGACY },
	{ "ztailpacking", WORD_ZTAIL },
	{ "fragments", WORD_FRAGMENTS },
	{ "dedupe", WORD_DEDUPE },
	{ "force-chunk-indexes", WORD_INDEXES },
	{ "force-inode-blockmap", WORD_BLOCKMAP },
	{ "dot-omitted", WORD_DOT },
	{ "fragdedupe", WORD_FRAGDEDUPE },
	{ "plain-xattr-prefixes", WORD_PLAIN },
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
	case WORD_ZTAIL: w->ztailpacking = on; return true;
	case WORD_FRAGMENTS: w->fragments = on; return true;
	case WORD_ALL_FRAGMENTS: w->all_fragments = on; return true;
	case WORD_LEGACY: w->legacy_compress = on; return true;
	case WORD_DEDUPE: w->dedupe = on; return true;
	case WORD_INDEXES: w->chunk_map = EROFS_WRITE_CHUNK_INDEXES; return on;
	case WORD_BLOCKMAP: w->chunk_map = EROFS_WRITE_CHUNK_BLOCKMAP; return on;
	case WORD_PLAIN: w->plain_xattr_prefixes = on; return true;
	case WORD_DOT: w->dot_omitted = on; return true;
	case WORD_FRAGDEDUPE: w->no_fragment_dedupe = !on; return true;
	case WORD_48BIT: w->encoded_extents = on; return true;
	default: return false;
	}
}

/* fragments=SIZE, or the number behind "fragments,": size of pclusters of the packed file. */
static bool take_packed_size(struct erofs_write_options *w, const char *text, size_t len)
{
	char number[24] = "";
	uint64_t v;

	if (!len || len >= sizeof(number))
		return false;
	memcpy(number, text, len);
	if (!erofs_cli_size(number, &v) || !v || v > 1 << 20)
		return false;
	w->packed_pcluster_size = (uint32_t)v;
	return true;
}

/* "inode" and "full" say what may be equal to what: here any fragments are. */
static bool take_fragdedupe(struct erofs_write_options *w, const char *how, size_t len)
{
	static const char *const kinds[] = { "off", "inode", "full" };
	size_t i;

	for (i = 0; i < 3; i++) {
		if (len != strlen(kinds[i]) || memcmp(how, kinds[i], len))
			continue;
		w->no_fragment_dedupe = !i;
		return true;
	}
	return false;
}

static bool take_known(struct erofs_write_options *w, int id, bool negated, const char *value, size_t len)
{
	if (len && (id == WORD_FRAGMENTS || id == WORD_ALL_FRAGMENTS) && !negated) {
		if (!take_packed_size(w, value + 1, len - 1))
			return false;
		len = 0;
	}
	if (len && id == WORD_FRAGDEDUPE && !negated)
		return take_fragdedupe(w, value + 1, len - 1);
	return !len && apply(w, id, !negated);
}

static int take_word(const struct cli_parse *p, struct mkfs_options *o, const char *word, size_t len)
{
	bool negated = len && *word == '^';
	const char *name = word + negated;
	size_t key = strcspn(name, "=,"), i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].name) != key || memcmp(words[i].name, name, key))
			continue;
		if (take_known(&o->write, words[i].id, negated, name + key, len - negated - key))
			return 1;
		break;
	}
	if (o->write.fragments && take_packed_size(&o->write, word, len))
		return 1;
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
