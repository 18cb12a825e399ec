// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Damaged files that are kept: what can be read of them, zeros for the rest, and a mark (X10). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "extract/extract_priv.h"

#define DAMAGED_MARK "user.erofs.damaged"	/* holds the number of lost bytes */

bool erofs_extract_may_salvage(const struct extract *x, int err)
{
	return x->opt->salvage && erofs_diag_is_loss(err);
}

struct erofs_diag *erofs_extract_hush(const struct extract *x, struct lane *lane)
{
	return erofs_lane_divert(lane, x->quiet ? x->quiet : erofs_lane_diag(lane));
}

static int write_pieces(struct extract *x, struct salvage *s, int fd, const char **ret_what)
{
	struct run run;
	int r;

	while ((r = erofs_salvage_next(s, &run)) > 0) {
		int err = erofs_extract_write_run(x, fd, &run);

		if (err) {
			*ret_what = "cannot write";
			return err;
		}
		if (erofs_job_is_cancelled(x->job))
			return -ECANCELED;
	}
	return r;
}

static void mark(int fd, uint64_t lost)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%" PRIu64, lost);

	(void)fsetxattr(fd, DAMAGED_MARK, text, (size_t)len, 0);	/* where possible */
}

int erofs_extract_salvage(struct extract *x, struct lane *lane, const struct erofs_inode *ino, int fd,
			  const char **ret_what)
{
	struct salvage s;
	uint64_t lost;
	int err;

	*ret_what = "cannot write";
	if (ftruncate(fd, 0))	/* other ranges may have found what this pass does not trust */
		return -errno;
	*ret_what = NULL;
	err = erofs_salvage_begin(&s, lane, ino);
	if (!err)
		err = write_pieces(x, &s, fd, ret_what);
	lost = erofs_salvage_end(&s);
	if (err)
		return err;
	/* a size that no file can have here is damage too: then the file ends with its data */
	if (ftruncate(fd, (off_t)ino->size) && errno != EFBIG) {
		*ret_what = "cannot write";
		return -errno;
	}
	if (!lost)
		return 0;
	mark(fd, lost);
	atomic_fetch_add_explicit(&x->damaged, 1, memory_order_relaxed);
	if (x->opt->fail_fast)
		erofs_job_cancel(x->job);
	return 0;
}
