// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Owner, extended attributes, mode, ACLs, times, in this order (X6): a change of owner drops
 * capabilities and SUID, user attributes need a mode that can be written, an ACL is part of the mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fdio.h"
#include "extract/extract_priv.h"

void erofs_restore_init(struct restore *r, const struct erofs_extract_options *opt)
{
	r->uid = geteuid();
	r->gid = getegid();
	r->privileged = !r->uid;
	r->owner = opt->preserve_owner < 0 ? r->privileged : opt->preserve_owner;
	r->exact_modes = opt->preserve_perms < 0 ? r->privileged : opt->preserve_perms;
	r->keep_suid = r->owner || opt->preserve_perms > 0;
	r->times = !opt->no_times;
	r->xattrs = opt->xattrs;
	r->fsync = opt->fsync;
	r->xattr_include = opt->xattr_include;
	r->xattr_exclude = opt->xattr_exclude;
	r->umask = erofs_fdio_umask();
}

mode_t erofs_restore_mode(const struct restore *r, const struct erofs_inode *ino)
{
	mode_t mode = ino->mode & 07777;

	if (!r->exact_modes)
		mode &= ~r->umask;
	/* X7: a program of root's must not become one of whoever extracts it */
	if (!r->keep_suid && S_ISREG(ino->mode))
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
	return mode;
}

static bool has_own_ids(const struct restore *r, const struct erofs_inode *ino)
{
	return !r->owner || (ino->uid == r->uid && ino->gid == r->gid);
}

mode_t erofs_restore_first_mode(const struct restore *r, const struct erofs_inode *ino, bool fresh)
{
	mode_t mode = erofs_restore_mode(r, ino);

	/* as long as it may be somebody else's or gets attributes, nobody else may open it */
	if (!fresh || !has_own_ids(r, ino) || (r->xattrs && ino->xattr_size) || (mode & 07000) ||
	    (mode & r->umask))
		return 0600;
	return mode;
}

static void skip(struct extract *x, const struct restore_at *at, enum skip kind, int err)
{
	if (x->again && !at->report_name)	/* a directory: counted by the first walk */
		return;
	erofs_skips_add(&x->skips, kind, err, at->dir, at->report_name);
}

/* ---- owner ---- */

static int restore_owner(struct extract *x, const struct restore_at *at, const struct erofs_inode *ino)
{
	const struct restore *r = &x->restore;
	int err;

	if (!r->owner || (at->fresh && has_own_ids(r, ino)))
		return 0;
	err = at->fd >= 0 ? fchown(at->fd, ino->uid, ino->gid) :
			    fchownat(at->dir_fd, at->name, ino->uid, ino->gid, AT_SYMLINK_NOFOLLOW);
	if (!err)
		return 0;
	if (r->privileged)
		return -errno;
	skip(x, at, SKIP_OWNER, -errno);
	return 0;
}

/* ---- extended attributes ---- */

/* Is @name one of @globs? */
static bool matches(const char *const *globs, const char *name)
{
	for (; *globs; globs++)
		if (!fnmatch(*globs, name, 0))
			return true;
	return false;
}

static bool is_selected(const struct restore *r, const char *name)
{
	if (r->xattr_exclude && matches(r->xattr_exclude, name))
		return false;
	return !r->xattr_include || matches(r->xattr_include, name);
}

static bool is_acl(const char *name)
{
	return !strncmp(name, "system.posix_acl_", 17);
}

static bool needs_privilege(const char *name)
{
	return !strncmp(name, "trusted.", 8) || !strcmp(name, "security.capability");
}

static int set_xattr(const struct restore_at *at, const struct xattr_view *xa)
{
	char path[64 + 256];

	if (at->fd >= 0)
		return fsetxattr(at->fd, xa->name, xa->value, xa->size, 0) ? -errno : 0;
	/* a link or device has no descriptor to do it with; the last name is not followed */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", at->dir_fd, at->name);
	return lsetxattr(path, xa->name, xa->value, xa->size, 0) ? -errno : 0;
}

static int restore_xattr(struct extract *x, const struct restore_at *at, const struct erofs_inode *ino,
			 const struct xattr_view *xa)
{
	bool plain = S_ISREG(ino->mode) || S_ISDIR(ino->mode);
	int err;

	if (!is_selected(&x->restore, xa->name))
		return 0;
	if (!x->restore.privileged && needs_privilege(xa->name)) {
		skip(x, at, SKIP_XATTR_PRIV, -EPERM);
		return 0;
	}
	err = set_xattr(at, xa);
	if (!err || (!plain && !strncmp(xa->name, "user.", 5)))
		return 0;	/* user attributes of links and devices can't exist */
	if (err == -ENOSPC || err == -EDQUOT || err == -EIO || err == -ENOMEM)
		return err;
	skip(x, at, needs_privilege(xa->name) && err == -EPERM ? SKIP_XATTR_PRIV : SKIP_XATTR, err);
	return 0;
}

/* One pass: ACLs, or all others. */
static int restore_xattrs(struct extract *x, struct lane *lane, const struct restore_at *at,
			  const struct erofs_inode *ino, bool acls)
{
	struct xattr_iter *it = erofs_lane_xattrs(lane);
	struct xattr_view view;
	int r;

	if (!it)
		return -ENOMEM;
	r = erofs_xattr_begin(it, ino);
	while (!r && (r = erofs_xattr_next(it, &view)) > 0) {
		r = 0;
		if (!view.hidden && is_acl(view.name) == acls)
			r = restore_xattr(x, at, ino, &view);
	}
	/* damage was reported, and healthy attributes are set: the entry is there */
	return r == -EUCLEAN ? 0 : r;
}

/* ---- mode and times ---- */

static int restore_mode(const struct restore *r, const struct restore_at *at, const struct erofs_inode *ino)
{
	mode_t mode = erofs_restore_mode(r, ino);

	if (S_ISLNK(ino->mode) || (at->fresh && at->mode == mode))
		return 0;
	if (at->fd >= 0)
		return fchmod(at->fd, mode) ? -errno : 0;
	if (!fchmodat(at->dir_fd, at->name, mode, AT_SYMLINK_NOFOLLOW))
		return 0;
	/* this C library does it through /proc, which may be missing; the name was made by us just now */
	if (errno != EOPNOTSUPP && errno != ENOTSUP && errno != ENOENT)
		return -errno;
	return fchmodat(at->dir_fd, at->name, mode, 0) ? -errno : 0;
}

static int restore_times(const struct restore_at *at, const struct erofs_inode *ino)
{
	struct timespec ts[2] = {
		{ .tv_sec = ino->mtime, .tv_nsec = ino->mtime_nsec },
		{ .tv_sec = ino->mtime, .tv_nsec = ino->mtime_nsec },
	};

	if (at->fd >= 0)
		return futimens(at->fd, ts) ? -errno : 0;
	return utimensat(at->dir_fd, at->name, ts, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int erofs_restore(struct extract *x, struct lane *lane, const struct restore_at *at,
		  const struct erofs_inode *ino, const char **ret_what)
{
	const struct restore *r = &x->restore;
	bool xattrs = r->xattrs && ino->xattr_size;
	int err;

	*ret_what = "cannot restore the owner";
	err = restore_owner(x, at, ino);
	if (!err && xattrs) {
		*ret_what = "cannot restore extended attributes";
		err = restore_xattrs(x, lane, at, ino, false);
	}
	if (!err) {
		*ret_what = "cannot restore the mode";
		err = restore_mode(r, at, ino);
	}
	if (!err && xattrs) {
		*ret_what = "cannot restore the ACL";
		err = restore_xattrs(x, lane, at, ino, true);
	}
	if (!err && r->times) {
		*ret_what = "cannot restore the time";
		err = restore_times(at, ino);
	}
	return err;
}
