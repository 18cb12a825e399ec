/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* POSIX ACLs in the form that Linux keeps in system.posix_acl_access and system.posix_acl_default. */
#ifndef EROFS_BASE_ACL_H
#define EROFS_BASE_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum acl_tag {
	ACL_NONE = 0, ACL_OWNER = 0x01, ACL_USER = 0x02, ACL_OWNING_GROUP = 0x04, ACL_GROUP = 0x08,
	ACL_MASK = 0x10, ACL_OTHER = 0x20,
};

struct acl {
	uint8_t *buf;		/* who made it frees it */
	size_t len;
	unsigned int mask;	/* as it stands there, else the union of the group class */
	bool has_mask, is_extended;
};

/* Room for @count entries. false: no memory */
bool erofs_acl_init(struct acl *acl, size_t count);
/* Add one. Names (@id < 0) are looked up. false: nobody is called that, or it is no entry of Linux */
bool erofs_acl_put(struct acl *acl, enum acl_tag tag, unsigned int perm, int64_t id, const char *name);
/* Make it whole: a mask if it needs one, and the order that Linux wants. */
void erofs_acl_finish(struct acl *acl);

#endif
