// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* POSIX ACLs: version, then tag, permissions and id of each entry, sorted by tag and id. */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/acl.h"
#include "base/wire.h"

#define ACL_HEAD 4
#define ACL_ENTRY 8

bool erofs_acl_init(struct acl *acl, size_t count)
{
	/* one more for a mask that may be missing */
	*acl = (struct acl){ .buf = malloc(ACL_HEAD + (count + 1) * ACL_ENTRY), .len = ACL_HEAD };
	if (!acl->buf)
		return false;
	put_le32(acl->buf, 2);
	return true;
}

static bool has_id(enum acl_tag tag)
{
	return tag == ACL_USER || tag == ACL_GROUP;
}

static int64_t id_of_name(enum acl_tag tag, const char *name)
{
	char buf[4096];
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;

	if (!name)
		return -1;
	if (tag == ACL_USER) {
		getpwnam_r(name, &user, buf, sizeof(buf), &found_user);
		return found_user ? (int64_t)user.pw_uid : -1;
	}
	getgrnam_r(name, &group, buf, sizeof(buf), &found_group);
	return found_group ? (int64_t)group.gr_gid : -1;
}

bool erofs_acl_put(struct acl *acl, enum acl_tag tag, unsigned int perm, int64_t id, const char *name)
{
	uint8_t *dst = acl->buf + acl->len;

	perm &= 7;
	if (!has_id(tag))
		id = UINT32_MAX;
	else if (id < 0)
		id = id_of_name(tag, name);
	if (tag == ACL_NONE || id < 0)
		return false;
	put_le16(dst, (uint16_t)tag);
	put_le16(dst + 2, (uint16_t)perm);
	put_le32(dst + 4, (uint32_t)id);
	acl->len += ACL_ENTRY;
	acl->is_extended |= has_id(tag) || tag == ACL_MASK;
	if (tag == ACL_MASK) {
		acl->has_mask = true;
		acl->mask = perm;
	} else if (!acl->has_mask && (has_id(tag) || tag == ACL_OWNING_GROUP)) {
		acl->mask |= perm;
	}
	return true;
}

static int compare_entries(const void *va, const void *vb)
{
	const uint8_t *a = va, *b = vb;
	uint32_t ta = bytes_le16(a), tb = bytes_le16(b);

	if (ta == tb) {
		ta = bytes_le32(a + 4);
		tb = bytes_le32(b + 4);
	}
	return ta < tb ? -1 : ta > tb;
}

void erofs_acl_finish(struct acl *acl)
{
	if (acl->is_extended && !acl->has_mask)
		erofs_acl_put(acl, ACL_MASK, acl->mask, -1, NULL);
	qsort(acl->buf + ACL_HEAD, (acl->len - ACL_HEAD) / ACL_ENTRY, ACL_ENTRY, compare_entries);
}
