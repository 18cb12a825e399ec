// SPDX-License-Identifier: GPL-2.0-or-later
/* Fuzz target: any bytes as a manifest: lines, words, escapes, keywords. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "verify/mtree.h"

const char *const fuzz_suffix = ".mtree";

static void take_line(struct mtree_facts *f, char *text)
{
	char *at = text, *word = erofs_mtree_word(&at), *hex;
	uint8_t digest[SHA256_SIZE];
	const char *why;

	if (!word)
		return;
	(void)erofs_mtree_unescape(word);
	while ((word = erofs_mtree_word(&at))) {
		hex = strchr(word, '=');
		if (hex)
			(void)erofs_mtree_hex(hex + 1, digest, sizeof(digest));
		(void)erofs_mtree_unset(f, word);
		(void)erofs_mtree_take(f, word, &why);
	}
	if (f->link) {
		char *copy = strdup(f->link);

		if (copy)
			(void)erofs_mtree_unescape(copy);
		free(copy);
		f->link = NULL;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mtree_line line = { .file = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL };
	struct mtree_facts facts = { 0 };

	if (!line.file)
		return 0;
	while (erofs_mtree_next(&line) > 0)
		take_line(&facts, (char *)line.text.data);
	erofs_tarbuf_free(&line.text);
	fclose(line.file);
	return 0;
}
