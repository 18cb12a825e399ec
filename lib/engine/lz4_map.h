/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Making pages look contiguous (engine.md C3): an address range of a lane onto which pages of the memory
 * object are mapped, one page as often as it is needed. What is mapped stays, so that a request that
 * brings the same pages in the same order costs no system call. Belongs to one thread.
 */
#ifndef EROFS_ENGINE_LZ4_MAP_H
#define EROFS_ENGINE_LZ4_MAP_H

#include "engine/page.h"

struct lz4_map {
	uint8_t *base;		/* the address range; NULL: not made yet */
	size_t room;		/* pages of it */
	size_t used;		/* pages that were mapped at some time */
	uint32_t *at;		/* page that is mapped at a place, plus 1; 0: none */
};

/**
 * erofs_lz4_map() - map @count pages behind each other, in as few mappings as their order allows
 * Return: the address, NULL: no address space, or more mappings than are fit for a process.
 */
uint8_t *erofs_lz4_map(struct lz4_map *map, struct pages *pages, struct page *const *list, size_t count);
void erofs_lz4_map_fini(struct lz4_map *map, struct pages *pages);

#endif
