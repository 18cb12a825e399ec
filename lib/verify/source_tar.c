// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * An archive as the source: names as they come, contents as they stream by. Bytes travel with the parcels, so
 * the limit of what is in flight is also the limit of what is read ahead.
 *
 * A name that ends on a whole second was written with or without nanoseconds, nobody can tell: then only
 * seconds count. Attributes are always recorded: an entry without any has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/untar.h"
#include "verify/verify_priv.h"

struct tar_source {
	int fd;
	bool owned;
	struct untar *untar;
	struct tarbuf path, buf, other;
	struct wanted_xattr *xattrs;
	size_t xattrs_room;
	/* contents of the entry at hand: a piece that is not used up */
	struct untar_piece piece;
	size_t used;
	bool has_piece, at_end;
	uint64_t pos;			/* of the contents */
};

static bool should_stop(void *priv)
{
	const struct compare *c = priv;

	return erofs_job_is_cancelled(c->job) || erofs_engine_is_cancelled(c->eng);
}

static int fail_tar(const struct compare *c, const struct tar_source *s, int err)
{
	if (err == -ECANCELED)
		return err;
	if (err == -EBADMSG)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "%s: %s", c->opt->source, erofs_untar_error(s->untar));
	return erofs_diag_fail(c->diag, err, AT_NOWHERE, "cannot read %s", c->opt->source);
}

static int bad_name(const struct compare *c, const char *path)
{
	return erofs_diag_fail_path(c->diag, -EINVAL, path, "a name of the archive that leads out of it");
}

/* ---- facts ---- */

static int add_target(struct tar_source *s, struct wanted *w, const char *target)
{
	w->target = s->buf.len;
	w->target_len = strlen(target);
	w->has |= EROFS_COMPARE_LINK;
	return erofs_tarbuf_add(&s->buf, target, w->target_len);
}

static int add_xattrs(struct tar_source *s, struct wanted *w, const struct untar_entry *e)
{
	size_t i, n = 0;
	int err = 0;

	w->has |= COMPARE_XATTRS;
	if (e->nxattrs > s->xattrs_room) {
		struct wanted_xattr *grown = realloc(s->xattrs, e->nxattrs * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->xattrs = grown;
		s->xattrs_room = e->nxattrs;
	}
	for (i = 0; i < e->nxattrs && !err; i++) {
		const struct untar_xattr *xa = &e->xattrs[i];

		if (!erofs_compare_is_storable(xa->name))
			continue;
		s->xattrs[n].met = false;
		s->xattrs[n].name = s->buf.len;
		err = erofs_tarbuf_add(&s->buf, xa->name, strlen(xa->name) + 1);
		s->xattrs[n].value = s->buf.len;
		s->xattrs[n].size = xa->len;
		if (!err)
			err = erofs_tarbuf_add(&s->buf, xa->value, xa->len);
		n++;
	}
	w->xattrs = s->buf.len;
	w->nxattrs = n;
	return err || !n ? err : erofs_tarbuf_add(&s->buf, s->xattrs, n * sizeof(*s->xattrs));
}

static int take_facts(struct tar_source *s, struct wanted *w, const struct untar_entry *e)
{
	w->has = EROFS_COMPARE_NAMES | EROFS_COMPARE_TYPE | EROFS_COMPARE_MODE | EROFS_COMPARE_DEVICE |
		 EROFS_COMPARE_HARDLINK;
	w->mode = e->mode;
	w->major = e->major;
	w->minor = e->minor;
	w->nlink = 1;			/* links that follow name it */
	w->uid = (uint32_t)e->uid;
	w->gid = (uint32_t)e->gid;
	w->has |= e->uid >= 0 && e->uid <= UINT32_MAX ? EROFS_COMPARE_UID : 0;
	w->has |= e->gid >= 0 && e->gid <= UINT32_MAX ? EROFS_COMPARE_GID : 0;
	w->mtime = e->mtime;
	w->mtime_nsec = e->mtime_nsec;
	w->only_seconds = !e->mtime_nsec;
	w->has |= e->has_mtime ? EROFS_COMPARE_TIME : 0;
	w->size = e->size;
	w->has |= S_ISREG(e->mode) ? EROFS_COMPARE_SIZE : 0;
	if (S_ISLNK(e->mode) && e->symlink && add_target(s, w, e->symlink))
		return -ENOMEM;
	return add_xattrs(s, w, e);
}

/* A hard link has nothing but the name that it leads to. */
static int take_link(struct compare *c, struct tar_source *s, struct wanted *w, const char *to)
{
	int err;

	s->other.len = 0;
	err = erofs_compare_make_path(&s->other, to);
	if (err == -EINVAL)
		return bad_name(c, to);
	w->has = EROFS_COMPARE_NAMES | EROFS_COMPARE_HARDLINK;
	w->is_link = true;
	w->link_to = s->buf.len;
	if (!err)
		err = erofs_tarbuf_add(&s->buf, "/", 1);
	return err ? err : erofs_tarbuf_add(&s->buf, s->other.data, s->other.len + 1);
}

/* ---- contents ---- */

/* Have a piece that goes beyond s->pos, unless there are no more. 0, negative errno. */
static int get_piece(struct tar_source *s)
{
	int r;

	while (!s->at_end && (!s->has_piece || s->piece.off + s->piece.len <= s->pos)) {
		r = erofs_untar_data(s->untar, &s->piece);
		if (r < 0)
			return r;
		s->has_piece = r;
		s->at_end = !r;
	}
	return 0;
}

/* Bytes of a hole from s->pos on. */
static uint64_t hole_here(const struct tar_source *s, uint64_t end)
{
	if (s->at_end)
		return end - s->pos;
	return s->piece.off > s->pos ? min_u64(s->piece.off, end) - s->pos : 0;
}

/* The next @len bytes of the contents behind what s->buf has; what is not there is zeros. */
static int add_bytes(struct tar_source *s, size_t len)
{
	uint64_t end = s->pos + len;
	int err = erofs_tarbuf_reserve(&s->buf, len);

	while (!err && s->pos < end) {
		uint8_t *to = s->buf.data + s->buf.len;
		uint64_t n;

		err = get_piece(s);
		if (err)
			break;
		n = hole_here(s, end);
		if (n) {
			memset(to, 0, (size_t)n);
		} else {
			n = min_u64(end, s->piece.off + s->piece.len) - s->pos;
			memcpy(to, (const uint8_t *)s->piece.buf + (s->pos - s->piece.off), (size_t)n);
		}
		s->buf.len += (size_t)n;
		s->pos += n;
	}
	return err;
}

/* Contents of a large file, a parcel for each range; long holes are one. */
static int send_ranges(struct compare *c, struct tar_source *s, const struct compare_item *item,
		       const struct wanted *w)
{
	struct wanted part = *w;
	int err = 0;

	while (!err && s->pos < w->size) {
		uint64_t from = s->pos, n;

		err = get_piece(s);
		if (err)
			return fail_tar(c, s, err);
		s->buf.len = 0;
		n = hole_here(s, w->size);
		part.data = 0;
		part.has_zeros = n >= COMPARE_BATCH;
		if (part.has_zeros) {
			s->pos += n;
		} else {
			n = min_u64(COMPARE_BATCH, w->size - s->pos);
			err = add_bytes(s, (size_t)n);
		}
		part.data_len = s->buf.len;
		if (err)
			return fail_tar(c, s, err);
		err = erofs_compare_send_range(c, item, (const char *)s->path.data, s->path.len, &part, &s->buf, from,
					       from + n);
	}
	return err;
}

static int compare_entry(struct compare *c, struct tar_source *s, const struct untar_entry *e, struct wanted *w)
{
	struct compare_item item = { 0 };
	const char *path = (const char *)s->path.data;
	bool has_data;
	int err = erofs_compare_look(c, &item, path, s->path.len);

	if (err)
		return err;
	/* what would not be compared is not read */
	has_data = !e->hardlink && S_ISREG(e->mode) && c->what & EROFS_COMPARE_DATA && item.is_there && !item.broken &&
		   S_ISREG(item.ino.mode) && item.ino.size == e->size;
	s->pos = 0;
	s->has_piece = s->at_end = false;
	w->has |= !e->hardlink && S_ISREG(e->mode) ? EROFS_COMPARE_DATA : 0;
	item.in_ranges = has_data && e->size > COMPARE_BATCH;
	if (has_data && !item.in_ranges) {
		w->data = s->buf.len;
		w->data_len = (size_t)e->size;
		err = add_bytes(s, w->data_len);
	}
	if (err)
		return fail_tar(c, s, err);
	err = erofs_compare_put(c, &item, path, s->path.len, w, &s->buf);
	return !err && item.in_ranges ? send_ranges(c, s, &item, w) : err;
}

static int take_entry(struct compare *c, struct tar_source *s, const struct untar_entry *e)
{
	struct wanted w = { 0 };
	int err;

	s->path.len = s->buf.len = 0;
	err = e->path ? erofs_compare_make_path(&s->path, e->path) : -EINVAL;
	if (err == -EINVAL)
		return bad_name(c, e->path ? e->path : "");
	if (e->warning)
		erofs_diag_warn_path(c->diag, e->path, "%s", e->warning);
	if (!err)
		err = e->hardlink ? take_link(c, s, &w, e->hardlink) : take_facts(s, &w, e);
	return err ? err : compare_entry(c, s, e, &w);
}

static int run_tar(struct compare *c)
{
	struct tar_source *s = c->source.priv;
	struct untar_entry e;
	int r, err = erofs_untar_open(s->fd, false, should_stop, c, &s->untar);

	if (err == -EOPNOTSUPP)
		return erofs_diag_fail(c->diag, err, AT_NOWHERE, "archives cannot be read: no libarchive");
	while (!err && (r = erofs_untar_next(s->untar, &e)) != 0)
		err = r < 0 ? fail_tar(c, s, r) : take_entry(c, s, &e);
	if (err == -ENOMEM)
		return erofs_compare_no_memory(c);
	if (!err && !erofs_untar_drain(s->untar))
		erofs_diag_warn_path(c->diag, c->opt->source, "the archive has no end mark: it may be cut");
	return err;
}

static void free_tar(struct compare *c)
{
	struct tar_source *s = c->source.priv;

	erofs_untar_free(s->untar);
	if (s->owned)
		close(s->fd);
	erofs_tarbuf_free(&s->path);
	erofs_tarbuf_free(&s->buf);
	erofs_tarbuf_free(&s->other);
	free(s->xattrs);
	free(s);
}

int erofs_source_tar(struct compare *c)
{
	struct tar_source *s = calloc(1, sizeof(*s));

	if (!s)
		return erofs_compare_no_memory(c);
	c->source = (struct compare_source){
		.gather = erofs_record_gather, .run = run_tar, .free = free_tar, .priv = s,
	};
	s->owned = strcmp(c->opt->source, "-") != 0;
	s->fd = s->owned ? open(c->opt->source, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (s->fd >= 0)
		return 0;
	s->owned = false;
	return erofs_diag_fail(c->diag, -errno, AT_NOWHERE, "cannot open %s", c->opt->source);
}
