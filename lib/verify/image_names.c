// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * From paths to inodes of the image, and which of its names were asked for.
 *
 * Directories on the way to the last path stay at hand, with the entry that comes next in each: a source in the
 * image's order pays for no search. Otherwise the block is found by its first name, as the kernel does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "verify/verify_priv.h"

#define CACHED_BLOCKS 16

struct folder {
	struct erofs_inode ino;
	size_t path_len;	/* of its path */
	uint64_t blk;		/* the entry that is looked at first */
	unsigned int entry;
};

struct cached {
	uint64_t nid, blk;	/* of what is in data, if there */
	bool there;
	uint64_t used;
	struct dirblk db;
	size_t names;		/* where they begin: db.name_end of a fresh db */
	uint8_t *data;
};

/* Marks of a directory block's entries. */
struct marks {
	struct marks *next;
	uint64_t nid, blk;
	unsigned int count;	/* of entries: another number comes only if the image changes meanwhile */
	uint8_t bits[];
};

struct image_names {
	struct job *job;
	struct lane *lane;
	struct erofs_diag *diag;
	struct folder *folders;		/* of the last path, the start first */
	size_t depth, room;
	char *path;			/* the last path */
	size_t path_room;
	struct cached blocks[CACHED_BLOCKS];
	uint64_t clock;
	struct marks **buckets;
	size_t nbuckets, nmarks;	/* a power of two */
	struct marks *last;		/* that was used */
	size_t bytes, max_bytes;
};

/* ---- marks ---- */

static size_t bucket_of(const struct image_names *n, uint64_t nid, uint64_t blk)
{
	return (size_t)((nid * UINT64_C(0x9e3779b97f4a7c15) + blk * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 20) &
	       (n->nbuckets - 1);
}

static struct marks *find_marks(const struct image_names *n, uint64_t nid, uint64_t blk)
{
	struct marks *m = n->last;

	if (m && m->nid == nid && m->blk == blk)
		return m;
	for (m = n->buckets[bucket_of(n, nid, blk)]; m; m = m->next)
		if (m->nid == nid && m->blk == blk)
			return m;
	return NULL;
}

static int grow(struct image_names *n)
{
	size_t old = n->nbuckets, i;
	struct marks **was = n->buckets, **now = calloc(2 * old, sizeof(*now)), *m;

	if (!now)
		return -ENOMEM;
	n->buckets = now;
	n->nbuckets = 2 * old;
	for (i = 0; i < old; i++)
		while ((m = was[i])) {
			size_t at = bucket_of(n, m->nid, m->blk);

			was[i] = m->next;
			m->next = now[at];
			now[at] = m;
		}
	free(was);
	n->bytes += old * sizeof(*now);
	return 0;
}

static int make_marks(struct image_names *n, uint64_t nid, uint64_t blk, unsigned int entries, struct marks **ret)
{
	size_t size = sizeof(**ret) + (entries + 7) / 8, at;
	struct marks *m;

	if (n->nmarks == n->nbuckets && grow(n))
		return -ENOMEM;
	m = size <= n->max_bytes && n->bytes <= n->max_bytes - size ? calloc(1, size) : NULL;
	if (!m)
		return -ENOMEM;
	m->nid = nid;
	m->blk = blk;
	m->count = entries;
	at = bucket_of(n, nid, blk);
	m->next = n->buckets[at];
	n->buckets[at] = m;
	n->nmarks++;
	n->bytes += size + 16;
	*ret = m;
	return 0;
}

static unsigned int entry_at(const struct image_names *n, uint64_t off)
{
	return (unsigned int)(off & (n->folders[0].ino.img->blksz - 1)) / 12;
}

/* Return: 1 it was marked before, 0, -ENOMEM. */
static int mark(struct image_names *n, uint64_t nid, const struct cached *b, uint64_t off)
{
	unsigned int at = entry_at(n, off);
	struct marks *m = find_marks(n, nid, b->blk);
	int was;

	if (!m && make_marks(n, nid, b->blk, b->db.count, &m))
		return -ENOMEM;
	n->last = m;
	if (at >= m->count)
		return 0;
	was = m->bits[at / 8] >> at % 8 & 1;
	m->bits[at / 8] |= (uint8_t)(1u << at % 8);
	return was;
}

bool erofs_imgnames_is_marked(const struct image_names *n, uint64_t dir_nid, uint64_t off)
{
	unsigned int at = entry_at(n, off);
	const struct marks *m = find_marks(n, dir_nid, off >> n->folders[0].ino.img->blkbits);

	return m && at < m->count && m->bits[at / 8] >> at % 8 & 1;
}

/* ---- blocks ---- */

static int read_block(struct image_names *n, const struct erofs_inode *ino, uint64_t blk, struct cached *b)
{
	uint64_t off = blk << ino->img->blkbits;
	size_t valid = (size_t)min_u64(ino->img->blksz, ino->size - off);
	int err;

	b->there = false;
	if (!b->data)
		b->data = malloc(ino->img->blksz);
	if (!b->data)
		return -ENOMEM;
	err = erofs_lane_read(n->lane, ino, off, b->data, valid);
	if (!err)
		err = erofs_dirblk_open(&b->db, ino->nid, off, b->data, valid, n->diag);
	if (err)
		return err;
	b->db.diag = NULL;	/* entries are reported by who goes through them in order */
	b->names = b->db.name_end;
	b->nid = ino->nid;
	b->blk = blk;
	b->there = true;
	return 0;
}

static int get_block(struct image_names *n, const struct erofs_inode *ino, uint64_t blk, struct cached **ret)
{
	struct cached *b, *oldest = n->blocks;
	int err;

	for (b = n->blocks; b < n->blocks + CACHED_BLOCKS; b++) {
		if (b->there && b->nid == ino->nid && b->blk == blk)
			break;
		if (b->used < oldest->used)
			oldest = b;
	}
	if (b == n->blocks + CACHED_BLOCKS) {
		b = oldest;
		err = read_block(n, ino, blk, b);
		if (err)
			return err;
	}
	b->used = ++n->clock;
	*ret = b;
	return 0;
}

static void start_at(struct cached *b, unsigned int entry)
{
	b->db.next = entry;
	b->db.name_end = b->names;
}

static int compare_names(const struct dirent_view *de, const char *name, size_t len)
{
	int r = memcmp(de->name, name, de->len < len ? de->len : len);

	return r ? r : (de->len > len) - (de->len < len);
}

static bool is_dots(const struct dirent_view *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

/* The entry is found: the one behind it is expected next. */
static int take(struct image_names *n, struct folder *f, struct cached *b, const struct dirent_view *de,
		uint64_t *ret_nid, bool *ret_again)
{
	int r = mark(n, f->ino.nid, b, de->off);

	if (r < 0)
		return erofs_diag_fail(n->diag, r, AT_NOWHERE,
				       "marks of names do not fit the memory limit (see --max-memory)");
	f->blk = b->blk;
	f->entry = entry_at(n, de->off) + 1;
	if (f->entry >= b->db.count) {
		f->blk++;
		f->entry = 0;
	}
	*ret_nid = de->nid;
	*ret_again = r;
	return 1;
}

/* The entry that is expected. 1 it is the one, 0 it is another, negative errno. */
static int try_next(struct image_names *n, struct folder *f, const char *name, size_t len, uint64_t *ret_nid,
		    bool *ret_again)
{
	struct dirent_view de;
	struct cached *b;

	if (f->blk << f->ino.img->blkbits >= f->ino.size || get_block(n, &f->ino, f->blk, &b))
		return 0;
	start_at(b, f->entry);
	while (erofs_dirblk_next(&b->db, &de) > 0)
		if (!is_dots(&de))
			return compare_names(&de, name, len) ? 0 : take(n, f, b, &de, ret_nid, ret_again);
	return 0;
}

/* Does the block's first name come behind this one? An unreadable block does not tell: its bytes were reported. */
static int begins_behind(struct image_names *n, struct folder *f, uint64_t blk, const char *name, size_t len)
{
	struct dirent_view de;
	struct cached *b;
	int err = get_block(n, &f->ino, blk, &b);

	if (err)
		return err;
	start_at(b, 0);
	return erofs_dirblk_next(&b->db, &de) > 0 && compare_names(&de, name, len) > 0;
}

static int search(struct image_names *n, struct folder *f, const char *name, size_t len, uint64_t *ret_nid,
		  bool *ret_again)
{
	uint64_t lo = 0, hi = div_up_pow2(f->ino.size, f->ino.img->blkbits);
	struct dirent_view de;
	struct cached *b;
	int r;

	/* the last block that does not begin behind the name */
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		r = begins_behind(n, f, mid, name, len);
		if (r < 0)
			return r;
		*(r ? &hi : &lo) = mid;
	}
	r = hi ? get_block(n, &f->ino, lo, &b) : -ENODATA;
	if (r)
		return r == -ENODATA ? 0 : r;
	start_at(b, 0);
	while (erofs_dirblk_next(&b->db, &de) > 0)
		if (!compare_names(&de, name, len) && !is_dots(&de))
			return take(n, f, b, &de, ret_nid, ret_again);
	return 0;
}

/* ---- paths ---- */

static int push(struct image_names *n, uint64_t nid, size_t path_len)
{
	struct folder *f;
	int err;

	if (n->depth >= WALK_MAX_DEPTH)
		return -ENOTDIR;	/* nothing below is told by anybody */
	if (n->depth == n->room) {
		size_t room = n->room ? 2 * n->room : 16;
		struct folder *grown = realloc(n->folders, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		n->folders = grown;
		n->room = room;
	}
	f = &n->folders[n->depth];
	*f = (struct folder){ .path_len = path_len };
	err = erofs_inode_load(erofs_lane_metabuf(n->lane), nid, &f->ino);
	if (err)
		return err;
	if (!S_ISDIR(f->ino.mode))
		return -ENOTDIR;
	n->depth++;
	return 0;
}

/* Leave the folders that the path does not go through. */
static void pop(struct image_names *n, const char *path, size_t len)
{
	while (n->depth > 1) {
		size_t l = n->folders[n->depth - 1].path_len;

		if (l < len && path[l] == '/' && !memcmp(n->path, path, l))
			return;
		n->depth--;
	}
}

static int keep_path(struct image_names *n, const char *path, size_t len)
{
	if (len + 1 > n->path_room) {
		char *grown = realloc(n->path, 2 * len + 64);

		if (!grown)
			return -ENOMEM;
		n->path = grown;
		n->path_room = 2 * len + 64;
	}
	memcpy(n->path, path, len);
	return 0;
}

int erofs_imgnames_find(struct image_names *n, const char *path, size_t len, uint64_t *ret_nid, bool *ret_again)
{
	size_t from, end;
	uint64_t nid = n->folders[0].ino.nid;
	bool again = false;
	int r;

	if (len && !S_ISDIR(n->folders[0].ino.mode))
		return 0;
	pop(n, path, len);
	if (keep_path(n, path, len))
		return -ENOMEM;
	from = n->depth > 1 ? n->folders[n->depth - 1].path_len + 1 : 0;
	for (; len && from <= len; from = end + 1) {
		const char *slash = memchr(path + from, '/', len - from);
		struct folder *f = &n->folders[n->depth - 1];

		end = slash ? (size_t)(slash - path) : len;
		r = try_next(n, f, path + from, end - from, &nid, &again);
		if (!r)
			r = search(n, f, path + from, end - from, &nid, &again);
		if (r <= 0)
			return r;
		if (end == len)
			break;
		r = push(n, nid, end);
		if (r)
			return r == -ENOTDIR ? 0 : r;
	}
	*ret_nid = nid;
	*ret_again = again;
	return 1;
}

int erofs_imgnames_new(struct job *job, const struct erofs_inode *start, struct erofs_diag *diag, size_t max_bytes,
		       struct image_names **ret)
{
	struct image_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->job = job;
	n->lane = erofs_job_lane(job, 0);
	n->diag = diag;
	n->max_bytes = max_bytes;
	n->nbuckets = 1024;
	n->buckets = calloc(n->nbuckets, sizeof(*n->buckets));
	n->folders = malloc(16 * sizeof(*n->folders));
	if (!n->buckets || !n->folders) {
		erofs_imgnames_free(n);
		return -ENOMEM;
	}
	n->room = 16;
	n->depth = 1;
	n->folders[0] = (struct folder){ .ino = *start };
	*ret = n;
	return 0;
}

void erofs_imgnames_free(struct image_names *n)
{
	size_t i;

	if (!n)
		return;
	for (i = 0; n->buckets && i < n->nbuckets; i++)
		while (n->buckets[i]) {
			struct marks *m = n->buckets[i];

			n->buckets[i] = m->next;
			free(m);
		}
	for (i = 0; i < CACHED_BLOCKS; i++)
		free(n->blocks[i].data);
	free(n->buckets);
	free(n->folders);
	free(n->path);
	free(n);
}
