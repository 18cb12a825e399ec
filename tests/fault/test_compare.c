// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults while an image is compared with its source: of each kind of call the first fails, then the second,
 * and so on; behind the first not each. Each source once as it was put in and once changed. A run without a
 * failure reported has found what a run without a fault finds. One with a failure ends in an error, is not
 * complete, and has found nothing that is not so. None calls the image damaged or keeps descriptors.
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

#define EACH 80		/* so many calls of a kind fail one by one, then fewer and fewer */
#define STEP 4
#define MANY_NAMES 300		/* of a folder: more than a parcel */
#define MAX_TOLD 64

struct setting {
	const char *name, *source;
	enum erofs_compare_kind kind;
	bool lists;			/* Android's */
};

static const struct setting settings[] = {
	{ "the folder", "same", EROFS_COMPARE_DIR, false },
	{ "another folder", "other", EROFS_COMPARE_DIR, false },
	{ "the archive", "same.tar", EROFS_COMPARE_TAR, false },
	{ "another archive", "other.tar", EROFS_COMPARE_TAR, false },
	{ "the manifest", "same.mtree", EROFS_COMPARE_MTREE, false },
	{ "another manifest", "other.mtree", EROFS_COMPARE_MTREE, false },
	{ "the folder and lists", "same", EROFS_COMPARE_DIR, true },
	{ "another folder and lists", "other", EROFS_COMPARE_DIR, true },
};

static char top[64];

static const char *at_top(char *buf, size_t size, const char *name)
{
	snprintf(buf, size, "%s/%s", top, name);
	return buf;
}

/* ---- sources ---- */

static bool put(const char *folder, const char *name, size_t len, size_t changed)
{
	char path[160];
	FILE *file;
	size_t i;

	snprintf(path, sizeof(path), "%s/%s/%s", top, folder, name);
	file = fopen(path, "wb");
	for (i = 0; file && i < len; i++)
		putc(i + 1 == changed ? '!' : "a few words of text\n"[(i + i / 5000) % 20], file);
	return file && !fclose(file);
}

static bool put_link(const char *folder, const char *name, const char *to, bool symbolic)
{
	char path[160], old[160];

	snprintf(path, sizeof(path), "%s/%s/%s", top, folder, name);
	snprintf(old, sizeof(old), "%s/%s/%s", top, folder, to);
	return !(symbolic ? symlink(to, path) : link(old, path));
}

static void set_facts(const char *folder, const char *name, mode_t mode, const char *value)
{
	const struct timespec times[2] = { { .tv_sec = 1600000000 }, { .tv_sec = 1600000000, .tv_nsec = 5 } };
	char path[160];

	snprintf(path, sizeof(path), "%s/%s/%s", top, folder, name);
	if (mode && chmod(path, mode))
		perror(path);
	/* where the file system has them */
	if (value)
		(void)!setxattr(path, "user.note", value, strlen(value), 0);
	if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW))
		perror(path);
}

static bool make_tree(const char *folder, bool other)
{
	static const char *const folders[] = { "", "below", "below/deeper", "many" };
	const char *const names[] = { "small", "odd", "large", "twin", "link", "below/deeper/file", "below/deeper",
				      "below", "many", other ? "more" : "gone", "." };
	char path[160], name[32];
	unsigned int i;
	bool ok = true;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", top, folder, folders[i]);
		ok = ok && !mkdir(path, 0755);
	}
	ok = ok && put(folder, "small", 5000, other ? 4100 : 0) && put(folder, "odd", 20000, 0) &&
	     put(folder, "large", 2500000, other ? 1700001 : 0) && put(folder, "below/deeper/file", 10, 0) &&
	     put(folder, other ? "more" : "gone", 100, 0);
	ok = ok && (other ? put(folder, "twin", 20000, 0) : put_link(folder, "twin", "odd", false));
	ok = ok && put_link(folder, "link", other ? "there" : "where it leads", true);
	for (i = 0; ok && i < MANY_NAMES; i++) {
		snprintf(name, sizeof(name), "many/%03u", i);
		ok = put(folder, name, i % 4, 0);
		set_facts(folder, name, 0600, NULL);
	}
	set_facts(folder, "small", other ? 0640 : 0600, "value");
	set_facts(folder, "below/deeper/file", 0644, other ? "another" : "value");
	set_facts(folder, "below/deeper", 0755, "value");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		set_facts(folder, names[i], 0, NULL);
	return ok;
}

static int make_image(const char *folder, struct erofs_engine *eng, struct erofs_diag *diag)
{
	char source[128], output[128];
	struct erofs_write_options w = {
		.size = sizeof(w), .output = output, .source = at_top(source, sizeof(source), folder), .has_time = 1,
		.xattr_tolerance = 2, .compressors = "lz4", .pcluster_size = 16384, .fragments = 1,
	};

	snprintf(output, sizeof(output), "%s/%s.img", top, folder);
	return erofs_write(&w, eng, diag, NULL);
}

static int make_lists(const char *folder, struct erofs_engine *eng, struct erofs_diag *diag)
{
	char path[128], name[32];
	struct erofs_tar_options tar = { .size = sizeof(tar) };
	struct erofs_mtree_options mtree = { .size = sizeof(mtree), .xattrs = 1 };
	struct erofs_image *img;
	int err;

	snprintf(name, sizeof(name), "%s.img", folder);
	err = erofs_open(at_top(path, sizeof(path), name), NULL, diag, &img);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%s.tar", folder);
	tar.fd = open(at_top(path, sizeof(path), name), O_CREAT | O_WRONLY, 0600);
	snprintf(name, sizeof(name), "%s.mtree", folder);
	mtree.fd = open(at_top(path, sizeof(path), name), O_CREAT | O_WRONLY, 0600);
	err = erofs_to_tar(img, eng, &tar, diag, NULL);
	if (!err)
		err = erofs_to_mtree(img, eng, &mtree, diag, NULL);
	if (err == -EOPNOTSUPP)
		err = 0;		/* no digests here, and so no manifests */
	close(tar.fd);
	close(mtree.fd);
	erofs_close(img);
	return err;
}

/* The lists say what the folder has, as far as it goes. */
static bool put_android(void)
{
	char path[128];
	FILE *file = fopen(at_top(path, sizeof(path), "config"), "w");
	unsigned int i;

	if (!file)
		return false;
	fprintf(file, " %u %u 0755\n/ %u %u 0755\n", geteuid(), getegid(), geteuid(), getegid());
	for (i = 0; i < MANY_NAMES; i++)
		fprintf(file, "many/%03u %u %u 0600\n", i, geteuid(), getegid());
	for (i = 0; i < 10; i++) {
		static const char *const names[] = { "small", "odd", "large", "twin", "link", "gone", "more", "below",
						     "below/deeper", "many" };

		fprintf(file, "%s %u %u %s\n", names[i], geteuid(), getegid(),
			i == 4 ? "0777" : i > 6 ? "0755" : i ? "0644" : "0600");
	}
	fprintf(file, "below/deeper/file %u %u 0644\n", geteuid(), getegid());
	return !fclose(file);
}

static bool prepare(void)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = "1" };
	struct erofs_engine *eng = NULL;
	struct erofs_diag *diag = NULL;
	unsigned int i;
	bool ok;

	umask(022);
	snprintf(top, sizeof(top), "%s/erofs-fault-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(top))
		return false;
	setenv("TMPDIR", top, 1);
	ok = !erofs_diag_new(NULL, NULL, &diag) && !erofs_engine_new(&options, diag, &eng);
	for (i = 0; i < 2 && ok; i++) {
		const char *folder = i ? "other" : "same";

		ok = make_tree(folder, i) && !make_image(folder, eng, diag) && !make_lists(folder, eng, diag);
	}
	erofs_engine_free(eng);
	erofs_diag_free(diag);
	return ok && put_android();
}

/* ---- a run ---- */

struct outcome {
	bool hit;
	int err;
	uint64_t failures, damages;
	int descriptors;		/* more than before */
	struct erofs_compare_result result;
	unsigned int ntold;
	uint64_t told[MAX_TOLD];	/* what was found, a sum of each */
};

static void take_difference(void *priv, const struct erofs_difference *d)
{
	const char *const parts[] = { d->path, d->key, d->found, d->wanted };
	struct outcome *o = priv;
	uint64_t sum = UINT64_C(1469598103934665603);
	unsigned int i;
	const char *s;

	for (i = 0; i < 4; i++)
		for (s = parts[i]; *s || s == parts[i]; s++)
			sum = (sum ^ (unsigned char)*s) * UINT64_C(1099511628211) + i;
	if (o->ntold < MAX_TOLD)
		o->told[o->ntold++] = sum;
	if (getenv("SHOW"))
		printf("#   %s: %s (%s, %s)\n", d->path, d->key, d->found, d->wanted);
}

static int count_descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void show_finding(void *priv, const struct erofs_finding *f)
{
	char text[500];

	(void)priv;
	erofs_diag_format(f, text, sizeof(text));
	printf("#   %s\n", text);
}

static void run(const struct setting *s, enum kind kind, long n, const char *workers, struct outcome *o)
{
	char source[128], image[128], config[128];
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };
	struct erofs_compare_options c = {
		.size = sizeof(c), .kind = s->kind, .source = at_top(source, sizeof(source), s->source),
		.fn = take_difference, .priv = o,
	};
	struct erofs_engine *eng = NULL;
	struct erofs_image *img = NULL;
	struct erofs_diag *diag;

	*o = (struct outcome){ .descriptors = count_descriptors() };
	if (s->lists)
		c.fs_config_file = at_top(config, sizeof(config), "config");
	if (erofs_diag_new(getenv("SHOW") ? show_finding : NULL, NULL, &diag)) {
		o->err = -ENOMEM;
		return;
	}
	o->err = erofs_open(at_top(image, sizeof(image), "same.img"), NULL, diag, &img);
	if (!o->err)
		o->err = erofs_engine_new(&options, diag, &eng);
	if (!o->err) {
		fault_arm(kind, n);
		o->err = erofs_compare(img, eng, &c, diag, &o->result);
		o->hit = fault_disarm();
	}
	erofs_engine_free(eng);
	erofs_close(img);
	o->failures = erofs_diag_count(diag, EROFS_SEV_FAIL);
	o->damages = erofs_diag_count(diag, EROFS_SEV_CORRUPT);
	if (getenv("SHOW"))
		erofs_diag_flush(diag);
	erofs_diag_free(diag);
	o->descriptors = count_descriptors() - o->descriptors;
}

static bool is_part(const struct outcome *o, const struct outcome *whole)
{
	unsigned int i, k;

	for (i = 0; i < o->ntold; i++) {
		for (k = 0; k < whole->ntold && whole->told[k] != o->told[i]; k++)
			;
		if (k == whole->ntold)
			return false;
	}
	return true;
}

static const char *what_is_wrong(const struct outcome *o, const struct outcome *whole)
{
	if (o->descriptors)
		return "descriptors are left open";
	if (o->damages)
		return "the image is called damaged";
	if (!is_part(o, whole))
		return "a difference that there is not";
	if (o->failures)
		return !o->err ? "success with a failure reported" :
		       o->result.complete ? "complete with a failure reported" : NULL;
	if (o->err && o->err != whole->err)
		return o->err == -ENOMEM && !o->result.complete ? NULL : "a failure without a word";
	if (o->err != whole->err || o->ntold != whole->ntold ||
	    memcmp(&o->result, &whole->result, sizeof(o->result)))
		return "not all is compared, and no failure reported";
	return NULL;
}

static unsigned int try_kind(const struct setting *s, enum kind kind, const char *workers,
			     const struct outcome *whole, long *ret_runs)
{
	unsigned int wrong = 0;
	struct outcome o;
	long n;

	*ret_runs = 0;
	for (n = 1; n < 200000; n += n < EACH ? 1 : n / STEP) {
		const char *why;

		run(s, kind, n, workers, &o);
		++*ret_runs;
		why = what_is_wrong(&o, whole);
		if (why && wrong++ < 5)
			printf("# %s %ld, workers=%s: %s (%d; %u differences of %u)\n", fault_names[kind], n, workers,
			       why, o.err, o.ntold, whole->ntold);
		if (!o.hit)
			break;
	}
	return wrong;
}

/* A large file that becomes another while its ranges are compared: no run finds the image to be as it should. */
static bool tell_growth(const char *workers)
{
	struct outcome o;
	long n;

	for (n = 1; n < 100; n++) {
		run(&settings[0], K_SIZE, n, workers, &o);
		if (!o.hit)
			break;
		if (o.err && (o.failures || o.ntold))
			continue;
		printf("# size %ld: %d, %u differences, %u failures\n", n, o.err, o.ntold, (unsigned int)o.failures);
		return false;
	}
	return n > 3 && n < 100;
}

static const enum kind kinds[] = {
	K_MEMORY, K_PREAD, K_READ, K_OPENAT, K_OPEN, K_MMAP, K_CLOSE, K_THREAD, K_FOLDER, K_NAMES, K_TARGET, K_XATTR,
	K_STAT, K_SEEK,
};

/* The whole run of a changed source finds changes, that of the other none. */
static bool is_whole(const struct setting *s, const struct outcome *o)
{
	bool other = !strncmp(s->source, "other", 5);

	return !o->failures && !o->damages && o->result.complete && o->err == (other ? -EUCLEAN : 0) &&
	       (other ? o->ntold >= 6 && o->ntold < MAX_TOLD : !o->ntold);
}

int main(void)
{
	const unsigned int nkinds = sizeof(kinds) / sizeof(*kinds), nsettings = sizeof(settings) / sizeof(*settings);
	static const char *const workers[] = { "1", "2" };
	const char *show = getenv("SHOW");	/* "SETTING KIND N": this run alone, with what it says */
	unsigned int i, k, n, number = 0;
	struct outcome whole, one;

	if (!prepare()) {
		puts("1..1\nnot ok 1 - the sources cannot be made");
	} else if (show && sscanf(show, "%u %u %u", &i, &k, &n) == 3 && i < 2 * nsettings && k < nkinds) {
		run(&settings[i / 2], kinds[k], n, workers[i % 2], &one);
		printf("# %s, %s: %d, %u differences, complete %d, %d descriptors left\n", settings[i / 2].name,
		       fault_names[kinds[k]], one.err, one.ntold, one.result.complete, one.descriptors);
	} else {
		printf("1..%u\n", 2 * nsettings * nkinds + 2);
		for (i = 0; i < 2; i++)
			printf("%sok %u - a large file that changes meanwhile is told of, workers=%s\n",
			       tell_growth(workers[i]) ? "" : "not ", ++number, workers[i]);
		for (i = 0; i < 2 * nsettings; i++) {
			const struct setting *s = &settings[i / 2];

			run(s, K_COUNT, 0, workers[i % 2], &whole);
			for (k = 0; k < nkinds; k++) {
				long runs = 0;
				unsigned int wrong = 1;

				if (whole.err == -EOPNOTSUPP) {
					printf("ok %u # SKIP %s: a library is not there\n", ++number, s->name);
					continue;
				}
				if (is_whole(s, &whole))
					wrong = try_kind(s, kinds[k], workers[i % 2], &whole, &runs);
				else
					printf("# without a fault: %d, %u differences\n", whole.err, whole.ntold);
				printf("%sok %u - %s: %s fails: %ld runs, workers=%s\n", wrong ? "not " : "", ++number,
				       s->name, fault_names[kinds[k]], runs, workers[i % 2]);
				fflush(stdout);
			}
		}
	}
	fault_remove_tree(top);
	return 0;
}
