// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The owner's side of a tar archive: what goes into packs, and what of them is written. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "archive/tar_priv.h"

#define ITEM_COST 1024		/* headers and bookkeeping of an entry, towards a pack's bytes */
#define MAX_ITEMS 1024
#define MAX_LOST 65536		/* inodes whose first name was left out: 512 KiB; more end the run */
#define ZEROS 65536

struct tar {
	struct archive archive;
	const struct erofs_tar_options *opt;
	struct erofs_tar_result *res;
	uint64_t *lost;			/* nids whose first name was left out */
	size_t nlost;
	uint64_t pos, size;		/* of the large file that is being written */
	bool broken;			/* it has zeros in place of contents */
	char *socket;			/* the first one's path */
	const uint8_t *zeros;
};

/* ---- writing ---- */

static int put(struct tar *t, const uint8_t *data, size_t len)
{
	return erofs_archive_put(&t->archive, data, len);
}

static int put_zeros(struct tar *t, uint64_t len)
{
	int err = 0;

	while (len && !err) {
		size_t n = (size_t)min_u64(len, ZEROS);

		err = erofs_job_is_cancelled(t->archive.job) ? -ECANCELED : put(t, t->zeros, n);
		len -= n;
	}
	return err;
}

static const char *path_of(const struct tar_pack *p, const struct tar_item *item)
{
	return (const char *)p->pack.names.data + item->path;
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
		return erofs_diag_fail(t->archive.diag, -ENOMEM, AT_NOWHERE, "too many damaged hard links");
	for (i = t->nlost; i && t->lost[i - 1] > nid; i--)
		t->lost[i] = t->lost[i - 1];
	t->lost[i] = nid;
	t->nlost++;
	return 0;
}

static int leave_out(struct tar *t, const char *path, const struct tar_item *item)
{
	t->res->failed++;
	erofs_diag_warn_path(t->archive.diag, path, item->is_link ?
			     "left out of the archive, as the name it is linked to" :
			     "left out of the archive: cannot be read");
	return !item->is_link && item->ino.nlink > 1 ? note_lost(t, item->ino.nid) : 0;
}

/* Entries that are there, in as few writes as that takes. */
static int deliver_items(struct tar *t, struct tar_pack *p)
{
	const struct tarbuf *out = &p->pack.out;
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
			err = put(t, out->data + from, item->off - from);
			from = item->off + item->len;
		}
	}
	if (!err && p->count && p->items[p->count - 1].contents_follow) {
		t->pos = 0;
		t->size = p->items[p->count - 1].ino.size;
		t->broken = false;
	}
	return err ? err : put(t, out->data + from, out->len - from);
}

static int end_large(struct tar *t)
{
	uint64_t pad = -t->size % TAR_BLOCK, gap = t->size - t->pos;

	t->pos = t->size;
	return put_zeros(t, gap + pad);
}

/* Ranges come in order; what one lacks shows when the next one begins behind it. */
static int deliver_range(struct tar *t, struct tar_pack *p)
{
	const struct pack *pack = &p->pack;
	uint64_t la = pack->la, len = pack->out.len, skip = 0, end;
	bool gap;
	int err = 0;

	if (len && la < t->pos)
		skip = min_u64(t->pos - la, len);
	if (la + len > t->size)
		len = la < t->size ? t->size - la : 0;
	/* a range within an extent that began in front of it is empty */
	end = len ? max_u64(la + len, t->pos) : t->pos;
	gap = p->range_err || (len && la > t->pos) || (pack->to == t->size && end < t->size);
	if (gap && !t->broken) {
		t->broken = true;
		t->res->failed++;
		erofs_diag_warn_path(t->archive.diag, path_of(p, &p->items[0]),
				     "damaged: what cannot be read of it is zeros in the archive");
	}
	if (len && la > t->pos) {
		err = put_zeros(t, la - t->pos);
		t->pos = la;
	}
	if (!err && len > skip) {
		err = put(t, pack->out.data + skip, (size_t)(len - skip));
		t->pos += len - skip;
	}
	return !err && pack->to == t->size ? end_large(t) : err;
}

static int deliver(struct archive *a, struct pack *pack)
{
	struct tar_pack *p = (struct tar_pack *)pack;
	struct tar *t = (struct tar *)a;

	return pack->is_range ? deliver_range(t, p) : deliver_items(t, p);
}

/* ---- gathering ---- */

static void reset_pack(struct pack *pack)
{
	struct tar_pack *p = (struct tar_pack *)pack;

	if (p->records.room > ARCHIVE_KEEP)
		erofs_tarbuf_free(&p->records);
	p->records.len = p->count = 0;
	p->range_err = 0;
}

static void free_pack(struct pack *pack)
{
	struct tar_pack *p = (struct tar_pack *)pack;

	erofs_tarbuf_free(&p->records);
	free(p->items);
}

static int add_item(struct tar *t, struct tar_pack *p, const struct tar_item *item, const char *path,
		    const char *link)
{
	struct tarbuf *names = &p->pack.names;
	struct tar_item *at = erofs_pack_grow(&t->archive, p->items, p->count, &p->room, sizeof(*p->items));
	int err;

	if (!at)
		return -ENOMEM;
	p->items = at;
	at += p->count;
	*at = *item;
	at->path = names->len;
	err = erofs_tarbuf_add(names, path, item->path_len);
	/* a directory ends with a slash; messages need an end */
	if (!err && S_ISDIR(item->ino.mode))
		err = erofs_tarbuf_add(names, "/", 1);
	at->path_len = names->len - at->path;
	if (!err)
		err = erofs_tarbuf_add(names, "", 1);
	at->link = names->len;
	if (!err && link)
		err = erofs_tarbuf_add(names, link, item->link_len);
	if (err)
		return erofs_diag_fail(t->archive.diag, err, AT_NOWHERE, "no memory for the archive");
	p->count++;
	p->pack.parcel.bytes += ITEM_COST + item->path_len + item->link_len;
	if (S_ISREG(item->ino.mode) && !item->is_link && !item->contents_follow)
		p->pack.parcel.bytes += (size_t)item->ino.size;
	return 0;
}

/* The contents of a file that does not fit a pack, a pack for each range. */
static int send_ranges(struct tar *t, const struct tar_item *item, const char *path)
{
	uint64_t from;
	int err = erofs_pack_send_open(&t->archive);

	for (from = 0; from < item->ino.size && !err; from += TAR_RANGE) {
		struct pack *p = erofs_pack_new(&t->archive);

		if (!p)
			return -ENOMEM;
		err = add_item(t, (struct tar_pack *)p, item, path, NULL);
		if (err) {
			erofs_pack_free(&t->archive, p);
			return err;
		}
		err = erofs_pack_send_range(&t->archive, p, from, min_u64(item->ino.size, from + TAR_RANGE),
					    TAR_RANGE);
	}
	return err;
}

/* The path in the archive; NULL: nothing is left of it. */
static const char *archive_path(const struct tar *t, const struct sorted_entry *e, size_t *ret_len)
{
	unsigned int strip = t->opt->strip_components;
	size_t len;
	const char *path = erofs_archive_path(&t->archive, e, &len), *slash;

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

static int add_linked(struct tar *t, const struct sorted_entry *e, const char *path, struct tar_item *item,
		      const char *first)
{
	struct archive *a = &t->archive;
	struct tar_pack *p;
	int err;

	item->contents_follow = S_ISREG(e->ino.mode) && !first && e->ino.size > TAR_RANGE;
	if (item->contents_follow && !erofs_archive_is_mappable(erofs_job_lane(a->job, 0), &e->ino))
		return leave_out(t, path, item);
	if (!a->open)
		a->open = erofs_pack_new(a);
	p = (struct tar_pack *)a->open;
	err = p ? add_item(t, p, item, path, first) : -ENOMEM;
	if (err)
		return err;
	if (item->contents_follow)
		return send_ranges(t, item, path);
	return p->pack.parcel.bytes >= ARCHIVE_BATCH || p->count == MAX_ITEMS ? erofs_pack_send_open(a) : 0;
}

static int add(struct archive *a, const struct sorted_entry *e)
{
	struct tar *t = (struct tar *)a;
	struct tar_item item = { .ino = e->ino };
	const struct arch_link *first = NULL;
	const char *path = archive_path(t, e, &item.path_len);
	int err;

	if (!path)
		return 0;
	if (S_ISSOCK(e->ino.mode))
		return note_socket(t, path);
	if (S_ISDIR(e->ino.mode) || e->ino.nlink <= 1)
		return add_linked(t, e, path, &item, NULL);
	err = erofs_archlinks_claim(&a->links, &e->ino, path, item.path_len, &first);
	if (err)
		return erofs_diag_fail(a->diag, err, AT_NOWHERE,
				       "names of hard links do not fit the memory limit (see --max-memory)");
	item.is_link = first;
	item.link_len = first ? first->len : 0;
	err = add_linked(t, e, path, &item, first ? first->path : NULL);
	erofs_archlinks_seen(&a->links, e->ino.nid);
	return err;
}

/* ---- the run ---- */

/* Two blocks of zeros, and what is missing to a whole record. */
static int put_end(struct tar *t)
{
	uint64_t len = t->archive.bytes + 2 * TAR_BLOCK;

	return put_zeros(t, 2 * TAR_BLOCK + (TAR_RECORD - len % TAR_RECORD) % TAR_RECORD);
}

static void report_sockets(const struct tar *t)
{
	if (t->res->skipped)
		erofs_diag_warn_path(t->archive.diag, t->socket, "%" PRIu64 " %s left out: tar has no such type",
				     t->res->skipped, t->res->skipped == 1 ? "socket" : "sockets, this one first,");
}

static int run(struct tar *t)
{
	int err = erofs_archive_begin(&t->archive);

	if (err)
		return err;
	err = erofs_archive_run(&t->archive);
	if (!err)
		err = put_end(t);
	report_sockets(t);
	return err ? err : t->archive.damaged || t->res->failed ? -EUCLEAN : 0;
}

int erofs_to_tar(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_tar_options *options,
		 struct erofs_diag *diag, struct erofs_tar_result *ret_result)
{
	static const struct archive_ops ops = { sizeof(struct tar_pack), reset_pack, free_pack, add,
						erofs_tar_fill, deliver };
	static const uint8_t zeros[ZEROS];
	struct erofs_tar_result unused;
	auto_free struct tar *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->archive = (struct archive){
		.img = img, .eng = eng, .diag = diag, .ops = &ops, .what = "archive", .select = options->select,
		.nid = options->has_nid ? options->nid : img->super->info.root_nid, .name = options->name,
		.cut = options->strip_components, .write = options->write, .write_arg = options->write_arg,
		.fd = options->fd,
	};
	t->opt = options;
	t->res = ret_result ? ret_result : &unused;
	t->zeros = zeros;
	*t->res = (struct erofs_tar_result){ 0 };
	err = run(t);
	t->res->bytes = t->archive.bytes;
	t->res->output_failed = t->archive.output_failed;
	erofs_archive_end(&t->archive);
	free(t->lost);
	free(t->socket);
	return err;
}
