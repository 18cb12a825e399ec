/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tiny images for unit tests of metadata: bytes in memory, put together field by field, written to
 * a temporary file and opened. Offsets are those of format.md.
 */
#ifndef TESTS_LIB_TINY_H
#define TESTS_LIB_TINY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "diag/diag_priv.h"
#include "image/image_priv.h"
#include "meta/meta_priv.h"

#define TINY_SUPER 1024
#define TINY_MAX (256 * 1024)

struct tiny {
	uint8_t *bytes;
	size_t size;			/* of the file; 16 KiB, or what the test says */
	size_t hole;			/* that many zeros behind it */
	struct erofs_open_options options;
	struct erofs_diag *diag;
	struct erofs_image *img;
	struct metabuf mb;
	/* what the last tiny_flush() was told */
	unsigned int found;
	char id[32];			/* of the first finding */
	char text[500];
	enum erofs_severity severity;
};

static inline void put16(struct tiny *t, size_t off, unsigned int v)
{
	t->bytes[off] = (uint8_t)v;
	t->bytes[off + 1] = (uint8_t)(v >> 8);
}

static inline void put32(struct tiny *t, size_t off, uint32_t v)
{
	put16(t, off, v & 0xffff);
	put16(t, off + 2, v >> 16);
}

static inline void put64(struct tiny *t, size_t off, uint64_t v)
{
	put32(t, off, (uint32_t)v);
	put32(t, off + 4, (uint32_t)(v >> 32));
}

static inline void tiny_note(void *priv, const struct erofs_finding *f)
{
	struct tiny *t = priv;

	if (t->found++)
		return;
	snprintf(t->id, sizeof(t->id), "%s", f->id);
	snprintf(t->text, sizeof(t->text), "%s", f->text);
	t->severity = f->severity;
}

/* An image of 16 KiB with 4 KiB blocks and a sound superblock without features. */
static inline int tiny_setup(void **state)
{
	struct tiny *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->bytes = calloc(1, TINY_MAX);
	assert_non_null(t->bytes);
	t->size = 16384;
	t->options.size = sizeof(t->options);
	assert_int_equal(erofs_diag_new(tiny_note, t, &t->diag), 0);
	put32(t, TINY_SUPER, 0xe0f5e1e2);
	t->bytes[TINY_SUPER + 12] = 12;
	put16(t, TINY_SUPER + 14, 36);		/* root nid */
	put32(t, TINY_SUPER + 36, 4);		/* blocks */
	*state = t;
	return 0;
}

static inline void tiny_close(struct tiny *t)
{
	erofs_metabuf_fini(&t->mb);
	if (t->img)
		erofs_super_free(t->img);
	erofs_image_free(t->img);
	t->img = NULL;
}

static inline int tiny_teardown(void **state)
{
	struct tiny *t = *state;

	tiny_close(t);
	erofs_diag_free(t->diag);
	free(t->bytes);
	free(t);
	return 0;
}

/* Hand out the findings so far: t->found, t->id, t->text. */
static inline unsigned int tiny_flush(struct tiny *t)
{
	t->found = 0;
	t->id[0] = t->text[0] = '\0';
	erofs_diag_flush(t->diag);
	return t->found;
}

/* Write the bytes to a file and load its superblock. Return: that of erofs_super_load(). */
static inline int tiny_open(struct tiny *t)
{
	char path[] = "/tmp/tiny-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, t->bytes, t->size), (ssize_t)t->size);
	assert_int_equal(ftruncate(fd, (off_t)(t->size + t->hole)), 0);
	close(fd);
	tiny_close(t);
	err = erofs_image_open(path, 0, false, t->diag, &t->img);
	unlink(path);
	assert_int_equal(err, 0);
	err = erofs_super_load(t->img, &t->options, t->diag);
	if (!err)
		assert_int_equal(erofs_metabuf_init(&t->mb, t->img, t->diag), 0);
	return err;
}

/* The first finding must be of this id and its text must have these words in it. */
static inline void tiny_expect(struct tiny *t, const char *id, const char *words)
{
	assert_true(tiny_flush(t) >= 1);
	assert_string_equal(t->id, id);
	if (!strstr(t->text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, t->text);
}

#define tiny_test(fn) cmocka_unit_test_setup_teardown(fn, tiny_setup, tiny_teardown)

#endif
