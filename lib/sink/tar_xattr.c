// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Extended attributes as pax records: raw, ACLs as text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/wire.h"
#include "sink/tar_head.h"

#define KEY_PREFIX "SCHILY.xattr."
#define KEY_SIZE (sizeof(KEY_PREFIX) + 3 * XATTR_NAME_SIZE)

/* A POSIX ACL as Linux keeps it in an attribute. */
struct acl_head {
	struct le32 version;
};

struct acl_entry {
	struct le16 tag, perm;
	struct le32 id;
};

#define ACL_VERSION 2

/* The word of a tag; NULL: there is no such tag. */
static const char *tag_word(unsigned int tag, bool *ret_has_id)
{
	*ret_has_id = tag == 0x02 || tag == 0x08;
	switch (tag) {
	case 0x01:
	case 0x02:
		return "user";
	case 0x04:
	case 0x08:
		return "group";
	case 0x10:
		return "mask";
	case 0x20:
		return "other";
	default:
		return NULL;
	}
}

static int add_entry(struct tarbuf *text, const struct acl_entry *e)
{
	unsigned int perm = le16_get(e->perm);
	char line[48], id[16] = "";
	const char *word;
	bool has_id;

	word = tag_word(le16_get(e->tag), &has_id);
	if (!word || perm > 7)
		return -EUCLEAN;
	if (has_id)
		snprintf(id, sizeof(id), "%" PRIu32, le32_get(e->id));
	snprintf(line, sizeof(line), "%s%s:%s:%c%c%c", text->len ? "," : "", word, id, perm & 4 ? 'r' : '-',
		 perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
	return erofs_tarbuf_add(text, line, strlen(line));
}

/* "user::rw-,user:1000:r--,…". -EUCLEAN: it is no ACL. */
static int acl_text(struct tarbuf *text, const struct xattr_view *xa)
{
	const uint8_t *at = xa->value;
	size_t left = xa->size;
	struct acl_head head;
	struct acl_entry e;
	int err = 0;

	if (left < sizeof(head) || (left - sizeof(head)) % sizeof(e))
		return -EUCLEAN;
	memcpy(&head, at, sizeof(head));
	if (le32_get(head.version) != ACL_VERSION)
		return -EUCLEAN;
	at += sizeof(head);
	for (left -= sizeof(head); !err && left; left -= sizeof(e)) {
		memcpy(&e, at, sizeof(e));
		err = add_entry(text, &e);
		at += sizeof(e);
	}
	return err;
}

static const char *acl_key(const char *name)
{
	if (!strcmp(name, "system.posix_acl_access"))
		return "SCHILY.acl.access";
	if (!strcmp(name, "system.posix_acl_default"))
		return "SCHILY.acl.default";
	return NULL;
}

/*
 * The key ends at the first equals sign: one in the name is written %3D, as GNU tar does and undoes it.
 * A percent sign is written %25 only where it would be taken for one of these two.
 */
static void make_key(char *key, const char *name)
{
	key += sprintf(key, "%s", KEY_PREFIX);
	for (; *name; name++) {
		if (*name == '=')
			key += sprintf(key, "%%3D");
		else if (!strncmp(name, "%3D", 3) || !strncmp(name, "%25", 3))
			key += sprintf(key, "%%25");
		else
			*key++ = *name;
	}
	*key = '\0';
}

int erofs_tar_xattr(struct tarbuf *records, const struct xattr_view *xa)
{
	const char *acl = acl_key(xa->name);
	struct tarbuf text = { 0 };
	char key[KEY_SIZE];
	int err = acl ? acl_text(&text, xa) : -EUCLEAN;

	if (!err && text.len)
		err = erofs_tar_record(records, acl, text.data, text.len);
	erofs_tarbuf_free(&text);
	if (err != -EUCLEAN)
		return err;
	make_key(key, xa->name);
	return erofs_tar_record(records, key, xa->value, xa->size);
}
