// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* fs_config and file_contexts of a tree (cli.md 7, "Android file formats"): what not everybody may set. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <erofs/android.h>

#include "archive/archive_priv.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/wire.h"
#include "sink/sink_priv.h"

#define FLUSH_BYTES 65536
#define WHITE " \t\n\v\f\r"

/* struct vfs_cap_data of the kernel's ABI */
#define CAP_REVISION_MASK UINT32_C(0xff000000)
#define CAP_REVISION_1 UINT32_C(0x01000000)
#define CAP_REVISION_2 UINT32_C(0x02000000)
#define CAP_REVISION_3 UINT32_C(0x03000000)
#define CAP_EFFECTIVE UINT32_C(0x000001)

struct config_file {
	const char *suffix;
	struct tree_part part;
	bool begun;
	struct tarbuf out;	/* not written yet */
};

enum { FS_CONFIG, FILE_CONTEXTS, FILES };

struct config {
	struct erofs_image *img;
	const struct erofs_android_options *opt;
	struct erofs_diag *diag;
	struct erofs_android_result *res;
	struct job *job;
	struct lane *lane;
	const char *mount;	/* without slashes around it; "" is "/" */
	size_t mount_len;
	struct tree tree;
	struct config_file files[FILES];
	struct tarbuf path;	/* "/vendor/bin/x" */
	const char *shown;	/* the same in the image, for messages */
	bool damaged;
};

/* What is said of one entry beside its inode. */
struct extras {
	bool has_caps;
	uint64_t caps;
	bool has_label;
	struct tarbuf label;
};

/* ---- mount points ---- */

/* Slashes around it do not matter. */
static const char *trim_mount(const char *mount, size_t *ret_len)
{
	size_t len;

	mount += strspn(mount, "/");
	len = strlen(mount);
	while (len && mount[len - 1] == '/')
		len--;
	*ret_len = len;
	return mount;
}

int erofs_android_check_mount(const char *mount_point)
{
	size_t len, part, at;
	const char *mount = trim_mount(mount_point, &len);

	if (!*mount_point || strpbrk(mount_point, WHITE))
		return -EINVAL;
	for (at = 0; at < len; at += part + 1) {
		part = strcspn(mount + at, "/");
		if (!part || part > NAME_MAX - sizeof("_file_contexts") ||
		    (part <= 2 && !strncmp(mount + at, "..", part)))
			return -EINVAL;
	}
	return 0;
}

/* ---- the two files ---- */

static int fail_output(struct config *c, int err)
{
	return erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot write into %s", c->opt->dir);
}

static int flush(struct config *c, struct config_file *f)
{
	int err = erofs_fdio_write(f->part.fd, f->out.data, f->out.len);

	f->out.len = 0;
	return err ? fail_output(c, err) : 0;
}

static int open_files(struct config *c)
{
	int i, err = erofs_tree_open(&c->tree, c->opt->dir, c->opt->mkdir_parents, true, 1);

	if (err)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot use %s", c->opt->dir);
	if (c->tree.fresh)
		(void)fchmod(c->tree.root.fd, 0777 & ~erofs_fdio_umask());
	c->tree.temp = TREE_TEMP_NAME;	/* what has no name cannot take the place of an older file */
	for (i = 0; i < FILES && !err; i++) {
		err = erofs_tree_part_begin(&c->tree, c->tree.root.fd, &c->files[i].part);
		c->files[i].begun = !err;
	}
	return err ? fail_output(c, err) : 0;
}

static int name_file(struct config *c, struct config_file *f)
{
	const char *slash = memrchr(c->mount, '/', c->mount_len), *last = slash ? slash + 1 : c->mount;
	size_t len = c->mount_len - (size_t)(last - c->mount);
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s%s", len ? (int)len : 4, len ? last : "root", f->suffix);
	return erofs_tree_part_replace(c->tree.root.fd, &f->part, name);
}

static int finish_files(struct config *c)
{
	int i, err = 0;

	for (i = 0; i < FILES && !err; i++)
		err = flush(c, &c->files[i]);
	if (err)
		return err;
	for (i = 0; i < FILES && !err; i++)
		if (fchmod(c->files[i].part.fd, 0666 & ~erofs_fdio_umask()) ||
		    (c->opt->fsync && fsync(c->files[i].part.fd)))
			err = -errno;
	for (i = 0; i < FILES && !err; i++)
		err = name_file(c, &c->files[i]);
	return err ? fail_output(c, err) : 0;
}

static void close_files(struct config *c)
{
	int i;

	for (i = 0; i < FILES; i++) {
		if (c->files[i].begun) {
			erofs_tree_part_drop(c->tree.root.fd, &c->files[i].part);
			close(c->files[i].part.fd);
		}
		erofs_tarbuf_free(&c->files[i].out);
	}
	erofs_tree_close(&c->tree);
}

/* ---- what an entry says ---- */

static void lose(struct config *c, const char *what)
{
	c->res->failed++;
	erofs_diag_warn_path(c->diag, c->shown, "%s", what);
}

/*
 * A mask stands for capabilities that are permitted and effective, and nothing else: anything less said as a
 * mask would give the program more than it had.
 */
static bool read_caps(const uint8_t *v, size_t size, uint64_t *ret_mask)
{
	const struct le32 *word = (const struct le32 *)v;
	uint32_t magic;
	unsigned int sets, i;
	uint64_t mask = 0;

	if (size < 4)
		return false;
	magic = le32_get(word[0]);
	sets = (magic & CAP_REVISION_MASK) == CAP_REVISION_1 ? 1 : 2;
	if ((magic & ~CAP_REVISION_MASK) != CAP_EFFECTIVE)
		return false;
	switch (magic & CAP_REVISION_MASK) {
	case CAP_REVISION_1:
	case CAP_REVISION_2:
		if (size != 4 + sets * 8)
			return false;
		break;
	case CAP_REVISION_3:	/* with the id of a user name space's root */
		if (size != 24 || le32_get(word[5]))
			return false;
		break;
	default:
		return false;
	}
	for (i = 0; i < sets; i++) {
		mask |= (uint64_t)le32_get(word[1 + 2 * i]) << (32 * i);
		if (le32_get(word[2 + 2 * i]))	/* inheritable */
			return false;
	}
	*ret_mask = mask;
	return mask;
}

/* With or without the NUL that the kernel puts behind it. */
static bool is_label(const char *label, size_t *len)
{
	size_t i;

	if (*len && !label[*len - 1])
		--*len;
	for (i = 0; i < *len; i++)
		if (label[i] <= ' ' || label[i] > '~')
			return false;
	return *len;
}

static int take_xattr(struct config *c, const struct xattr_view *xa, struct extras *x)
{
	size_t len = xa->size;

	if (!strcmp(xa->name, "security.capability")) {
		x->has_caps = read_caps(xa->value, xa->size, &x->caps);
		if (!x->has_caps)
			lose(c, "its capabilities are not in fs_config: no mask can say them");
	} else if (!strcmp(xa->name, "security.selinux")) {
		x->has_label = is_label((const char *)xa->value, &len);
		if (!x->has_label)
			lose(c, "its label is not in file_contexts: empty, or no printable word");
		x->label.len = 0;
		return x->has_label ? erofs_tarbuf_add(&x->label, xa->value, len) : 0;
	}
	return 0;
}

/* What cannot be read is reported; sound attributes of a damaged area still count. */
static int read_extras(struct config *c, const struct erofs_inode *ino, struct extras *x)
{
	struct xattr_iter *it = ino->xattr_size ? erofs_lane_xattrs(c->lane) : NULL;
	struct xattr_view xa;
	int err, bad = 0;

	x->has_caps = x->has_label = false;
	if (!ino->xattr_size)
		return 0;
	if (!it)
		return -ENOMEM;
	err = erofs_xattr_begin(it, ino);
	while (!err && !bad && (err = erofs_xattr_next(it, &xa)) > 0) {
		err = 0;
		if (!xa.hidden)
			bad = take_xattr(c, &xa, x);
	}
	if (err || erofs_xattr_damage(it))
		c->damaged = true;
	return bad ? bad : err == -ENOMEM ? err : 0;
}

/* ---- lines ---- */

static int add_text(struct tarbuf *b, const char *text)
{
	return erofs_tarbuf_add(b, text, strlen(text));
}

static int put_config(struct config *c, const char *path, const struct erofs_inode *ino, const struct extras *x)
{
	struct tarbuf *out = &c->files[FS_CONFIG].out;
	char text[96];
	int err;

	if (path[strcspn(path, WHITE)]) {
		lose(c, "not in fs_config: its lines cannot hold white space");
		return 0;
	}
	/* without its slash, but for "/" itself */
	err = add_text(out, path + !!path[1]);
	snprintf(text, sizeof(text), " %" PRIu32 " %" PRIu32 " %04" PRIo32, ino->uid, ino->gid,
		 (uint32_t)(ino->mode & 07777));
	if (!err)
		err = add_text(out, text);
	snprintf(text, sizeof(text), " capabilities=0x%" PRIx64, x->caps);
	if (!err && x->has_caps)
		err = add_text(out, text);
	c->res->entries++;
	c->res->capabilities += x->has_caps;
	return err ? err : add_text(out, "\n");
}

/* A path as a regular expression: what is not plain ASCII becomes a set of one byte. */
static int add_regex(struct tarbuf *out, const char *path)
{
	int err = 0;

	for (; *path && !err; path++) {
		unsigned char ch = (unsigned char)*path;
		char text[8] = { *path };

		if (ch <= ' ' || ch > '~')
			snprintf(text, sizeof(text), "[\\x%02x]", ch);
		else if (strchr("\\.^$*+?()[]{}|", ch))
			snprintf(text, sizeof(text), "\\%c", ch);
		err = add_text(out, text);
	}
	return err;
}

static int put_label(struct config *c, const char *path, const struct extras *x)
{
	struct tarbuf *out = &c->files[FILE_CONTEXTS].out;
	int err;

	if (!x->has_label)
		return 0;
	err = add_regex(out, path);
	if (!err)
		err = add_text(out, " ");
	if (!err)
		err = erofs_tarbuf_add(out, x->label.data, x->label.len);
	c->res->labels++;
	return err ? err : add_text(out, "\n");
}

/* What is left of a path below the start; NULL: nothing. */
static const char *strip(const struct config *c, const char *path)
{
	unsigned int n = c->opt->strip_components;

	if (n && !*path)
		return NULL;
	for (; n; n--) {
		path = strchr(path, '/');
		if (!path)
			return NULL;
		path++;
	}
	return path;
}

static int put_entry(struct config *c, const struct sorted_entry *e, struct extras *x)
{
	const char *rest = strip(c, e->path), *path;
	int i, err;

	if (!rest)
		return 0;
	c->shown = *e->path ? e->path : "/";
	c->path.len = 0;
	err = add_text(&c->path, "/");
	if (!err && c->mount_len)
		err = erofs_tarbuf_add(&c->path, c->mount, c->mount_len);
	if (!err && c->mount_len && *rest)
		err = add_text(&c->path, "/");
	if (!err)
		err = erofs_tarbuf_add(&c->path, rest, strlen(rest) + 1);
	path = (const char *)c->path.data;
	if (!err)
		err = read_extras(c, &e->ino, x);
	if (!err)
		err = put_config(c, path, &e->ino, x);
	if (!err)
		err = put_label(c, path, x);
	if (err)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "no memory for the lines of an entry");
	for (i = 0; i < FILES && !err; i++)
		if (c->files[i].out.len >= FLUSH_BYTES)
			err = flush(c, &c->files[i]);
	return err;
}

static int put_all(struct config *c, const struct erofs_inode *start)
{
	struct extras x = { 0 };
	struct sorted *names = NULL;
	const struct sorted_entry *e;
	int r, err = erofs_sorted_new(c->job, start, c->opt->select, 0, c->diag, &names);

	while (!err && (r = erofs_sorted_next(names, &e)) != 0)
		err = r < 0 ? r : put_entry(c, e, &x);
	if (names)
		c->damaged |= erofs_sorted_damaged(names);
	erofs_sorted_free(names);
	erofs_tarbuf_free(&x.label);
	return err;
}

static int run(struct config *c)
{
	uint64_t nid = c->opt->has_nid ? c->opt->nid : c->img->super->info.root_nid;
	struct erofs_inode start;
	int err;

	c->lane = erofs_job_lane(c->job, 0);
	err = erofs_inode_load(erofs_lane_metabuf(c->lane), nid, &start);
	if (err)
		return err;
	if (!S_ISDIR(start.mode))
		return erofs_diag_fail(c->diag, -ENOTDIR, AT_NID(nid), "fs_config needs a tree");
	err = open_files(c);
	if (!err)
		err = put_all(c, &start);
	if (!err)
		err = finish_files(c);
	close_files(c);
	return err ? err : c->damaged || c->res->failed ? -EUCLEAN : 0;
}

int erofs_android_config(struct erofs_image *img, struct erofs_engine *eng,
			 const struct erofs_android_options *options, struct erofs_diag *diag,
			 struct erofs_android_result *ret_result)
{
	struct erofs_android_result unused;
	struct config c = { .img = img, .opt = options, .diag = diag, .res = ret_result ? ret_result : &unused,
			    .files = { { .suffix = "_fs_config" }, { .suffix = "_file_contexts" } } };
	int err;

	if (options->size < sizeof(*options) || !options->dir || !*options->dir || !options->mount_point ||
	    erofs_android_check_mount(options->mount_point))
		return -EINVAL;
	*c.res = (struct erofs_android_result){ 0 };
	c.mount = trim_mount(options->mount_point, &c.mount_len);
	err = erofs_job_begin(eng, img, diag, &c.job);
	if (err)
		return err;
	err = run(&c);
	erofs_job_end(c.job);
	erofs_tarbuf_free(&c.path);
	return err;
}
