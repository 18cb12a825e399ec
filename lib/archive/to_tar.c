// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The owner's side of a tar archive: what goes into parcels, and what of them is written. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "archive/archive_priv.h"

#define ITEM_COST 1024		/* headers and bookkeeping of an entry, towards a parcel's bytes */
#define MAX_ITEMS 1024
#define MAX_LOST 65536		/* inodes whose first name was left out: 512 KiB; more end the run */
#define ZEROS 65536
#define LINKS_SHARE 2		/* half of the state memory, the other one is for directories entered */

struct tar {
	struct erofs_image *img;
	struct erofs_engine *eng;
	const struct erofs_tar_options *opt;
	struct erofs_diag *diag;
	struct erofs_tar_result *res;
	struct job *job;
	struct flight flight;
	struct tar_parcel *open;	/* is being gathered */
	struct tar_parcel *spares;
	struct tar_links links;
	uint64_t *lost;			/* nids whose first name was left out */
	size_t nlost;
	uint64_t pos, size;		/* of the large file that is being written */
	bool broken;			/* it has zeros in place of contents */
	bool damaged;
	char *socket;			/* the first one's path */
	const uint8_t *zeros;
};

/* ---- writing ---- */

static int write_fd(struct tar *t, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(t->opt->fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		/* a signal cut it short: a reader that does not read must not keep us from ending */
		if (len && erofs_engine_is_cancelled(t->eng))
			return -ECANCELED;
	}
	return 0;
}

static int put(struct tar *t, const uint8_t *data, size_t len)
{
	int err = t->opt->write ? t->opt->write(t->opt->write_arg, data, len) : write_fd(t, data, len);

	if (!err)
		t->res->bytes += len;
	if (err && err != -ECANCELED) {
		t->res->output_failed = 1;
		erofs_diag_fail(t->diag, err, AT_NOWHERE, "cannot write the archive");
	}
	return err;
}

static int put_zeros(struct tar *t, uint64_t len)
{
	int err = 0;

	while (len && !err) {
		size_t n = (size_t)min_u64(len, ZEROS);

		err = erofs_job_is_cancelled(t->job) ? -ECANCELED : put(t, t->zeros, n);
		len -= n;
	}
	return err;
}

static const char *path_of(const struct tar_parcel *p, const struct tar_item *item)
{
	return (const char *)p->names.data + item->path;
}

/* ---- delivery ---- */

static int compare_nids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_lost(const struct tar *t, uint64_t nid)
{
	return t->nlost && bsearch(&nid, t->lost, t->nlost, sizeof(nid), compare_nids);
}

/* An inode with more names is not there: links to it must not be either. */
static int note_lost(struct tar *t, uint64_t nid)
{
	size_t i;

	if (!t->lost)
		t->lost = malloc(MAX_LOST * sizeof(*t->lost));
	if (!t->lost || t->nlost == MAX_LOST)
		return erofs_diag_fail(t->diag, -ENOMEM, AT_NOWHERE, "too many damaged hard links");
	for (i = t->nlost; i && t->lost[i - 1] > nid; i--)
		t->lost[i] = t->lost[i - 1];
	t->lost[i] = nid;
	t->nlost++;
	return 0;
}

static int leave_out(struct tar *t, const char *path, const struct tar_item *item)
{
	t->res->failed++;
	erofs_diag_warn_path(t->diag, path, item->is_link ?
			     "left out of the archive, as the name it is linked to" :
			     "left out of the archive: cannot be read");
	return !item->is_link && item->ino.nlink > 1 ? note_lost(t, item->ino.nid) : 0;
}

/* Entries that are there, in as few writes as that takes. */
static int deliver_items(struct tar *t, struct tar_parcel *p)
{
	size_t i, from = 0;
	int err = 0;

	for (i = 0; i < p->count && !err; i++) {
		struct tar_item *item = &p->items[i];
		bool lost = item->is_link && is_lost(t, item->ino.nid);

		if (!item->err && !lost) {
			t->res->entries++;
			continue;
		}
		err = leave_out(t, path_of(p, item), item);
		if (!err && lost) {
			err = put(t, p->out.data + from, item->off - from);
			from = item->off + item->len;
		}
	}
	if (!err && p->count && p->items[p->count - 1].contents_follow) {
		t->pos = 0;
		t->size = p->items[p->count - 1].ino.size;
		t->broken = false;
	}
	return err ? err : put(t, p->out.data + from, p->out.len - from);
}

static int end_large(struct tar *t)
{
	uint64_t pad = -t->size % TAR_BLOCK, gap = t->size - t->pos;

	t->pos = t->size;
	return put_zeros(t, gap + pad);
}

/* Ranges come in order; what one lacks shows when the next one begins behind it. */
static int deliver_range(struct tar *t, struct tar_parcel *p)
{
	uint64_t la = p->la, len = p->out.len, skip = 0, end;
	bool gap;
	int err = 0;

	if (len && la < t->pos)
		skip = min_u64(t->pos - la, len);
	if (la + len > t->size)
		len = la < t->size ? t->size - la : 0;
	/* a range within an extent that began in front of it is empty */
	end = len ? max_u64(la + len, t->pos) : t->pos;
	gap = p->range_err || (len && la > t->pos) || (p->to == t->size && end < t->size);
	if (gap && !t->broken) {
		t->broken = true;
		t->res->failed++;
		erofs_diag_warn_path(t->diag, path_of(p, &p->items[0]),
				     "damaged: what cannot be read of it is zeros in the archive");
	}
	if (len && la > t->pos) {
		err = put_zeros(t, la - t->pos);
		t->pos = la;
	}
	if (!err && len > skip) {
		err = put(t, p->out.data + skip, (size_t)(len - skip));
		t->pos += len - skip;
	}
	return !err && p->to == t->size ? end_large(t) : err;
}

static int deliver(void *arg, struct parcel *parcel)
{
	struct tar_parcel *p = (struct tar_parcel *)parcel;
	struct tar *t = arg;

	if (p->err)
		return erofs_diag_fail(t->diag, p->err, AT_NOWHERE, "no memory for the archive");
	t->damaged |= p->damaged;
	return p->is_range ? deliver_range(t, p) : deliver_items(t, p);
}

static void free_parcel(struct tar_parcel *p)
{
	erofs_tarbuf_free(&p->names);
	erofs_tarbuf_free(&p->out);
	erofs_tarbuf_free(&p->records);
	free(p->items);
	free(p);
}

/* Buffers are used again: fresh memory costs more than decoding into it. */
static void release(void *arg, struct parcel *parcel)
{
	struct tar_parcel *p = (struct tar_parcel *)parcel;
	struct tar *t = arg;

	if (p->out.room > TAR_KEEP || p->names.room > TAR_KEEP || p->records.room > TAR_KEEP) {
		free_parcel(p);
		return;
	}
	p->spare = t->spares;
	t->spares = p;
}

static const struct flight_ops flight_ops = { erofs_tar_fill, deliver, release };

/* ---- gathering ---- */

static struct tar_parcel *new_parcel(struct tar *t)
{
	struct tar_parcel *p = t->spares;

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			erofs_diag_fail(t->diag, -ENOMEM, AT_NOWHERE, "no memory for the archive");
		return p;
	}
	t->spares = p->spare;
	p->names.len = p->out.len = p->records.len = 0;
	p->count = 0;
	p->parcel.bytes = 0;
	p->is_range = p->has_links = p->damaged = false;
	p->err = p->range_err = 0;
	return p;
}

static int send_open(struct tar *t)
{
	struct tar_parcel *p = steal(t->open);

	return p ? erofs_flight_send(&t->flight, &p->parcel) : 0;
}

static int add_item(struct tar *t, struct tar_parcel *p, const struct tar_item *item, const char *path,
		    const char *link)
{
	struct tar_item *at;
	int err;

	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 16;
		struct tar_item *grown = realloc(p->items, room * sizeof(*grown));

		if (!grown)
			return erofs_diag_fail(t->diag, -ENOMEM, AT_NOWHERE, "no memory for the archive");
		p->items = grown;
		p->room = room;
	}
	at = &p->items[p->count];
	*at = *item;
	at->path = p->names.len;
	err = erofs_tarbuf_add(&p->names, path, item->path_len);
	/* a directory ends with a slash; messages need an end */
	if (!err && S_ISDIR(item->ino.mode))
		err = erofs_tarbuf_add(&p->names, "/", 1);
	at->path_len = p->names.len - at->path;
	if (!err)
		err = erofs_tarbuf_add(&p->names, "", 1);
	at->link = p->names.len;
	if (!err && link)
		err = erofs_tarbuf_add(&p->names, link, item->link_len);
	if (err)
		return erofs_diag_fail(t->diag, err, AT_NOWHERE, "no memory for the archive");
	p->count++;
	p->has_links |= item->is_link;
	p->parcel.bytes += ITEM_COST + item->path_len + item->link_len;
	if (S_ISREG(item->ino.mode) && !item->is_link && !item->contents_follow)
		p->parcel.bytes += (size_t)item->ino.size;
	return 0;
}

/* The contents of a file that does not fit a parcel, a parcel for each range. */
static int send_ranges(struct tar *t, const struct tar_item *item, const char *path)
{
	uint64_t from;
	int err = send_open(t);

	for (from = 0; from < item->ino.size && !err; from += TAR_BATCH) {
		struct tar_parcel *p = new_parcel(t);

		if (!p)
			return -ENOMEM;
		err = add_item(t, p, item, path, NULL);
		if (err) {
			free_parcel(p);
			return err;
		}
		p->is_range = true;
		p->from = from;
		p->to = min_u64(item->ino.size, from + TAR_BATCH);
		p->parcel.bytes = TAR_BATCH;
		err = erofs_flight_send(&t->flight, &p->parcel);
	}
	return err;
}

/* The path in the archive; NULL: nothing is left of it. */
static const char *archive_path(const struct tar *t, const struct sorted_entry *e, size_t *ret_len)
{
	unsigned int strip = t->opt->strip_components;
	const char *path = e->path, *slash;
	size_t len = e->len;

	if (!len && !S_ISDIR(e->ino.mode)) {
		path = t->opt->name ? t->opt->name : "file";
		len = strlen(path);
	}
	if (!len && strip)
		return NULL;
	if (!len) {
		*ret_len = 1;
		return ".";
	}
	for (; strip; strip--) {
		slash = memchr(path, '/', len);
		if (!slash)
			return NULL;
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	*ret_len = len;
	return path;
}

static int note_socket(struct tar *t, const char *path)
{
	t->res->skipped++;
	if (!t->socket)
		t->socket = strdup(path);
	return 0;
}

/*
 * Can all of a large file be found? Its header says how long it is, so that damage has to be known before:
 * whoever claims a size that the image does not hold would get zeros without end. Faults are reported.
 */
static bool is_mappable(struct tar *t, const struct erofs_inode *ino)
{
	struct lane *lane = erofs_job_lane(t->job, 0);
	struct extent ext;
	struct map map;
	int r = erofs_map_begin(&map, ino, erofs_lane_metabuf(lane), true);

	if (r)
		return false;
	while ((r = erofs_map_next(&map, &ext)) > 0)
		;
	return !r;
}

static int add_entry(struct tar *t, const struct sorted_entry *e)
{
	struct tar_item item = { .ino = e->ino };
	const struct tar_link *first = NULL;
	const char *path = archive_path(t, e, &item.path_len);
	bool linked = !S_ISDIR(e->ino.mode) && e->ino.nlink > 1;
	int err = 0;

	if (!path)
		return 0;
	if (S_ISSOCK(e->ino.mode))
		return note_socket(t, path);
	if (linked)
		err = erofs_tarlinks_claim(&t->links, &e->ino, path, item.path_len, &first);
	if (err)
		return erofs_diag_fail(t->diag, err, AT_NOWHERE,
				       "names of hard links do not fit the memory limit (see --max-memory)");
	item.is_link = first;
	item.link_len = first ? first->len : 0;
	item.contents_follow = S_ISREG(e->ino.mode) && !first && e->ino.size > TAR_BATCH;
	if (item.contents_follow && !is_mappable(t, &e->ino)) {
		if (linked)
			erofs_tarlinks_seen(&t->links, e->ino.nid);
		return leave_out(t, path, &item);
	}
	if (!t->open)
		t->open = new_parcel(t);
	err = t->open ? add_item(t, t->open, &item, path, first ? first->path : NULL) : -ENOMEM;
	if (linked)
		erofs_tarlinks_seen(&t->links, e->ino.nid);
	if (!err && item.contents_follow)
		return send_ranges(t, &item, path);
	if (!err && (t->open->parcel.bytes >= TAR_BATCH || t->open->count == MAX_ITEMS))
		err = send_open(t);
	return err;
}

/* ---- the run ---- */

/* Will every name of the image come by? */
static bool is_whole(const struct tar *t)
{
	return !t->opt->select && !t->opt->strip_components &&
	       (!t->opt->has_nid || t->opt->nid == t->img->super->info.root_nid);
}

/* Inodes that promise more names than there are. */
static void report_links(struct tar *t)
{
	const struct tar_link *l;
	size_t i;

	for (i = 0; i < TAR_LINK_BUCKETS; i++)
		for (l = t->links.buckets[i]; l; l = l->next) {
			t->damaged = true;
			erofs_diag_damage(t->diag, INODE_NLINK, AT(l->nid, erofs_inode_pos(t->img, l->nid)),
					  "%" PRIu32 " more names are counted than there are", l->left);
		}
}

static int add_all(struct tar *t, const struct erofs_inode *start)
{
	struct sorted *names = NULL;
	const struct sorted_entry *e;
	int r, err = erofs_sorted_new(t->job, start, t->opt->select, 0, t->diag, &names);

	while (!err && (r = erofs_sorted_next(names, &e)) != 0)
		err = r < 0 ? r : add_entry(t, e);
	if (names)
		t->damaged |= erofs_sorted_damaged(names);
	erofs_sorted_free(names);
	if (!err && !t->damaged && is_whole(t))
		report_links(t);
	return err ? err : send_open(t);
}

/* Two blocks of zeros, and what is missing to a whole record. */
static int put_end(struct tar *t)
{
	uint64_t len = t->res->bytes + 2 * TAR_BLOCK;

	return put_zeros(t, 2 * TAR_BLOCK + (TAR_RECORD - len % TAR_RECORD) % TAR_RECORD);
}

static void report_sockets(const struct tar *t)
{
	if (t->res->skipped)
		erofs_diag_warn_path(t->diag, t->socket, "%" PRIu64 " %s left out: tar has no such type",
				     t->res->skipped, t->res->skipped == 1 ? "socket" : "sockets, this one first,");
}

static int run(struct tar *t)
{
	uint64_t nid = t->opt->has_nid ? t->opt->nid : t->img->super->info.root_nid;
	struct lane *lane = erofs_job_lane(t->job, 0);
	struct erofs_inode start;
	int err = erofs_inode_load(erofs_lane_metabuf(lane), nid, &start), landed;

	if (err)
		return err;
	t->links.max_bytes = erofs_job_state_bytes(t->job) / LINKS_SHARE;
	erofs_flight_begin(&t->flight, t->job, erofs_job_flight_bytes(t->job), &flight_ops, t);
	err = add_all(t, &start);
	if (err)
		erofs_job_cancel(t->job);
	landed = erofs_flight_end(&t->flight);
	/* the first cause, not the cancel that followed it */
	if (!err || (err == -ECANCELED && landed))
		err = landed;
	if (!err)
		err = put_end(t);
	report_sockets(t);
	return err ? err : t->damaged || t->res->failed ? -EUCLEAN : 0;
}

static void clean_up(struct tar *t)
{
	while (t->spares) {
		struct tar_parcel *p = t->spares;

		t->spares = p->spare;
		free_parcel(p);
	}
	if (t->open)
		free_parcel(t->open);
	erofs_tarlinks_fini(&t->links);
	free(t->lost);
	free(t->socket);
}

int erofs_to_tar(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_tar_options *options,
		 struct erofs_diag *diag, struct erofs_tar_result *ret_result)
{
	static const uint8_t zeros[ZEROS];
	struct erofs_tar_result unused;
	auto_free struct tar *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->img = img;
	t->eng = eng;
	t->opt = options;
	t->diag = diag;
	t->res = ret_result ? ret_result : &unused;
	t->zeros = zeros;
	*t->res = (struct erofs_tar_result){ 0 };
	err = erofs_job_begin(eng, img, diag, &t->job);
	if (err)
		return err;
	err = run(t);
	erofs_job_end(t->job);
	clean_up(t);
	return err;
}
