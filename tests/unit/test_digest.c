// SPDX-License-Identifier: GPL-2.0-or-later
/* base: SHA as streams, and the tree of fs-verity against the fsverity tool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fsverity.h"

#define ROOM (3u << 20)

static void need_libcrypto(void)
{
	if (!erofs_sha_is_there())
		skip();
}

static void to_hex(const uint8_t *bytes, size_t len, char *text)
{
	size_t i;

	for (i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	text[2 * len] = '\0';
}

static void sha_of_abc(enum sha_kind kind, const char *want)
{
	struct sha *sha = erofs_sha_new(kind);
	uint8_t digest[SHA_MAX_SIZE];
	char text[2 * SHA_MAX_SIZE + 1];
	unsigned int i;

	assert_non_null(sha);
	for (i = 0; i < 3; i++) {
		erofs_sha_begin(sha);
		erofs_sha_update(sha, "a", 1);
		erofs_sha_update(sha, "bc", 2);
		assert_true(erofs_sha_final(sha, digest));
		to_hex(digest, erofs_sha_size(kind), text);
		assert_string_equal(text, want);
	}
	erofs_sha_free(sha);
}

/* Values of FIPS 180-4's examples */
static void sha_gives_the_published_values_and_starts_over(void **state)
{
	(void)state;
	need_libcrypto();
	sha_of_abc(SHA_256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha_of_abc(SHA_512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
			    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

static uint8_t *make_data(void)
{
	uint8_t *data = malloc(ROOM);
	uint32_t v = 1;
	size_t i;

	assert_non_null(data);
	for (i = 0; i < ROOM; i++) {
		v = v * 1664525 + 1013904223;
		data[i] = (uint8_t)(v >> 24);
	}
	return data;
}

static struct verity_params params_of(enum sha_kind kind, unsigned int bits, unsigned int salt)
{
	struct verity_params p = { .kind = kind, .block_bits = bits, .salt_size = salt };
	unsigned int i;

	for (i = 0; i < salt; i++)
		p.salt[i] = (uint8_t)(0xa0 + i);
	return p;
}

static void digest_plain(struct verity_hasher *h, struct verity_tree *t, const uint8_t *data, size_t len,
			 char *text)
{
	uint8_t digest[SHA_MAX_SIZE];
	size_t at, n;

	erofs_verity_begin(t, h);
	for (at = 0; at < len; at += n) {
		n = len - at < 70001 ? len - at : 70001;
		erofs_verity_add(t, data + at, n);
	}
	assert_int_equal(erofs_verity_final(t, digest), 0);
	to_hex(digest, erofs_sha_size(h->params.kind), text);
}

/* What the tool says; false: it is not here. */
static bool ask_tool(const struct verity_params *p, const uint8_t *data, size_t len, char *text)
{
	char name[] = "/tmp/erofs-verity-XXXXXX", command[512], salt[2 * VERITY_MAX_SALT + 1];
	int fd = mkstemp(name);
	FILE *tool;
	bool got;

	assert_true(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	close(fd);
	to_hex(p->salt, p->salt_size, salt);
	snprintf(command, sizeof(command), "fsverity digest --compact --hash-alg=%s --block-size=%u%s%s %s 2>&1",
		 p->kind == SHA_256 ? "sha256" : "sha512", 1u << p->block_bits, *salt ? " --salt=" : "", salt, name);
	tool = popen(command, "r");
	assert_non_null(tool);
	got = fscanf(tool, "%128[0-9a-f]", text) == 1 && strlen(text) == 2 * erofs_sha_size(p->kind);
	got = !pclose(tool) && got;
	unlink(name);
	return got;
}

/* An empty file, part of a block, one block, and both sides of the borders of levels. */
static void compare_sizes(const struct verity_params *p, const uint8_t *data)
{
	size_t block = (size_t)1 << p->block_bits, per = block / erofs_sha_size(p->kind);
	size_t borders[] = { 0, block, 2 * block, per * block, (per + 1) * block, per * per * block };
	struct verity_hasher h;
	struct verity_tree t = { 0 };
	char got[129], want[129];
	size_t i;
	int d;

	assert_int_equal(erofs_verity_hasher_init(&h, p), 0);
	for (i = 0; i < sizeof(borders) / sizeof(*borders); i++) {
		for (d = -1; d <= 1; d++) {
			size_t len = borders[i] + (size_t)d;

			if (len > ROOM)
				continue;
			assert_true(ask_tool(p, data, len, want));
			digest_plain(&h, &t, data, len, got);
			assert_string_equal(got, want);
		}
	}
	erofs_verity_fini(&t);
	erofs_verity_hasher_fini(&h);
}

static void tree_gives_what_the_fsverity_tool_gives(void **state)
{
	static const unsigned int bits[] = { 10, 12, 16 }, salts[] = { 0, 1, 32 };
	uint8_t *data;
	size_t i, k;

	(void)state;
	need_libcrypto();
	if (system("fsverity --version >/dev/null 2>&1"))
		skip();
	data = make_data();
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			struct verity_params p = params_of(SHA_256, bits[i], salts[k]);

			compare_sizes(&p, data);
			p.kind = SHA_512;
			compare_sizes(&p, data);
		}
	}
	free(data);
}

/* Recorded from the fsverity tool, for where that is missing. */
static void empty_and_short_files_have_the_recorded_digests(void **state)
{
	struct verity_params p = params_of(SHA_256, 12, 0);
	struct verity_hasher h;
	struct verity_tree t = { 0 };
	char got[129];

	(void)state;
	need_libcrypto();
	assert_int_equal(erofs_verity_hasher_init(&h, &p), 0);
	digest_plain(&h, &t, NULL, 0, got);
	assert_string_equal(got, "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95");
	digest_plain(&h, &t, (const uint8_t *)"hello", 5, got);
	assert_string_equal(got, "555b589c26ee43b7a2510e6c67ced9fb3190b6da6e9e683984551f5d77a763de");
	erofs_verity_fini(&t);
	erofs_verity_hasher_fini(&h);
}

static void parts_cut_anywhere_give_the_digest_of_the_whole(void **state)
{
	static const size_t cuts[] = { 1, 1000, 4096, 5000, 4096 * 130, 700001 };
	struct verity_params p = params_of(SHA_256, 12, 3);
	struct verity_part part = { 0 };
	struct verity_hasher h;
	struct verity_tree t = { 0 };
	uint8_t *data, digest[SHA_MAX_SIZE];
	char got[129], want[129];
	size_t i, at, n;

	(void)state;
	need_libcrypto();
	data = make_data();
	memset(data + 100000, 0, 900000);
	assert_int_equal(erofs_verity_hasher_init(&h, &p), 0);
	digest_plain(&h, &t, data, ROOM - 77, want);
	for (i = 1; i < sizeof(cuts) / sizeof(*cuts); i++) {
		erofs_verity_begin(&t, &h);
		for (at = 0; at < ROOM - 77; at += n) {
			bool hole = at >= 100000 && at < 1000000;
			size_t end = hole ? 1000000 : at < 100000 ? 100000 : ROOM - 77;

			n = end - at < cuts[i] ? end - at : cuts[i];
			erofs_verity_part_begin(&part, at);
			assert_int_equal(erofs_verity_part_add(&part, &h, hole ? NULL : data + at, n), 0);
			erofs_verity_add_part(&t, &part);
		}
		assert_int_equal(erofs_verity_final(&t, digest), 0);
		to_hex(digest, SHA256_SIZE, got);
		assert_string_equal(got, want);
	}
	erofs_verity_part_fini(&part);
	erofs_verity_fini(&t);
	erofs_verity_hasher_fini(&h);
	free(data);
}

static void zeros_count_as_bytes_wherever_they_begin_and_end(void **state)
{
	static const size_t ends[][2] = { { 0, 1 }, { 5, 4096 }, { 4096, 4096 * 128 }, { 100, 4096 * 300 + 7 },
					  { 4096 * 127, 4096 * 400 } };
	struct verity_params p = params_of(SHA_256, 12, 0);
	struct verity_hasher h;
	struct verity_tree t = { 0 };
	uint8_t *data, digest[SHA_MAX_SIZE];
	char got[129], want[129];
	size_t i;

	(void)state;
	need_libcrypto();
	assert_int_equal(erofs_verity_hasher_init(&h, &p), 0);
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t from = ends[i][0], len = ends[i][1];

		data = make_data();
		memset(data + from, 0, len);
		digest_plain(&h, &t, data, ROOM, want);
		erofs_verity_begin(&t, &h);
		erofs_verity_add(&t, data, from);
		erofs_verity_add_zeros(&t, len);
		erofs_verity_add(&t, data + from + len, ROOM - from - len);
		assert_int_equal(erofs_verity_final(&t, digest), 0);
		to_hex(digest, SHA256_SIZE, got);
		assert_string_equal(got, want);
		free(data);
	}
	/* 2^62 bytes end at once */
	erofs_verity_begin(&t, &h);
	erofs_verity_add_zeros(&t, UINT64_C(1) << 62);
	assert_int_equal(erofs_verity_final(&t, digest), 0);
	erofs_verity_fini(&t);
	erofs_verity_hasher_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha_gives_the_published_values_and_starts_over),
		cmocka_unit_test(tree_gives_what_the_fsverity_tool_gives),
		cmocka_unit_test(empty_and_short_files_have_the_recorded_digests),
		cmocka_unit_test(parts_cut_anywhere_give_the_digest_of_the_whole),
		cmocka_unit_test(zeros_count_as_bytes_wherever_they_begin_and_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
