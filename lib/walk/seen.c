// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The set of directories that a walk on one thread has entered. */
#include <errno.h>
#include <stdlib.h>

#include "walk/seen.h"

static size_t find_slot(const uint64_t *slots, size_t room, uint64_t key)
{
	size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);

	while (slots[at] && slots[at] != key)
		at = (at + 1) & (room - 1);
	return at;
}

static int grow(struct seen *s)
{
	size_t i, room = s->room ? s->room * 2 : 256;
	uint64_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (i = 0; i < s->room; i++)
		if (s->slots[i])
			slots[find_slot(slots, room, s->slots[i])] = s->slots[i];
	free(s->slots);
	s->slots = slots;
	s->room = room;
	return 0;
}

int erofs_seen_add(struct seen *s, uint64_t nid)
{
	size_t at;

	if (s->used * 2 >= s->room && grow(s))
		return -ENOMEM;
	at = find_slot(s->slots, s->room, nid + 1);
	if (s->slots[at])
		return 0;
	s->slots[at] = nid + 1;
	s->used++;
	return 1;
}

void erofs_seen_fini(struct seen *s)
{
	free(s->slots);
	s->slots = NULL;
	s->used = s->room = 0;
}
