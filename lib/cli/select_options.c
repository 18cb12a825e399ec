// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Options that say which names are meant: members, globs, lists in files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/tree_options.h"

#define TEXT_FIRST 65536	/* bytes read at first from a list */

int erofs_cli_select_option(struct cli_parse *p, struct cli_select *s)
{
	uint64_t n;

	switch (p->opt->id) {
	case CLI_INCLUDE: return erofs_cli_append(&s->includes, p->arg);
	case CLI_EXCLUDE: return erofs_cli_append(&s->excludes, p->arg);
	case CLI_FILES_FROM: s->files_from = p->arg; return 1;
	case CLI_NULL: s->null_ended = true; return 1;
	case CLI_STRIP:
		if (!erofs_cli_number(p->arg, &n) || n > UINT16_MAX)
			return erofs_cli_bad_value(p, "a number of parts");
		s->strip_components = (unsigned int)n;
		return 1;
	default: return 0;
	}
}

const char *erofs_cli_select_named(const struct cli_select *s)
{
	return s->includes.count ? "--include" : s->excludes.count ? "--exclude" :
	       s->files_from ? "--files-from" : s->strip_components ? "--strip-components" :
	       s->null_ended ? "--null" : NULL;
}

/* ---- lists in files ---- */

static int fail(const struct cli *cli, const struct cli_select *s, int err)
{
	erofs_cli_say_plain(cli, 'E', "%s: cannot read the names: %s", s->files_from, strerror(-err));
	return err;
}

/* All of it, with a NUL behind. */
static int read_text(FILE *f, char **ret_text, size_t *ret_len)
{
	auto_free char *text = malloc(TEXT_FIRST);
	size_t len = 0, room = TEXT_FIRST;

	while (text) {
		len += fread(text + len, 1, room - len - 1, f);
		if (ferror(f))
			return errno ? -errno : -EIO;
		if (feof(f))
			break;
		if (len == room - 1) {
			char *grown = realloc(text, room *= 2);

			if (!grown)
				return -ENOMEM;
			(void)steal(text);
			text = grown;
		}
	}
	if (!text)
		return -ENOMEM;
	text[len] = '\0';
	*ret_len = len;
	*ret_text = steal(text);
	return 0;
}

/* Names from a list are exact: what has a meaning in globs is escaped. */
static char *escape_name(const char *name, size_t len)
{
	char *word = malloc(2 * len + 1), *to = word;

	if (!word)
		return NULL;
	for (; len; len--, name++) {
		if (strchr("*?[\\", *name))
			*to++ = '\\';
		*to++ = *name;
	}
	*to = '\0';
	return word;
}

static int add_name(struct cli_select *s, const char *name, size_t len)
{
	auto_free char *word = NULL;
	int err;

	if (!len)
		return 0;
	word = escape_name(name, len);
	err = word ? erofs_cli_append(&s->names, word) : -ENOMEM;
	if (err < 0)
		return err;
	(void)steal(word);
	return 0;
}

static int split_text(struct cli_select *s, const char *text, size_t len)
{
	char end = s->null_ended ? '\0' : '\n';
	int err = 0;

	while (len && !err) {
		const char *stop = memchr(text, end, len);
		size_t n = stop ? (size_t)(stop - text) : len;

		/* a NUL cannot be in a name */
		if (memchr(text, '\0', n))
			return -EILSEQ;
		err = add_name(s, text, n);
		text += n + (stop != NULL);
		len -= n + (stop != NULL);
	}
	return err;
}

static int read_names(const struct cli *cli, struct cli_select *s)
{
	bool is_stdin = !strcmp(s->files_from, "-");
	FILE *f = is_stdin ? stdin : fopen(s->files_from, "re");
	auto_free char *text = NULL;
	size_t len = 0;
	int err;

	if (!f)
		return fail(cli, s, -errno);
	errno = 0;
	err = read_text(f, &text, &len);
	if (!is_stdin)
		fclose(f);
	if (!err)
		err = split_text(s, text, len);
	return err ? fail(cli, s, err) : 0;
}

/* ---- the selection ---- */

/* Name the pattern that makes no sense. */
static int report_bad(const struct cli *cli, const struct cli_list *list, int usage_status)
{
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		const char *const one[] = { list->words[i], NULL };
		struct erofs_select_options options = { .size = sizeof(options), .members = one };
		struct erofs_select *select;
		char shown[400];
		int err = erofs_select_new(&options, &select);

		if (!err) {
			erofs_select_free(select);
			continue;
		}
		erofs_escape_name(one[0], strlen(one[0]), shown, sizeof(shown));
		erofs_cli_usage(cli, usage_status, "'%s' is no pattern", shown);
		return err;
	}
	return 0;
}

/* Members and names from a list in one. */
static int join_members(struct cli_select *s, struct cli_list *ret)
{
	unsigned int i;
	int err = 1;

	*ret = (struct cli_list){ 0 };
	for (i = 0; err > 0 && i < s->members.count; i++)
		err = erofs_cli_append(ret, s->members.words[i]);
	for (i = 0; err > 0 && i < s->names.count; i++)
		err = erofs_cli_append(ret, s->names.words[i]);
	return err < 0 ? err : 0;
}

int erofs_cli_select_make(const struct cli *cli, struct cli_select *s, int usage_status)
{
	struct erofs_select_options options = { .size = sizeof(options), .includes = s->includes.words,
						.excludes = s->excludes.words };
	struct cli_list members = { 0 };
	int err;

	if (s->null_ended && !s->files_from) {
		erofs_cli_usage(cli, usage_status, "--null needs --files-from");
		return -EINVAL;
	}
	err = s->files_from ? read_names(cli, s) : 0;
	if (err)
		return err;
	if (s->files_from && !s->names.count && !s->members.count && !s->includes.count)
		return fail(cli, s, -ENODATA);
	err = join_members(s, &members);
	options.members = members.words;
	if (!err && (members.count || s->includes.count || s->excludes.count))
		err = erofs_select_new(&options, &s->select);
	free(members.words);
	if (err == -EINVAL && !report_bad(cli, &s->members, usage_status) &&
	    !report_bad(cli, &s->includes, usage_status))
		(void)report_bad(cli, &s->excludes, usage_status);
	else if (err && err != -EINVAL)
		erofs_cli_say_plain(cli, 'E', "cannot take the patterns: %s", strerror(-err));
	return err;
}

unsigned int erofs_cli_select_unmatched(const struct cli *cli, const struct cli_select *s)
{
	unsigned int n;
	const char *word;

	for (n = 0; s->select && (word = erofs_select_unmatched(s->select, n)); n++) {
		char *shown = erofs_cli_escape(word, strlen(word));

		erofs_cli_say(cli, 'E', "%s: nothing in the image matches", shown ? shown : "?");
		free(shown);
	}
	return n;
}

void erofs_cli_select_fini(struct cli_select *s)
{
	unsigned int i;

	for (i = 0; i < s->names.count; i++)
		free((char *)s->names.words[i]);
	free(s->names.words);
	free(s->members.words);
	free(s->includes.words);
	free(s->excludes.words);
	erofs_select_free(s->select);
}
