// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/*
 * Labels by libselinux, which is loaded when the first are wanted. It says what is wrong on standard error,
 * without a file and sometimes without a line: lines are looked at before it sees them, and it is silenced.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/selabel.h"

#ifdef HAVE_LIBSELINUX
#include <dlfcn.h>
#include <regex.h>
#include <selinux/label.h>
#include <selinux/selinux.h>

#define LIBSELINUX "libselinux.so.1"
#define WHITE " \t\r\n\v\f"

struct api {
	__typeof__(&selabel_open) open;
	__typeof__(&selabel_close) close;
	__typeof__(&selabel_lookup_raw) lookup;
	__typeof__(&freecon) freecon;
	__typeof__(&selinux_get_callback) get_callback;
	__typeof__(&selinux_set_callback) set_callback;
};

struct selabel {
	struct api api;
	struct selabel_handle *handle;
	struct why *why;
	char *file;
	char *label;
};

static bool load(struct api *api)
{
	void *lib = dlopen(LIBSELINUX, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!lib)
		return false;
	/* POSIX's way from an object pointer to a function pointer */
	*(void **)&api->open = dlsym(lib, "selabel_open");
	*(void **)&api->close = dlsym(lib, "selabel_close");
	*(void **)&api->lookup = dlsym(lib, "selabel_lookup_raw");
	*(void **)&api->freecon = dlsym(lib, "freecon");
	*(void **)&api->get_callback = dlsym(lib, "selinux_get_callback");
	*(void **)&api->set_callback = dlsym(lib, "selinux_set_callback");
	return api->open && api->close && api->lookup && api->freecon && api->get_callback && api->set_callback;
}

static int say_nothing(int type, const char *fmt, ...)
{
	(void)type;
	(void)fmt;
	return 0;
}

/* ---- lines ---- */

static bool is_type(const char *word, size_t len)
{
	return len == 2 && word[0] == '-' && strchr("bcdpls-", word[1]);
}

/* What is wrong with the line, apart from its expression; NULL: nothing. */
static const char *check_line(const char *line)
{
	const char *word[4];
	size_t len[4], n = 0;

	for (line += strspn(line, WHITE); *line && n < 4; line += strspn(line, WHITE)) {
		word[n] = line;
		len[n] = strcspn(line, WHITE);
		line += len[n++];
	}
	if (!n || *word[0] == '#')
		return NULL;
	if (n < 2)
		return "no label";
	if (n > 3)
		return "more than three words";
	return n == 3 && !is_type(word[1], len[1]) ? "no type of file" : NULL;
}

/* Expressions are libselinux's matter; this finds the line when it refuses one. */
static const char *check_expression(const char *line)
{
	auto_free char *word = NULL;
	regex_t regex;

	line += strspn(line, WHITE);
	if (!*line || *line == '#')
		return NULL;
	word = strndup(line, strcspn(line, WHITE));
	if (!word)
		return NULL;
	if (regcomp(&regex, word, REG_EXTENDED | REG_NOSUB))
		return "an expression that makes no sense";
	regfree(&regex);
	return NULL;
}

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static int check_lines(const char *path, struct why *why, const char *(*check)(const char *line))
{
	auto_call(close_file) FILE *file = fopen(path, "re");
	auto_free char *line = NULL;
	unsigned int number = 0;
	const char *wrong;
	size_t room = 0;

	if (!file)
		return why_is(why, -errno, "cannot open %s", path);
	while (errno = 0, getline(&line, &room, file) >= 0) {
		number++;
		wrong = check(line);
		if (wrong)
			return why_is(why, -EINVAL, "%s:%u: %s (wanted: EXPRESSION [-TYPE] LABEL)",
				      path, number, wrong);
	}
	if (ferror(file) || errno)
		return why_is(why, errno ? -errno : -EIO, "cannot read %s", path);
	return 0;
}

/* ---- labels ---- */

static int open_handle(struct selabel *s)
{
	struct selinux_opt opts[] = {
		{ SELABEL_OPT_PATH, s->file },
		{ SELABEL_OPT_BASEONLY, (const char *)1 },
	};
	union selinux_callback old = s->api.get_callback(SELINUX_CB_LOG);

	s->api.set_callback(SELINUX_CB_LOG, (union selinux_callback){ .func_log = say_nothing });
	errno = 0;
	s->handle = s->api.open(SELABEL_CTX_FILE, opts, 2);
	s->api.set_callback(SELINUX_CB_LOG, old);
	return s->handle ? 0 : errno ? -errno : -EINVAL;
}

/* The first line that explains it, else the file. */
static int fail_file(struct selabel *s, int err)
{
	int told = check_lines(s->file, s->why, check_expression);

	return told ? told : why_is(s->why, err, "cannot use the labels of %s", s->file);
}

int erofs_selabel_open(const char *path, struct why *why, struct selabel **ret)
{
	struct selabel *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->why = why;
	s->file = strdup(path);
	err = s->file ? check_lines(path, why, check_line) : -ENOMEM;
	if (!err && !load(&s->api))
		err = why_is(why, -EOPNOTSUPP, "labels need libselinux, which is not there");
	if (!err) {
		err = open_handle(s);
		if (err)
			err = fail_file(s, err);
	}
	if (err) {
		erofs_selabel_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void erofs_selabel_free(struct selabel *s)
{
	if (!s)
		return;
	if (s->label)
		s->api.freecon(s->label);
	if (s->handle)
		s->api.close(s->handle);
	free(s->file);
	free(s);
}

int erofs_selabel_find(struct selabel *s, const char *path, uint32_t mode, const char **ret_label)
{
	union selinux_callback old = s->api.get_callback(SELINUX_CB_LOG);
	int r, err;

	if (s->label)
		s->api.freecon(s->label);
	s->label = NULL;
	s->api.set_callback(SELINUX_CB_LOG, (union selinux_callback){ .func_log = say_nothing });
	errno = 0;
	r = s->api.lookup(s->handle, &s->label, path, (int)mode);
	err = errno ? -errno : -EINVAL;
	s->api.set_callback(SELINUX_CB_LOG, old);
	if (r && err != -ENOENT)
		return fail_file(s, err);
	if (r || !s->label)
		return 0;
	*ret_label = s->label;
	return 1;
}

#else

struct selabel {
	int none;
};

int erofs_selabel_open(const char *path, struct why *why, struct selabel **ret)
{
	(void)ret;
	return why_is(why, -EOPNOTSUPP, "%s: labels need libselinux, which is not there", path);
}

void erofs_selabel_free(struct selabel *s)
{
	(void)s;
}

int erofs_selabel_find(struct selabel *s, const char *path, uint32_t mode, const char **ret_label)
{
	(void)s;
	(void)path;
	(void)mode;
	(void)ret_label;
	return -EOPNOTSUPP;
}

#endif
