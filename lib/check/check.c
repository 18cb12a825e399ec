// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The check: passes over the metadata, then the data in physical order, then whose it is. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/sha.h"
#include "check/check_priv.h"

static int visit_enter(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	struct check *c = w->arg;

	/* directories have link counts of their own, and are entered once in each pass */
	erofs_check_visit_dir(c, lane, &dir->ino);
	return 0;
}

static void visit_entry(struct walk *w, struct lane *lane, struct walk_dir *dir,
			const struct dirent_view *de, const struct erofs_inode *ino)
{
	(void)dir;
	(void)de;
	erofs_check_visit(w->arg, lane, ino);
}

struct sort_work {
	struct work work;
	struct refs *refs;
};

static void sort_refs(struct lane *lane, struct work *work)
{
	struct sort_work *s = (struct sort_work *)work;

	(void)lane;
	erofs_refs_sort(s->refs);
	free(s);
}

/* Sort what each lane collected, in parallel. */
static void sort_lanes(struct check *c)
{
	unsigned int i;

	for (i = 0; i < c->nlanes; i++) {
		struct sort_work *s = malloc(sizeof(*s));

		if (!s) {
			erofs_refs_sort(&c->lanes[i].refs);
			continue;
		}
		s->work.run = sort_refs;
		s->work.bytes = 0;
		s->work.path = false;
		s->refs = &c->lanes[i].refs;
		erofs_job_submit(c->job, &s->work);
	}
	erofs_job_wait(c->job);
}

static void note_fault(void *arg, const struct pcref *ref, int err, const char *text)
{
	struct check *c = arg;

	erofs_damage_add(&c->damage, ref->addr, pcref_plen(ref), EROFS_FINDING_DATA_DECODE,
			 err == -ERANGE ? -EUCLEAN : err, text);
}

#define WINDOW_CHUNK 4096	/* references between merging and decoding: 64 KiB */

/* Merge, judge, and have decoded what the lanes collected, a chunk at a time. */
static int judge(struct check *c, struct ref_stream *stream, struct pcref *chunk)
{
	struct merger merger = { .check = c };
	struct verify verify;
	struct pcref ref;
	size_t n = 0;
	bool more;
	int err = 0;

	erofs_verify_begin(&verify, c->job, note_fault, c);
	do {
		more = erofs_refs_stream_next(stream, &ref);
		n += more ? erofs_merge_put(&merger, &ref, &chunk[n]) : erofs_merge_end(&merger, &chunk[n]);
		if (n < WINDOW_CHUNK && more)
			continue;
		if (c->data)
			err = erofs_verify_submit(&verify, chunk, n);
		n = 0;
	} while (more && !err);
	return c->data ? erofs_verify_end(&verify, err) : err;
}

/* What this pass collected: rules, decoding. */
static int finish_window(struct check *c)
{
	struct refs *lanes = calloc(c->nlanes, sizeof(*lanes));
	struct pcref *chunk = malloc(WINDOW_CHUNK * sizeof(*chunk));
	struct ref_stream stream = { 0 };
	unsigned int i, n = 0;
	int err = -ENOMEM;

	sort_lanes(c);
	for (i = 0; i < c->nlanes && lanes; i++)
		if (c->lanes[i].refs.count)
			lanes[n++] = c->lanes[i].refs;
	if (lanes && chunk)
		err = erofs_refs_stream_begin(&stream, lanes, n, atomic_load(&c->window.hi));
	if (!err)
		err = judge(c, &stream, chunk);
	erofs_refs_stream_end(&stream);
	for (i = 0; i < c->nlanes; i++) {
		free(c->lanes[i].refs.refs);
		c->lanes[i].refs = (struct refs){ 0 };
	}
	free(lanes);
	free(chunk);
	return err;
}

struct special_work {
	struct work work;
	struct check *check;
};

static void run_special(struct lane *lane, struct work *work)
{
	struct special_work *s = (struct special_work *)work;

	erofs_check_visit_special(s->check, lane);
	free(s);
}

/* The packed file's map may be long: beside the walk, not in front of it. */
static void submit_special(struct check *c)
{
	struct special_work *s;

	if (!c->img->super->packed && !c->img->super->metabox)
		return;
	s = calloc(1, sizeof(*s));
	if (!s) {
		erofs_check_visit_special(c, erofs_job_lane(c->job, 0));
		return;
	}
	s->work.run = run_special;
	s->check = c;
	erofs_job_submit(c->job, &s->work);
}

/* One pass over the metadata. Return: 1 another one is needed, 0 all was seen, negative errno. */
static int run_pass(struct check *c, const struct erofs_inode *start)
{
	static const struct walk_ops ops = { .enter = visit_enter, .entry = visit_entry };
	struct walk w = { .job = c->job, .diag = c->diag, .ops = &ops, .arg = c, .strict = !c->pass };
	uint64_t hi;
	bool more;
	int err = 0;

	atomic_store_explicit(&c->window.spare, c->max_refs, memory_order_relaxed);
	submit_special(c);
	if (S_ISDIR(start->mode))
		err = erofs_walk_run(&w, start);
	else
		erofs_check_visit(c, erofs_job_lane(c->job, 0), start);
	erofs_job_wait(c->job);
	if (!err && erofs_job_is_cancelled(c->job))
		err = -ECANCELED;
	if (!err && !c->subtree)
		erofs_links_report(&c->links, c->img, c->diag);
	if (!err)
		err = finish_window(c);
	if (err)
		return err;
	hi = atomic_load(&c->window.hi);
	more = erofs_links_advance(&c->links) || hi != UINT64_MAX;
	erofs_links_clear(&c->links);
	c->window.lo = hi;
	atomic_store(&c->window.hi, UINT64_MAX);
	c->pass++;
	return more;
}

static int set_up(struct check *c)
{
	size_t bytes = erofs_job_state_bytes(c->job);
	int err;

	c->nlanes = erofs_job_lanes(c->job);
	c->lanes = calloc(c->nlanes, sizeof(*c->lanes));
	if (!c->lanes)
		return -ENOMEM;
	/* half for inodes, half for references */
	c->max_refs = bytes / 2 / sizeof(struct pcref);
	err = erofs_links_init(&c->links, bytes / 2);
	if (!err)
		err = erofs_damage_init(&c->damage);
	c->window.lo = 0;
	atomic_init(&c->window.hi, UINT64_MAX);
	c->packed_broken = UINT64_MAX;
	return err;
}

static void tear_down(struct check *c)
{
	unsigned int i;

	for (i = 0; i < c->nlanes && c->lanes; i++)
		free(c->lanes[i].refs.refs);
	free(c->lanes);
	erofs_links_fini(&c->links);
	if (c->lanes)
		erofs_damage_fini(&c->damage);
	if (c->job)
		erofs_job_end(c->job);
}

static void sum_up(const struct check *c, struct erofs_check_result *ret)
{
	unsigned int i;

	*ret = (struct erofs_check_result){ .pclusters = c->pclusters };
	for (i = 0; i < c->nlanes && c->lanes; i++) {
		const struct check_lane *l = &c->lanes[i];

		ret->inodes += l->inodes;
		ret->directories += l->directories;
		ret->files += l->files;
		ret->decoded_bytes += l->decoded_bytes;
		ret->stored_bytes += l->stored_bytes;
	}
}

static int check_digests_possible(const struct check *c)
{
	if (c->img->super->ishare_prefix < 0)
		return erofs_diag_fail(c->diag, -ENODATA, AT_NOWHERE, "the image has no content digests");
	if (!erofs_sha_is_there())
		return erofs_diag_fail(c->diag, -EOPNOTSUPP, AT_NOWHERE, "built without SHA-256 (libcrypto)");
	return 0;
}

static int run_check(struct check *c, uint64_t nid)
{
	struct erofs_inode start;
	int err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(c->job, 0)), nid, &start), blame;

	if (!err && c->digests)
		err = check_digests_possible(c);
	if (err)
		return err;
	if (!c->subtree)
		(void)erofs_super_check_size(c->img, c->diag);
	do
		err = run_pass(c, &start);
	while (err > 0);
	if (err == -ECANCELED)
		return err;
	blame = erofs_check_blame(c, &start);
	return err ? err : blame;
}

int erofs_check(struct erofs_image *img, struct erofs_engine *eng, const struct erofs_check_options *options,
		struct erofs_diag *diag, struct erofs_check_result *ret_result)
{
	static const struct erofs_check_options none = { .size = sizeof(none) };
	struct check c = { .img = img, .eng = eng, .diag = diag };
	uint64_t before, failed, nid;
	int err;

	if (!options)
		options = &none;
	c.data = options->data;
	c.digests = options->digests;
	c.subtree = options->has_nid && options->nid != img->super->info.root_nid;
	nid = options->has_nid ? options->nid : img->super->info.root_nid;
	before = diag ? erofs_diag_count(diag, EROFS_SEV_CORRUPT) : 0;
	failed = diag ? erofs_diag_count(diag, EROFS_SEV_FAIL) : 0;
	err = erofs_job_begin(eng, img, diag, &c.job);
	if (!err)
		err = set_up(&c);
	if (!err)
		err = run_check(&c, nid);
	if (ret_result)
		sum_up(&c, ret_result);
	tear_down(&c);
	if (err == -ENOMEM)
		erofs_diag_fail(diag, err, AT_NOWHERE, "the check is not complete");
	if (!err && diag && erofs_diag_count(diag, EROFS_SEV_CORRUPT) > before)
		err = -EUCLEAN;
	if (!err && diag && erofs_diag_count(diag, EROFS_SEV_FAIL) > failed)
		err = -EIO;
	return err;
}
