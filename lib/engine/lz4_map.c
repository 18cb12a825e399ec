// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Pages mapped behind each other. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/lz4_map.h"

static bool make_range(struct lz4_map *map, const struct pages *pages, size_t room)
{
	void *base;

	map->at = calloc(room, sizeof(*map->at));
	if (!map->at)
		return false;
	base = mmap(NULL, room * pages->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		free(map->at);
		map->at = NULL;
		return false;
	}
	map->base = base;
	map->room = room;
	return true;
}

void erofs_lz4_map_fini(struct lz4_map *map, struct pages *pages)
{
	if (map->base) {
		munmap(map->base, map->room * pages->size);
		atomic_fetch_sub_explicit(&pages->mapped, (unsigned int)map->used, memory_order_relaxed);
	}
	free(map->at);
	memset(map, 0, sizeof(*map));
}

/* Each place may become a mapping of its own: stay below half of what a process may have. */
static bool claim_mappings(struct lz4_map *map, struct pages *pages, size_t count)
{
	unsigned int more;

	if (count <= map->used)
		return true;
	more = (unsigned int)(count - map->used);
	if (atomic_fetch_add_explicit(&pages->mapped, more, memory_order_relaxed) + more > pages->max_mapped) {
		atomic_fetch_sub_explicit(&pages->mapped, more, memory_order_relaxed);
		return false;
	}
	map->used = count;
	return true;
}

/* How many places from @i on need one and the same mapping? */
static size_t run_length(const struct lz4_map *map, struct page *const *list, size_t i, size_t count)
{
	size_t n = 1;

	while (i + n < count && list[i + n]->index == list[i]->index + n &&
	       map->at[i + n] != list[i + n]->index + 1)
		n++;
	return n;
}

uint8_t *erofs_lz4_map(struct lz4_map *map, struct pages *pages, struct page *const *list, size_t count)
{
	size_t i, j, n;

	if (count > map->room) {
		erofs_lz4_map_fini(map, pages);
		/* room for the longest extent there is: address space costs nothing */
		if (!make_range(map, pages, count > PAGES_MAX_OUTPUT ? count : PAGES_MAX_OUTPUT))
			return NULL;
	}
	if (!claim_mappings(map, pages, count))
		return NULL;
	for (i = 0; i < count; i += n) {
		n = 1;
		if (map->at[i] == list[i]->index + 1)
			continue;
		n = run_length(map, list, i, count);
		if (mmap(map->base + i * pages->size, n * pages->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, pages->fd,
			 (off_t)list[i]->index * (off_t)pages->size) == MAP_FAILED)
			return NULL;
		for (j = 0; j < n; j++)
			map->at[i + j] = list[i + j]->index + 1;
	}
	return map->base;
}
