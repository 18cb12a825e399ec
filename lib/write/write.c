// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* One run: options, source, plan, contents, directories, superblock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/temp.h"
#include "write/android.h"
#include "write/foreign.h"

bool erofs_write_is_cancelled(const struct writer *w)
{
	return erofs_engine_is_cancelled(w->eng);
}

int erofs_write_temp(struct writer *w, int *fd)
{
	if (*fd >= 0)
		return 0;
	*fd = erofs_temp_file();
	return *fd >= 0 ? 0 : erofs_diag_fail(w->diag, *fd, AT_NOWHERE, "cannot make a temporary file in %s",
					      erofs_temp_folder());
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
	int err;

	/* contents lie at any multiple of 512 in an archive */
	if (o->source_type == EROFS_WRITE_TAR_INDEX)
		blksz = 512;
	if (o->source_type == EROFS_WRITE_IMAGES) {
		err = erofs_images_block_size(w, &blksz);
		if (err)
			return err;
	}
	if (blksz & (blksz - 1) || blksz < 1u << DISK_MIN_BLKBITS || blksz > 1u << DISK_MAX_BLKBITS)
		return refuse(w, "the block size is no power of two from 512 to 65536");
	if (o->manifest && o->source_type == EROFS_WRITE_TAR_INDEX)
		return refuse(w, "an index has no contents, and so no manifest with digests");
	if (o->compress_dirs && !o->compressors)
		return refuse(w, "directories are to be compressed, and no compressor is named");
	if (o->label && strlen(o->label) > 15)
		return refuse(w, "the label is longer than 15 bytes");
	if (o->root_xattr_room > 4 * UINT16_MAX)
		return refuse(w, "the room for attributes of the root is more than 262140 bytes");
	w->blksz = blksz;
	w->blkbits = (unsigned int)__builtin_ctz(blksz);
	w->fragments = o->compressors && (o->fragments || o->all_fragments);
	w->packs = w->fragments || o->compress_dirs;
	w->build_time = o->has_time ? o->time : (int64_t)time(NULL);
	err = o->android_sparse ? erofs_sparse_check(w) : 0;
	if (!err)
		err = erofs_chunks_check(w);
	if (!err)
		err = erofs_prefixes_take(w);
	return err ? err : choose_uuid(w);
}

/* Known before the source is read. */
static unsigned int count_devices(const struct erofs_write_options *o)
{
	unsigned int n = 0;

	while (o->source_type == EROFS_WRITE_IMAGES && o->sources[n])
		n++;
	return o->source_type == EROFS_WRITE_TAR_INDEX || o->blob ? 1 : n;
}

/* Blocks up to the superblock's are taken; what it leaves of the last is the first gap. */
static int begin_space(struct writer *w)
{
	uint8_t records[128];
	uint64_t end = DISK_SUPER_OFFSET + DISK_SUPER_BASE + erofs_zconfig_records(w, records);
	int err = erofs_space_init(&w->space, w->blkbits);

	if (err)
		return err;
	w->super_end = end;
	end += erofs_device_room(end, count_devices(w->o));
	w->space.next = div_up_pow2(end, w->blkbits);
	w->space.meta_blocks = w->space.next;
	return erofs_space_give(&w->space, end, w->space.next << w->blkbits);
}

/* A folder that is packed may have them in it. */
static void note_output(struct writer *w, const char *name)
{
	struct stat st;

	if (!name || stat(name, &st))
		return;
	w->outs[w->nouts].dev = st.st_dev;
	w->outs[w->nouts++].ino = st.st_ino;
}

static int put_in_order(struct writer *w)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < w->nfiles; i++)
		err = erofs_write_is_cancelled(w) ? -ECANCELED : erofs_file_put(w, w->files[i]);
	return err;
}

/* Where the order is not the tree's, all have their turn with the root. */
static int put_files(struct writer *w, const struct node *dir)
{
	uint32_t i;
	int err = 0;

	if (w->files)
		return dir->parent ? 0 : put_in_order(w);
	for (i = 0; !err && i < dir->nchildren; i++) {
		struct node *child = dir->children[i];

		if (erofs_write_is_cancelled(w))
			return -ECANCELED;
		if (!S_ISDIR(child->mode) && !child->link && !child->foreign)
			err = erofs_file_put(w, child);
	}
	return err;
}

/* Before all others: those may be put by workers, and places must not depend on when they come. */
static int put_foreign(struct writer *w, const struct node *dir)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < dir->nchildren; i++)
		if (dir->children[i]->foreign)
			err = erofs_foreign_put(w, dir->children[i]);
	return !err && erofs_write_is_cancelled(w) ? -ECANCELED : err;
}

static int put_all(struct writer *w)
{
	size_t i;
	int err = erofs_plan(w);

	for (i = 0; !err && w->o->source_type >= EROFS_WRITE_TAR_INDEX && i < w->ndirs; i++)
		err = put_foreign(w, w->dirs[i]);
	if (!err)
		err = erofs_chunks_begin(w);
	if (!err)
		err = erofs_digests_begin(w);
	if (!err)
		err = erofs_files_begin(w);
	if (!err)
		err = erofs_prefixes_put(w);
	for (i = 0; !err && i < w->ndirs; i++)
		err = put_files(w, w->dirs[i]);
	if (!err)
		err = erofs_files_end(w);
	/* they know where all are, and may be in the packed file */
	for (i = 0; !err && i < w->ndirs; i++)
		err = erofs_write_is_cancelled(w) ? -ECANCELED : erofs_dir_put(w, w->dirs[i]);
	if (!err)
		err = erofs_packed_finish(w);
	if (!err)
		err = erofs_chunks_end(w);
	if (!err && w->space.next > UINT32_MAX)
		err = erofs_diag_fail(w->diag, -EFBIG, AT_NOWHERE, "the image has more than 2^32 blocks");
	if (!err)
		err = erofs_super_put(w);
	if (!err && erofs_write_is_cancelled(w))
		err = -ECANCELED;
	if (!err)
		err = erofs_output_finish(w, &w->out, w->space.next << w->blkbits);
	if (!err && w->o->android_sparse)
		err = erofs_sparse_put(w);
	return err;
}

/* The image is complete, but for its name. */
static int finish(struct writer *w)
{
	int err = w->o->block_list_file ? erofs_block_list_put(w) : 0;

	/* whoever reads it has the engine now */
	erofs_files_fini(w);
	if (!err && w->o->manifest)
		err = erofs_manifest_put(w);
	if (!err && w->o->verify)
		err = erofs_read_back(w);
	if (err) {
		erofs_output_spoil(erofs_output_named(w));
		return err;
	}
	/* an image without its device would be worse than a device without its image */
	if (w->o->blob)
		err = erofs_output_commit(w, &w->blob);
	return err ? err : erofs_output_commit(w, erofs_output_named(w));
}

static int read_source(struct writer *w)
{
	switch (w->o->source_type) {
	case EROFS_WRITE_TAR:
	case EROFS_WRITE_TAR_HEADERS:
	case EROFS_WRITE_TAR_INDEX: return erofs_input_tar(w, w->o->source, &w->feed);
	case EROFS_WRITE_IMAGES: return erofs_input_images(w, &w->feed);
	default: return erofs_input_dir(w, w->o->source, &w->feed);
	}
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
	note_output(w, w->o->output);
	note_output(w, w->o->blob);
	err = read_source(w);
	if (!err)
		err = erofs_android_apply(w);
	if (!err)
		err = w->o->android_sparse ? erofs_sparse_open(w) :
					     erofs_output_open(w, &w->out, w->o->output, w->o->offset);
	if (!err && w->o->blob)
		err = erofs_output_open(w, &w->blob, w->o->blob, 0);
	if (!err)
		err = put_all(w);
	return err ? err : finish(w);
}

static void clean_up(struct writer *w)
{
	erofs_files_fini(w);
	erofs_digests_fini(w);
	erofs_zconfig_fini(&w->z);
	erofs_chunks_fini(w);
	erofs_output_drop(&w->out);
	erofs_output_drop(&w->sparse);
	erofs_output_drop(&w->blob);
	erofs_node_free(w->feed.root);
	if (w->feed.ops)
		w->feed.ops->free(&w->feed);
	erofs_xattr_fini(w);
	erofs_space_fini(&w->space);
	free(w->prefixes);
	free(w->files);
	free(w->devices);
	erofs_exclude_free(w->exclude);
	free(w->dirs);
}

int erofs_write(const struct erofs_write_options *options, struct erofs_engine *eng,
		struct erofs_diag *diag, struct erofs_write_result *ret_result)
{
	struct writer w = { .o = options, .eng = eng, .diag = diag, .out.fd = -1, .blob.fd = -1,
			    .sparse.fd = -1 };
	int err = run(&w);

	/* whatever had nothing to say for itself */
	if (err == -ENOMEM)
		erofs_diag_fail(diag, err, AT_NOWHERE, "no memory");
	if (ret_result) {
		*ret_result = w.counts;
		ret_result->blocks = w.space.next;
		ret_result->inodes = w.ninodes;
		ret_result->meta_blocks = w.space.meta_blocks;
		ret_result->deduplicated = w.deduplicated;
		ret_result->block_size = w.blksz;
		ret_result->verified = w.verified;
		ret_result->image_bytes = err ? 0 : erofs_output_named(&w)->end - erofs_output_named(&w)->start;
		memcpy(ret_result->uuid, w.uuid, sizeof(w.uuid));
	}
	clean_up(&w);
	return err;
}
