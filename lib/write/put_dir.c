// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Directories: names in the order of their bytes, "." and ".." among them (format.md 7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "write/write_priv.h"

#define PACKED_MAP 16			/* bytes of the map of a fragment */
#define PACKED_ABOVE 24			/* as of files */

/* The names of a directory in order. */
struct names {
	const struct node *dir;
	uint32_t at;
	unsigned int dots;		/* of "." and "..", how many came */
};

struct entry {
	const char *name;
	size_t len;
	const struct node *node;
};

/* "." need not be there in images for new kernels. */
static struct names first_name(const struct writer *w, const struct node *dir)
{
	return (struct names){ .dir = dir, .dots = w->o->dot_omitted ? 1 : 0 };
}

static bool next_name(struct names *n, struct entry *ret)
{
	static const char *const dots[] = { ".", ".." };
	const struct node *child = n->at < n->dir->nchildren ? n->dir->children[n->at] : NULL;

	if (n->dots < 2 && (!child || strcmp(dots[n->dots], child->name) < 0)) {
		const struct node *parent = n->dir->parent ? n->dir->parent : n->dir;

		*ret = (struct entry){ dots[n->dots], n->dots + 1, n->dots ? parent : n->dir };
		n->dots++;
		return true;
	}
	if (!child)
		return false;
	*ret = (struct entry){ child->name, strlen(child->name), child->link ? child->link : child };
	n->at++;
	return true;
}

/* Size of the directory; a name that does not fit into its block begins the next one. */
uint64_t erofs_dir_size(const struct writer *w, const struct node *dir)
{
	struct names names = first_name(w, dir);
	uint64_t block = 0;
	size_t used = 0, one;
	struct entry e;

	while (next_name(&names, &e)) {
		one = sizeof(struct disk_dirent) + e.len;
		if (used + one > w->blksz) {
			block += w->blksz;
			used = 0;
		}
		used += one;
	}
	return block + used;
}

/* Of a few names the map is longer than what compression saves. */
static bool is_packed(const struct writer *w, const struct node *dir)
{
	return w->o->compress_dirs && dir->size > PACKED_ABOVE;
}

static uint64_t packed_map_at(const struct node *dir)
{
	return round_up_u64(erofs_inode_head(dir), 8);
}

/* Is the last part beside the inode? */
static bool has_tail(const struct writer *w, const struct node *dir)
{
	uint64_t tail = dir->size % w->blksz;

	return tail && (erofs_inode_head(dir) + tail <= w->blksz || tail <= w->blksz - 64);
}

int erofs_dir_place(struct writer *w, struct node *dir)
{
	uint64_t tail = has_tail(w, dir) ? dir->size % w->blksz : 0, pos;
	bool packed = is_packed(w, dir);
	int err = packed ? erofs_space_meta(&w->space, packed_map_at(dir) + PACKED_MAP, 0, &pos) :
			   erofs_space_meta(&w->space, erofs_inode_head(dir) + tail, tail, &pos);

	if (err)
		return err;
	dir->nid = pos >> DISK_NID_SHIFT;
	if (packed)
		return 0;
	dir->block = erofs_space_blocks(&w->space, div_up_pow2(dir->size - tail, w->blkbits));
	return 0;
}

static uint8_t type_of(const struct node *node)
{
	switch (node->mode & S_IFMT) {
	case S_IFREG: return 1;
	case S_IFDIR: return 2;
	case S_IFCHR: return 3;
	case S_IFBLK: return 4;
	case S_IFIFO: return 5;
	case S_IFSOCK: return 6;
	case S_IFLNK: return 7;
	default: return 0;
	}
}

/* Fill one block with the names from *names on; advances it. */
static void fill_block(const struct writer *w, struct names *names, uint8_t *dst)
{
	struct names ahead = *names;
	size_t used = 0, count = 0, name_at, i;
	struct entry e;

	while (next_name(&ahead, &e)) {
		used += sizeof(struct disk_dirent) + e.len;
		if (used > w->blksz)
			break;
		count++;
	}
	name_at = count * sizeof(struct disk_dirent);
	for (i = 0; i < count && next_name(names, &e); i++) {
		struct disk_dirent *d = (struct disk_dirent *)dst + i;

		d->nid = le64_of(e.node->nid);
		d->nameoff = le16_of((uint16_t)name_at);
		d->file_type = type_of(e.node);
		memcpy(dst + name_at, e.name, e.len);
		name_at += e.len;
	}
}

/* Its inode has its place; the contents are as those of any file of one fragment. */
static int put_packed(struct writer *w, const struct node *dir, const uint8_t *data)
{
	uint8_t map[PACKED_MAP];
	struct body body = { .layout = 1, .map = map, .map_len = sizeof(map), .map_align = 8 };
	uint64_t offset;
	int err = erofs_packed_add(w, data, (size_t)dir->size, &offset);

	if (err)
		return err;
	erofs_zmap_whole_fragment(offset, map);
	return erofs_inode_put_at(w, dir, &body, dir->nid << DISK_NID_SHIFT);
}

int erofs_dir_put(struct writer *w, struct node *dir)
{
	uint64_t room = round_up_u64(dir->size, w->blksz), off, full;
	auto_free uint8_t *data = calloc(1, (size_t)room);
	struct names names = first_name(w, dir);
	struct body body = { .u = (uint32_t)dir->block };
	int err = 0;

	if (!data)
		return -ENOMEM;
	for (off = 0; off < dir->size; off += w->blksz)
		fill_block(w, &names, data + off);
	if (is_packed(w, dir))
		return put_packed(w, dir, data);
	full = room;
	if (has_tail(w, dir)) {
		full = round_down_u64(dir->size, w->blksz);
		body.layout = 2;
		body.tail = data + full;
		body.tail_len = (size_t)(dir->size - full);
		if (!full)
			body.u = DISK_NULL_BLK32;
	}
	if (full)
		err = erofs_output_write(w, data, (size_t)full, dir->block << w->blkbits);
	return err ? err : erofs_inode_put_at(w, dir, &body, dir->nid << DISK_NID_SHIFT);
}
