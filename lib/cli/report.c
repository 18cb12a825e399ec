// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The parts of a report that more than one tool has. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <erofs/inode.h>
#include <erofs/version.h>

#include "cli/report.h"
#include "cli/features.h"

#define REPORT_SCHEMA "erofs-tools/1"

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

bool erofs_report_is_stdout(const struct cli_json_option *o)
{
	return o->wanted && is_stdout(o->path);
}

static bool is_same_file(const char *name, const struct stat *file)
{
	struct stat st;

	return (strcmp(name, "-") ? !stat(name, &st) : !fstat(STDIN_FILENO, &st)) &&
	       st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* An image is never written, not even by a slip of the keyboard. */
static bool is_input(const struct cli_json_option *o, const struct cli_input *in)
{
	struct stat st;
	unsigned int i;

	if (is_stdout(o->path) || stat(o->path, &st))
		return false;
	for (i = 0; i < in->devices.count; i++)
		if (is_same_file(in->devices.words[i], &st))
			return true;
	return is_same_file(in->image, &st);
}

/* A stream with a descriptor of its own: the other one is closed, and its errors told, as for any output. */
static FILE *open_stream(int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = own < 0 ? NULL : fdopen(own, "w");

	if (!file && own >= 0)
		close(own);
	return file;
}

int erofs_report_open(struct cli_report *r, struct cli *cli, const struct cli_json_option *o,
		      const struct cli_input *in)
{
	int err;

	*r = (struct cli_report){ .cli = cli, .image = in->image };
	if (!o->wanted)
		return 0;
	if (is_input(o, in)) {
		erofs_cli_say_plain(cli, 'E', "--json=%s is the image or a part of it", o->path);
		return -EINVAL;
	}
	err = erofs_cli_output_open(cli, o->path, &r->output);
	if (err)
		return err;
	r->file = is_stdout(o->path) ? stdout : open_stream(r->output.fd);
	if (!r->file) {
		erofs_cli_output_close(cli, &r->output, false);
		erofs_cli_say_plain(cli, 'E', "cannot write a report: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	erofs_json_init(&r->json, r->file, REPORT_LINES);
	cli->report = r;
	return 0;
}

void erofs_report_begin(struct cli_report *r, bool cancelled, bool damaged, int exit)
{
	const char *result = cancelled ? "cancelled" : damaged ? "damaged" : exit ? "failed" : "clean";
	const char *image = r->image;

	erofs_json_object(&r->json, NULL);
	erofs_json_text(&r->json, "schema", REPORT_SCHEMA);
	erofs_json_text(&r->json, "tool", r->cli->tool);
	erofs_json_text(&r->json, "version", erofs_version());
	erofs_json_bytes(&r->json, "image", image, image ? strlen(image) : 0);
	erofs_json_text(&r->json, "result", result);
	erofs_json_signed(&r->json, "exit", exit);
}

/* ---- superblock ---- */

static void put_words(struct cli_json *j, const char *key, const struct cli_feature *list, uint32_t bits)
{
	char word[32];

	erofs_json_array(j, key);
	for (; list->bit; list++) {
		const char *at = list->words;

		while (bits & list->bit && *at) {
			size_t len = strcspn(at, " ");

			snprintf(word, sizeof(word), "%.*s", (int)len, at);
			erofs_json_text(j, NULL, word);
			at += len + (at[len] == ' ');
		}
	}
	erofs_json_end(j);
}

/* 0 is "there is none" for these. */
static void put_special_nid(struct cli_json *j, const char *key, uint64_t nid)
{
	if (nid)
		erofs_json_nid(j, key, nid);
	else
		erofs_json_null(j, key);
}

static void put_features(struct cli_json *j, const struct erofs_super_info *info)
{
	unsigned int kernel = erofs_cli_kernel(info);
	char text[32];

	put_words(j, "compatible_features", erofs_cli_compatible, info->feature_compat);
	erofs_json_unsigned(j, "compatible_bits", info->feature_compat);
	put_words(j, "incompatible_features", erofs_cli_incompatible, info->feature_incompat);
	erofs_json_unsigned(j, "incompatible_bits", info->feature_incompat);
	if (info->feature_incompat & EROFS_INCOMPAT_COMPR_CFGS)
		put_words(j, "algorithms", erofs_cli_algorithms, info->compr_algs);
	else
		erofs_json_null(j, "algorithms");
	erofs_json_unsigned(j, "lz4_max_distance", info->lz4_max_distance);
	snprintf(text, sizeof(text), "%u.%u", kernel / 100, kernel % 100);
	erofs_json_text(j, "linux", kernel ? text : NULL);
}

void erofs_report_super(struct cli_report *r, const struct erofs_super_info *info)
{
	struct cli_json *j = &r->json;
	char uuid[37];

	erofs_json_object(j, "superblock");
	erofs_json_unsigned(j, "block_size", info->block_size);
	erofs_json_unsigned(j, "blocks", info->total_blocks);
	erofs_json_unsigned(j, "primary_blocks", info->blocks);
	erofs_json_unsigned(j, "extra_devices", info->extra_devices);
	erofs_json_unsigned(j, "meta_block", info->meta_block);
	erofs_json_unsigned(j, "xattr_block", info->xattr_block);
	erofs_json_nid(j, "root_nid", info->root_nid);
	put_special_nid(j, "packed_nid", info->packed_nid);
	put_special_nid(j, "metabox_nid", info->metabox_nid);
	erofs_json_unsigned(j, "super_size", info->super_size);
	erofs_json_unsigned(j, "inodes", info->inodes);
	erofs_json_time(j, "created", info->build_time, info->build_time_nsec);
	put_features(j, info);
	erofs_json_text(j, "uuid", erofs_cli_format_uuid(info->uuid, uuid));
	erofs_json_bytes(j, "volume_name", info->volume_name, strlen(info->volume_name));
	erofs_json_text(j, "checksum", info->checksum_ok > 0 ? "right" :
				       info->checksum_ok < 0 ? NULL : "wrong");
	erofs_json_end(j);
}

/* ---- inodes ---- */

const char *erofs_report_type(unsigned int type)
{
	static const char *const words[] = { "unknown", "regular", "directory", "char_device",
					     "block_device", "fifo", "socket", "symlink" };

	return words[type < sizeof(words) / sizeof(*words) ? type : 0];
}

const char *erofs_report_mode_type(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return erofs_report_type(1);
	case S_IFDIR: return erofs_report_type(2);
	case S_IFCHR: return erofs_report_type(3);
	case S_IFBLK: return erofs_report_type(4);
	case S_IFIFO: return erofs_report_type(5);
	case S_IFSOCK: return erofs_report_type(6);
	case S_IFLNK: return erofs_report_type(7);
	default: return erofs_report_type(0);
	}
}

void erofs_report_stat(struct cli_json *j, const struct erofs_stat *st)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", (unsigned int)st->mode & 07777);
	erofs_json_text(j, "mode", mode);
	erofs_json_unsigned(j, "uid", st->uid);
	erofs_json_unsigned(j, "gid", st->gid);
	erofs_json_unsigned(j, "links", st->nlink);
	erofs_json_unsigned(j, "size", st->size);
	erofs_json_unsigned(j, "stored", st->stored);
	erofs_json_time(j, "mtime", st->mtime, st->mtime_nsec);
	if (S_ISCHR(st->mode) || S_ISBLK(st->mode)) {
		erofs_json_object(j, "device");
		erofs_json_unsigned(j, "major", st->rdev_major);
		erofs_json_unsigned(j, "minor", st->rdev_minor);
		erofs_json_end(j);
	}
	erofs_json_unsigned(j, "layout", st->layout);
	erofs_json_unsigned(j, "inode_size", st->inode_size);
	erofs_json_unsigned(j, "xattr_size", st->xattr_size);
}

/* ---- findings ---- */

static void put_finding(struct cli_json *j, const struct erofs_finding *f)
{
	static const char *const severities[] = { "info", "warning", "damage", "failure" };

	erofs_json_object(j, NULL);
	erofs_json_text(j, "id", *f->id ? f->id : "failure");
	erofs_json_text(j, "severity", severities[f->severity]);
	if (f->has_nid)
		erofs_json_nid(j, "nid", f->nid);
	else
		erofs_json_null(j, "nid");
	erofs_json_bytes(j, "path", f->path, f->path ? strlen(f->path) : 0);
	if (f->has_off)
		erofs_json_unsigned(j, "offset", f->off);
	else
		erofs_json_null(j, "offset");
	if (f->has_len)
		erofs_json_unsigned(j, "length", f->len);
	else
		erofs_json_null(j, "length");
	erofs_json_text(j, "message", f->text);
	erofs_json_end(j);
}

void erofs_report_hear(struct cli_report *r, char letter, const char *text)
{
	char *copy = r->heard < REPORT_HEARD && (letter == 'E' || letter == 'W') ? strdup(text) : NULL;

	if (!copy)
		return;
	r->messages[r->heard].letter = letter;
	r->messages[r->heard++].text = copy;
}

void erofs_report_finding(struct cli_report *r, const struct erofs_finding *f)
{
	if (r->in_findings)
		put_finding(&r->json, f);
}

void erofs_report_findings(struct cli_report *r, struct erofs_diag *diag)
{
	uint64_t dropped = diag ? erofs_diag_dropped(diag) : 0;
	unsigned int i;

	erofs_json_array(&r->json, "findings");
	/* they have no path, and come first as such findings do */
	for (i = 0; i < r->heard; i++) {
		bool warning = r->messages[i].letter == 'W';

		put_finding(&r->json, &(struct erofs_finding){
			.id = warning ? "warning" : "",
			.severity = warning ? EROFS_SEV_WARNING : EROFS_SEV_FAIL,
			.text = r->messages[i].text,
		});
	}
	r->in_findings = true;
	if (diag)
		erofs_cli_flush(r->cli, diag);
	r->in_findings = false;
	erofs_json_end(&r->json);
	erofs_json_unsigned(&r->json, "findings_dropped", dropped);
}

/* ---- the end ---- */

int erofs_report_end(struct cli_report *r)
{
	bool failed;
	int err = 0;

	while (r->json.depth)
		erofs_json_end(&r->json);
	if (r->file == stdout)
		return 0;	/* whether all of it arrived shows when stdout is closed */
	failed = ferror(r->file);
	errno = 0;
	if (fclose(r->file) || failed) {
		err = errno ? -errno : -EIO;
		erofs_cli_say_plain(r->cli, 'E', "%s: cannot write: %s", r->output.name, strerror(-err));
	}
	r->file = NULL;
	if (erofs_cli_output_close(r->cli, &r->output, !err) && !err)
		err = -EIO;
	return err;
}

void erofs_report_close(struct cli_report *r)
{
	unsigned int i;

	for (i = 0; i < r->heard; i++)
		free(r->messages[i].text);
	r->heard = 0;
	if (r->file && r->file != stdout) {
		fclose(r->file);
		erofs_cli_output_close(r->cli, &r->output, false);
	}
	r->file = NULL;
	r->cli->report = NULL;
}
