/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* verify: is an image what was put in? Compares it with a directory, an archive or a manifest. */
#ifndef EROFS_VERIFY_H
#define EROFS_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include <erofs/engine.h>
#include <erofs/image.h>

EROFS_BEGIN_DECLS

enum erofs_compare_kind {
	EROFS_COMPARE_DIR,
	EROFS_COMPARE_TAR,
	EROFS_COMPARE_MTREE,
};

/* What is compared, as far as the source records it. Link counts and sizes of directories never are. */
#define EROFS_COMPARE_NAMES	0x0001u	/* existence, both ways */
#define EROFS_COMPARE_TYPE	0x0002u
#define EROFS_COMPARE_MODE	0x0004u
#define EROFS_COMPARE_UID	0x0008u
#define EROFS_COMPARE_GID	0x0010u
#define EROFS_COMPARE_SIZE	0x0020u
#define EROFS_COMPARE_DATA	0x0040u
#define EROFS_COMPARE_TIME	0x0080u
#define EROFS_COMPARE_LINK	0x0100u	/* targets of symlinks */
#define EROFS_COMPARE_HARDLINK	0x0200u	/* which paths share an inode */
#define EROFS_COMPARE_DEVICE	0x0400u
#define EROFS_COMPARE_ACL	0x0800u
#define EROFS_COMPARE_CAPS	0x1000u
#define EROFS_COMPARE_LABEL	0x2000u	/* of SELinux */
#define EROFS_COMPARE_XATTR	0x4000u	/* all other extended attributes */
#define EROFS_COMPARE_ALL	0x7fffu

/* One difference; valid during the call. */
struct erofs_difference {
	const char *path;	/* bytes, terminated, not escaped; "/" is the start */
	const char *key;	/* "mode", "xattr.user.a", "missing", "extra", …; escaped */
	const char *found;	/* in the image; text, escaped */
	const char *wanted;	/* by the source; the same */
	uint64_t nid;
	int has_nid;		/* 0: the image has no such name */
};

/* Called by erofs_compare() in the thread that called it, in an order that workers do not change. */
typedef void (*erofs_compare_fn)(void *priv, const struct erofs_difference *difference);

struct erofs_compare_options {
	size_t size;			/* sizeof(struct erofs_compare_options) */
	enum erofs_compare_kind kind;
	const char *source;		/* a folder, or a file; tar: "-" is standard input */
	unsigned int what;		/* EROFS_COMPARE_…, 0: all */
	int has_nid;			/* the source is the tree below @nid, not below the root */
	uint64_t nid;
	erofs_compare_fn fn;		/* may be NULL: they are only counted */
	void *priv;
	/*
	 * Android's view of a folder, as erofs_write() takes it: files by which owners, modes, capabilities and
	 * labels are told by the path below the mount point. NULL: as the folder has them.
	 */
	const char *mount_point, *fs_config_file, *file_contexts;
};

struct erofs_compare_result {
	uint64_t names;			/* of the source, compared */
	uint64_t bytes;			/* of contents, compared */
	uint64_t differences;
	int complete;			/* 0: the run ended before all was compared */
};

/**
 * erofs_compare() - compare an image with what it was made of
 * @diag:       receives damage of the image, and what of the source could not be read; not flushed
 * @ret_result: may be NULL; filled also after an error
 * Contents are compared while they are decoded, by all workers; nothing is written. Memory is bounded
 * by the engine's limit: beside buffers a bit for each name of the image, and the paths of hard links
 * whose other names are still to come. Names of the image that the source lacks come last.
 * A directory: symlinks are not followed, open directories are bounded. A tar: names are compared in the
 * order of the archive; one that stands there twice is compared twice. Folders that a tar or a manifest
 * only implies, by naming what is in them, are expected.
 * With lists of Android a folder is read twice, the first time for its hard links: an inode has what its first
 * name in erofs_write()'s order has. A name without a line is a failure (reported), and its own owner counts.
 * Return: 0 the same; -EUCLEAN there are differences, or damage was reported; -EINVAL a bad line (reported);
 * -ECANCELED; -ENOMEM; -EIO… (reported) some of the source could not be read.
 */
EROFS_API int erofs_compare(struct erofs_image *img, struct erofs_engine *eng,
			    const struct erofs_compare_options *options, struct erofs_diag *diag,
			    struct erofs_compare_result *ret_result);

/** erofs_compare_word() - EROFS_COMPARE_… of a word such as "mode" or "owner", 0: there is none */
EROFS_API unsigned int erofs_compare_word(const char *word, size_t len);

/** erofs_compare_words() - all words that there are, separated by a comma and a blank */
EROFS_API const char *erofs_compare_words(void);

EROFS_END_DECLS

#endif
