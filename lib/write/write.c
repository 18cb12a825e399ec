// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* One run: options, source, plan, contents, directories, superblock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "write/write_priv.h"

bool erofs_write_is_cancelled(const struct writer *w)
{
	return erofs_engine_is_cancelled(w->eng);
}

static int refuse(struct writer *w, const char *what)
{
	return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s", what);
}

static int choose_uuid(struct writer *w)
{
	if (w->o->has_uuid) {
		memcpy(w->uuid, w->o->uuid, sizeof(w->uuid));
		return 0;
	}
	if (getrandom(w->uuid, sizeof(w->uuid), 0) != sizeof(w->uuid))
		return erofs_diag_fail(w->diag, -EIO, AT_NOWHERE, "no random bytes for a UUID");
	w->uuid[6] = (uint8_t)((w->uuid[6] & 0x0f) | 0x40);
	w->uuid[8] = (uint8_t)((w->uuid[8] & 0x3f) | 0x80);
	return 0;
}

static int take_options(struct writer *w)
{
	const struct erofs_write_options *o = w->o;
	uint32_t blksz = o->block_size ? o->block_size : 4096;

	if (blksz & (blksz - 1) || blksz < 1u << DISK_MIN_BLKBITS || blksz > 1u << DISK_MAX_BLKBITS)
		return refuse(w, "the block size is no power of two from 512 to 65536");
	if (o->label && strlen(o->label) > 15)
		return refuse(w, "the label is longer than 15 bytes");
	w->blksz = blksz;
	w->blkbits = (unsigned int)__builtin_ctz(blksz);
	w->fragments = o->compressors && (o->fragments || o->all_fragments);
	w->build_time = o->has_time ? o->time : (int64_t)time(NULL);
	return choose_uuid(w);
}

/* Blocks up to the superblock's are taken; what it leaves of the last is the first gap. */
static int begin_space(struct writer *w)
{
	uint8_t records[128];
	uint64_t end = DISK_SUPER_OFFSET + DISK_SUPER_BASE + erofs_zconfig_records(w, records);
	int err = erofs_space_init(&w->space, w->blkbits);

	if (err)
		return err;
	w->space.next = div_up_pow2(end, w->blkbits);
	w->space.meta_blocks = w->space.next;
	return erofs_space_give(&w->space, end, w->space.next << w->blkbits);
}

static void note_output(struct writer *w)
{
	struct stat st;

	if (stat(w->o->output, &st))
		return;
	w->has_out_ino = true;
	w->out_dev = st.st_dev;
	w->out_ino = st.st_ino;
}

static int put_files(struct writer *w, const struct node *dir)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < dir->nchildren; i++) {
		struct node *child = dir->children[i];

		if (erofs_write_is_cancelled(w))
			return -ECANCELED;
		if (!S_ISDIR(child->mode) && !child->link)
			err = erofs_file_put(w, child);
	}
	return err;
}

static int put_all(struct writer *w)
{
	size_t i;
	int err = erofs_plan(w);

	if (!err)
		err = erofs_files_begin(w);
	for (i = 0; !err && i < w->ndirs; i++)
		err = put_files(w, w->dirs[i]);
	if (!err)
		err = erofs_files_end(w);
	for (i = 0; !err && i < w->ndirs; i++)
		err = erofs_dir_put(w, w->dirs[i]);
	if (!err && w->space.next > UINT32_MAX)
		err = erofs_diag_fail(w->diag, -EFBIG, AT_NOWHERE, "the image has more than 2^32 blocks");
	if (!err)
		err = erofs_super_put(w);
	if (!err && erofs_write_is_cancelled(w))
		err = -ECANCELED;
	return err ? err : erofs_output_commit(w, w->space.next << w->blkbits);
}

static int run(struct writer *w)
{
	int err = take_options(w);

	if (!err)
		err = erofs_exclude_new(w->o, w->diag, &w->exclude);
	if (!err)
		err = erofs_zconfig_init(w);
	if (!err)
		err = begin_space(w);
	if (err)
		return err;
	note_output(w);
	err = erofs_input_dir(w, w->o->source, &w->feed);
	if (!err)
		err = erofs_output_open(w);
	return err ? err : put_all(w);
}

static void clean_up(struct writer *w)
{
	erofs_files_fini(w);
	erofs_zconfig_fini(&w->z);
	erofs_output_drop(&w->out);
	erofs_node_free(w->feed.root);
	if (w->feed.ops)
		w->feed.ops->free(&w->feed);
	erofs_xattr_fini(w);
	erofs_space_fini(&w->space);
	erofs_exclude_free(w->exclude);
	free(w->dirs);
}

int erofs_write(const struct erofs_write_options *options, struct erofs_engine *eng,
		struct erofs_diag *diag, struct erofs_write_result *ret_result)
{
	struct writer w = { .o = options, .eng = eng, .diag = diag, .out.fd = -1 };
	int err = run(&w);

	/* whatever had nothing to say for itself */
	if (err == -ENOMEM)
		erofs_diag_fail(diag, err, AT_NOWHERE, "no memory");
	if (!err && ret_result) {
		*ret_result = (struct erofs_write_result){ .blocks = w.space.next, .inodes = w.ninodes,
			.meta_blocks = w.space.meta_blocks, .deduplicated = w.deduplicated, .block_size = w.blksz };
		memcpy(ret_result->uuid, w.uuid, sizeof(w.uuid));
	}
	clean_up(&w);
	return err;
}
