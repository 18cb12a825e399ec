// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* fs_config files: "PATH UID GID MODE [capabilities=0xMASK]". */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fsconfig.h"
#include "base/wire.h"

#define WHITE " \t\r\n\v\f"

struct fs_config {
	struct fs_config_entry *all;	/* sorted by path once it is loaded */
	size_t count, room;
};

/* One word of *at, which moves behind it; NULL: there is none. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, WHITE);
	size_t len = strcspn(word, WHITE);

	if (!len)
		return NULL;
	*at = word + len + (word[len] != 0);
	word[len] = 0;
	return word;
}

static bool take_number(const char *word, int base, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!word || !*word || strspn(word, "0123456789abcdefABCDEFxX") != strlen(word))
		return false;
	errno = 0;
	*ret = strtoull(word, &end, base);
	return !errno && !*end && *ret <= max;
}

/* The path begins the line; if white space does, it is the root. */
static char *take_path(char *line, char **ret_rest)
{
	size_t len = strcspn(line, WHITE);
	char *path = line;

	*ret_rest = line + len + (line[len] != 0);
	line[len] = 0;
	while (*path == '/')
		path++;
	len = strlen(path);
	while (len && path[len - 1] == '/')
		path[--len] = 0;
	return path;
}

/* What is wrong with the line; NULL: nothing. */
static const char *parse_line(char *line, struct fs_config_entry *e)
{
	uint64_t uid, gid, mode;
	char *rest, *word;

	e->path = take_path(line, &rest);
	if (!take_number(next_word(&rest), 10, UINT32_MAX, &uid))
		return "no owner";
	if (!take_number(next_word(&rest), 10, UINT32_MAX, &gid))
		return "no group";
	if (!take_number(next_word(&rest), 8, 07777, &mode))
		return "no mode";
	while ((word = next_word(&rest))) {
		if (!strncmp(word, "selabel=", 8))
			continue;	/* as build tools print it; labels come from file_contexts */
		if (strncmp(word, "capabilities=", 13) || !take_number(word + 13, 0, UINT64_MAX, &e->caps))
			return "neither capabilities nor selabel";
	}
	e->uid = (uint32_t)uid;
	e->gid = (uint32_t)gid;
	e->mode = (uint32_t)mode;
	return NULL;
}

static int add_entry(struct fs_config *c, const struct fs_config_entry *e)
{
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 256;
		struct fs_config_entry *grown = realloc(c->all, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		c->all = grown;
		c->room = room;
	}
	c->all[c->count] = *e;
	c->all[c->count].path = strdup(e->path);
	if (!c->all[c->count].path)
		return -ENOMEM;
	c->count++;
	return 0;
}

static int compare_entries(const void *va, const void *vb)
{
	const struct fs_config_entry *a = va, *b = vb;
	int r = strcmp(a->path, b->path);

	return r ? r : a->line < b->line ? -1 : a->line > b->line;
}

/* Lists of several parts name a folder in each; they must agree. */
static int check_doubles(const struct fs_config *c, const char *path, struct why *why)
{
	size_t i;

	for (i = 1; i < c->count; i++) {
		const struct fs_config_entry *a = &c->all[i - 1], *b = &c->all[i];

		if (!strcmp(a->path, b->path) &&
		    (a->uid != b->uid || a->gid != b->gid || a->mode != b->mode || a->caps != b->caps))
			return why_is(why, -EINVAL, "%s:%u: '%s' is something else in line %u",
				      path, b->line, b->path, a->line);
	}
	return 0;
}

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static int read_lines(struct fs_config *c, const char *path, struct why *why)
{
	auto_call(close_file) FILE *file = fopen(path, "re");
	auto_free char *line = NULL;
	struct fs_config_entry e;
	unsigned int number = 0;
	const char *wrong;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	if (!file)
		return why_is(why, -errno, "cannot open %s", path);
	while (!err && (errno = 0, len = getline(&line, &room, file)) >= 0) {
		number++;
		if (line[0] == '#' || strspn(line, WHITE) == (size_t)len)
			continue;
		e = (struct fs_config_entry){ .line = number };
		wrong = strlen(line) != (size_t)len ? "a byte that is zero" : parse_line(line, &e);
		if (wrong)
			return why_is(why, -EINVAL, "%s:%u: %s (wanted: PATH UID GID MODE [capabilities=MASK])",
				      path, number, wrong);
		err = add_entry(c, &e);
	}
	if (!err && (ferror(file) || errno == ENOMEM))
		err = why_is(why, errno ? -errno : -EIO, "cannot read %s", path);
	return err;
}

int erofs_fs_config_load(const char *path, struct why *why, struct fs_config **ret)
{
	struct fs_config *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = read_lines(c, path, why);
	if (!err && c->count)
		qsort(c->all, c->count, sizeof(*c->all), compare_entries);
	if (!err)
		err = check_doubles(c, path, why);
	if (err) {
		erofs_fs_config_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void erofs_fs_config_free(struct fs_config *c)
{
	if (!c)
		return;
	while (c->count)
		free((char *)c->all[--c->count].path);
	free(c->all);
	free(c);
}

static int compare_path(const void *path, const void *entry)
{
	return strcmp(path, ((const struct fs_config_entry *)entry)->path);
}

const struct fs_config_entry *erofs_fs_config_find(const struct fs_config *c, const char *path)
{
	return c->count ? bsearch(path, c->all, c->count, sizeof(*c->all), compare_path) : NULL;
}

/* struct vfs_cap_data of Linux's ABI, revision 2, with the bit that makes them effective */
void erofs_fs_config_caps(uint64_t caps, uint8_t value[FS_CONFIG_CAPS_SIZE])
{
	memset(value, 0, FS_CONFIG_CAPS_SIZE);
	put_le32(value, UINT32_C(0x02000001));
	put_le32(value + 4, (uint32_t)caps);
	put_le32(value + 12, (uint32_t)(caps >> 32));
}
