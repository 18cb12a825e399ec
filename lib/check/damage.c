// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A bounded, sorted list of damaged ranges of the devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_priv.h"

int erofs_damage_init(struct damage_list *d)
{
	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	return 0;
}

void erofs_damage_fini(struct damage_list *d)
{
	free(d->list);
	pthread_mutex_destroy(&d->lock);
}

static int compare(const struct damage *a, const struct damage *b)
{
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->id != b->id ? (int)a->id - (int)b->id : strcmp(a->text, b->text);
}

static void insert(struct damage_list *d, const struct damage *new)
{
	size_t at = d->count;

	while (at && compare(&d->list[at - 1], new) > 0)
		at--;
	if (at && !compare(&d->list[at - 1], new))
		return;
	if (d->count == DAMAGE_MAX) {
		d->dropped++;
		if (at == DAMAGE_MAX)
			return;
		d->count--;
	}
	memmove(&d->list[at + 1], &d->list[at], (d->count - at) * sizeof(*new));
	d->list[at] = *new;
	d->count++;
}

void erofs_damage_add(struct damage_list *d, uint64_t addr, uint64_t len, enum erofs_finding_id id, int err,
		      const char *text)
{
	struct damage new = { .addr = addr, .len = len, .id = id, .err = err };

	snprintf(new.text, sizeof(new.text), "%s", text);
	pthread_mutex_lock(&d->lock);
	if (!d->list)
		d->list = calloc(DAMAGE_MAX, sizeof(*d->list));
	if (d->list)
		insert(d, &new);
	else
		d->dropped++;
	pthread_mutex_unlock(&d->lock);
}
