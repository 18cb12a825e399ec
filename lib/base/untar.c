// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Tar by libarchive, which is loaded when the first archive is read: linked, it and the libraries it needs
 * would be loaded by every run of every tool.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/acl.h"
#include "base/untar.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>

#define LIBARCHIVE "libarchive.so.13"
#define BUFFER ((size_t)256 << 10)
#define ACLS 2

#define FUNCTIONS(X) \
	X(archive_read_new) X(archive_read_free) X(archive_read_support_format_tar) \
	X(archive_read_support_filter_bzip2) X(archive_read_support_filter_compress) \
	X(archive_read_support_filter_gzip) X(archive_read_support_filter_lz4) \
	X(archive_read_support_filter_lzip) X(archive_read_support_filter_lzma) \
	X(archive_read_support_filter_xz) X(archive_read_support_filter_zstd) \
	X(archive_read_set_read_callback) X(archive_read_set_skip_callback) \
	X(archive_read_set_callback_data) X(archive_read_open1) X(archive_read_next_header) \
	X(archive_read_data_block) X(archive_filter_code) X(archive_filter_bytes) \
	X(archive_error_string) X(archive_errno) \
	X(archive_entry_pathname) X(archive_entry_hardlink) X(archive_entry_symlink) \
	X(archive_entry_mode) X(archive_entry_size) X(archive_entry_uid) X(archive_entry_gid) \
	X(archive_entry_mtime) X(archive_entry_mtime_nsec) X(archive_entry_mtime_is_set) \
	X(archive_entry_rdevmajor) X(archive_entry_rdevminor) \
	X(archive_entry_xattr_reset) X(archive_entry_xattr_next) X(archive_entry_sparse_count) \
	X(archive_entry_acl_types) X(archive_entry_acl_reset) X(archive_entry_acl_next)

struct api {
#define X(name) __typeof__(&name) name;
	FUNCTIONS(X)
#undef X
};

struct untar {
	struct api api;
	struct archive *a;
	struct archive_entry *e;
	untar_stop_fn stop;
	void *stop_priv;
	uint8_t *buf;
	int fd;
	int err;			/* of reading, told instead of what libarchive makes of it */
	uint64_t start;			/* position of the descriptor when reading began */
	uint64_t zeros;			/* at the end of what was read so far */
	bool is_open, seeks;
	bool no_data;			/* contents are missing in the stream */
	uint64_t given;			/* no_data: bytes given so far */
	size_t at, len;			/* no_data: of buf, what is not given yet */
	bool is_at_end;			/* nothing more can be read */
	struct untar_xattr *xattrs;
	size_t nxattrs, xattrs_room;
	uint8_t *acls[ACLS];
};

/* Once loaded it stays. */
static bool load(struct api *api)
{
	void *lib = dlopen(LIBARCHIVE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!lib)
		return false;
	/* POSIX's way from an object pointer to a function pointer */
#define X(name) if (!(*(void **)&api->name = dlsym(lib, #name))) return false;
	FUNCTIONS(X)
#undef X
	return true;
}

bool erofs_untar_is_there(void)
{
	struct api api;

	return load(&api);
}

/* ---- bytes ---- */

static ssize_t read_some(struct untar *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };
	ssize_t n = -1;

	while (n < 0) {
		if (t->stop(t->stop_priv)) {
			t->err = -ECANCELED;
			return -1;
		}
		n = read(t->fd, t->buf, BUFFER);
		if (n < 0 && errno == EAGAIN) {
			(void)poll(&p, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			t->err = -errno;
			return -1;
		}
	}
	return n;
}

static void count_zeros(struct untar *t, const uint8_t *buf, size_t len)
{
	size_t n = 0;

	while (n < len && n < 512 && !buf[len - 1 - n])
		n++;
	t->zeros = n == len ? t->zeros + n : n;
}

/* One block at a time: what is read ahead could not be taken back when contents are to be passed over. */
static ssize_t give_block(struct untar *t, const void **ret_buf)
{
	size_t n = 512 - t->given % 512;

	if (t->at == t->len) {
		ssize_t got = read_some(t);

		if (got <= 0)
			return got;
		t->at = 0;
		t->len = (size_t)got;
	}
	if (n > t->len - t->at)
		n = t->len - t->at;
	*ret_buf = t->buf + t->at;
	t->at += n;
	t->given += n;
	return (ssize_t)n;
}

static la_ssize_t give(struct archive *a, void *priv, const void **ret_buf)
{
	struct untar *t = priv;
	ssize_t n = t->no_data ? give_block(t, ret_buf) : read_some(t);

	(void)a;
	if (!t->no_data)
		*ret_buf = t->buf;
	if (n > 0)
		count_zeros(t, *ret_buf, (size_t)n);
	t->is_at_end = !n;
	return n;
}

/* 0: it has to read on */
static la_int64_t skip(struct archive *a, void *priv, la_int64_t len)
{
	struct untar *t = priv;
	off_t at, end;

	(void)a;
	if (t->no_data)
		return len;
	if (!t->seeks)
		return 0;
	at = lseek(t->fd, 0, SEEK_CUR);
	end = lseek(t->fd, 0, SEEK_END);
	if (at < 0 || end < 0 || lseek(t->fd, at, SEEK_SET) < 0)
		return 0;
	/* not behind the end: a missing end must be noticed */
	if (end <= at || len > end - at)
		return 0;
	t->zeros = 0;
	return lseek(t->fd, at + len, SEEK_SET) < 0 ? 0 : len;
}

static void add_formats(struct untar *t)
{
	const struct api *api = &t->api;

	api->archive_read_support_format_tar(t->a);
	api->archive_read_support_filter_bzip2(t->a);
	api->archive_read_support_filter_compress(t->a);
	api->archive_read_support_filter_gzip(t->a);
	api->archive_read_support_filter_lz4(t->a);
	api->archive_read_support_filter_lzip(t->a);
	api->archive_read_support_filter_lzma(t->a);
	api->archive_read_support_filter_xz(t->a);
	api->archive_read_support_filter_zstd(t->a);
}

static int fail(struct untar *t)
{
	if (t->err)
		return t->err;
	return t->api.archive_errno(t->a) == ENOMEM ? -ENOMEM : -EBADMSG;
}

int erofs_untar_open(int fd, bool no_data, untar_stop_fn stop, void *priv, struct untar **ret)
{
	struct untar *t = calloc(1, sizeof(*t));
	off_t start = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	if (!t)
		return -ENOMEM;
	if (!load(&t->api)) {
		free(t);
		return -EOPNOTSUPP;
	}
	t->fd = fd;
	t->no_data = no_data;
	t->stop = stop;
	t->stop_priv = priv;
	t->seeks = start >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	t->start = t->seeks ? (uint64_t)start : 0;
	t->buf = malloc(BUFFER);
	t->a = t->api.archive_read_new();
	if (!t->buf || !t->a) {
		erofs_untar_free(t);
		return -ENOMEM;
	}
	add_formats(t);
	t->api.archive_read_set_callback_data(t->a, t);
	t->api.archive_read_set_read_callback(t->a, give);
	t->api.archive_read_set_skip_callback(t->a, skip);
	*ret = t;
	return 0;
}

static void free_acls(struct untar *t)
{
	unsigned int i;

	for (i = 0; i < ACLS; i++) {
		free(t->acls[i]);
		t->acls[i] = NULL;
	}
}

void erofs_untar_free(struct untar *t)
{
	if (!t)
		return;
	if (t->a)
		t->api.archive_read_free(t->a);
	free_acls(t);
	free(t->xattrs);
	free(t->buf);
	free(t);
}

const char *erofs_untar_error(const struct untar *t)
{
	const char *text = t->api.archive_error_string(t->a);

	return text ? text : "damaged";
}

/* ---- attributes ---- */

static int add_xattr(struct untar *t, const char *name, const void *value, size_t len)
{
	if (t->nxattrs == t->xattrs_room) {
		size_t room = t->xattrs_room ? 2 * t->xattrs_room : 16;
		struct untar_xattr *grown = realloc(t->xattrs, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->xattrs = grown;
		t->xattrs_room = room;
	}
	t->xattrs[t->nxattrs++] = (struct untar_xattr){ name, value, len };
	return 0;
}

static int compare_xattrs(const void *a, const void *b)
{
	return strcmp(((const struct untar_xattr *)a)->name, ((const struct untar_xattr *)b)->name);
}

/* Archivers write an attribute under two keys at once. */
static void drop_doubles(struct untar *t)
{
	size_t i, n = 0;

	if (!t->nxattrs)
		return;
	qsort(t->xattrs, t->nxattrs, sizeof(*t->xattrs), compare_xattrs);
	for (i = 1; i < t->nxattrs; i++)
		if (strcmp(t->xattrs[i].name, t->xattrs[n].name))
			t->xattrs[++n] = t->xattrs[i];
	t->nxattrs = n + 1;
}

static enum acl_tag tag_of(int tag)
{
	switch (tag) {
	case ARCHIVE_ENTRY_ACL_USER_OBJ: return ACL_OWNER;
	case ARCHIVE_ENTRY_ACL_USER: return ACL_USER;
	case ARCHIVE_ENTRY_ACL_GROUP_OBJ: return ACL_OWNING_GROUP;
	case ARCHIVE_ENTRY_ACL_GROUP: return ACL_GROUP;
	case ARCHIVE_ENTRY_ACL_MASK: return ACL_MASK;
	case ARCHIVE_ENTRY_ACL_OTHER: return ACL_OTHER;
	default: return ACL_NONE;
	}
}

/* Build one ACL; the mask of an extended one is what the mode shows of the group. 0, -ENOMEM. */
static int take_acl(struct untar *t, int type, unsigned int place, struct untar_entry *e)
{
	static const char *const names[ACLS] = { "system.posix_acl_access", "system.posix_acl_default" };
	int count = t->api.archive_entry_acl_reset(t->e, type), perm, kind, id, what;
	struct acl acl;
	const char *name;

	if (count <= 0)
		return 0;
	if (!erofs_acl_init(&acl, (size_t)count))
		return -ENOMEM;
	t->acls[place] = acl.buf;
	while (count-- && !t->api.archive_entry_acl_next(t->e, type, &what, &perm, &kind, &id, &name))
		if (!erofs_acl_put(&acl, tag_of(kind), (unsigned int)perm, id, name))
			e->warning = "an entry of an ACL has a name unknown here, left out";
	if (type == ARCHIVE_ENTRY_ACL_TYPE_ACCESS && !acl.is_extended)
		return 0;
	erofs_acl_finish(&acl);
	if (type == ARCHIVE_ENTRY_ACL_TYPE_ACCESS)
		e->mode = (e->mode & ~UINT32_C(070)) | (uint32_t)acl.mask << 3;
	return add_xattr(t, names[place], acl.buf, acl.len);
}

static int take_xattrs(struct untar *t, struct untar_entry *e)
{
	int left = t->api.archive_entry_xattr_reset(t->e), types, err = 0;
	const char *name;
	const void *value;
	size_t len;

	t->nxattrs = 0;
	free_acls(t);
	types = t->api.archive_entry_acl_types(t->e);
	if (types & ARCHIVE_ENTRY_ACL_TYPE_ACCESS)
		err = take_acl(t, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, 0, e);
	if (!err && types & ARCHIVE_ENTRY_ACL_TYPE_DEFAULT)
		err = take_acl(t, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, 1, e);
	while (!err && left-- > 0 && !t->api.archive_entry_xattr_next(t->e, &name, &value, &len))
		if (name)
			err = add_xattr(t, name, value, len);
	drop_doubles(t);
	e->xattrs = t->xattrs;
	e->nxattrs = t->nxattrs;
	return err;
}

/* ---- entries ---- */

/* Names that are no text in the locale come as the bytes they are: nothing is wrong with them. */
static const char *warning_of(const struct untar *t)
{
	const char *text = erofs_untar_error(t);

	return strstr(text, "can't be converted") ? NULL : text;
}

static int take_entry(struct untar *t, struct untar_entry *e)
{
	const struct api *api = &t->api;

	e->path = api->archive_entry_pathname(t->e);
	e->hardlink = api->archive_entry_hardlink(t->e);
	e->symlink = e->hardlink ? NULL : api->archive_entry_symlink(t->e);
	e->mode = api->archive_entry_mode(t->e);
	e->major = (uint32_t)api->archive_entry_rdevmajor(t->e);
	e->minor = (uint32_t)api->archive_entry_rdevminor(t->e);
	e->uid = api->archive_entry_uid(t->e);
	e->gid = api->archive_entry_gid(t->e);
	e->has_mtime = api->archive_entry_mtime_is_set(t->e);
	e->mtime = api->archive_entry_mtime(t->e);
	e->mtime_nsec = (uint32_t)api->archive_entry_mtime_nsec(t->e);
	e->size = (uint64_t)api->archive_entry_size(t->e);
	e->is_sparse = api->archive_entry_sparse_count(t->e) > 0;
	return take_xattrs(t, e);
}

int erofs_untar_next(struct untar *t, struct untar_entry *ret)
{
	struct untar_entry e = { 0 };
	int r, err;

	/* opening reads ahead, to see how the stream is compressed */
	if (!t->is_open) {
		t->is_open = true;
		if (t->api.archive_read_open1(t->a) != ARCHIVE_OK)
			return fail(t);
	}
	r = t->api.archive_read_next_header(t->a, &t->e);
	if (r == ARCHIVE_EOF && !t->err)
		return 0;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return fail(t);
	if (r == ARCHIVE_WARN)
		e.warning = warning_of(t);
	err = take_entry(t, &e);
	if (err)
		return err;
	*ret = e;
	return 1;
}

uint64_t erofs_untar_bytes(const struct untar *t)
{
	int64_t n = t->api.archive_filter_bytes(t->a, 0);

	return n < 0 ? 0 : (uint64_t)n;
}

static uint64_t place_of(const struct untar *t, uint64_t pos)
{
	if (!t->seeks || t->api.archive_filter_code(t->a, 0) != ARCHIVE_FILTER_NONE)
		return UINT64_MAX;
	return t->start + pos;
}

int erofs_untar_data(struct untar *t, struct untar_piece *ret)
{
	const void *buf;
	size_t len;
	la_int64_t off;
	int r = t->api.archive_read_data_block(t->a, &buf, &len, &off);

	if (r == ARCHIVE_EOF && !t->err)
		return 0;
	if ((r != ARCHIVE_OK && r != ARCHIVE_WARN) || off < 0)
		return fail(t);
	/* what came before is consumed when a piece comes, and the piece itself not yet */
	*ret = (struct untar_piece){ .buf = buf, .len = len, .off = (uint64_t)off, .pos = erofs_untar_bytes(t) };
	ret->place = place_of(t, ret->pos);
	return 1;
}

/* The end was looked for where nothing was left, and no block of zeros stood before it. */
static bool misses_mark(struct untar *t)
{
	return t->api.archive_filter_code(t->a, 0) == ARCHIVE_FILTER_NONE && t->is_at_end && t->zeros < 512;
}

bool erofs_untar_drain(struct untar *t)
{
	bool missing = misses_mark(t);

	while (!t->is_at_end && read_some(t) > 0)
		;
	return !missing;
}

#endif
