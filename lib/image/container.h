/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* What a file may be that is no EROFS image, and where in it one may lie. */
#ifndef EROFS_IMAGE_CONTAINER_H
#define EROFS_IMAGE_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "image/source.h"

/** erofs_container_name() - "a zip file" and so on, by its magic number at @at; NULL: none known here */
const char *erofs_container_name(const struct source *src, uint64_t at);

#define ZIP_NAME 256
#define ZIP_MAX_ENTRIES 65536

struct zip_entry {
	char name[ZIP_NAME];	/* bytes, cut if longer */
	bool stored;		/* neither compressed nor encrypted */
	uint64_t pos, size;	/* of the data of a stored entry; it lies inside the file */
};

/* 0: go on, else the walk ends with this. */
typedef int (*zip_entry_fn)(void *arg, const struct zip_entry *entry);

/** erofs_zip_is() - does the file begin as a zip file does? */
bool erofs_zip_is(const struct source *src);

/**
 * erofs_zip_walk() - the entries of the directory at the end of a zip file, zip64 too
 * Costs a read or two an entry; ZIP_MAX_ENTRIES at most are looked at.
 * Return: 0; what @fn returned; -EINVAL the directory can't be made sense of; errno of read. Reports nothing.
 */
int erofs_zip_walk(const struct source *src, zip_entry_fn fn, void *arg);

#endif
