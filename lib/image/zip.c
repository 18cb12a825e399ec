// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The directory of a zip file, as far as it takes to find what is stored in one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/wire.h"
#include "image/container.h"

#define END_SIZE 22		/* end of the directory, without its comment */
#define END_MAX (END_SIZE + 65535)
#define END_MAGIC 0x06054b50u
#define LOCATOR_SIZE 20		/* in front of it, in zip64 files */
#define LOCATOR_MAGIC 0x07064b50u
#define END64_SIZE 56
#define END64_MAGIC 0x06064b50u
#define CENTRAL_SIZE 46
#define CENTRAL_MAGIC 0x02014b50u
#define LOCAL_SIZE 30
#define LOCAL_MAGIC 0x04034b50u
#define EXTRA_ZIP64 1
#define FLAG_ENCRYPTED 1

struct directory {
	uint64_t pos, size, entries;
};

static int read_all(const struct source *src, uint64_t pos, void *buf, size_t len)
{
	ssize_t n;

	if (!range_ok(pos, len, src->size))
		return -EINVAL;
	n = src->ops->read(src, pos, buf, len);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

bool erofs_zip_is(const struct source *src)
{
	uint8_t magic[4];

	return !read_all(src, 0, magic, sizeof(magic)) && bytes_le32(magic) == LOCAL_MAGIC;
}

/* Replace @d by what a zip64 record says, if one is in front of the end record at @end. */
static int load_end64(const struct source *src, uint64_t end, struct directory *d)
{
	uint8_t raw[END64_SIZE];
	int err;

	if (end < LOCATOR_SIZE)
		return 0;
	err = read_all(src, end - LOCATOR_SIZE, raw, LOCATOR_SIZE);
	if (err || bytes_le32(raw) != LOCATOR_MAGIC)
		return err;
	err = read_all(src, bytes_le64(raw + 8), raw, END64_SIZE);
	if (err)
		return err;
	if (bytes_le32(raw) != END64_MAGIC)
		return -EINVAL;
	d->entries = bytes_le64(raw + 32);
	d->size = bytes_le64(raw + 40);
	d->pos = bytes_le64(raw + 48);
	return 0;
}

static int find_directory(const struct source *src, struct directory *ret)
{
	size_t len = (size_t)min_u64(src->size, END_MAX), at;
	auto_free uint8_t *tail = malloc(len ? len : 1);
	uint64_t start = src->size - len;
	int err;

	if (!tail)
		return -ENOMEM;
	err = read_all(src, start, tail, len);
	if (err)
		return err;
	for (at = len; at-- > 0;) {
		const uint8_t *end = tail + at;

		/* its comment is the last thing in the file */
		if (len - at < END_SIZE || bytes_le32(end) != END_MAGIC ||
		    (size_t)END_SIZE + bytes_le16(end + 20) != len - at)
			continue;
		ret->entries = bytes_le16(end + 10);
		ret->size = bytes_le32(end + 12);
		ret->pos = bytes_le32(end + 16);
		err = load_end64(src, start + at, ret);
		if (err)
			return err;
		return range_ok(ret->pos, ret->size, src->size) ? 0 : -EINVAL;
	}
	return -EINVAL;
}

/* 64-bit values stand in the extra field in this order, each only if its 32 bits are all ones. */
static int load_extra64(const uint8_t *extra, size_t len, uint64_t *const values[3])
{
	size_t at, in, size, i;

	for (at = 0; len - at >= 4; at += 4 + size) {
		size = bytes_le16(extra + at + 2);
		if (size > len - at - 4)
			return -EINVAL;
		if (bytes_le16(extra + at) != EXTRA_ZIP64)
			continue;
		for (in = 0, i = 0; i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (size - in < 8)
				return -EINVAL;
			*values[i] = bytes_le64(extra + at + 4 + in);
			in += 8;
		}
		return 0;
	}
	return 0;
}

/* Behind the local header, which has lengths of its own. */
static int find_data(const struct source *src, uint64_t local, struct zip_entry *e)
{
	uint8_t raw[LOCAL_SIZE];
	int err = read_all(src, local, raw, sizeof(raw));

	if (err)
		return err;
	if (bytes_le32(raw) != LOCAL_MAGIC)
		return -EINVAL;
	e->pos = local + LOCAL_SIZE + bytes_le16(raw + 26) + bytes_le16(raw + 28);
	return range_ok(e->pos, e->size, src->size) ? 0 : -EINVAL;
}

static int load_entry(const struct source *src, uint64_t pos, uint64_t end, uint8_t *rest,
		      struct zip_entry *ret, uint64_t *ret_next)
{
	uint64_t packed, local, len;
	size_t name_len, extra_len;
	uint8_t raw[CENTRAL_SIZE];
	int err;

	if (!range_ok(pos, CENTRAL_SIZE, end))
		return -EINVAL;
	err = read_all(src, pos, raw, sizeof(raw));
	if (err)
		return err;
	name_len = bytes_le16(raw + 28);
	extra_len = bytes_le16(raw + 30);
	len = CENTRAL_SIZE + name_len + extra_len + bytes_le16(raw + 32);
	if (bytes_le32(raw) != CENTRAL_MAGIC || !range_ok(pos, len, end))
		return -EINVAL;
	err = read_all(src, pos + CENTRAL_SIZE, rest, name_len + extra_len);
	if (err)
		return err;
	*ret = (struct zip_entry){ .size = bytes_le32(raw + 24) };
	memcpy(ret->name, rest, (size_t)min_u64(name_len, ZIP_NAME - 1));
	packed = bytes_le32(raw + 20);
	local = bytes_le32(raw + 42);
	err = load_extra64(rest + name_len, extra_len, (uint64_t *[3]){ &ret->size, &packed, &local });
	if (err)
		return err;
	ret->stored = !bytes_le16(raw + 10) && !(bytes_le16(raw + 8) & FLAG_ENCRYPTED);
	*ret_next = pos + len;
	if (!ret->stored)
		return 0;
	return packed == ret->size ? find_data(src, local, ret) : -EINVAL;
}

int erofs_zip_walk(const struct source *src, zip_entry_fn fn, void *arg)
{
	auto_free uint8_t *rest = malloc(2 * 65535);	/* name and extra field */
	struct directory d = { 0 };
	struct zip_entry entry;
	uint64_t i, pos, end;
	int err;

	if (!rest)
		return -ENOMEM;
	err = find_directory(src, &d);
	end = d.pos + d.size;
	for (i = 0, pos = d.pos; !err && i < d.entries && i < ZIP_MAX_ENTRIES; i++) {
		err = load_entry(src, pos, end, rest, &entry, &pos);
		if (!err)
			err = fn(arg, &entry);
	}
	return err;
}
