// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Which algorithms an image may use, and their configuration records (format.md 3). */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "codec/codec_priv.h"
#include "diag/diag_priv.h"
#include "meta/super_priv.h"

#define CONFIG_MAX 14	/* bytes of the longest record known; what is behind is skipped */

static int parse_lz4(const struct super_loader *l, uint64_t pos, const uint8_t *payload)
{
	const struct disk_config_lz4 *raw = (const void *)payload;
	uint32_t blks = le16_get(raw->max_pclusterblks);

	if (blks > DISK_LZ4_MAX_PCLUSTERBLKS)
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(pos),
					 "LZ4 pclusters of %" PRIu32 " blocks (at most %d)", blks,
					 DISK_LZ4_MAX_PCLUSTERBLKS);
	l->sb->lz4_max_pcluster_blks = blks;
	l->sb->codec.lz4_max_distance = le16_get(raw->max_distance);
	l->sb->info.lz4_max_distance = le16_get(raw->max_distance);
	return 0;
}

static int parse_lzma(const struct super_loader *l, uint64_t pos, const uint8_t *payload)
{
	const struct disk_config_lzma *raw = (const void *)payload;
	uint32_t dict = le32_get(raw->dict_size);

	if (le16_get(raw->format))
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(pos),
					 "LZMA format %u (wanted 0)", le16_get(raw->format));
	if (dict < DISK_LZMA_MIN_DICT || dict > DISK_LZMA_MAX_DICT)
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(pos),
					 "LZMA dictionary of %" PRIu32 " bytes (wanted %" PRIu32
					 " to %" PRIu32 ")", dict, DISK_LZMA_MIN_DICT,
					 DISK_LZMA_MAX_DICT);
	l->sb->codec.lzma_dict_size = dict;
	return 0;
}

static int parse_deflate(const struct super_loader *l, uint64_t pos, const uint8_t *payload)
{
	const struct disk_config_deflate *raw = (const void *)payload;

	if (raw->windowbits > DISK_DEFLATE_MAX_WINDOWBITS)
		return erofs_diag_unsupported(l->diag, SB_CONFIG, AT_OFF(pos),
					      "DEFLATE window bits %u (at most %d)",
					      raw->windowbits, DISK_DEFLATE_MAX_WINDOWBITS);
	/* too few are accepted by every reader; the largest window decodes them all */
	l->sb->codec.deflate_window_bits = raw->windowbits < 8 ? DISK_DEFLATE_MAX_WINDOWBITS :
								 raw->windowbits;
	return 0;
}

static int parse_zstd(const struct super_loader *l, uint64_t pos, const uint8_t *payload)
{
	const struct disk_config_zstd *raw = (const void *)payload;

	if (raw->format)
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(pos),
					 "Zstandard format %u (wanted 0)", raw->format);
	if (raw->windowlog > DISK_ZSTD_MAX_WINDOWLOG)
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(pos + 1),
					 "Zstandard window log %u (at most %d)",
					 raw->windowlog + DISK_ZSTD_WINDOWLOG_BASE,
					 DISK_ZSTD_MAX_WINDOWLOG + DISK_ZSTD_WINDOWLOG_BASE);
	l->sb->codec.zstd_window_log = (uint8_t)(raw->windowlog + DISK_ZSTD_WINDOWLOG_BASE);
	return 0;
}

static const struct config_rule {
	const char *name;
	size_t len;	/* bytes of the payload that are known */
	int (*parse)(const struct super_loader *l, uint64_t pos, const uint8_t *payload);
} rules[] = {
	[CODEC_LZ4] = { "LZ4", sizeof(struct disk_config_lz4), parse_lz4 },
	[CODEC_LZMA] = { "LZMA", sizeof(struct disk_config_lzma), parse_lzma },
	[CODEC_DEFLATE] = { "DEFLATE", sizeof(struct disk_config_deflate), parse_deflate },
	[CODEC_ZSTD] = { "Zstandard", sizeof(struct disk_config_zstd), parse_zstd },
};

#define RULE_COUNT (sizeof(rules) / sizeof(rules[0]))
_Static_assert(RULE_COUNT == CODEC_SHIFTED, "a rule per algorithm of the format");

/* Read one record at *@pos and move on to the end of it. */
static int load_record(const struct super_loader *l, const struct config_rule *rule, uint64_t *pos)
{
	uint64_t size = l->img->devs[0].size, at = round_up_u64(*pos, 4);
	uint8_t payload[CONFIG_MAX];
	struct le16 raw_len;
	size_t len;
	int err;

	if (!range_ok(at, sizeof(raw_len), size))
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(at),
					 "%s record begins behind the end of the image (%" PRIu64
					 " bytes)", rule->name, size);
	err = erofs_super_read(l, at, &raw_len, sizeof(raw_len));
	if (err)
		return err;
	len = le16_get(raw_len);
	if (len < rule->len)
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(at),
					 "%s record of %zu bytes (wanted %zu)", rule->name, len,
					 rule->len);
	if (!range_ok(at + sizeof(raw_len), len, size))
		return erofs_diag_damage(l->diag, SB_CONFIG, AT_OFF(at),
					 "%s record of %zu bytes: behind the end of the image (%"
					 PRIu64 " bytes)", rule->name, len, size);
	at += sizeof(raw_len);
	err = erofs_super_read(l, at, payload, rule->len);
	if (err)
		return err;
	*pos = at + len;
	return rule->parse(l, at, payload);
}

int erofs_super_load_configs(const struct super_loader *l)
{
	uint16_t value = le16_get(l->raw.compr_algs);
	struct super *sb = l->sb;
	uint64_t pos = DISK_SUPER_OFFSET + sb->info.super_size;
	unsigned int i;
	int err;

	sb->codec.zero_padding = sb->info.feature_incompat & EROFS_INCOMPAT_ZERO_PADDING;
	if (!(sb->info.feature_incompat & EROFS_INCOMPAT_COMPR_CFGS)) {
		sb->codec.lz4_max_distance = value;
		sb->info.lz4_max_distance = value;
		return 0;
	}
	if (value >> RULE_COUNT)
		return erofs_diag_unsupported(l->diag, SB_CONFIG,
					      AT_OFF(DISK_SUPER_OFFSET +
						     offsetof(struct disk_super, compr_algs)),
					      "unknown compression algorithms 0x%x",
					      value >> RULE_COUNT << RULE_COUNT);
	sb->info.compr_algs = value;
	for (i = 0; i < RULE_COUNT; i++) {
		if (!(value >> i & 1))
			continue;
		err = load_record(l, &rules[i], &pos);
		if (err)
			return err;
	}
	return 0;
}
