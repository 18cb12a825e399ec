// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* What -z, -C, -E and the hints ask for: methods, their settings, and what the superblock says of them. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "write/write_priv.h"

#define MAX_PCLUSTER CODEC_MAX_PLEN
#define MAX_COUNT 2047u			/* blocks that an index can tell of (format.md 9.3) */

struct zhint {
	regex_t regex;
	bool compiled, plain;
	struct zparams params;
};

static int refuse(struct writer *w, const char *what, const char *word, size_t len)
{
	return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s: '%.*s'", what, (int)len, word);
}

/* ---- -z ---- */

static bool read_number(const char *text, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || !mul_ok(v, 10, &v) || !add_ok(v, (uint64_t)(text[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return len > 0;
}

static bool level_is_valid(const struct enc_method *m, uint64_t level)
{
	if (m->more_levels && level >= (uint64_t)m->more_levels && level <= (uint64_t)m->max_more)
		return true;
	return level >= (uint64_t)m->min_level && level <= (uint64_t)m->max_level;
}

static int refuse_level(struct writer *w, const struct enc_method *m, const char *word, size_t len)
{
	char what[80], more[40] = "";

	if (m->more_levels)
		snprintf(more, sizeof(more), " or %d to %d", m->more_levels, m->max_more);
	snprintf(what, sizeof(what), "no level of %s (%d to %d%s)", m->name, m->min_level, m->max_level, more);
	return refuse(w, what, word, len);
}

/* One word behind the name: a level, level=N or dictsize=N. */
static int take_setting(struct writer *w, struct zmethod *m, const char *word, size_t len)
{
	static const char level[] = "level=", dict[] = "dictsize=";
	uint64_t v;

	if (len >= sizeof(dict) - 1 && !memcmp(word, dict, sizeof(dict) - 1)) {
		if (!read_number(word + sizeof(dict) - 1, len - (sizeof(dict) - 1), &v) || !m->enc->max_dict ||
		    v < 4096 || v > m->enc->max_dict)
			return refuse(w, "no dictionary size of this algorithm", word, len);
		m->config.dict_size = (uint32_t)v;
		return 0;
	}
	if (len >= sizeof(level) - 1 && !memcmp(word, level, sizeof(level) - 1)) {
		word += sizeof(level) - 1;
		len -= sizeof(level) - 1;
	}
	if (!read_number(word, len, &v) || !level_is_valid(m->enc, v))
		return refuse_level(w, m->enc, word, len);
	m->config.level = (int)v;
	return 0;
}

static int take_method(struct writer *w, const char *text, size_t len)
{
	struct zconfig *z = &w->z;
	const char *end = text + len, *comma = memchr(text, ',', len);
	size_t name = comma ? (size_t)(comma - text) : len, word;
	struct zmethod *m = &z->methods[z->count];
	const char *at;
	int err;

	if (z->count == Z_MAX_METHODS)
		return refuse(w, "too many algorithms", text, len);
	m->enc = erofs_enc_find(text, name);
	if (!m->enc)
		return refuse(w, "no compressor of this build", text, name);
	m->config.level = m->enc->default_level;
	for (at = comma; at; at = comma) {
		at++;
		comma = memchr(at, ',', (size_t)(end - at));
		word = (size_t)((comma ? comma : end) - at);
		err = take_setting(w, m, at, word);
		if (err)
			return err;
	}
	z->count++;
	return 0;
}

static int take_methods(struct writer *w, const char *text)
{
	int err = 0;

	while (!err) {
		size_t len = strcspn(text, ":");

		err = take_method(w, text, len);
		if (!text[len])
			break;
		text += len + 1;
	}
	return err;
}

/* ---- sizes ---- */

static int check_pcluster(struct writer *w, uint64_t size, uint32_t *ret)
{
	if (!size || size % w->blksz || size > MAX_PCLUSTER)
		return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE,
				       "the size of pclusters is no multiple of the block size up to 1 MiB");
	size = min_u64(size, (uint64_t)MAX_COUNT << w->blkbits);
	*ret = (uint32_t)size;
	return 0;
}

/* Kernels take no LZ4 pclusters of more than 256 blocks, whatever the block size (format.md 3). */
static uint32_t fit_method(const struct writer *w, const struct zparams *p)
{
	if (w->z.methods[p->method].enc->alg != CODEC_LZ4)
		return p->pcluster;
	return (uint32_t)min_u64(p->pcluster, (uint64_t)DISK_LZ4_MAX_PCLUSTERBLKS << w->blkbits);
}

static uint32_t floor_pow2(uint64_t v)
{
	uint32_t r = 1;

	while ((uint64_t)r * 2 <= v)
		r *= 2;
	return r;
}

/* The usual windows: large enough to reach over the input of one pcluster. */
static void settle_window(const struct zconfig *z, struct zmethod *m)
{
	uint64_t most = z->max_pcluster;

	m->config.max_out = z->max_pcluster;
	switch (m->enc->alg) {
	case CODEC_LZMA:
		if (!m->config.dict_size)
			m->config.dict_size = (uint32_t)max_u64(32768, min_u64(DISK_LZMA_MAX_DICT, 4 * most));
		break;
	case CODEC_ZSTD:
		if (!m->config.dict_size)
			m->config.dict_size = (uint32_t)min_u64(UINT32_C(1) << 20, 8 * most);
		m->config.dict_size = floor_pow2(m->config.dict_size);
		break;
	case CODEC_DEFLATE:
		if (!m->config.dict_size)
			m->config.dict_size = 32768;
		m->config.dict_size = floor_pow2(m->config.dict_size);
		break;
	default:
		break;
	}
}

/* ---- hints: "SIZE [INDEX] REGEX" a line; size 0: not compressed ---- */

static int bad_hint(struct writer *w, unsigned int line, const char *what)
{
	return erofs_diag_fail(w->diag, -EINVAL, AT_NOWHERE, "%s: line %u: %s", w->o->compress_hints, line, what);
}

static int take_hint(struct writer *w, char *text, unsigned int line)
{
	struct zconfig *z = &w->z;
	struct zhint *grown, *h;
	char *words[3], *save = NULL;
	unsigned int n = 0;
	uint64_t size, index = 0;

	text[strcspn(text, "#\n")] = 0;
	while (n < 3 && (words[n] = strtok_r(n ? NULL : text, " \t\r", &save)))
		n++;
	if (!n)
		return 0;
	if (n < 2 || !read_number(words[0], strlen(words[0]), &size))
		return bad_hint(w, line, "not of the form SIZE [ALGORITHM] REGEX");
	if (n == 3 && (!read_number(words[1], strlen(words[1]), &index) || index >= z->count))
		return bad_hint(w, line, "no such algorithm in the list of -z");
	grown = realloc(z->hints, (z->nhints + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	z->hints = grown;
	h = &grown[z->nhints++];
	*h = (struct zhint){ .plain = !size, .params = { (unsigned int)index, z->usual.pcluster } };
	if (regcomp(&h->regex, words[n - 1], REG_EXTENDED | REG_NOSUB))
		return bad_hint(w, line, "the expression is wrong");
	h->compiled = true;
	if (size && (size % w->blksz || size > MAX_PCLUSTER))
		return bad_hint(w, line, "the size is no multiple of the block size up to 1 MiB");
	if (size)
		h->params.pcluster = (uint32_t)min_u64(size, (uint64_t)MAX_COUNT << w->blkbits);
	h->params.pcluster = fit_method(w, &h->params);
	z->max_pcluster = (uint32_t)max_u64(z->max_pcluster, h->params.pcluster);
	return 0;
}

static int read_hints(struct writer *w)
{
	FILE *file = fopen(w->o->compress_hints, "re");
	unsigned int line = 0;
	char *text = NULL;
	size_t room = 0;
	int err = 0;

	if (!file)
		return erofs_diag_fail(w->diag, -errno, AT_NOWHERE, "cannot open %s", w->o->compress_hints);
	while (!err && (errno = 0, getline(&text, &room, file) >= 0))
		err = take_hint(w, text, ++line);
	/* without memory for a line there is no error of the file */
	if (!err && (ferror(file) || errno == ENOMEM))
		err = erofs_diag_fail(w->diag, errno ? -errno : -EIO, AT_NOWHERE, "cannot read %s",
				      w->o->compress_hints);
	free(text);
	fclose(file);
	return err;
}

/* ---- all of it ---- */

/* What counts with an algorithm alone: a mistake in it is told in any case. */
static int check_unused(struct writer *w)
{
	const struct erofs_write_options *o = w->o;
	uint32_t size;
	int err = 0;

	if (o->pcluster_size)
		err = check_pcluster(w, o->pcluster_size, &size);
	if (!err && o->packed_pcluster_size)
		err = check_pcluster(w, o->packed_pcluster_size, &size);
	if (!err && o->compress_hints && access(o->compress_hints, R_OK))
		err = erofs_diag_fail(w->diag, -errno, AT_NOWHERE, "cannot open %s", o->compress_hints);
	return err;
}

const char *erofs_compressors(void)
{
	return erofs_enc_list();
}

int erofs_zconfig_init(struct writer *w)
{
	const struct erofs_write_options *o = w->o;
	struct zconfig *z = &w->z;
	unsigned int i;
	int err;

	if (!o->compressors)
		return check_unused(w);
	err = take_methods(w, o->compressors);
	if (!err)
		err = check_pcluster(w, o->pcluster_size ? o->pcluster_size : w->blksz, &z->usual.pcluster);
	if (!err)
		err = check_pcluster(w, o->packed_pcluster_size ? o->packed_pcluster_size : z->usual.pcluster,
				     &z->packed_pcluster);
	if (err)
		return err;
	z->usual.pcluster = fit_method(w, &z->usual);
	z->packed_pcluster = fit_method(w, &(struct zparams){ 0, z->packed_pcluster });
	z->max_pcluster = (uint32_t)max_u64(z->usual.pcluster, z->packed_pcluster);
	z->max_extent = o->max_extent_bytes && o->max_extent_bytes < CODEC_MAX_DLEN ? o->max_extent_bytes :
										     CODEC_MAX_DLEN;
	if (o->compress_hints)
		err = read_hints(w);
	for (i = 0; i < z->count; i++) {
		settle_window(z, &z->methods[i]);
		z->algs |= 1u << z->methods[i].enc->alg;
	}
	return err;
}

void erofs_zconfig_fini(struct zconfig *z)
{
	size_t i;

	for (i = 0; i < z->nhints; i++)
		if (z->hints[i].compiled)
			regfree(&z->hints[i].regex);
	free(z->hints);
}

int erofs_zconfig_for(const struct writer *w, const struct node *node, struct zparams *ret)
{
	const struct zconfig *z = &w->z;
	auto_free char *path = NULL;
	size_t i;

	if (!z->count || !S_ISREG(node->mode))
		return 0;
	*ret = z->usual;
	if (!z->nhints)
		return 1;
	path = erofs_node_path(node);
	if (!path)
		return -ENOMEM;
	for (i = 0; i < z->nhints; i++) {
		int r = regexec(&z->hints[i].regex, path, 0, NULL, 0);

		if (r == REG_ESPACE)
			return -ENOMEM;
		if (r)
			continue;
		*ret = z->hints[i].params;
		return !z->hints[i].plain;
	}
	return 1;
}

/* ---- configuration records ---- */

static size_t put_record(uint8_t *dst, size_t at, const void *payload, size_t len)
{
	at = (size_t)round_up_u64(at, 4);
	put_le16(dst + at, (uint16_t)len);
	memcpy(dst + at + 2, payload, len);
	return at + 2 + len;
}

static const struct enc_config *config_of(const struct zconfig *z, unsigned int alg)
{
	const struct enc_config *best = NULL;
	unsigned int i;

	for (i = 0; i < z->count; i++)
		if (z->methods[i].enc->alg == alg &&
		    (!best || z->methods[i].config.dict_size > best->dict_size))
			best = &z->methods[i].config;
	return best;
}

void erofs_zconfig_decoder(const struct zconfig *z, struct codec_config *ret)
{
	const struct enc_config *c = config_of(z, CODEC_LZMA);

	ret->lzma_dict_size = c ? c->dict_size : 0;
	c = config_of(z, CODEC_DEFLATE);
	ret->deflate_window_bits = c ? (uint8_t)__builtin_ctz(c->dict_size) : 0;
	c = config_of(z, CODEC_ZSTD);
	ret->zstd_window_log = c ? (uint8_t)__builtin_ctz(c->dict_size) : 0;
}

size_t erofs_zconfig_records(const struct writer *w, uint8_t dst[128])
{
	const struct zconfig *z = &w->z;
	struct disk_config_lz4 lz4 = {
		.max_pclusterblks = le16_of((uint16_t)min_u64(z->max_pcluster >> w->blkbits,
							     DISK_LZ4_MAX_PCLUSTERBLKS)),
	};
	const struct enc_config *c;
	size_t at = 0;

	memset(dst, 0, 128);
	if (z->algs == 1u << CODEC_LZ4 && z->max_pcluster == w->blksz)
		return 0;
	if (z->algs & 1u << CODEC_LZ4)
		at = put_record(dst, at, &lz4, sizeof(lz4));
	c = z->algs & 1u << CODEC_LZMA ? config_of(z, CODEC_LZMA) : NULL;
	if (c) {
		struct disk_config_lzma r = { .dict_size = le32_of(c->dict_size) };

		at = put_record(dst, at, &r, sizeof(r));
	}
	c = z->algs & 1u << CODEC_DEFLATE ? config_of(z, CODEC_DEFLATE) : NULL;
	if (c) {
		struct disk_config_deflate r = { .windowbits = (uint8_t)__builtin_ctz(c->dict_size) };

		at = put_record(dst, at, &r, sizeof(r));
	}
	c = z->algs & 1u << CODEC_ZSTD ? config_of(z, CODEC_ZSTD) : NULL;
	if (c) {
		struct disk_config_zstd r = {
			.windowlog = (uint8_t)((unsigned int)__builtin_ctz(c->dict_size) - DISK_ZSTD_WINDOWLOG_BASE),
		};

		at = put_record(dst, at, &r, sizeof(r));
	}
	return at;
}
