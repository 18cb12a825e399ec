// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What directories can show: order, types, dots, link counts (format.md 14, items 7 and 12 to 15). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "walk/walk_int.h"

#define NAME_TEXT 300	/* an escaped name in a message, cut if longer */

void erofs_walk_check_type(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			   const struct erofs_inode *ino)
{
	char name[NAME_TEXT];

	if (de->type == DIRENT_UNKNOWN || de->type > DIRENT_LNK || de->type == erofs_dirent_type(ino->mode))
		return;
	erofs_escape_name(de->name, de->len, name, sizeof(name));
	erofs_diag_damage(w->diag, DIRENT_TYPE, AT(dir->ino.nid, de->off),
			  "entry '%s' (nid %" PRIu64 ") has type %u, its inode type %u", name, de->nid,
			  de->type, erofs_dirent_type(ino->mode));
}

/* Bytewise, a shorter name before a longer one with the same beginning (format.md 7.3). */
static int compare_names(const char *a, size_t alen, const char *b, size_t blen)
{
	int r = memcmp(a, b, alen < blen ? alen : blen);

	return r ? r : (alen > blen) - (alen < blen);
}

int erofs_walk_check_order(struct walk *w, struct walk_dir *dir, const struct dirent_view *de,
			   const char *prev, unsigned int prev_len)
{
	char name[NAME_TEXT];
	int r;

	if (!prev)
		return -1;
	r = compare_names(prev, prev_len, de->name, de->len);
	if (r < 0)
		return r;
	erofs_escape_name(de->name, de->len, name, sizeof(name));
	erofs_diag_damage(w->diag, DIRENT_ORDER, AT(dir->ino.nid, de->off), r ?
			  "entry '%s' is not in order" : "entry '%s' stands twice", name);
	return r;
}

/* The start of a subtree is not told its parent; the root is its own. */
static bool knows_parent(const struct walk_dir *dir)
{
	return dir->up || dir->ino.nid == dir->ino.img->super->info.root_nid;
}

void erofs_walk_check_dots(struct walk *w, struct walk_dir *dir, const struct dirent_view *de)
{
	bool self = de->len == 1;
	uint64_t want = self || !dir->up ? dir->ino.nid : dir->up->ino.nid;

	atomic_fetch_add_explicit(self ? &dir->dots : &dir->dotdots, 1, memory_order_relaxed);
	if (!w->strict)
		return;
	if (de->nid != want && (self || knows_parent(dir)))
		erofs_diag_damage(w->diag, DIRENT_DOTS, AT(dir->ino.nid, de->off),
				  "'%s' leads to nid %" PRIu64 " (wanted %" PRIu64 ")", self ? "." : "..",
				  de->nid, want);
	if (de->type != DIRENT_DIR && de->type != DIRENT_UNKNOWN && de->type <= DIRENT_LNK)
		erofs_diag_damage(w->diag, DIRENT_TYPE, AT(dir->ino.nid, de->off),
				  "'%s' has type %u, a directory is %u", self ? "." : "..", de->type,
				  DIRENT_DIR);
}

static unsigned int count_of(atomic_uint *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void erofs_walk_check_left(struct walk *w, struct walk_dir *dir)
{
	unsigned int dots = count_of(&dir->dots), dotdots = count_of(&dir->dotdots);
	unsigned int want = dir->ino.dot_omitted ? 0 : 1;
	uint64_t nlink = UINT64_C(2) + count_of(&dir->subdirs);

	if (atomic_load_explicit(&dir->broken, memory_order_relaxed))
		return;
	if ((dots != want && (dots != 1 || !dir->ino.dot_omitted)) || dotdots != 1)
		erofs_diag_damage(w->diag, DIRENT_DOTS, AT(dir->ino.nid, 0),
				  "has %u '.' and %u '..' (wanted %u and 1)", dots, dotdots, want);
	if (dir->ino.nlink != nlink && dir->ino.nlink != 1)
		erofs_diag_damage(w->diag, INODE_NLINK, AT(dir->ino.nid, dir->ino.pos),
				  "directory's link count is %" PRIu32 " (wanted %" PRIu64 ")",
				  dir->ino.nlink, nlink);
}

unsigned int erofs_walk_last_name(struct walk *w, struct lane *lane, const struct walk_dir *dir,
				  uint64_t blk, char *buf)
{
	const struct erofs_inode *ino = &dir->ino;
	auto_free uint8_t *block = malloc(ino->img->blksz);
	uint64_t off = blk << ino->img->blkbits;
	struct dirent_view de;
	struct dirblk db;
	unsigned int len = 0;

	if (!block || erofs_lane_read(lane, ino, off, block, ino->img->blksz) ||
	    erofs_dirblk_open(&db, ino->nid, off, block, ino->img->blksz, w->diag))
		return 0;
	if (!db.count)
		return 0;
	for (db.next = db.count - 1; erofs_dirblk_next(&db, &de) > 0; len = de.len)
		memcpy(buf, de.name, de.len);
	return len;
}
