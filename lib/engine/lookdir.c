// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Listing one directory in stored order: the public erofs_dir_ functions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <erofs/inode.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "engine/lane_priv.h"
#include "engine/look.h"

/* Read at once, so that a compressed directory is not decoded anew for each of its blocks. */
#define DIR_READ (UINT32_C(64) << 10)

struct erofs_dir {
	const struct erofs_inode *ino;
	struct erofs_diag *diag;
	uint64_t pos;		/* byte of the directory where the next block begins */
	uint64_t buf_pos;	/* what buf holds */
	size_t buf_len;
	bool in_block;
	int err;		/* the first error, told at the end: what can be read comes first */
	struct dirblk block;
	uint8_t buf[];		/* DIR_READ bytes, a multiple of every block size */
};

int erofs_dir_open(const struct erofs_inode *ino, struct erofs_diag *diag, struct erofs_dir **ret_dir)
{
	size_t room = (size_t)min_u64(DIR_READ, round_up_u64(ino->size, ino->img->blksz));
	struct erofs_dir *dir;

	if (!S_ISDIR(ino->mode))
		return -ENOTDIR;
	dir = calloc(1, sizeof(*dir) + room);
	if (!dir)
		return -ENOMEM;
	dir->ino = ino;
	dir->diag = diag;
	*ret_dir = dir;
	return 0;
}

void erofs_dir_close(struct erofs_dir *dir)
{
	free(dir);
}

static void note_error(struct erofs_dir *dir, int err)
{
	if (err && !dir->err)
		dir->err = err;
}

/* Read blocks from dir->pos on; if several at once fail, one alone may still be readable. */
static int fill(struct erofs_dir *dir)
{
	size_t len = (size_t)min_u64(DIR_READ, dir->ino->size - dir->pos);
	size_t one = (size_t)min_u64(dir->ino->img->blksz, len);
	auto_lane struct lane *lane = NULL;
	int err = erofs_look_take(dir->ino->img, dir->diag, &lane);

	if (err)
		return err;
	err = erofs_lane_read(lane, dir->ino, dir->pos, dir->buf, len);
	if (err && len > one) {
		len = one;
		err = erofs_lane_read(lane, dir->ino, dir->pos, dir->buf, len);
	}
	dir->buf_pos = dir->pos;
	dir->buf_len = err ? 0 : len;
	return err;
}

/* Enter the block at dir->pos and step over it. */
static int enter_block(struct erofs_dir *dir)
{
	size_t len = (size_t)min_u64(dir->ino->img->blksz, dir->ino->size - dir->pos);
	uint64_t at = dir->pos;
	int err = 0;

	if (at < dir->buf_pos || !range_ok(at - dir->buf_pos, len, dir->buf_len))
		err = fill(dir);
	dir->pos += len;
	if (err)
		return err;
	err = erofs_dirblk_open(&dir->block, dir->ino->nid, at, dir->buf + (at - dir->buf_pos), len,
				dir->diag);
	dir->in_block = !err;
	return err;
}

/* The next entry of the block; names that no path can hold were reported and are left out. */
static bool next_in_block(struct erofs_dir *dir, struct dirent_view *de)
{
	while (dir->in_block && erofs_dirblk_next(&dir->block, de) > 0)
		if (!de->bad_name)
			return true;
	if (dir->in_block && dir->block.damaged)
		note_error(dir, -EUCLEAN);
	dir->in_block = false;
	return false;
}

int erofs_dir_next(struct erofs_dir *dir, struct erofs_entry *ret_entry)
{
	struct dirent_view de;

	while (!next_in_block(dir, &de)) {
		if (dir->pos >= dir->ino->size || dir->err == -ENOMEM)
			return dir->err;
		note_error(dir, enter_block(dir));
	}
	ret_entry->nid = de.nid;
	ret_entry->type = de.type;
	ret_entry->name = de.name;
	ret_entry->len = de.len;
	return 1;
}
