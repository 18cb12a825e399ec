// SPDX-License-Identifier: GPL-2.0-or-later
/* --verify: is the image what was put in? Differences are told as they come. */
#include <errno.h>
#include <string.h>

#include "fsck.h"

static const struct {
	const char *word;
	enum erofs_compare_kind kind;
} kinds[] = {
	{ "dir:", EROFS_COMPARE_DIR },
	{ "tar:", EROFS_COMPARE_TAR },
	{ "mtree:", EROFS_COMPARE_MTREE },
};

int fsck_take_verify(const struct cli_parse *p, struct fsck_options *o)
{
	size_t i, len;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		len = strlen(kinds[i].word);
		if (strncmp(p->arg, kinds[i].word, len) || !p->arg[len])
			continue;
		o->verify = p->arg;
		o->verify_kind = kinds[i].kind;
		o->verify_source = p->arg + len;
		return 1;
	}
	return erofs_cli_bad_value(p, "dir:PATH, tar:FILE or mtree:FILE");
}

int fsck_take_verify_only(const struct cli_parse *p, struct fsck_options *o)
{
	const char *word = p->arg;
	size_t len;

	for (;; word += len + 1) {
		unsigned int what;

		len = strcspn(word, ",");
		what = erofs_compare_word(word, len);
		if (!what) {
			erofs_cli_usage(p->cli, p->usage_status, "--verify-only: \"%.*s\" is none of %s", (int)len,
					word, erofs_compare_words());
			return -EINVAL;
		}
		o->verify_what |= what;
		if (!word[len])
			return 1;
	}
}

int fsck_verify_image(struct fsck_verify *v, const struct fsck_options *o, struct erofs_image *img,
		      struct erofs_engine *eng, struct erofs_diag *diag, const uint64_t *nid)
{
	struct erofs_compare_options options = {
		.size = sizeof(options),
		.kind = o->verify_kind,
		.source = o->verify_source,
		.what = o->verify_what,
		.has_nid = nid != NULL,
		.nid = nid ? *nid : 0,
		.fn = erofs_differences_take,
		.priv = &v->differences,
		.mount_point = o->mount_point,
		.fs_config_file = o->fs_config,
		.file_contexts = o->contexts,
	};

	return erofs_compare(img, eng, &options, diag, &v->result);
}
