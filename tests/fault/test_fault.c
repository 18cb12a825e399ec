// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fault injection: of each kind of call the first fails, then the second, and so on until a run is over
 * before its turn. No run may crash, leak or hang; a run that says it succeeded must have done as much as
 * one without a fault (some calls have a fallback).
 */
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <erofs/erofs.h>

#include "fault.h"

/* ---- the run ---- */

struct outcome {
	bool ok, hit;
	struct erofs_check_result checked;
	struct erofs_extract_result extracted;
	uint64_t entries, bytes;	/* in the target */
};

static struct outcome *counting;

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	counting->entries++;
	if (type == FTW_F && S_ISREG(st->st_mode))
		counting->bytes += (uint64_t)st->st_size;
	return 0;
}

static int check_and_extract(const char *image, const char *target, struct erofs_engine *eng,
			     struct erofs_diag *diag, struct outcome *o)
{
	struct erofs_check_options full = { .size = sizeof(full), .data = 1 };
	struct erofs_extract_options extract = { .size = sizeof(extract), .target = target,
						 .preserve_owner = -1, .preserve_perms = -1 };
	static const char *const odd[] = { "**/* *", NULL };	/* what fs_config cannot hold */
	struct erofs_select_options leave = { .size = sizeof(leave), .excludes = odd };
	struct erofs_android_options config = { .size = sizeof(config), .mount_point = "/vendor" };
	struct erofs_select *select = NULL;
	struct erofs_image *img;
	char beside[4200];
	int err = erofs_open(image, NULL, diag, &img);

	if (err)
		return err;
	snprintf(beside, sizeof(beside), "%s/config of it", target);
	config.dir = beside;
	err = erofs_check(img, eng, &full, diag, &o->checked);
	if (!err)
		err = erofs_extract(img, eng, &extract, diag, &o->extracted);
	if (!err)
		err = erofs_select_new(&leave, &select);
	config.select = select;
	if (!err)
		err = erofs_android_config(img, eng, &config, diag, NULL);
	erofs_select_free(select);
	(void)erofs_name_findings(img, eng, diag, 0);
	erofs_close(img);
	return err;
}

static struct outcome run(const char *image, const char *folder, enum kind kind, long n, const char *workers)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct outcome o = { 0 };
	struct erofs_engine *eng = NULL;
	struct erofs_diag *diag;
	char target[4096];
	int err;

	snprintf(target, sizeof(target), "%s/x", folder);
	if (erofs_diag_new(NULL, NULL, &diag))
		return o;
	fault_arm(kind, n);
	err = erofs_engine_new(&options, diag, &eng);
	if (!err)
		err = check_and_extract(image, target, eng, diag, &o);
	erofs_engine_free(eng);
	o.hit = fault_disarm();
	o.ok = !err && !erofs_diag_count(diag, EROFS_SEV_FAIL) && !erofs_diag_count(diag, EROFS_SEV_CORRUPT) &&
	       !erofs_diag_count(diag, EROFS_SEV_WARNING);
	erofs_diag_free(diag);
	counting = &o;
	nftw(target, count_entry, 20, FTW_PHYS);
	fault_remove_tree(target);
	return o;
}

/* A copy with bytes behind its end: images below 1 MiB are not worth threads. */
static bool copy_padded(const char *from, const char *to)
{
	char buf[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t n;
	bool ok = in && out;

	while (ok && (n = fread(buf, 1, sizeof(buf), in)) > 0)
		ok = fwrite(buf, 1, n, out) == n;
	ok = ok && !fflush(out) && !ftruncate(fileno(out), 4 << 20);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	return ok;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
	return !memcmp(&a->checked, &b->checked, sizeof(a->checked)) &&
	       !memcmp(&a->extracted, &b->extracted, sizeof(a->extracted)) && a->entries == b->entries &&
	       a->bytes == b->bytes;
}

/* Fail the first, second, ... call of a kind. Return: how many runs claimed too much. */
static unsigned int try_kind(const char *image, const char *folder, enum kind kind, const char *workers,
			     const struct outcome *whole, long *ret_runs)
{
	unsigned int wrong = 0;
	long n;

	for (n = 1; n < 20000; n++) {
		struct outcome o = run(image, folder, kind, n, workers);

		if (o.ok && !same(&o, whole) && wrong++ < 5)
			printf("# %s %ld, workers=%s: success with %lu entries and %lu bytes of %lu and %lu\n",
			       fault_names[kind], n, workers, o.entries, o.bytes, whole->entries, whole->bytes);
		if (!o.hit)
			break;
	}
	*ret_runs = n;
	return wrong;
}

int main(void)
{
	static const char *const settings[] = { "1", "2" };
	const char *top = getenv("top_srcdir");
	char sample[4096], image[4096], folder[] = "/tmp/erofs-fault-XXXXXX";
	unsigned int i, k, number = 0;

	snprintf(sample, sizeof(sample), "%s/tests/data/sample.erofs", top ? top : ".");
	if (mkdtemp(folder))
		snprintf(image, sizeof(image), "%s/image", folder);
	if (access(sample, R_OK) || !copy_padded(sample, image)) {
		puts("1..0 # SKIP no sample image");
		return 0;
	}
	printf("1..%d\n", 2 * K_COUNT);
	for (i = 0; i < 2; i++) {
		struct outcome whole = run(image, folder, K_COUNT, 0, settings[i]);

		for (k = 0; k < K_COUNT; k++) {
			long runs;
			unsigned int wrong = whole.ok ? try_kind(image, folder, (enum kind)k, settings[i], &whole,
								 &runs) : 1;

			printf("%sok %u - %s fails: %ld runs, workers=%s\n", wrong ? "not " : "", ++number,
			       fault_names[k], whole.ok ? runs : 0, settings[i]);
			fflush(stdout);
		}
	}
	unlink(image);
	rmdir(folder);
	return 0;
}
