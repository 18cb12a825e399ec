// SPDX-License-Identifier: GPL-2.0-or-later
/* meta: xattrs of one inode, and long prefixes. */
#include <errno.h>
#include <sys/stat.h>

#include "tiny.h"

#include "base/hash.h"

#define NID 100
#define POS (NID * 32)
#define HEADER (POS + 32)
#define SHARED_BLK 2		/* shared xattrs begin at byte 8192 */

/* One entry at @off. Return: the byte behind it, aligned. */
static size_t put_entry(struct tiny *t, size_t off, unsigned int index, const char *name,
			const void *value, size_t size)
{
	size_t len = strlen(name);

	t->bytes[off] = (uint8_t)len;
	t->bytes[off + 1] = (uint8_t)index;
	put16(t, off + 2, (unsigned int)size);
	memcpy(t->bytes + off + 4, name, len);
	memcpy(t->bytes + off + 4 + len, value, size);
	return (off + 4 + len + size + 3) & ~(size_t)3;
}

/* A file whose xattr area ends at @end, with @ids shared ones. */
static void put_file(struct tiny *t, unsigned int ids, size_t end)
{
	put16(t, POS, 0);
	put16(t, POS + 2, (unsigned int)(end - HEADER - 12) / 4 + 1);
	put16(t, POS + 4, S_IFREG | 0644);
	put16(t, POS + 6, 1);
	t->bytes[HEADER + 4] = (uint8_t)ids;
	put32(t, TINY_SUPER + 44, SHARED_BLK);
}

struct names {
	char all[2000];		/* "name=value " each; hidden ones as "(name)=value " */
	int err, check;
};

static void list_xattrs(struct tiny *t, struct names *n)
{
	struct xattr_iter *it;
	struct erofs_inode ino;
	struct xattr_view xa;
	size_t at = 0;

	n->all[0] = '\0';
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID, &ino), 0);
	assert_int_equal(erofs_xattr_iter_new(&t->mb, &it), 0);
	n->err = erofs_xattr_begin(it, &ino);
	while (erofs_xattr_next(it, &xa) > 0) {
		at += (size_t)snprintf(n->all + at, sizeof(n->all) - at,
				       xa.hidden ? "(%s)=%.*s " : "%s=%.*s ",
				       xa.hidden ? xa.base_name : xa.name, (int)xa.size,
				       (const char *)xa.value);
		assert_int_equal(strlen(xa.name), xa.name_len);
	}
	if (!n->err)
		n->err = erofs_xattr_damage(it);
	n->check = erofs_xattr_check(it, &ino);
	/* a second run over the same inode finds the same: nothing of the first is left */
	assert_int_equal(erofs_xattr_check(it, &ino), n->check);
	erofs_xattr_iter_free(it);
}

static void inline_and_shared_xattrs_come_out_in_order(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12 + 8, 1, "a", "1", 1);

	end = put_entry(t, end, 6, "selinux", "ctx", 3);
	end = put_entry(t, end, 0, "hid", "h", 1);
	put_file(t, 2, end);
	put32(t, HEADER + 12, 4);
	put32(t, HEADER + 16, 0);
	put_entry(t, 8192, 4, "overlay.x", "y", 1);
	put_entry(t, 8192 + 16, 1, "shared", "s", 1);
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.a=1 security.selinux=ctx (hid)=h user.shared=s "
			    "trusted.overlay.x=y ");
	assert_int_equal(n.err, 0);
	assert_int_equal(n.check, 0);
	assert_int_equal(tiny_flush(t), 0);
}

static void empty_values_and_filler_hide_nothing(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12, 1, "a", "1", 1);

	end = put_entry(t, end, 1, "empty", "", 0);
	end = put_entry(t, end + 8, 1, "z", "2", 1);
	put_file(t, 0, end + 4);
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.a=1 user.empty= user.z=2 ");
	assert_int_equal(n.check, 0);
}

static void entries_may_cross_pages(void **state)
{
	struct tiny *t = *state;
	struct names n;
	static char value[2000];

	memset(value, 'v', sizeof(value));
	put_file(t, 0, put_entry(t, HEADER + 12, 1, "long", value, 1200));
	list_xattrs(t, &n);
	assert_int_equal(strlen(n.all), strlen("user.long= ") + 1200);
}

static void largest_entry_fits(void **state)
{
	struct tiny *t = *state;
	struct erofs_inode ino;
	struct xattr_view xa;
	struct xattr_iter *it;
	static uint8_t value[65535];
	char name[256];

	t->size = TINY_MAX;
	memset(value, 'v', sizeof(value));
	memset(name, 'n', 255);
	name[255] = '\0';
	put_file(t, 0, put_entry(t, HEADER + 12, 4, name, value, sizeof(value)));
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_inode_load(&t->mb, NID, &ino), 0);
	assert_int_equal(erofs_xattr_iter_new(&t->mb, &it), 0);
	assert_int_equal(erofs_xattr_begin(it, &ino), 0);
	assert_int_equal(erofs_xattr_next(it, &xa), 1);
	assert_int_equal(xa.size, 65535);
	assert_memory_equal(xa.value, value, sizeof(value));
	assert_int_equal(xa.name_len, 8 + 255);
	assert_int_equal(erofs_xattr_next(it, &xa), 0);
	assert_int_equal(erofs_xattr_check(it, &ino), -EUCLEAN);
	tiny_expect(t, "xattr-entry", "name of 263 bytes");
	erofs_xattr_iter_free(it);
}

static void more_shared_ids_than_room_are_damage(void **state)
{
	struct tiny *t = *state;
	struct names n;

	put_file(t, 255, HEADER + 16);
	list_xattrs(t, &n);
	assert_int_equal(n.err, -EUCLEAN);
	assert_string_equal(n.all, "");
	tiny_expect(t, "xattr-area", "255 shared xattrs counted");
}

static void broken_inline_entries_leave_the_shared_ones(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12 + 4, 1, "a", "1", 1);

	end = put_entry(t, end, 1, "b", "2", 1);
	put_file(t, 1, end);
	put16(t, end - 8 + 2, 65535);
	put_entry(t, 8192, 1, "s", "3", 1);
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.a=1 user.s=3 ");
	assert_int_equal(n.err, -EUCLEAN);
	tiny_expect(t, "xattr-entry", "behind the end of the xattr area");
}

static void broken_shared_ids_leave_the_others(void **state)
{
	struct tiny *t = *state;
	struct names n;

	put_file(t, 4, HEADER + 12 + 16);
	put32(t, HEADER + 12, 0xffffffff);
	put32(t, HEADER + 16, (16384 - 8192) / 4 - 1);	/* goes beyond the end */
	put32(t, HEADER + 20, 100);			/* zeros */
	put_entry(t, 8192, 1, "s", "3", 1);
	t->bytes[16380] = 200;
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.s=3 ");
	assert_int_equal(n.err, -EUCLEAN);
	tiny_expect(t, "xattr-shared", "shared xattr");
	assert_int_equal(t->found, 3);
}

static void unknown_indexes_are_warned_of_and_skipped(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12, 5, "a", "1", 1);

	put_file(t, 0, put_entry(t, end, 1, "b", "2", 1));
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.b=2 ");
	assert_int_equal(n.check, 0);
	tiny_expect(t, "xattr-index", "index 5");
	assert_int_equal(t->severity, EROFS_SEV_WARNING);
}

static void names_that_cannot_be_are_damage(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12, 1, "", "1", 1);

	end = put_entry(t, end, 2, "x", "2", 1);
	t->bytes[end + 4] = 'n';
	put_file(t, 0, put_entry(t, end, 1, "n", "2", 1) + 8);
	memcpy(t->bytes + end, "\x02\x01\x00\x00n\x00", 6);
	list_xattrs(t, &n);
	assert_string_equal(n.all, "");
	assert_int_equal(n.err, -EUCLEAN);
	assert_int_equal(tiny_flush(t), 3);
	assert_string_equal(t->id, "xattr-entry");
}

/* Two long prefixes at byte 12288: "user." + "corpus.", and the hidden "digest". */
static void put_prefixes(struct tiny *t)
{
	put32(t, TINY_SUPER + 80, 0x40);
	t->bytes[TINY_SUPER + 91] = 2;
	put32(t, TINY_SUPER + 92, 12288 / 4);
	put16(t, 12288, 8);
	t->bytes[12290] = 1;
	memcpy(t->bytes + 12291, "corpus.", 7);
	put16(t, 12300, 7);
	t->bytes[12302] = 0;
	memcpy(t->bytes + 12303, "digest", 6);
}

static void long_prefixes_are_put_in_front(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12, 0x80, "a", "1", 1);

	put_prefixes(t);
	end = put_entry(t, end, 0x81, "", "2", 1);
	put_file(t, 0, put_entry(t, end, 0x82, "c", "3", 1));
	list_xattrs(t, &n);
	assert_string_equal(n.all, "user.corpus.a=1 (digest)=2 ");
	assert_int_equal(n.err, -EUCLEAN);
	tiny_expect(t, "xattr-prefix", "long prefix 2 (there are 2)");
}

static void prefix_tables_that_cannot_be_parsed_are_damage(void **state)
{
	struct tiny *t = *state;

	put_prefixes(t);
	put16(t, 12300, 0);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), -EUCLEAN);
	tiny_expect(t, "sb-prefix", "of 0 bytes");
	put16(t, 12300, 257);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), -EUCLEAN);
	tiny_expect(t, "sb-prefix", "of 257 bytes");
	put32(t, TINY_SUPER + 92, 0xffffffff);
	assert_int_equal(tiny_open(t), 0);
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), -EUCLEAN);
	tiny_expect(t, "sb-prefix", "behind the end of the image");
	assert_null(t->img->prefixes);
}

static int read_packed(void *arg, uint64_t off, void *buf, size_t len)
{
	memcpy(buf, (const uint8_t *)arg + off, len);
	return 0;
}

static void prefixes_of_images_with_fragments_are_in_the_packed_file(void **state)
{
	struct tiny *t = *state;

	put_prefixes(t);
	put32(t, TINY_SUPER + 80, 0x40 | 0x20);
	put64(t, TINY_SUPER + 96, 50);
	put32(t, TINY_SUPER + 92, 0);
	assert_int_equal(tiny_open(t), 0);
	t->img->super->packed = calloc(1, sizeof(struct erofs_inode));
	assert_non_null(t->img->super->packed);
	t->img->super->packed->size = 21;
	t->mb.late.arg = t->bytes + 12288;
	t->mb.late.read_packed = read_packed;
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), 0);
	t->img->super->packed->size = 20;
	assert_int_equal(erofs_xattr_load_prefixes(&t->mb), -EUCLEAN);
	tiny_expect(t, "sb-prefix", "behind the end of the packed file (20 bytes)");
}

static void filter_bits_must_be_clear_for_every_name(void **state)
{
	struct tiny *t = *state;
	uint32_t bit = erofs_hash_xxh32("corpus.a", 8, 0x25bbe08f + 1) % 32;
	struct names n;

	put_prefixes(t);
	put32(t, TINY_SUPER + 8, 4);
	put_file(t, 0, put_entry(t, HEADER + 12, 0x80, "a", "1", 1));
	put32(t, HEADER, ~(UINT32_C(1) << bit));
	list_xattrs(t, &n);
	assert_int_equal(n.check, 0);
	put32(t, HEADER, UINT32_C(1) << bit);
	list_xattrs(t, &n);
	assert_int_equal(n.err, 0);
	assert_int_equal(n.check, -EUCLEAN);
	tiny_expect(t, "xattr-filter", "user.corpus.a");
	t->bytes[TINY_SUPER + 104] = 1;		/* unknown filter: ignored */
	list_xattrs(t, &n);
	assert_int_equal(n.check, 0);
}

static void names_that_occur_twice_are_found(void **state)
{
	struct tiny *t = *state;
	struct names n;
	size_t end = put_entry(t, HEADER + 12 + 4, 1, "a", "1", 1);

	end = put_entry(t, end, 4, "a", "2", 1);
	put_file(t, 1, end);
	put_entry(t, 8192, 1, "b", "3", 1);
	list_xattrs(t, &n);
	assert_int_equal(n.check, 0);
	put_entry(t, 8192, 1, "a", "3", 1);
	list_xattrs(t, &n);
	assert_int_equal(n.err, 0);
	assert_int_equal(n.check, -EUCLEAN);
	tiny_expect(t, "xattr-duplicate", "\"user.a\" occurs twice");
}

static int check_acl(struct tiny *t, const void *acl, size_t size)
{
	struct names n;

	put_file(t, 0, put_entry(t, HEADER + 12, 2, "", acl, size));
	list_xattrs(t, &n);
	assert_int_equal(n.err, 0);
	tiny_flush(t);
	if (n.check)
		assert_string_equal(t->id, "xattr-acl");
	return n.check;
}

static void acls_are_judged_by_the_check_only(void **state)
{
	static const uint8_t good[] = {
		2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 5, 0, 232, 3, 0, 0,
		4, 0, 5, 0, 255, 255, 255, 255, 16, 0, 7, 0, 255, 255, 255, 255,
		32, 0, 4, 0, 255, 255, 255, 255,
	};
	struct tiny *t = *state;
	uint8_t bad[sizeof(good)];

	assert_int_equal(check_acl(t, good, sizeof(good)), 0);
	assert_int_equal(check_acl(t, good, 4), 0);
	assert_int_equal(check_acl(t, good, 0), -EUCLEAN);
	assert_int_equal(check_acl(t, good, 5), -EUCLEAN);
	assert_int_equal(check_acl(t, good, sizeof(good) - 8), -EUCLEAN);	/* others missing */
	memcpy(bad, good, sizeof(good));
	bad[0] = 1;
	assert_int_equal(check_acl(t, bad, sizeof(bad)), -EUCLEAN);
	bad[0] = 2;
	bad[6] = 8;
	assert_int_equal(check_acl(t, bad, sizeof(bad)), -EUCLEAN);
	bad[6] = 7;
	memset(bad + 16, 255, 4);
	assert_int_equal(check_acl(t, bad, sizeof(bad)), -EUCLEAN);
	memcpy(bad, good, sizeof(good));
	bad[12] = 8;						/* a group before GROUP_OBJ */
	assert_int_equal(check_acl(t, bad, sizeof(bad)), -EUCLEAN);
	memcpy(bad + 28, good + 36, 8);				/* no mask */
	bad[12] = 2;
	assert_int_equal(check_acl(t, bad, sizeof(bad) - 8), -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tiny_test(inline_and_shared_xattrs_come_out_in_order),
		tiny_test(empty_values_and_filler_hide_nothing),
		tiny_test(entries_may_cross_pages),
		tiny_test(largest_entry_fits),
		tiny_test(more_shared_ids_than_room_are_damage),
		tiny_test(broken_inline_entries_leave_the_shared_ones),
		tiny_test(broken_shared_ids_leave_the_others),
		tiny_test(unknown_indexes_are_warned_of_and_skipped),
		tiny_test(names_that_cannot_be_are_damage),
		tiny_test(long_prefixes_are_put_in_front),
		tiny_test(prefix_tables_that_cannot_be_parsed_are_damage),
		tiny_test(prefixes_of_images_with_fragments_are_in_the_packed_file),
		tiny_test(filter_bits_must_be_clear_for_every_name),
		tiny_test(names_that_occur_twice_are_found),
		tiny_test(acls_are_judged_by_the_check_only),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("xattr", tests, NULL, NULL);
}
