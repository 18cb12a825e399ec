// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Counting the tree for statistics: each lane for itself, summed up at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <erofs/stats.h>

#include "base/cleanup.h"
#include "walk/walk_priv.h"

static const char *const suffixes[EROFS_SUFFIXES] = {
	".txt", ".so", ".xml", ".apk", ".odex", ".vdex", ".oat", ".rc", ".otf", "others",
};

const char *erofs_suffix_name(unsigned int index)
{
	return index < EROFS_SUFFIXES ? suffixes[index] : NULL;
}

static unsigned int size_class(uint64_t bytes)
{
	unsigned int n = 0;

	for (bytes >>= 10; bytes && n < EROFS_SIZE_CLASSES - 1; bytes >>= 1)
		n++;
	return n;
}

static unsigned int suffix_of(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < EROFS_SUFFIXES - 1; i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && !memcmp(name + len - n, suffixes[i], n))
			return i;
	}
	return EROFS_SUFFIXES - 1;
}

static uint64_t stored_bytes(const struct erofs_inode *ino)
{
	return erofs_inode_is_compressed(ino) ? ino->start_blk << ino->img->blkbits : ino->size;
}

static void count_stored(struct erofs_statistics *s, const struct erofs_inode *ino)
{
	s->stored_bytes += stored_bytes(ino);
	s->stored_sizes[size_class(stored_bytes(ino))]++;
}

static void count_layout(struct erofs_statistics *s, const struct erofs_inode *ino)
{
	*(erofs_inode_is_compressed(ino) ? &s->compressed : &s->uncompressed) += 1;
}

static void count_name(struct erofs_statistics *s, const char *name, size_t len, const struct erofs_inode *ino)
{
	s->types[erofs_dirent_type(ino->mode)]++;
	count_layout(s, ino);
	if (!S_ISREG(ino->mode))
		return;
	s->original_bytes += ino->size;
	s->original_sizes[size_class(ino->size)]++;
	s->suffixes[suffix_of(name, len)]++;
	count_stored(s, ino);
}

static int count_dir(struct walk *w, struct lane *lane, struct walk_dir *dir)
{
	struct erofs_statistics *lanes = w->arg;

	count_name(&lanes[erofs_lane_index(lane)], dir->name, dir->len, &dir->ino);
	return 0;
}

static void count_entry(struct walk *w, struct lane *lane, struct walk_dir *dir, const struct dirent_view *de,
			const struct erofs_inode *ino)
{
	struct erofs_statistics *lanes = w->arg;

	(void)dir;
	count_name(&lanes[erofs_lane_index(lane)], de->name, de->len, ino);
}

/* struct erofs_statistics is nothing but counters. */
static void add(struct erofs_statistics *sum, const struct erofs_statistics *part)
{
	const uint64_t *from = (const uint64_t *)part;
	uint64_t *to = (uint64_t *)sum;
	size_t i;

	_Static_assert(sizeof(*sum) % sizeof(*to) == 0, "counters alone");
	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static int count_tree(struct job *job, struct erofs_image *img, struct erofs_diag *diag,
		      struct erofs_statistics *ret)
{
	static const struct walk_ops ops = { .enter = count_dir, .entry = count_entry };
	auto_free struct erofs_statistics *lanes = calloc(erofs_job_lanes(job), sizeof(*lanes));
	struct walk w = { .job = job, .diag = diag, .ops = &ops, .arg = lanes };
	const struct super *super = img->super;
	struct erofs_inode root;
	unsigned int i;
	int err;

	if (!lanes)
		return -ENOMEM;
	err = erofs_inode_load(erofs_lane_metabuf(erofs_job_lane(job, 0)), super->info.root_nid, &root);
	if (!err)
		err = erofs_walk_run(&w, &root);
	if (super->packed) {
		count_layout(&lanes[0], super->packed);
		count_stored(&lanes[0], super->packed);
	}
	for (i = 0; i < erofs_job_lanes(job); i++)
		add(ret, &lanes[i]);
	return err;
}

int erofs_count_tree(struct erofs_image *img, struct erofs_engine *eng, struct erofs_diag *diag,
		     struct erofs_statistics *ret_statistics)
{
	uint64_t before = diag ? erofs_diag_count(diag, EROFS_SEV_CORRUPT) : 0;
	struct job *job;
	int err = erofs_job_begin(eng, img, diag, &job);

	if (err)
		return err;
	memset(ret_statistics, 0, sizeof(*ret_statistics));
	err = count_tree(job, img, diag, ret_statistics);
	erofs_job_end(job);
	if (!err && diag && erofs_diag_count(diag, EROFS_SEV_CORRUPT) > before)
		err = -EUCLEAN;
	return err;
}
