// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Trees that come as a list of paths; and what is the same for all sources once a tree is complete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "write/foreign.h"
#include "write/tree_priv.h"

#define NAME_BYTES 255

/* ---- names ---- */

int erofs_tree_init(struct tree *t, struct writer *w)
{
	*t = (struct tree){ .w = w };
	t->root = erofs_node_new("", 0);
	t->grave = erofs_node_new("", 0);
	return t->root && t->grave ? 0 : -ENOMEM;
}

void erofs_tree_fini(struct tree *t)
{
	erofs_node_free(t->root);
	erofs_node_free(t->grave);
	free(t->heads);
}

static size_t class_of(const struct tree *t, const struct node *dir, const char *name, size_t len)
{
	return (size_t)erofs_hash_bytes(name, len, (uintptr_t)dir) & (t->room - 1);
}

static int grow(struct tree *t)
{
	size_t room = t->room ? 2 * t->room : 256, i;
	struct node **old = t->heads, *n, *next;

	t->heads = calloc(room, sizeof(*t->heads));
	if (!t->heads) {
		t->heads = old;
		return -ENOMEM;
	}
	t->room = room;
	for (i = 0; old && i < room / 2; i++) {
		for (n = old[i]; n; n = next) {
			size_t class = class_of(t, n->parent, n->name, strlen(n->name));

			next = n->peer;
			n->peer = t->heads[class];
			t->heads[class] = n;
		}
	}
	free(old);
	return 0;
}

static struct node *look_up(const struct tree *t, const struct node *dir, const char *name, size_t len)
{
	struct node *n = t->room ? t->heads[class_of(t, dir, name, len)] : NULL;

	while (n && (n->parent != dir || strncmp(n->name, name, len) || n->name[len]))
		n = n->peer;
	return n;
}

static int add_name(struct tree *t, struct node *dir, const char *name, size_t len, struct node **ret)
{
	struct node *node;
	size_t class;
	int err = t->count >= t->room ? grow(t) : 0;

	if (err)
		return err;
	node = erofs_node_add(dir, name, len);
	if (!node)
		return -ENOMEM;
	class = class_of(t, dir, name, len);
	node->peer = t->heads[class];
	t->heads[class] = node;
	t->count++;
	*ret = node;
	return 0;
}

static int refuse(struct tree *t, const char *path, int err, const char *why)
{
	return erofs_diag_fail_path(t->w->diag, err, path, "%s", why);
}

/* A folder of which nothing was said. */
static void make_folder(struct tree *t, struct node *node)
{
	node->mode = S_IFDIR | 0755;
	node->mtime = t->w->build_time;
}

int erofs_tree_child(struct tree *t, struct node *dir, const char *name, size_t len, struct node **ret)
{
	struct node *node = look_up(t, dir, name, len);
	int err = node ? 0 : add_name(t, dir, name, len, &node);

	if (!err && !node->mode)
		err = erofs_exclude_node(t->w, node);
	if (!err)
		*ret = node;
	return err;
}

/* One component below *dir. */
static int step(struct tree *t, const char *path, const char *part, size_t len, bool make, struct node **dir)
{
	struct node *node;

	if (len == 2 && !memcmp(part, "..", 2))
		return refuse(t, path, -EINVAL, "leads outside with '..'");
	if (len > NAME_BYTES)
		return refuse(t, path, -ENAMETOOLONG, "a name of more than 255 bytes");
	if (!(*dir)->mode && make)
		make_folder(t, *dir);
	if (!S_ISDIR((*dir)->mode))
		return make ? refuse(t, path, -ENOTDIR, "lies in something that is no folder") : -ENOENT;
	if (make)
		return erofs_tree_child(t, *dir, part, len, dir);
	node = look_up(t, *dir, part, len);
	if (!node)
		return -ENOENT;
	*dir = node;
	return 0;
}

int erofs_tree_find(struct tree *t, const char *path, bool make, struct node **ret)
{
	struct node *node = t->root;
	const char *part = path;
	size_t len;
	int err;

	for (; *part; part += len + (part[len] == '/')) {
		len = strcspn(part, "/");
		if (!len || (len == 1 && *part == '.'))
			continue;
		err = step(t, path, part, len, make, &node);
		if (err)
			return err;
	}
	if (!make && !node->mode)
		return -ENOENT;
	*ret = node;
	return 0;
}

/* ---- replacements ---- */

/* What came before @arrival goes. */
int erofs_tree_bury(struct tree *t, struct node *dir, uint32_t arrival)
{
	uint32_t i, n = 0;
	int err = 0;

	for (i = 0; i < dir->nchildren; i++) {
		struct node *child = dir->children[i];

		if (!err && child->ino < arrival)
			err = erofs_node_insert(t->grave, child);
		if (err || child->ino >= arrival)
			dir->children[n++] = child;
	}
	dir->nchildren = n;
	return err;
}

int erofs_tree_reset(struct tree *t, struct node *node, uint32_t mode)
{
	int err = S_ISDIR(mode) ? 0 : erofs_tree_bury(t, node, UINT32_MAX);

	if (err)
		return err;
	erofs_xattr_drop(node, NULL);
	erofs_foreign_free(node);
	free(node->target);
	node->target = NULL;
	node->link = NULL;
	node->size = 0;
	node->rdev = 0;
	node->mode = mode;
	node->ino = t->arrivals++;
	return 0;
}

/* Everything but name and place moves over. */
static void move_inode(struct node *to, struct node *from)
{
	to->xattrs = steal(from->xattrs);
	to->nxattrs = from->nxattrs;
	from->nxattrs = 0;
	to->target = steal(from->target);
	to->foreign = steal(from->foreign);
	to->size = from->size;
	to->mtime = from->mtime;
	to->mtime_nsec = from->mtime_nsec;
	to->mode = from->mode;
	to->uid = from->uid;
	to->gid = from->gid;
	to->rdev = from->rdev;
	to->key = from->key;
	to->ino = from->ino;
}

static int copy_inode(struct node *to, const struct node *from)
{
	struct node copy = { 0 };
	int err = erofs_xattr_copy(&copy, from);

	if (!err)
		err = erofs_foreign_copy(&copy, from);
	if (!err && from->target) {
		copy.target = strdup(from->target);
		err = copy.target ? 0 : -ENOMEM;
	}
	if (err) {
		erofs_xattr_drop(&copy, NULL);
		erofs_foreign_free(&copy);
		return err;
	}
	copy.size = from->size;
	copy.mtime = from->mtime;
	copy.mtime_nsec = from->mtime_nsec;
	copy.mode = from->mode;
	copy.uid = from->uid;
	copy.gid = from->gid;
	copy.rdev = from->rdev;
	copy.key = from->key;
	copy.ino = from->ino;
	move_inode(to, &copy);
	return 0;
}

/* Give an inode that has one name a node apart from it. */
static int split(struct tree *t, struct node *node)
{
	struct node *apart = erofs_node_new("", 0);
	int err;

	if (!apart)
		return -ENOMEM;
	err = erofs_node_insert(t->grave, apart);
	if (err) {
		erofs_node_free(apart);
		return err;
	}
	apart->apart = true;
	move_inode(apart, node);
	node->link = apart;
	return 0;
}

int erofs_tree_link(struct tree *t, struct node *node, struct node *target)
{
	int err;

	if (node == target || (node->link && node->link == target->link))
		return 0;
	err = t->w->o->hard_dereference || target->link ? 0 : split(t, target);
	if (!err)
		err = erofs_tree_reset(t, node, target->mode);
	if (err)
		return err;
	if (t->w->o->hard_dereference)
		return copy_inode(node, target);
	node->link = target->link;
	return 0;
}

/* ---- the complete tree ---- */

int erofs_tree_add_dir(struct writer *w, struct node *dir)
{
	if (w->ndirs == w->dirs_room) {
		size_t room = w->dirs_room ? 2 * w->dirs_room : 64;
		struct node **grown = realloc(w->dirs, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->dirs = grown;
		w->dirs_room = room;
	}
	w->dirs[w->ndirs++] = dir;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct node *const *)a)->name, (*(const struct node *const *)b)->name);
}

void erofs_tree_drop(struct node *dir, bool (*is_dropped)(const struct node *child, void *priv), void *priv)
{
	uint32_t i, n = 0;

	for (i = 0; i < dir->nchildren; i++) {
		struct node *child = dir->children[i];

		if (is_dropped(child, priv))
			erofs_node_free(child);
		else
			dir->children[n++] = child;
	}
	dir->nchildren = n;
}

/* What has no mode was named, and then taken away. */
static bool is_excluded(const struct node *child, void *priv)
{
	(void)priv;
	return child->excluded || !child->mode;
}

/* The first name takes the inode, the others link to it. */
static void name_inodes(struct node *dir)
{
	uint32_t i;

	for (i = 0; i < dir->nchildren; i++) {
		struct node *child = dir->children[i], *inode = child->link;

		if (!inode || !inode->apart)
			continue;
		if (inode->link) {
			child->link = inode->link;
			child->link->nlink++;
		} else {
			move_inode(child, inode);
			child->link = NULL;
			inode->link = child;
		}
	}
}

static int compare_arrival(const void *va, const void *vb)
{
	const struct node *a = *(struct node *const *)va, *b = *(struct node *const *)vb;

	return a->ino < b->ino ? -1 : a->ino > b->ino;
}

static bool is_own_file(const struct node *node)
{
	return !S_ISDIR(node->mode) && !node->link && !node->foreign;
}

/* The order in which inodes and contents are put, where it is not that of the tree. */
static int list_files(struct writer *w)
{
	size_t i, n = 0;
	uint32_t k;

	for (i = 0; i < w->ndirs; i++)
		n += w->dirs[i]->nchildren;
	w->files = malloc((n + 1) * sizeof(*w->files));
	if (!w->files)
		return -ENOMEM;
	for (i = 0; i < w->ndirs; i++)
		for (k = 0; k < w->dirs[i]->nchildren; k++)
			if (is_own_file(w->dirs[i]->children[k]))
				w->files[w->nfiles++] = w->dirs[i]->children[k];
	if (w->nfiles)
		qsort(w->files, w->nfiles, sizeof(*w->files), compare_arrival);
	return 0;
}

static void sort_children(struct node *dir)
{
	erofs_tree_drop(dir, is_excluded, NULL);
	if (dir->nchildren)
		qsort(dir->children, dir->nchildren, sizeof(*dir->children), compare_names);
}

/* Breadth first; the list of folders is the queue. */
int erofs_tree_finish(struct writer *w, bool by_arrival)
{
	bool overlays = w->o->aufs || w->o->ovlfs_strip;
	size_t at;
	uint32_t i;
	int err;

	w->ndirs = 0;
	err = erofs_tree_add_dir(w, w->feed.root);
	for (at = 0; !err && at < w->ndirs; at++) {
		struct node *dir = w->dirs[at];

		sort_children(dir);
		if (overlays) {
			err = erofs_overlay_apply(w, dir);
			sort_children(dir);
		}
		name_inodes(dir);
		for (i = 0; !err && i < dir->nchildren; i++)
			if (S_ISDIR(dir->children[i]->mode))
				err = erofs_tree_add_dir(w, dir->children[i]);
	}
	return !err && by_arrival ? list_files(w) : err;
}

int erofs_tree_take(struct tree *t, bool by_arrival)
{
	if (!t->root->mode)
		make_folder(t, t->root);
	t->w->feed.root = steal(t->root);
	return erofs_tree_finish(t->w, by_arrival);
}
