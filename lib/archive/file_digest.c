// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The fs-verity digest of a whole file, hashed by all workers: of an image itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <erofs/digest.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/fsverity.h"
#include "diag/diag_priv.h"
#include "engine/flight.h"

#define PIECE (UINT32_C(1) << 20)	/* the engine's notion of coarse work */

struct file_digest {
	int fd;
	const char *path;
	struct erofs_diag *diag;
	struct job *job;
	struct verity_hasher *hashers;	/* of each lane; the first is the tree's too */
	struct verity_params params;
	struct verity_tree tree;	/* O */
};	/* O owner thread only, all else constant while workers run */

struct file_piece {
	struct parcel parcel;		/* first member */
	struct file_digest *f;
	uint64_t off;
	size_t len;
	int err;
	struct verity_part part;
	uint8_t data[];
};

static int fail(const struct file_digest *f, int err)
{
	return erofs_diag_fail(f->diag, err, AT_NOWHERE, "cannot read %s", f->path);
}

static void fill(struct lane *lane, struct parcel *parcel)
{
	struct file_piece *p = (struct file_piece *)parcel;
	struct verity_hasher *h = &p->f->hashers[erofs_lane_index(lane)];
	ssize_t n = erofs_fdio_pread(p->f->fd, p->data, p->len, p->off);

	if (!h->sha)
		p->err = erofs_verity_hasher_init(h, &p->f->params);
	if (!p->err && n != (ssize_t)p->len)
		p->err = n < 0 ? (int)n : -ESTALE;
	if (p->err)
		return;
	erofs_verity_part_begin(&p->part, p->off);
	p->err = erofs_verity_part_add(&p->part, h, p->data, p->len);
	if (!p->err && h->failed)
		p->err = -EIO;
	erofs_lane_count(lane, 0, p->len);
}

static int deliver(void *arg, struct parcel *parcel)
{
	struct file_piece *p = (struct file_piece *)parcel;
	struct file_digest *f = arg;

	if (p->err)
		return fail(f, p->err);
	erofs_verity_add_part(&f->tree, &p->part);
	return 0;
}

static void release(void *arg, struct parcel *parcel)
{
	struct file_piece *p = (struct file_piece *)parcel;

	(void)arg;
	erofs_verity_part_fini(&p->part);
	free(p);
}

static const struct flight_ops ops = { fill, deliver, release };

static int send_all(struct file_digest *f, struct flight *flight, uint64_t size)
{
	uint64_t off;
	int err = 0;

	for (off = 0; !err && off < size; off += PIECE) {
		struct file_piece *p = calloc(1, sizeof(*p) + PIECE);

		if (!p)
			return fail(f, -ENOMEM);
		p->f = f;
		p->off = off;
		p->len = (size_t)min_u64(PIECE, size - off);
		p->parcel.bytes = sizeof(*p) + PIECE;
		err = erofs_flight_send(flight, &p->parcel);
	}
	return err;
}

static int run(struct file_digest *f, uint8_t digest[SHA_MAX_SIZE])
{
	off_t size = lseek(f->fd, 0, SEEK_END);
	struct flight flight = { 0 };
	int err, landed;

	if (size < 0)
		return fail(f, -errno);
	f->hashers = calloc(erofs_job_lanes(f->job), sizeof(*f->hashers));
	if (!f->hashers || erofs_verity_hasher_init(&f->hashers[0], &f->params))
		return fail(f, -ENOMEM);
	erofs_verity_begin(&f->tree, &f->hashers[0]);
	erofs_flight_begin(&flight, f->job, erofs_job_flight_bytes(f->job), &ops, f);
	err = send_all(f, &flight, (uint64_t)size);
	landed = erofs_flight_end(&flight);
	if (err || landed)
		return err ? err : landed;
	err = erofs_verity_final(&f->tree, digest);
	return err ? fail(f, err) : 0;
}

int erofs_file_digest(const char *path, struct erofs_engine *eng, struct erofs_diag *diag, uint8_t ret_digest[32])
{
	struct file_digest f = { .path = path, .diag = diag, .params = { .kind = SHA_256, .block_bits = 12 } };
	uint8_t digest[SHA_MAX_SIZE];
	unsigned int i, nlanes;
	int err;

	if (!erofs_sha_is_there())
		return erofs_diag_fail(diag, -EOPNOTSUPP, AT_NOWHERE, "no digests without libcrypto");
	f.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f.fd < 0)
		return erofs_diag_fail(diag, -errno, AT_NOWHERE, "cannot open %s", path);
	err = erofs_job_begin_plain(eng, diag, &f.job);
	if (!err) {
		nlanes = erofs_job_lanes(f.job);
		err = run(&f, digest);
		erofs_job_end(f.job);
		for (i = 0; f.hashers && i < nlanes; i++)
			erofs_verity_hasher_fini(&f.hashers[i]);
		erofs_verity_fini(&f.tree);
		free(f.hashers);
	}
	close(f.fd);
	for (i = 0; !err && i < SHA256_SIZE; i++)
		ret_digest[i] = digest[i];
	return err;
}
