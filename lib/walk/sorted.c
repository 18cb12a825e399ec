// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Names in path order: a stack of directories, one block of the deepest two in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "walk/sorted_priv.h"
#include "walk/walk_int.h"

struct level {
	struct walk_dir *dir;
	uint64_t blk, nblks;
	unsigned int entry;	/* entries of blk that are done */
	size_t name_end;	/* of their names */
	size_t path_len;	/* of the directory's path */
	enum select_verdict verdict;
	bool told;		/* it came out */
	char prev[256];		/* the last name, for the order */
	unsigned int prev_len;
};

/* A block of a directory in memory. */
struct block {
	bool there;
	uint64_t nid, blk;
	struct dirblk db;
	size_t names;		/* where they begin */
	uint8_t *data;
};

struct sorted {
	struct walk walk;	/* marks of directories, strict checks */
	struct lane *lane;
	const struct erofs_select *sel;
	unsigned int flags;
	struct erofs_inode start;
	struct level *levels;
	size_t depth, room;
	struct block blocks[2];	/* of the deepest directory, and of the one that was or will be */
	struct block *block;	/* the one that was asked for last */
	char *path, *late;	/* late: of parent */
	size_t path_room;
	struct sorted_entry found;	/* waits for its parents to come out */
	struct sorted_entry parent;	/* that comes out */
	bool has_found;
	bool entered;		/* what was found is the deepest level */
	size_t told;		/* levels below this number have come out */
	bool started, damaged;
	unsigned int strays;	/* directories whose ".." was followed */
};

static int out_of_memory(struct sorted *s)
{
	return erofs_diag_fail(s->walk.diag, -ENOMEM, AT_NOWHERE, "no memory to walk the tree");
}

/* Make the path @len bytes of what it is, a slash if there are any, and @name. */
static int set_name(struct sorted *s, size_t len, const char *name, size_t name_len)
{
	if (len + name_len + 2 > s->path_room) {
		size_t room = 2 * (len + name_len + 2);
		char *grown = realloc(s->path, room);

		if (!grown)
			return out_of_memory(s);
		s->path = grown;
		s->path_room = room;
	}
	if (len)
		s->path[len++] = '/';
	memcpy(s->path + len, name, name_len);
	s->path[len + name_len] = '\0';
	s->found.path = s->path;
	s->found.len = len + name_len;
	return 0;
}

/* ---- directories ---- */

static void pop_level(struct sorted *s)
{
	struct level *l = &s->levels[--s->depth];

	if (l->blk < l->nblks)	/* not read to its end */
		atomic_store_explicit(&l->dir->broken, true, memory_order_relaxed);
	if (!(s->flags & SORTED_NAMES))
		erofs_walk_check_left(&s->walk, l->dir);
	erofs_walk_forget_subs(&s->walk, l->dir);
	free(l->dir);
	if (s->told > s->depth)
		s->told = s->depth;
}

static int push_level(struct sorted *s, const struct erofs_inode *ino, const char *name, unsigned int len,
		      enum select_verdict verdict)
{
	struct walk_dir *dir = calloc(1, sizeof(*dir) + len + 1);

	if (dir && s->depth == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct level *grown = realloc(s->levels, room * sizeof(*grown));

		if (!grown) {
			free(dir);
			return out_of_memory(s);
		}
		s->levels = grown;
		s->room = room;
	}
	if (!dir)
		return out_of_memory(s);
	dir->up = s->depth ? s->levels[s->depth - 1].dir : NULL;
	dir->ino = *ino;
	dir->depth = (unsigned int)s->depth;
	dir->len = len;
	memcpy(dir->name, name, len);
	s->levels[s->depth++] = (struct level){
		.dir = dir, .nblks = div_up_pow2(ino->size, ino->img->blkbits), .path_len = s->found.len,
		.verdict = verdict,
	};
	return 0;
}

static bool is_dots(const struct dirent_view *de)
{
	return de->name[0] == '.' && (de->len == 1 || (de->len == 2 && de->name[1] == '.'));
}

static bool holds(const struct block *b, const struct erofs_inode *ino, uint64_t blk)
{
	return b->there && b->nid == ino->nid && b->blk == blk;
}

/* Have a block of a directory in s->block, beside the one before. 0, or an error that was reported. */
static int read_block(struct sorted *s, const struct erofs_inode *ino, uint64_t blk)
{
	uint64_t off = blk << ino->img->blkbits;
	size_t valid = (size_t)min_u64(ino->img->blksz, ino->size - off);
	struct block *b = s->block;
	int err;

	if (holds(b, ino, blk))
		return 0;
	b = &s->blocks[b == s->blocks];
	if (holds(b, ino, blk)) {
		s->block = b;
		return 0;
	}
	b->there = false;
	err = erofs_lane_read(s->lane, ino, off, b->data, valid);
	if (!err)
		err = erofs_dirblk_open(&b->db, ino->nid, off, b->data, valid, s->walk.diag);
	if (err)
		return err;
	b->nid = ino->nid;
	b->blk = blk;
	b->names = b->db.name_end;
	b->there = true;
	s->block = b;
	return 0;
}

/* The nid behind ".." in the first block, which is the one that is gone through next. -ENODATA: not there. */
static int find_parent(struct sorted *s, const struct erofs_inode *ino, uint64_t *ret_nid)
{
	struct dirent_view de;
	struct dirblk db;
	int err = ino->size ? read_block(s, ino, 0) : -ENODATA;

	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	db = s->block->db;
	db.diag = NULL;		/* what is wrong with entries is reported when they are gone through */
	db.next = 0;
	db.name_end = s->block->names;
	while (erofs_dirblk_next(&db, &de) > 0)
		if (de.len == 2 && is_dots(&de)) {
			*ret_nid = de.nid;
			return 0;
		}
	return -ENODATA;
}

/*
 * Note that the directory is entered. Only once, and where its ".." leads to another directory that names it
 * too, that one's name is its own.
 */
static bool mark(struct sorted *s, struct walk_dir *dir, const struct erofs_inode *ino)
{
	struct erofs_inode other;
	uint64_t parent;
	int err = find_parent(s, ino, &parent);

	if (!err && parent == dir->ino.nid)
		return erofs_walk_mark_sub(&s->walk, dir, ino->nid);
	if (err == -ENOMEM) {
		(void)out_of_memory(s);
		atomic_store(&s->walk.state->out_of_memory, true);
		return false;
	}
	if (++s->strays > WALK_MAX_STRAYS)
		return false;
	if (!err && parent != ino->nid && erofs_walk_has_child(&s->walk, s->lane, parent, ino->nid, &other))
		return false;
	return !atomic_load(&s->walk.state->out_of_memory) && erofs_walk_note_stray(&s->walk, ino->nid);
}

static bool may_enter(struct sorted *s, struct walk_dir *dir, const struct dirent_view *de,
		      const struct erofs_inode *ino)
{
	if (s->depth >= WALK_MAX_DEPTH || s->found.len > SORTED_MAX_PATH) {
		erofs_diag_damage(s->walk.diag, DIR_DEPTH, AT(dir->ino.nid, de->off),
				  "directories are nested too deep (%zu levels, a path of %zu bytes)", s->depth,
				  s->found.len);
		return false;
	}
	if (mark(s, dir, ino))
		return true;
	if (!atomic_load(&s->walk.state->out_of_memory))
		erofs_walk_report_again(&s->walk, dir, de);
	return false;
}

/* ---- entries ---- */

static void note_broken(struct sorted *s, struct walk_dir *dir)
{
	s->damaged = true;
	atomic_store_explicit(&dir->broken, true, memory_order_relaxed);
}

/* Have the deepest directory's current block in memory. 0, or an error that was reported. */
static int load_block(struct sorted *s, struct level *l)
{
	int err = read_block(s, &l->dir->ino, l->blk);

	if (err)
		return err;
	s->block->db.next = l->entry;
	s->block->db.name_end = l->entry ? l->name_end : s->block->names;
	return 0;
}

/* Check the order. false: the name stands twice, and does not come out for it. */
static bool take_name(struct sorted *s, struct level *l, const struct dirent_view *de)
{
	bool again = !erofs_walk_check_order(&s->walk, l->dir, de, l->prev_len ? l->prev : NULL, l->prev_len);

	memcpy(l->prev, de->name, de->len);
	l->prev_len = de->len;
	if (again)
		note_broken(s, l->dir);
	return !again || (s->flags & SORTED_NAMES);
}

/* Load what the entry leads to, if somebody has to know it. Is it a directory? */
static bool load(struct sorted *s, struct walk_dir *dir, const struct dirent_view *de)
{
	struct sorted_entry *e = &s->found;
	bool listed = de->type == DIRENT_DIR, enters = !(s->flags & SORTED_ONE_LEVEL);

	if ((s->flags & SORTED_NO_INODES) && !(enters && (listed || de->type == DIRENT_UNKNOWN)))
		return listed;
	e->has_ino = !erofs_inode_load(erofs_lane_metabuf(s->lane), de->nid, &e->ino);
	if (!e->has_ino) {
		note_broken(s, dir);
		return listed;
	}
	erofs_walk_check_type(&s->walk, dir, de, &e->ino);
	return S_ISDIR(e->ino.mode);
}

/* An entry with a good name. Return: 1 it is s->found, 0 it does not come out, negative errno. */
static int visit(struct sorted *s, struct level *l, const struct dirent_view *de)
{
	struct sorted_entry *e = &s->found;
	struct walk_dir *dir = l->dir;
	bool is_dir = de->type == DIRENT_DIR;
	int err = set_name(s, l->path_len, de->name, de->len);

	if (err)
		return err;
	s->entered = e->has_ino = false;
	e->nid = de->nid;
	e->type = de->type;
	e->off = de->off;
	e->parent_nid = dir->ino.nid;
	e->verdict = erofs_select_match(s->sel, e->path, e->len, l->verdict == SELECT_YES);
	if (!erofs_select_may_be(e->verdict, de->type))
		e->verdict = SELECT_NO;
	if (e->verdict != SELECT_NO)
		is_dir = load(s, dir, de);
	if (is_dir)
		atomic_fetch_add_explicit(&dir->subdirs, 1, memory_order_relaxed);
	if (e->verdict == SELECT_NO || (!e->has_ino && !(s->flags & (SORTED_NAMES | SORTED_NO_INODES))))
		return 0;
	if (!e->has_ino || !is_dir || (s->flags & SORTED_ONE_LEVEL))
		return e->verdict == SELECT_YES;
	s->entered = may_enter(s, dir, de, &e->ino);
	if (s->entered) {
		err = push_level(s, &e->ino, de->name, de->len, e->verdict);
		return err ? err : e->verdict == SELECT_YES;
	}
	s->damaged = true;
	if (atomic_load(&s->walk.state->out_of_memory))
		return -ENOMEM;
	return e->verdict == SELECT_YES && (s->flags & SORTED_NAMES);
}

/* Go on in the deepest directory. Return: 1 s->found is there, 0 call again, negative errno. */
static int step(struct sorted *s)
{
	struct level *l = &s->levels[s->depth - 1];
	struct dirent_view de;
	int r;

	if (l->blk >= l->nblks) {
		pop_level(s);
		return 0;
	}
	if (!l->entry && erofs_job_is_cancelled(s->walk.job))
		return -ECANCELED;
	if (load_block(s, l)) {
		note_broken(s, l->dir);
		l->blk++;
		l->entry = 0;
		return 0;
	}
	r = erofs_dirblk_next(&s->block->db, &de);
	if (s->block->db.damaged)
		note_broken(s, l->dir);
	if (r <= 0) {
		l->blk++;
		l->entry = 0;
		return 0;
	}
	l->entry = s->block->db.next;
	l->name_end = s->block->db.name_end;
	if (!take_name(s, l, &de))
		return 0;
	if (is_dots(&de)) {
		if (!(s->flags & SORTED_NAMES))
			erofs_walk_check_dots(&s->walk, l->dir, &de);
		return 0;
	}
	if (!de.bad_name)
		return visit(s, l, &de);
	note_broken(s, l->dir);
	return 0;
}

static int begin(struct sorted *s)
{
	int err = set_name(s, 0, "", 0);

	s->started = true;
	s->found.ino = s->start;
	s->found.has_ino = true;
	s->found.nid = s->found.parent_nid = s->start.nid;
	s->found.type = erofs_dirent_type(s->start.mode);
	s->found.verdict = erofs_select_match(s->sel, "", 0, false);
	if (err || s->found.verdict == SELECT_NO || !S_ISDIR(s->start.mode))
		return err ? err : s->found.verdict == SELECT_YES;
	err = push_level(s, &s->start, "", 0, s->found.verdict);
	s->entered = true;
	return err ? err : s->found.verdict == SELECT_YES;
}

/* ---- the outside ---- */

/* The outermost directory that has to come out before s->found; NULL: none. */
static struct level *next_parent(struct sorted *s)
{
	while (s->told + s->entered < s->depth)
		if (s->levels[s->told++].verdict == SELECT_PARENT)
			return &s->levels[s->told - 1];
	s->told = s->depth;
	return NULL;
}

int erofs_sorted_next(struct sorted *s, const struct sorted_entry **ret_entry)
{
	struct level *l;
	int r;

	while (!s->has_found) {
		if (s->started && !s->depth)
			return 0;
		r = s->started ? step(s) : begin(s);
		if (r < 0)
			return r;
		s->has_found = r;
		if (!r && !s->depth && s->started)
			return 0;
	}
	*ret_entry = &s->found;
	l = next_parent(s);
	if (!l) {
		s->has_found = false;
		return 1;
	}
	free(s->late);
	s->late = strndup(s->path, l->path_len);
	if (!s->late)
		return out_of_memory(s);
	s->parent = (struct sorted_entry){
		.path = s->late, .len = l->path_len, .nid = l->dir->ino.nid, .type = DIRENT_DIR,
		.has_ino = true, .ino = l->dir->ino, .verdict = SELECT_PARENT,
		.parent_nid = l->dir->up ? l->dir->up->ino.nid : l->dir->ino.nid,
	};
	*ret_entry = &s->parent;
	return 1;
}

bool erofs_sorted_damaged(const struct sorted *s)
{
	return s->damaged;
}

int erofs_sorted_new(struct job *job, const struct erofs_inode *start, const struct erofs_select *sel,
		     unsigned int flags, struct erofs_diag *diag, struct sorted **ret)
{
	static const struct walk_ops none = { 0 };
	struct sorted *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->walk = (struct walk){ .job = job, .diag = diag, .ops = &none, .strict = true };
	s->lane = erofs_job_lane(job, 0);
	if (flags & SORTED_NO_INODES)
		erofs_metabuf_jump(erofs_lane_metabuf(s->lane));
	s->sel = sel;
	s->flags = flags;
	s->start = *start;
	s->block = s->blocks;
	s->blocks[0].data = malloc(start->img->blksz);
	s->blocks[1].data = malloc(start->img->blksz);
	err = s->blocks[0].data && s->blocks[1].data ? erofs_walk_state_new(&s->walk, start->nid) : -ENOMEM;
	if (err) {
		erofs_sorted_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void erofs_sorted_free(struct sorted *s)
{
	if (!s)
		return;
	while (s->depth) {
		erofs_walk_forget_subs(&s->walk, s->levels[--s->depth].dir);
		free(s->levels[s->depth].dir);
	}
	if (s->walk.state)
		erofs_walk_state_free(&s->walk);
	free(s->levels);
	free(s->blocks[0].data);
	free(s->blocks[1].data);
	free(s->path);
	free(s->late);
	free(s);
}
