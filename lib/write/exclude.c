// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Names that are left out: exact paths and regular expressions. */
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "write/write_priv.h"

struct exclude {
	const char *const *paths;	/* borrowed */
	regex_t *regexes;
	size_t nregexes;
};

static int add_regex(struct exclude *ex, const char *word, struct erofs_diag *diag)
{
	char why[120];
	int r = regcomp(&ex->regexes[ex->nregexes], word, REG_EXTENDED | REG_NOSUB);

	if (r) {
		regerror(r, &ex->regexes[ex->nregexes], why, sizeof(why));
		return erofs_diag_fail(diag, -EINVAL, AT_NOWHERE, "the expression '%s' makes no sense (%s)",
				       word, why);
	}
	ex->nregexes++;
	return 0;
}

int erofs_exclude_new(const struct erofs_write_options *o, struct erofs_diag *diag, struct exclude **ret)
{
	struct exclude *ex = calloc(1, sizeof(*ex));
	size_t n = 0, i;
	int err = 0;

	if (!ex)
		return -ENOMEM;
	ex->paths = o->exclude_paths;
	while (o->exclude_regexes && o->exclude_regexes[n])
		n++;
	ex->regexes = calloc(n + 1, sizeof(*ex->regexes));
	if (!ex->regexes)
		err = -ENOMEM;
	for (i = 0; !err && i < n; i++)
		err = add_regex(ex, o->exclude_regexes[i], diag);
	if (err) {
		erofs_exclude_free(ex);
		return err;
	}
	*ret = ex;
	return 0;
}

void erofs_exclude_free(struct exclude *ex)
{
	if (!ex)
		return;
	while (ex->nregexes)
		regfree(&ex->regexes[--ex->nregexes]);
	free(ex->regexes);
	free(ex);
}

/* Slashes at the ends of the word do not matter. */
static bool is_same_path(const char *word, const char *path)
{
	size_t len;

	word += strspn(word, "/");
	if (!strncmp(word, "./", 2))
		word += 2;
	len = strlen(word);
	while (len && word[len - 1] == '/')
		len--;
	return strlen(path) == len && !memcmp(word, path, len);
}

bool erofs_exclude_has(const struct exclude *ex, const char *path)
{
	size_t i;

	for (i = 0; ex->paths && ex->paths[i]; i++)
		if (is_same_path(ex->paths[i], path))
			return true;
	for (i = 0; i < ex->nregexes; i++)
		if (!regexec(&ex->regexes[i], path, 0, NULL, 0))
			return true;
	return false;
}

int erofs_exclude_node(const struct writer *w, struct node *node)
{
	const struct exclude *ex = w->exclude;
	auto_free char *path = NULL;

	if (!ex->nregexes && !(ex->paths && *ex->paths))
		return 0;
	path = erofs_node_path(node);
	if (!path)
		return -ENOMEM;
	node->excluded = erofs_exclude_has(ex, path);
	return 0;
}
