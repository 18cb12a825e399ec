// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * A folder as Android's image makers see it: what fs_config and file_contexts say stands in for what the folder
 * has (base/fsrules.h). The owner asks them, and what they say goes along with the name.
 *
 * An inode of several names goes by the name that mkfs.erofs meets first, which reads folder after folder, the
 * top ones first. So inodes of several names are listed before the comparison begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "verify/dir_source.h"

#define LINKS_SHARE 8		/* of the state memory */
#define LINK_BUCKETS 4096

struct dir_link {
	struct dir_link *next;
	dev_t dev;
	ino_t ino;
	char *first;
};

struct dir_rules {
	struct fs_rules rules;
	const char *mount_point;
	struct dir_link *links[LINK_BUCKETS];
	size_t bytes, max_bytes;
	struct tarbuf buf;
};

static int stat_name(struct dir_source *s, struct src_dir *dir, const char *name, struct stat *st)
{
	int dirfd, err = erofs_tree_pin(&s->tree, erofs_dirsource_handle(s, dir), &dirfd);

	if (err)
		return err;
	if (fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	erofs_tree_unpin(&s->tree, erofs_dirsource_handle(s, dir));
	return err;
}

/* ---- names of inodes ---- */

static unsigned int depth_of(const char *path)
{
	unsigned int n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Does mkfs.erofs meet @a before @b? */
static bool comes_before(const char *a, const char *b)
{
	unsigned int x = depth_of(a), y = depth_of(b);

	if (x != y)
		return x < y;
	while (*a && *a == *b) {
		a++;
		b++;
	}
	/* a part that ends is the smaller one */
	return (*a == '/' ? 0 : (unsigned char)*a) < (*b == '/' ? 0 : (unsigned char)*b);
}

static bool has_names(const struct stat *st)
{
	return st->st_nlink > 1 && !S_ISDIR(st->st_mode);
}

static struct dir_link **link_at(struct dir_rules *r, const struct stat *st)
{
	struct dir_link **at = &r->links[st->st_ino * UINT64_C(0x9e3779b97f4a7c15) >> 52];

	while (*at && ((*at)->ino != st->st_ino || (*at)->dev != st->st_dev))
		at = &(*at)->next;
	return at;
}

int erofs_dirrules_note(struct compare *c, struct src_dir *dir, const char *name, const char *path)
{
	struct dir_source *s = erofs_dirsource_of(c);
	struct dir_rules *r = s->rules;
	struct dir_link **at;
	size_t size = sizeof(**at) + strlen(path) + 1;
	struct stat st;
	char *first;

	/* what cannot be looked at is told when it is compared */
	if (stat_name(s, dir, name, &st) || !has_names(&st))
		return 0;
	at = link_at(r, &st);
	if (*at && !comes_before(path, (*at)->first))
		return 0;
	first = r->bytes + size <= r->max_bytes ? strdup(path) : NULL;
	if (!first)
		return -ENOMEM;
	r->bytes += size;
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at) {
			free(first);
			return -ENOMEM;
		}
		(*at)->dev = st.st_dev;
		(*at)->ino = st.st_ino;
	}
	free((*at)->first);
	(*at)->first = first;
	return 0;
}

/* ---- what they say ---- */

static int add_xattr(struct tarbuf *b, struct wanted *w, struct wanted_xattr *xa, const char *name,
		     const void *value, size_t size)
{
	int err;

	xa = &xa[w->nxattrs++];
	xa->name = b->len;
	err = erofs_tarbuf_add(b, name, strlen(name) + 1);
	xa->value = b->len;
	xa->size = size;
	return err ? err : erofs_tarbuf_add(b, value, size);
}

/* To a record whose bits say what it stands in for. */
static int make_record(struct tarbuf *b, struct wanted *w, const struct fs_facts *f)
{
	struct wanted_xattr list[2] = { 0 };
	int err = 0;

	b->len = 0;
	w->has |= f->has_owner ? EROFS_COMPARE_UID | EROFS_COMPARE_GID | EROFS_COMPARE_MODE | EROFS_COMPARE_CAPS : 0;
	w->has |= f->has_label ? EROFS_COMPARE_LABEL : 0;
	w->uid = f->uid;
	w->gid = f->gid;
	w->mode = f->mode;
	if (f->caps_size)
		err = add_xattr(b, w, list, FS_RULES_CAPS, f->caps, f->caps_size);
	if (!err && f->label)
		err = add_xattr(b, w, list, FS_RULES_LABEL, f->label, strlen(f->label));
	w->xattrs = b->len;
	return err ? err : erofs_tarbuf_add(b, list, w->nxattrs * sizeof(*list));
}

static int find_record(struct compare *c, struct src_dir *dir, const char *name, const char *path, struct wanted *w)
{
	struct dir_source *s = erofs_dirsource_of(c);
	struct dir_rules *r = s->rules;
	auto_free char *on_device = NULL;
	struct fs_facts facts;
	const char *by = path;
	struct stat st;
	int err = stat_name(s, dir, name, &st);

	if (err)
		return 0;	/* whoever gathers will tell */
	if (has_names(&st) && *link_at(r, &st))
		by = (*link_at(r, &st))->first;
	on_device = erofs_fs_rules_path(r->mount_point, by);
	if (!on_device)
		return -ENOMEM;
	err = erofs_fs_rules_find(&r->rules, on_device, !*by, st.st_mode, &facts);
	if (err == -ENOENT) {
		c->failed = true;
		erofs_diag_fail_path(c->diag, err, on_device + 1, "%s", r->rules.why.text);
		return 0;
	}
	if (err)
		return err == -ENOMEM ? err : erofs_diag_fail(c->diag, err, AT_NOWHERE, "%s", r->rules.why.text);
	return make_record(&r->buf, w, &facts);
}

int erofs_dirrules_add(struct compare *c, const struct compare_item *item, const char *name, const char *path,
		       size_t len)
{
	struct dir_rules *r = erofs_dirsource_of(c)->rules;
	struct wanted w = { 0 };
	int err = find_record(c, item->dir, name, path, &w);

	return err ? err : erofs_compare_add(c, item, path, len, &w, &r->buf);
}

/* ---- workers ---- */

static bool is_replaced(const struct wanted *record, const char *name)
{
	return erofs_compare_xattr_kind(name) & record->has & (EROFS_COMPARE_CAPS | EROFS_COMPARE_LABEL);
}

/* The folder's attributes that still count, then the record's. */
static int merge_xattrs(struct compare_lane *l, struct wanted *w, const struct wanted *record, const uint8_t *base)
{
	struct tarbuf *b = &l->buf;
	size_t room = (w->nxattrs + record->nxattrs) * sizeof(struct wanted_xattr), i, n = 0, at = 0;
	auto_free struct wanted_xattr *list = malloc(room + 1);
	int err = list ? 0 : -ENOMEM;

	if (!err && w->nxattrs)
		memcpy(list, b->data + w->xattrs, w->nxattrs * sizeof(*list));
	for (i = 0; !err && i < w->nxattrs; i++)
		if (!is_replaced(record, (const char *)b->data + list[i].name))
			list[n++] = list[i];
	for (i = 0; !err && i < record->nxattrs; i++, n++) {
		struct wanted_xattr xa;

		memcpy(&xa, base + record->xattrs + i * sizeof(xa), sizeof(xa));
		at = b->len;
		err = erofs_tarbuf_add(b, base + xa.name, strlen((const char *)base + xa.name) + 1);
		list[n] = (struct wanted_xattr){ .name = at, .value = b->len, .size = xa.size };
		if (!err)
			err = erofs_tarbuf_add(b, base + xa.value, xa.size);
	}
	w->xattrs = b->len;
	w->nxattrs = n;
	return err || !n ? err : erofs_tarbuf_add(b, list, n * sizeof(*list));
}

int erofs_dirrules_apply(struct compare_lane *l, const struct compare_parcel *p, const struct compare_item *item,
			 struct wanted *w)
{
	struct wanted record;

	memcpy(&record, p->facts.data + item->record, sizeof(record));
	if (record.has & EROFS_COMPARE_UID) {
		w->uid = record.uid;
		w->gid = record.gid;
		w->mode = (w->mode & S_IFMT) | record.mode;
	}
	if (!(w->has & COMPARE_XATTRS))
		return 0;
	return merge_xattrs(l, w, &record, p->facts.data + item->record + sizeof(record));
}

/* ---- beginning and end ---- */

int erofs_dirrules_new(struct compare *c, struct dir_rules **ret)
{
	const struct erofs_compare_options *o = c->opt;
	struct dir_rules *r = NULL;
	int err;

	*ret = NULL;
	if (!o->fs_config_file && !o->file_contexts)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return erofs_compare_no_memory(c);
	*ret = r;
	r->mount_point = o->mount_point;
	r->max_bytes = erofs_job_state_bytes(c->job) / LINKS_SHARE;
	err = erofs_fs_rules_init(&r->rules, o->fs_config_file, o->file_contexts);
	if (err == -ENOMEM)
		return erofs_compare_no_memory(c);
	return err ? erofs_diag_fail(c->diag, err, AT_NOWHERE, "%s", r->rules.why.text) : 0;
}

void erofs_dirrules_free(struct dir_rules *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < LINK_BUCKETS; i++) {
		while (r->links[i]) {
			struct dir_link *link = r->links[i];

			r->links[i] = link->next;
			free(link->first);
			free(link);
		}
	}
	erofs_fs_rules_fini(&r->rules);
	erofs_tarbuf_free(&r->buf);
	free(r);
}
