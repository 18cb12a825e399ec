// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Hash tables with chains of numbers, so that the array of entries can grow. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/table.h"

#define FIRST_ROOM 256
#define MAX_ROOM (UINT32_C(1) << 31)	/* numbers, and 0 for none, fit 32 bits */

struct table_slot {
	uint32_t hash;
	uint32_t next;			/* number + 1 of the next one of its class, 0: none */
};

static uint32_t *head_of(const struct table *t, uint32_t hash)
{
	return &t->heads[hash & (t->room - 1)];
}

static void link_entry(struct table *t, size_t number)
{
	uint32_t *head = head_of(t, t->slots[number].hash);

	t->slots[number].next = *head;
	*head = (uint32_t)number + 1;
}

static bool grow_array(void **array, size_t count, size_t size)
{
	size_t bytes;
	void *grown = mul_ok(count, size, &bytes) ? realloc(*array, bytes) : NULL;

	if (grown)
		*array = grown;
	return grown;
}

static bool grow(struct table *t)
{
	size_t room = t->room ? 2 * t->room : FIRST_ROOM, i;
	void *all = t->all, *slots = t->slots;
	uint32_t *heads;

	if (room > MAX_ROOM)
		return false;
	heads = calloc(room, sizeof(*heads));
	if (!heads)
		return false;
	if (!grow_array(&all, room, t->size) || !grow_array(&slots, room, sizeof(*t->slots))) {
		t->all = all;
		free(heads);
		return false;
	}
	t->all = all;
	t->slots = slots;
	free(t->heads);
	t->heads = heads;
	t->room = room;
	for (i = 0; i < t->count; i++)
		link_entry(t, i);
	return true;
}

void *erofs_table_add(struct table *t, uint32_t hash)
{
	uint8_t *entry;

	if (t->count == t->room && !grow(t))
		return NULL;
	entry = t->all + t->count * t->size;
	memset(entry, 0, t->size);
	t->slots[t->count].hash = hash;
	link_entry(t, t->count++);
	return entry;
}

void *erofs_table_next(const struct table *t, uint32_t hash, uint32_t *at)
{
	uint32_t i;

	if (!t->room)
		return NULL;
	i = *at ? t->slots[*at - 1].next : *head_of(t, hash);
	while (i && t->slots[i - 1].hash != hash)
		i = t->slots[i - 1].next;
	*at = i;
	return i ? t->all + (i - 1) * t->size : NULL;
}

void erofs_table_fini(struct table *t)
{
	free(t->all);
	free(t->slots);
	free(t->heads);
	*t = (struct table){ .size = t->size };
}
