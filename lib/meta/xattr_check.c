// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * What a checker asks of an inode's xattrs beyond being readable (format.md 14, item 16): the name
 * filter, names that occur twice, and well-formed ACLs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/hash.h"
#include "base/wire.h"
#include "diag/diag_priv.h"
#include "meta/xattr_priv.h"

/* Access control lists as Linux hands them out and takes them. */
#define ACL_VERSION 2
#define ACL_ENTRY_SIZE 8
#define ACL_PERM_ALL 7
#define ACL_NO_ID UINT32_C(0xffffffff)

enum {
	ACL_USER_OBJ = 0x01,
	ACL_USER = 0x02,
	ACL_GROUP_OBJ = 0x04,
	ACL_GROUP = 0x08,
	ACL_MASK = 0x10,
	ACL_OTHER = 0x20,
};

static bool may_follow(unsigned int before, unsigned int tag)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return !before;
	case ACL_USER:
		return before == ACL_USER_OBJ || before == ACL_USER;
	case ACL_GROUP_OBJ:
		return before == ACL_USER_OBJ || before == ACL_USER;
	case ACL_GROUP:
		return before == ACL_GROUP_OBJ || before == ACL_GROUP;
	case ACL_MASK:
		return before == ACL_GROUP_OBJ || before == ACL_GROUP;
	case ACL_OTHER:
		return before == ACL_GROUP_OBJ || before == ACL_GROUP || before == ACL_MASK;
	default:
		return false;
	}
}

/* NULL if the kernel would take this list, else what is wrong with it. */
static const char *judge_acl(const uint8_t *value, size_t size)
{
	unsigned int before = 0, seen = 0;
	size_t at;

	if (size < sizeof(struct le32) || (size - sizeof(struct le32)) % ACL_ENTRY_SIZE)
		return "wrong size";
	if (bytes_le32(value) != ACL_VERSION)
		return "unknown version";
	if (size == sizeof(struct le32))
		return NULL;
	for (at = sizeof(struct le32); at < size; at += ACL_ENTRY_SIZE) {
		unsigned int tag = bytes_le16(value + at);
		bool named = tag == ACL_USER || tag == ACL_GROUP;

		if (!may_follow(before, tag))
			return "entries of unknown kind or in the wrong order";
		if (bytes_le16(value + at + 2) & ~ACL_PERM_ALL)
			return "unknown permissions";
		if (named && bytes_le32(value + at + 4) == ACL_NO_ID)
			return "entry without a user or group";
		before = tag;
		seen |= tag;
	}
	if (before != ACL_OTHER)
		return "no entry for others";
	if (seen & (ACL_USER | ACL_GROUP) && !(seen & ACL_MASK))
		return "no mask, but named users or groups";
	return NULL;
}

static void check_acl(struct xattr_iter *it, const struct xattr_view *xa)
{
	const char *wrong;

	if (xa->base_index != XATTR_INDEX_ACL_ACCESS && xa->base_index != XATTR_INDEX_ACL_DEFAULT)
		return;
	wrong = judge_acl(xa->value, xa->size);
	if (!wrong)
		return;
	it->damaged = true;
	erofs_diag_damage(it->mb->diag, XATTR_ACL, AT(it->ino->nid, it->ino->xattr_pos),
			  "%s of %zu bytes: %s", xa->name, xa->size, wrong);
}

/* Names may hold any byte but NUL, and messages none that drive a terminal. */
static void show_name(const struct xattr_view *xa, char *buf, size_t size)
{
	const char *name = xa->hidden ? xa->base_name : xa->name;

	erofs_escape_name(name, strlen(name), buf, size);
}

static void check_filter(struct xattr_iter *it, const struct xattr_view *xa)
{
	uint32_t hash, bit;
	char shown[4 * XATTR_NAME_SIZE];

	if (!it->mb->img->super->xattr_filter || !it->filter)
		return;
	hash = erofs_hash_xxh32(xa->base_name, strlen(xa->base_name),
				DISK_XATTR_FILTER_SEED + xa->base_index);
	bit = hash % 32;
	if (!(it->filter >> bit & 1))
		return;
	it->damaged = true;
	show_name(xa, shown, sizeof(shown));
	erofs_diag_damage(it->mb->diag, XATTR_FILTER, AT(it->ino->nid, it->ino->xattr_pos),
			  "name filter 0x%08" PRIx32 " denies xattr \"%s\" (bit %" PRIu32
			  " is set)", it->filter, shown, bit);
}

static int begin_seen(struct xattr_iter *it)
{
	if (!it->seen)
		it->seen = calloc(XATTR_SEEN_SLOTS, sizeof(*it->seen));
	if (!it->seen)
		return -ENOMEM;
	it->run++;
	it->seen_count = 0;
	return 0;
}

/* Was a name with this hash seen in this run? Remembers it. */
static bool see_hash(struct xattr_iter *it, uint64_t hash)
{
	size_t at = hash % XATTR_SEEN_SLOTS;

	for (; it->seen[at].run == it->run; at = (at + 1) % XATTR_SEEN_SLOTS) {
		if (it->seen[at].hash == hash)
			return true;
	}
	if (it->seen_count < XATTR_SEEN_MAX) {
		it->seen[at] = (struct xattr_seen){ .hash = hash, .run = it->run };
		it->seen_count++;
	}
	return false;
}

static void check_duplicate(struct xattr_iter *it, const struct xattr_view *xa)
{
	char shown[4 * XATTR_NAME_SIZE];

	if (!see_hash(it, erofs_hash_bytes(xa->base_name, strlen(xa->base_name), xa->base_index)))
		return;
	it->damaged = true;
	show_name(xa, shown, sizeof(shown));
	erofs_diag_damage(it->mb->diag, XATTR_DUPLICATE, AT(it->ino->nid, it->ino->xattr_pos),
			  "xattr \"%s\" occurs twice", shown);
}

static void check_length(struct xattr_iter *it, const struct xattr_view *xa)
{
	if (xa->name_len <= DISK_XATTR_NAME_MAX)
		return;
	it->damaged = true;
	erofs_diag_damage(it->mb->diag, XATTR_ENTRY, AT(it->ino->nid, it->ino->xattr_pos),
			  "xattr name of %zu bytes (at most %d)", xa->name_len,
			  DISK_XATTR_NAME_MAX);
}

int erofs_xattr_check(struct xattr_iter *it, const struct erofs_inode *ino)
{
	struct xattr_view xa;
	int err = erofs_xattr_begin(it, ino);

	if (err || !it->ino)
		return err;
	err = begin_seen(it);
	if (err)
		return err;
	while ((err = erofs_xattr_next(it, &xa)) > 0) {
		check_length(it, &xa);
		check_acl(it, &xa);
		check_filter(it, &xa);
		check_duplicate(it, &xa);
	}
	return err ? err : erofs_xattr_damage(it);
}
