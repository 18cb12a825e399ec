// SPDX-License-Identifier: GPL-2.0-or-later
/* Collecting pclusters as the data check does: walk, map, sort, merge. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "refs.h"

struct collect {
	struct refs refs;
	struct ref_window window;
};

void bench_die(const char *what, int err)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void collect_inode(struct walk *w, struct lane *lane, const struct erofs_inode *ino)
{
	struct collect *c = w->arg;
	struct erofs_image *img = ino->img;
	struct extent ext;
	struct map map;

	if ((!S_ISREG(ino->mode) && !S_ISLNK(ino->mode) && !S_ISDIR(ino->mode)) || !ino->size ||
	    erofs_map_begin(&map, ino, erofs_lane_metabuf(lane), false))
		return;
	while (erofs_map_next(&map, &ext) > 0) {
		struct pcref ref;

		if (ext.meta || (ext.kind != EXTENT_RAW && ext.kind != EXTENT_ENCODED))
			continue;
		ref.addr = img->devs[ext.dev].linear + ext.pa;
		ref.word = ext.kind == EXTENT_RAW ? PCREF_RAW | ext.len :
						     pcref_pack(ext.alg, ext.partial, ext.plen, ext.len);
		if (erofs_refs_add(&c->refs, &c->window, &ref))
			bench_die("collecting", -ENOMEM);
	}
}

static int enter(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	collect_inode(w, lane, &dir->ino);
	return 0;
}

static void entry(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de,
		  const struct erofs_inode *ino)
{
	(void)dir;
	(void)de;
	collect_inode(w, lane, ino);
}

struct erofs_image *bench_open(const char *path)
{
	struct erofs_image *img;
	int err = erofs_open(path, NULL, NULL, &img);

	if (err)
		bench_die(path, err);
	return img;
}

struct pcref *bench_collect(struct erofs_image *img, size_t *ret_count)
{
	static const struct walk_ops ops = { .enter = enter, .entry = entry };
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "1" };
	struct collect c = { 0 };
	struct check check = { .packed_broken = UINT64_MAX };
	struct merger merger = { .check = &check };
	struct walk w = { .ops = &ops, .arg = &c };
	size_t i, n = 0;
	struct erofs_engine *eng;
	struct erofs_inode root;
	int err = erofs_engine_new(&options, NULL, &eng);

	atomic_init(&c.window.hi, UINT64_MAX);
	atomic_init(&c.window.spare, (size_t)1 << 26);
	if (!err)
		err = erofs_job_begin(eng, img, NULL, &w.job);
	if (err)
		bench_die("engine", err);
	err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(w.job, 0)), img->super->info.root_nid, &root);
	if (!err)
		err = erofs_walk_run(&w, &root);
	if (err)
		bench_die("walk", err);
	if (img->super->packed)
		collect_inode(&w, erofs_job_lane(w.job, 0), img->super->packed);
	erofs_job_end(w.job);
	erofs_engine_free(eng);
	erofs_refs_sort(&c.refs);
	erofs_damage_init(&check.damage);
	for (i = 0; i < c.refs.count; i++)
		n += erofs_merge_put(&merger, &c.refs.refs[i], &c.refs.refs[n]);
	n += erofs_merge_end(&merger, &c.refs.refs[n]);
	erofs_damage_fini(&check.damage);
	*ret_count = n;
	return c.refs.refs;
}
