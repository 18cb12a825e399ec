// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What all streams have in common: the run, the packs in flight, the output. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "archive/archive_priv.h"

#define LINKS_SHARE 2		/* half of the state memory, the other one is for directories entered */

/* ---- output ---- */

static int write_fd(const struct archive *a, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(a->fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		/* a signal cut it short: a reader that does not read must not keep us from ending */
		if (len && erofs_engine_is_cancelled(a->eng))
			return -ECANCELED;
	}
	return 0;
}

int erofs_archive_put(struct archive *a, const void *data, size_t len)
{
	int err = a->write ? a->write(a->write_arg, data, len) : write_fd(a, data, len);

	if (!err)
		a->bytes += len;
	if (err && err != -ECANCELED) {
		a->output_failed = true;
		erofs_diag_fail(a->diag, err, AT_NOWHERE, "cannot write the %s", a->what);
	}
	return err;
}

/* ---- packs ---- */

static int no_memory(const struct archive *a)
{
	return erofs_diag_fail(a->diag, -ENOMEM, AT_NOWHERE, "no memory for the %s", a->what);
}

void erofs_pack_free(struct archive *a, struct pack *p)
{
	erofs_tarbuf_free(&p->names);
	erofs_tarbuf_free(&p->out);
	a->ops->free(p);
	free(p);
}

struct pack *erofs_pack_new(struct archive *a)
{
	struct pack *p = a->spares;

	if (!p) {
		p = calloc(1, a->ops->pack_size);
		if (!p)
			(void)no_memory(a);
		return p;
	}
	a->spares = p->spare;
	p->names.len = p->out.len = 0;
	p->parcel.bytes = 0;
	p->from = p->to = p->la = 0;
	p->is_range = p->damaged = false;
	p->err = 0;
	a->ops->reset(p);
	return p;
}

int erofs_pack_send_open(struct archive *a)
{
	struct pack *p = steal(a->open);

	return p ? erofs_flight_send(&a->flight, &p->parcel) : 0;
}

int erofs_pack_send_range(struct archive *a, struct pack *p, uint64_t from, uint64_t to, size_t cost)
{
	p->is_range = true;
	p->from = from;
	p->to = to;
	p->parcel.bytes = cost;
	return erofs_flight_send(&a->flight, &p->parcel);
}

void *erofs_pack_grow(struct archive *a, void *entries, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *grown;

	if (count < *room)
		return entries;
	grown = realloc(entries, more * size);
	if (grown)
		*room = more;
	else
		(void)no_memory(a);
	return grown;
}

/* ---- flight ---- */

static void fill(struct lane *lane, struct parcel *parcel)
{
	struct archive *a = parcel->flight->arg;

	a->ops->fill(a, lane, (struct pack *)parcel);
}

static int deliver(void *arg, struct parcel *parcel)
{
	struct pack *p = (struct pack *)parcel;
	struct archive *a = arg;

	if (p->err)
		return erofs_diag_fail(a->diag, p->err, AT_NOWHERE, "cannot make the %s", a->what);
	a->damaged |= p->damaged;
	return a->ops->deliver(a, p);
}

/* Buffers are used again: fresh memory costs more than decoding into it. */
static void release(void *arg, struct parcel *parcel)
{
	struct pack *p = (struct pack *)parcel;
	struct archive *a = arg;

	if (p->out.room > ARCHIVE_KEEP || p->names.room > ARCHIVE_KEEP) {
		erofs_pack_free(a, p);
		return;
	}
	p->spare = a->spares;
	a->spares = p;
}

/* ---- names ---- */

const char *erofs_archive_path(const struct archive *a, const struct sorted_entry *e, size_t *ret_len)
{
	const char *path = e->path;

	*ret_len = e->len;
	if (e->len || S_ISDIR(e->ino.mode))
		return path;
	path = a->name ? a->name : "file";
	*ret_len = strlen(path);
	return path;
}

/* Will every name of the image come by? */
static bool is_whole(const struct archive *a)
{
	return !a->select && !a->cut && a->nid == a->img->super->info.root_nid;
}

/* Inodes that promise more names than there are. */
static void report_links(struct archive *a)
{
	const struct arch_link *l;
	size_t i;

	for (i = 0; i < ARCH_LINK_BUCKETS; i++)
		for (l = a->links.buckets[i]; l; l = l->next) {
			a->damaged = true;
			erofs_diag_damage(a->diag, INODE_NLINK, AT(l->nid, erofs_inode_pos(a->img, l->nid)),
					  "%" PRIu32 " more names are counted than there are", l->left);
		}
}

static int add_all(struct archive *a, const struct erofs_inode *start)
{
	struct sorted *names = NULL;
	const struct sorted_entry *e;
	int r, err = erofs_sorted_new(a->job, start, a->select, 0, a->diag, &names);

	while (!err && (r = erofs_sorted_next(names, &e)) != 0)
		err = r < 0 ? r : a->ops->add(a, e);
	if (names)
		a->damaged |= erofs_sorted_damaged(names);
	erofs_sorted_free(names);
	if (!err && !a->damaged && is_whole(a))
		report_links(a);
	return err ? err : erofs_pack_send_open(a);
}

/* ---- the run ---- */

int erofs_archive_begin(struct archive *a)
{
	return erofs_job_begin(a->eng, a->img, a->diag, &a->job);
}

int erofs_archive_run(struct archive *a)
{
	static const struct flight_ops flight_ops = { fill, deliver, release };
	struct erofs_inode start;
	int landed, err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(a->job, 0)), a->nid, &start);

	if (err)
		return err;
	a->links.max_bytes = erofs_job_state_bytes(a->job) / LINKS_SHARE;
	erofs_flight_begin(&a->flight, a->job, erofs_job_flight_bytes(a->job), &flight_ops, a);
	err = add_all(a, &start);
	if (err)
		erofs_job_cancel(a->job);
	landed = erofs_flight_end(&a->flight);
	/* the first cause, not the cancel that followed it */
	return !err || (err == -ECANCELED && landed) ? landed : err;
}

void erofs_archive_end(struct archive *a)
{
	if (a->job)
		erofs_job_end(a->job);
	while (a->spares) {
		struct pack *p = a->spares;

		a->spares = p->spare;
		erofs_pack_free(a, p);
	}
	if (a->open)
		erofs_pack_free(a, a->open);
	erofs_archlinks_fini(&a->links);
}
