// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults while an image is written: of each kind of call the first fails, then the second, and so on;
 * behind the first hundreds not each. No run may crash, leak or hang. One that failed says so, and leaves
 * the file of before and nothing beside it; one that succeeded made the same bytes as one without a fault.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <erofs/erofs.h>

#include "fault.h"

#define EACH 200			/* so many calls of a kind fail one by one, then fewer and fewer */
#define STEP 4
#define MANY_KINDS 4			/* the first of all, with many files */

static char top[64], source[80], archive[80], folder[80], output[80], hints[80];

struct setting {
	const char *name, *compressors;
	int ztailpacking, fragments, all_fragments, dedupe, legacy, encoded;
	uint32_t pcluster;
	bool tar;		/* of an archive */
	bool many;		/* the tree of many files: enough for equal ones to be seen */
};

static const struct setting settings[] = {
	{ .name = "plain" },
	{ .name = "lz4, ztailpacking", .compressors = "lz4:zstd,1", .ztailpacking = 1, .pcluster = 16384 },
	{ .name = "deflate, fragments", .compressors = "deflate:lz4", .fragments = 1, .ztailpacking = 1 },
	{ .name = "lzma, all-fragments, dedupe", .compressors = "lzma,1:lz4", .fragments = 1, .all_fragments = 1,
	  .dedupe = 1 },
	{ .name = "zstd of an archive", .compressors = "zstd,1:lz4", .fragments = 1, .tar = true },
	{ .name = "lz4, dedupe, fragments", .compressors = "lz4:lz4hc", .dedupe = 1, .fragments = 1, .many = true },
	{ .name = "zstd, dedupe, 48bit", .compressors = "zstd,1:lz4", .dedupe = 1, .encoded = 1, .many = true },
};

/* ---- sources ---- */

static void put(const char *name, size_t len, unsigned int seed, bool noise)
{
	char path[128];
	FILE *file;
	size_t i;

	snprintf(path, sizeof(path), "%s/%s", source, name);
	file = fopen(path, "wb");
	for (i = 0; file && i < len; i++) {
		seed = seed * 1103515245u + 12345u;
		putc(noise ? (int)(seed >> 16) : "a few words of text\n"[(i + (seed >> 29 ? 0 : 1)) % 20], file);
	}
	if (file)
		fclose(file);
}

static void make_tree(bool many)
{
	static const size_t sizes[] = { 0, 20, 4095, 4097, 9000, 30000, 70000 };
	char name[64], path[128], to[128];
	unsigned int i;

	mkdir(source, 0755);
	for (i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "text%u", i);
		put(name, sizes[i], i, false);
		snprintf(name, sizeof(name), "noise%u", i);
		put(name, sizes[i], i, true);
	}
	put("again", 30000, 5, false);
	for (i = 0; many && i < 700; i++) {
		snprintf(name, sizeof(name), "m%03u", i);
		put(name, 9000 + (i % 3 ? 0 : i), i % 3, false);
	}
	snprintf(path, sizeof(path), "%s/below", source);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/below/link", source);
	if (symlink("where it leads", path))
		perror(path);
	snprintf(path, sizeof(path), "%s/below/name", source);
	snprintf(to, sizeof(to), "%s/text5", source);
	if (link(to, path))
		perror(path);
	setxattr(path, "user.note", "value", 5, 0);
}

/* ---- a run ---- */

struct outcome {
	bool ok, hit;
	int err;
	uint64_t size, sum;		/* of the image; an old one of 3 bytes was there */
	unsigned int names;		/* in its folder */
};

static void look(struct outcome *o)
{
	DIR *d = opendir(folder);
	FILE *file = fopen(output, "rb");
	static uint8_t buf[65536];
	size_t n, i;

	while (d && readdir(d))
		o->names++;
	if (d)
		closedir(d);
	o->sum = UINT64_C(1469598103934665603);
	while (file && (n = fread(buf, 1, sizeof(buf), file)) > 0) {
		for (i = 0; i < n; i++)
			o->sum = (o->sum ^ buf[i]) * UINT64_C(1099511628211);
		o->size += n;
	}
	if (file)
		fclose(file);
}

static void put_old(void)
{
	FILE *file = fopen(output, "wb");

	if (file) {
		fputs("old", file);
		fclose(file);
	}
}

static struct outcome run(const struct setting *s, enum kind kind, long n, const char *workers)
{
	static const char *const no_paths[] = { "text1", NULL };
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct erofs_write_options w = {
		.size = sizeof(w), .output = output, .source = s->tar ? archive : source,
		.source_type = s->tar ? EROFS_WRITE_TAR : EROFS_WRITE_DIRECTORY, .has_uuid = 1, .has_time = 1,
		.xattr_tolerance = 2, .exclude_paths = no_paths, .fsync = !s->compressors,
			.compressors = s->compressors,
		.compress_hints = s->compressors ? hints : NULL, .pcluster_size = s->pcluster,
		.ztailpacking = s->ztailpacking, .fragments = s->fragments, .all_fragments = s->all_fragments,
		.dedupe = s->dedupe, .legacy_compress = s->legacy, .encoded_extents = s->encoded,
	};
	struct erofs_engine *eng = NULL;
	struct erofs_diag *diag;
	struct outcome o = { 0 };
	int err;

	put_old();
	if (erofs_diag_new(NULL, NULL, &diag))
		return o;
	fault_arm(kind, n);
	err = erofs_engine_new(&options, diag, &eng);
	if (!err)
		err = erofs_write(&w, eng, diag, NULL);
	erofs_engine_free(eng);
	o.hit = fault_disarm();
	o.ok = !err;
	o.err = err;
	/* what failed for good has said so, and no error is reported and forgotten */
	if (eng && !err != !erofs_diag_count(diag, EROFS_SEV_FAIL)) {
		printf("# %s\n", err ? "a failure without a word" : "success with a failure reported");
		o.names += 100;
	}
	erofs_diag_free(diag);
	look(&o);
	return o;
}

/* The archive of what the image shows that was made last. */
static bool make_archive(void)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "1" };
	struct erofs_tar_options tar = { .size = sizeof(tar), .fd = open(archive, O_CREAT | O_TRUNC | O_WRONLY, 0600) };
	struct erofs_engine *eng = NULL;
	struct erofs_image *img = NULL;
	bool ok = tar.fd >= 0 && !erofs_open(output, NULL, NULL, &img) && !erofs_engine_new(&options, NULL, &eng) &&
		  !erofs_to_tar(img, eng, &tar, NULL, NULL);

	erofs_engine_free(eng);
	erofs_close(img);
	if (tar.fd >= 0)
		close(tar.fd);
	return ok;
}

static bool is_right(const struct outcome *o, const struct outcome *whole)
{
	if (o->names != whole->names)
		return false;
	return o->ok ? o->size == whole->size && o->sum == whole->sum : o->size == 3;
}

static unsigned int try_kind(const struct setting *s, enum kind kind, const char *workers,
			     const struct outcome *whole, long *ret_runs)
{
	unsigned int wrong = 0;
	long n;

	*ret_runs = 0;
	for (n = 1; n < 200000; n += n < (s->many ? EACH / 4 : EACH) ? 1 : n / STEP) {
		struct outcome o = run(s, kind, n, workers);

		++*ret_runs;
		if (!is_right(&o, whole) && wrong++ < 5)
			printf("# %s %ld, workers=%s: %s, %lu bytes, %u names\n", fault_names[kind], n, workers,
			       o.ok ? "success" : "failure", (unsigned long)o.size, o.names);
		if (!o.hit)
			break;
	}
	return wrong;
}

static bool prepare(void)
{
	FILE *file;

	/* nothing here is to survive: no disk */
	snprintf(top, sizeof(top), "%s/erofs-fault-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(top))
		return false;
	snprintf(source, sizeof(source), "%s/source", top);
	snprintf(archive, sizeof(archive), "%s/archive", top);
	snprintf(folder, sizeof(folder), "%s/out", top);
	snprintf(output, sizeof(output), "%s/out/image", top);
	snprintf(hints, sizeof(hints), "%s/hints", top);
	setenv("TMPDIR", top, 1);
	file = fopen(hints, "w");
	if (!file)
		return false;
	fputs("4096 1 text6\n0 noise3\n", file);
	return !fclose(file) && !mkdir(folder, 0755);
}

int main(void)
{
	static const enum kind kinds[] = {
		K_MEMORY, K_PREAD, K_PWRITE, K_OPENAT, K_OPEN, K_TRUNCATE, K_CLOSE,
		K_RENAME, K_THREAD, K_CHMOD, K_FOLDER, K_TARGET, K_XATTR, K_FLUSH, K_READ, K_STAT, K_NAMES, K_SEEK,
	};
	const unsigned int nkinds = sizeof(kinds) / sizeof(*kinds), nsettings = sizeof(settings) / sizeof(*settings);
	static const char *const workers[] = { "1", "2" };
	unsigned int i, k, number = 0, plan = 0;

	for (i = 0; i < nsettings; i++)
		plan += settings[i].many ? MANY_KINDS : 2 * nkinds;
	if (!prepare()) {
		puts("1..0 # SKIP cannot make folders");
		return 0;
	}
	printf("1..%u\n", plan);
	for (i = 0; i < nsettings * 2; i++) {
		const struct setting *s = &settings[i / 2];
		struct outcome whole;

		/* many files take their time, and threads only add to what can go wrong */
		if (s->many && !(i % 2))
			continue;
		make_tree(s->many);
		if (s->tar) {
			run(&settings[0], K_COUNT, 0, "1");
			if (!make_archive())
				printf("# the archive cannot be made\n");
		}
		whole = run(s, K_COUNT, 0, workers[i % 2]);
		for (k = 0; k < (s->many ? MANY_KINDS : nkinds); k++) {
			long runs = 0;
			unsigned int wrong;

			if (whole.err == -EOPNOTSUPP) {
				printf("ok %u # SKIP %s: a library is not there\n", ++number, s->name);
				continue;
			}
			wrong = whole.ok ? try_kind(s, kinds[k], workers[i % 2], &whole, &runs) : 1;

			printf("%sok %u - %s: %s fails: %ld runs, workers=%s\n", wrong ? "not " : "", ++number,
			       s->name, fault_names[kinds[k]], runs, workers[i % 2]);
			fflush(stdout);
		}
		fault_remove_tree(source);
	}
	fault_remove_tree(top);
	return 0;
}
