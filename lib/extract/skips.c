// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What could not be set or made for lack of privilege or support: counted, told in one line per kind. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "extract/extract_priv.h"

void erofs_skips_init(struct skips *s)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
}

void erofs_skips_fini(struct skips *s)
{
	unsigned int i;

	for (i = 0; i < SKIP_COUNT; i++)
		free(s->first[i]);
	pthread_mutex_destroy(&s->lock);
}

void erofs_skips_add(struct skips *s, enum skip kind, int err, const struct walk_dir *dir, const char *name)
{
	auto_free char *path = erofs_walk_path(dir, name, name ? strlen(name) : 0);

	pthread_mutex_lock(&s->lock);
	s->count[kind]++;
	if (path && (!s->first[kind] || strcmp(path, s->first[kind]) < 0)) {
		free(s->first[kind]);
		s->first[kind] = steal(path);
		s->err[kind] = err;
	}
	pthread_mutex_unlock(&s->lock);
}

static const char *describe(enum skip kind)
{
	switch (kind) {
	case SKIP_DEVICE: return "devices skipped";
	case SKIP_OWNER: return "owners not restored";
	case SKIP_XATTR_PRIV: return "privileged extended attributes skipped";
	case SKIP_XATTR: return "extended attributes skipped";
	case SKIP_LINK: return "hard links became copies";
	case SKIP_COUNT: break;
	}
	return "";
}

uint64_t erofs_skips_report(struct skips *s, struct erofs_diag *diag, bool strict)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < SKIP_COUNT; i++) {
		const char *path = s->first[i] ? s->first[i] : "?";
		auto_free char *text = malloc(4 * strlen(path) + 1);
		char why[80];

		if (!s->count[i])
			continue;
		if (i != SKIP_LINK)
			total += s->count[i];
		if (text)
			erofs_escape_name(path, strlen(path), text, 4 * strlen(path) + 1);
		if (strict && i != SKIP_LINK)
			erofs_diag_fail(diag, s->err[i], AT_NOWHERE, "%s: %" PRIu64 ", the first is %s",
					describe(i), s->count[i], text ? text : "?");
		else
			erofs_diag_warn_path(diag, NULL, "%s: %" PRIu64 ", the first is %s: %s", describe(i),
					     s->count[i], text ? text : "?",
					     erofs_diag_strerror(s->err[i], why, sizeof(why)));
	}
	return total;
}
