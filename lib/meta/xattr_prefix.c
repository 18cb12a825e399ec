// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Name prefixes: the fixed ones (format.md 8.5) and the long ones of the image (8.6). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "diag/diag_priv.h"
#include "meta/xattr_priv.h"

const char *erofs_xattr_prefix_of(unsigned int base_index)
{
	static const char *const prefixes[XATTR_MAX_INDEX + 1] = {
		[0] = "",
		[1] = "user.",
		[XATTR_INDEX_ACL_ACCESS] = "system.posix_acl_access",
		[XATTR_INDEX_ACL_DEFAULT] = "system.posix_acl_default",
		[4] = "trusted.",
		[6] = "security.",	/* 5 is reserved and unused */
	};

	return base_index <= XATTR_MAX_INDEX ? prefixes[base_index] : NULL;
}

enum prefix_where {
	IN_IMAGE,
	IN_METABOX,
	IN_PACKED,
};

static enum prefix_where find_container(const struct super *sb)
{
	if (sb->info.feature_compat & EROFS_COMPAT_PLAIN_XATTR_PFX)
		return IN_IMAGE;
	if (sb->info.feature_incompat & EROFS_INCOMPAT_METABOX)
		return IN_METABOX;
	return sb->info.packed_nid ? IN_PACKED : IN_IMAGE;
}

static int read_prefix(struct metabuf *mb, enum prefix_where where, uint64_t off, void *buf,
		       size_t len)
{
	static const char *const names[] = { "image", "metabox", "packed file" };
	const struct super *sb = mb->img->super;
	uint64_t end = erofs_metabuf_end(mb, where == IN_METABOX);
	ssize_t n;

	if (where == IN_PACKED)
		end = mb->late.read_packed && sb->packed ? sb->packed->size : 0;
	if (!range_ok(off, len, end))
		return erofs_diag_damage(mb->diag, SB_PREFIX, AT_OFF(off),
					 "long xattr prefix: behind the end of the %s (%" PRIu64
					 " bytes)", names[where], end);
	if (where == IN_PACKED)
		return mb->late.read_packed(mb->late.arg, off, buf, len);
	n = erofs_metabuf_peek(mb, where == IN_METABOX, off, buf, len);
	if (n < 0 && where == IN_IMAGE)
		return erofs_diag_fail(mb->diag, (int)n, AT_OFF(off),
				       "cannot read a long xattr prefix");
	return n < 0 ? (int)n : 0;
}

static int load_prefix(struct metabuf *mb, enum prefix_where where, uint64_t *pos,
		       struct xattr_prefix *prefix)
{
	uint64_t at = round_up_u64(*pos, DISK_XATTR_ALIGN);
	struct disk_xattr_prefix raw;
	unsigned int len;
	int err;

	err = read_prefix(mb, where, at, &raw, sizeof(raw));
	if (err)
		return err;
	len = le16_get(raw.len);
	if (len < 1 || len - 1 > DISK_XATTR_NAME_MAX)
		return erofs_diag_damage(mb->diag, SB_PREFIX, AT_OFF(at),
					 "long xattr prefix of %u bytes (wanted 1 to %d)", len,
					 DISK_XATTR_NAME_MAX + 1);
	prefix->base_index = raw.base_index;
	prefix->len = (uint8_t)(len - 1);
	*pos = at + sizeof(raw.len) + len;
	return read_prefix(mb, where, at + sizeof(raw), prefix->infix, prefix->len);
}

int erofs_xattr_load_prefixes(struct metabuf *mb)
{
	const struct super *sb = mb->img->super;
	auto_free struct xattr_prefixes *prefixes = NULL;
	enum prefix_where where = find_container(sb);
	uint64_t pos = sb->prefix_pos;
	unsigned int i;
	int err;

	if (!sb->prefix_count)
		return 0;
	prefixes = calloc(1, sizeof(*prefixes) + sb->prefix_count * sizeof(prefixes->prefix[0]));
	if (!prefixes)
		return -ENOMEM;
	prefixes->count = sb->prefix_count;
	for (i = 0; i < prefixes->count; i++) {
		err = load_prefix(mb, where, &pos, &prefixes->prefix[i]);
		if (err)
			return err;
	}
	free(mb->img->prefixes);
	mb->img->prefixes = steal(prefixes);
	return 0;
}
