// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which paths are meant: exact ones by binary search, so that long lists cost little, globs one by one. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "walk/select_priv.h"

struct pattern {
	char *word;		/* C  as given */
	char *text;		/* C  tidy; unescaped if exact */
	size_t len;		/* C  of text */
	bool glob;		/* C */
	struct pattern *same;	/* C  the exact one that stands for this one too, or NULL */
	atomic_bool matched;	/* A  relaxed */
};	/* C constant once created  A atomic, order stated */

/* Patterns that are looked for together. */
struct patterns {
	struct pattern *all;	/* in the order given */
	size_t nall;
	struct pattern **exact;	/* sorted by text, each once */
	size_t nexact;
	struct pattern **globs;
	size_t nglobs;
};

/* Where erofs_select_unmatched() stopped, so that a long list is not run through for each of its words. */
struct cursor {
	unsigned int index;
	size_t at;
};

struct erofs_select {
	struct patterns wanted, excluded;
	struct cursor *cursor;	/* O  whoever asks after the run */
};

/* ---- taking patterns ---- */

/* Drop slashes and "." parts that say nothing. */
static void tidy_text(char *text)
{
	const char *from = text;
	char *to = text;

	while (*from) {
		size_t len = strcspn(from, "/");

		if (len && !(len == 1 && *from == '.')) {
			if (to > text)
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len;
		from += *from == '/';
	}
	*to = '\0';
}

static void unescape_text(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\')
			text++;
		*to++ = *text;
	}
	*to = '\0';
}

static bool has_meta(const char *text)
{
	for (; *text; text++) {
		if (*text == '\\')
			text++;
		else if (strchr("*?[", *text))
			return true;
	}
	return false;
}

static int take_pattern(struct pattern *p, const char *word)
{
	p->word = strdup(word);
	p->text = strdup(word);
	if (!p->word || !p->text)
		return -ENOMEM;
	if (!erofs_glob_is_valid(word))
		return -EINVAL;
	tidy_text(p->text);
	p->glob = has_meta(p->text);
	if (!p->glob)
		unescape_text(p->text);
	p->len = strlen(p->text);
	return 0;
}

static size_t count_words(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

static int compare_patterns(const void *a, const void *b)
{
	const struct pattern *x = *(struct pattern *const *)a, *y = *(struct pattern *const *)b;
	int r = strcmp(x->text, y->text);

	return r ? r : (x > y) - (x < y);
}

/* Sort the exact ones and let the first of equal ones stand for all. */
static void sort_exact(struct patterns *ps)
{
	size_t i, n = 0;

	qsort(ps->exact, ps->nexact, sizeof(struct pattern *), compare_patterns);
	for (i = 0; i < ps->nexact; i++) {
		if (n && !strcmp(ps->exact[n - 1]->text, ps->exact[i]->text))
			ps->exact[i]->same = ps->exact[n - 1];
		else
			ps->exact[n++] = ps->exact[i];
	}
	ps->nexact = n;
}

static int take_patterns(struct patterns *ps, const char *const *words, const char *const *more)
{
	size_t i, n = count_words(words), all = n + count_words(more);
	int err;

	if (!all)
		return 0;
	ps->all = calloc(all, sizeof(*ps->all));
	ps->exact = calloc(all, sizeof(struct pattern *));
	ps->globs = calloc(all, sizeof(struct pattern *));
	if (!ps->all || !ps->exact || !ps->globs)
		return -ENOMEM;
	for (i = 0; i < all; i++) {
		ps->nall = i + 1;
		err = take_pattern(&ps->all[i], i < n ? words[i] : more[i - n]);
		if (err)
			return err;
		if (ps->all[i].glob)
			ps->globs[ps->nglobs++] = &ps->all[i];
		else
			ps->exact[ps->nexact++] = &ps->all[i];
	}
	sort_exact(ps);
	return 0;
}

static void free_patterns(struct patterns *ps)
{
	size_t i;

	for (i = 0; i < ps->nall; i++) {
		free(ps->all[i].word);
		free(ps->all[i].text);
	}
	free(ps->all);
	free(ps->exact);
	free(ps->globs);
}

void erofs_select_free(struct erofs_select *select)
{
	if (!select)
		return;
	free_patterns(&select->wanted);
	free_patterns(&select->excluded);
	free(select->cursor);
	free(select);
}

int erofs_select_new(const struct erofs_select_options *options, struct erofs_select **ret_select)
{
	struct erofs_select *s;
	int err;

	if (!options || options->size != sizeof(*options))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cursor = calloc(1, sizeof(*s->cursor));
	err = s->cursor ? take_patterns(&s->wanted, options->members, options->includes) : -ENOMEM;
	if (!err)
		err = take_patterns(&s->excluded, options->excludes, NULL);
	if (err) {
		erofs_select_free(s);
		return err;
	}
	*ret_select = s;
	return 0;
}

const char *erofs_select_unmatched(const struct erofs_select *select, unsigned int index)
{
	struct cursor *c = select->cursor;

	if (index < c->index || !index)
		*c = (struct cursor){ 0 };
	for (; c->at < select->wanted.nall; c->at++) {
		const struct pattern *p = &select->wanted.all[c->at];

		if (atomic_load_explicit(p->same ? &p->same->matched : &p->matched, memory_order_relaxed))
			continue;
		if (c->index == index)
			return p->word;
		c->index++;
	}
	return NULL;
}

/* ---- the verdict ---- */

/* @path, with a slash behind it if @slash, against a text. */
static int compare_path(const char *path, size_t len, bool slash, const struct pattern *p)
{
	size_t common = len < p->len ? len : p->len;
	int r = memcmp(path, p->text, common);

	if (r || p->len < len)
		return r ? r : 1;
	if (!slash)
		return len == p->len ? 0 : -1;
	if (p->len == len)
		return 1;
	return '/' - (unsigned char)p->text[len];
}

/* The first exact pattern that is not smaller. */
static size_t find_exact(const struct patterns *ps, const char *path, size_t len, bool slash)
{
	size_t low = 0, high = ps->nexact;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_path(path, len, slash, ps->exact[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Written once only: the flag's cache line is shared by all workers. */
static void note_match(struct pattern *p)
{
	if (!atomic_load_explicit(&p->matched, memory_order_relaxed))
		atomic_store_explicit(&p->matched, true, memory_order_relaxed);
}

static bool match_exact(const struct patterns *ps, const char *path, size_t len)
{
	size_t at = find_exact(ps, path, len, false);

	if (at == ps->nexact || compare_path(path, len, false, ps->exact[at]))
		return false;
	note_match(ps->exact[at]);
	return true;
}

/* @known: there is a match already, so only patterns without one are of interest. */
static bool match_globs(const struct patterns *ps, const char *path, size_t len, bool known)
{
	size_t i;

	for (i = 0; len && i < ps->nglobs; i++) {
		struct pattern *p = ps->globs[i];

		if (known && atomic_load_explicit(&p->matched, memory_order_relaxed))
			continue;
		if (!erofs_glob_match(p->text, path, len))
			continue;
		note_match(p);
		known = true;
	}
	return known;
}

static bool may_match_below(const struct patterns *ps, const char *path, size_t len)
{
	size_t i, at;

	if (!len)
		return true;
	at = find_exact(ps, path, len, true);
	if (at < ps->nexact && !compare_path(path, len, true, ps->exact[at]))
		return true;
	for (i = 0; i < ps->nglobs; i++)
		if (erofs_glob_may_match_below(ps->globs[i]->text, path, len))
			return true;
	return false;
}

enum select_verdict erofs_select_match(const struct erofs_select *s, const char *path, size_t len, bool inside)
{
	bool found;

	if (!s)
		return SELECT_YES;
	if (s->excluded.nall &&
	    (match_exact(&s->excluded, path, len) || match_globs(&s->excluded, path, len, false)))
		return SELECT_NO;
	if (!s->wanted.nall)
		return SELECT_YES;
	found = match_exact(&s->wanted, path, len);
	if (match_globs(&s->wanted, path, len, found || inside))
		return SELECT_YES;
	return may_match_below(&s->wanted, path, len) ? SELECT_PARENT : SELECT_NO;
}
