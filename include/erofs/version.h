/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* What the other public headers share: export marks and the version of the interface. */
#ifndef EROFS_VERSION_H
#define EROFS_VERSION_H

#ifdef __cplusplus
#define EROFS_BEGIN_DECLS extern "C" {
#define EROFS_END_DECLS }
#else
#define EROFS_BEGIN_DECLS
#define EROFS_END_DECLS
#endif

#if defined(__GNUC__)
#define EROFS_API __attribute__((visibility("default")))
#else
#define EROFS_API
#endif

EROFS_BEGIN_DECLS

/**
 * erofs_version() - version of the library that runs
 * Return: a static string such as "0.1.0".
 */
EROFS_API const char *erofs_version(void);

/**
 * erofs_codec_list() - decompressors that this build has
 * Return: a static string, names separated by a comma and a blank, e.g. "lz4, lzma, deflate, zstd".
 */
EROFS_API const char *erofs_codec_list(void);

EROFS_END_DECLS

#endif
