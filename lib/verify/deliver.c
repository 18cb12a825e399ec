// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Differences come back in the order of the names; which paths are one inode shows only here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "verify/verify_priv.h"

#define BUFFER_KEEP ((size_t)4 << 20)	/* larger ones are not kept for the next parcel */

static const char *path_of(const struct compare_parcel *p, const struct compare_item *item)
{
	return (const char *)p->names.data + item->path;
}

void erofs_compare_tell(struct compare *c, const struct erofs_difference *d)
{
	c->res->differences++;
	if (c->opt->fn)
		c->opt->fn(c->opt->priv, d);
}

static void tell_item(struct compare *c, const struct compare_parcel *p, const struct compare_item *item,
		      const char *key, const char *found, const char *wanted)
{
	erofs_compare_tell(c, &(struct erofs_difference){
		.path = path_of(p, item), .key = key, .found = found, .wanted = wanted,
		.nid = item->ino.nid, .has_nid = item->is_there && !item->broken,
	});
}

/* The differences about item @i, which begin at @at. Return: where the next one's begin. */
static size_t tell_notes(struct compare *c, const struct compare_parcel *p, size_t i, size_t at)
{
	struct compare_note note;

	while (at < p->notes.len) {
		const char *key = (const char *)p->notes.data + at + sizeof(note), *found, *wanted;

		memcpy(&note, p->notes.data + at, sizeof(note));
		if (note.item != i)
			break;
		found = key + strlen(key) + 1;
		wanted = found + strlen(found) + 1;
		tell_item(c, p, &p->items[i], key, found, wanted);
		at += note.len;
	}
	return at;
}

static char *escape_path(const char *path)
{
	size_t len = strlen(path);
	char *text = malloc(4 * len + 2);

	if (text)
		erofs_escape_name(path, len, text, 4 * len + 1);
	return text;
}

/* Is the path that an archive says this one is linked to the same inode here? */
static int is_linked_to(struct compare *c, const struct compare_item *item, const char *to)
{
	uint64_t nid;
	bool again;
	int r = erofs_imgnames_find(c->names, to, strlen(to), &nid, &again);

	return r < 0 && r == -ENOMEM ? r : r > 0 && nid == item->ino.nid;
}

/* The same paths share an inode here and there, if the first of each path's group is the same. */
static int check_links(struct compare *c, const struct compare_parcel *p, const struct compare_item *item)
{
	auto_free char *found = NULL, *wanted = NULL, *text = NULL, *other = NULL;
	const char *path = path_of(p, item);
	const char *to = item->link_to ? (const char *)p->facts.data + item->link_to : NULL;
	uint64_t key[2] = { item->ino.nid, 0 };
	int r = erofs_groups_take(&c->in_image, key, item->ino.nlink, path, strlen(path), &found);

	if (!r && to)
		r = is_linked_to(c, item, to + 1);
	else if (!r)
		r = erofs_groups_take(&c->in_source, item->group, item->nlink, path, strlen(path), &wanted);
	if (r < 0)
		return erofs_diag_fail(c->diag, r, AT_NOWHERE,
				       "names of hard links do not fit the memory limit (see --max-memory)");
	if (to && !r && !(wanted = strdup(to)))
		return erofs_compare_no_memory(c);
	if ((to && r) || (!found && !wanted) || (found && wanted && !strcmp(found, wanted)))
		return 0;
	text = found ? escape_path(found) : NULL;
	other = wanted ? escape_path(wanted) : NULL;
	if ((found && !text) || (wanted && !other))
		return erofs_compare_no_memory(c);
	tell_item(c, p, item, "hardlink", text ? text : "none", other ? other : "none");
	return 0;
}

static int deliver_items(struct compare *c, struct compare_parcel *p)
{
	size_t i, at = 0;
	int err = 0;

	for (i = 0; i < p->count && !err; i++) {
		c->res->names++;
		at = tell_notes(c, p, i, at);
		if (p->items[i].is_linkable)
			err = check_links(c, p, &p->items[i]);
	}
	/* ranges come right behind their file */
	c->large_other = p->count && p->items[p->count - 1].is_other;
	return err;
}

/* Ranges come in order: the first difference is the file's. */
static int deliver_range(struct compare *c, struct compare_parcel *p)
{
	int err = 0;

	if (!p->from)
		c->large_told = c->large_lost = false;
	if (p->items[0].is_other && !p->failed && !c->large_other) {
		/* it was what it should be when it was looked at */
		c->large_other = c->failed = true;
		erofs_diag_fail_path(c->diag, -ESTALE, path_of(p, &p->items[0]), "it changed while it was compared");
	}
	if (p->hashes)
		err = erofs_compare_add_hashes(c, p);
	if (p->notes.len && !c->large_told) {
		tell_notes(c, p, 0, 0);
		c->large_told = true;
	}
	return err;
}

int erofs_compare_deliver(void *arg, struct parcel *parcel)
{
	struct compare_parcel *p = (struct compare_parcel *)parcel;
	struct compare *c = arg;

	if (p->err)
		return erofs_compare_no_memory(c);
	c->damaged |= p->damaged;
	c->failed |= p->failed;
	c->res->bytes += p->bytes;
	return p->is_range ? deliver_range(c, p) : deliver_items(c, p);
}

void erofs_compare_free_parcel(struct compare_parcel *p)
{
	erofs_tarbuf_free(&p->names);
	erofs_tarbuf_free(&p->facts);
	erofs_tarbuf_free(&p->notes);
	erofs_verity_part_fini(&p->part);
	free(p->items);
	free(p);
}

void erofs_compare_release(void *arg, struct parcel *parcel)
{
	struct compare_parcel *p = (struct compare_parcel *)parcel;
	struct compare *c = arg;
	size_t i;

	for (i = 0; i < p->count && c->source.drop; i++)
		c->source.drop(c, &p->items[i]);
	if (p->names.room > BUFFER_KEEP || p->facts.room > BUFFER_KEEP || p->notes.room > BUFFER_KEEP) {
		erofs_compare_free_parcel(p);
		return;
	}
	p->spare = c->spares;
	c->spares = p;
}

struct compare_parcel *erofs_compare_new_parcel(struct compare *c)
{
	struct compare_parcel *p = c->spares;

	if (!p) {
		p = calloc(1, sizeof(*p));
		return p;
	}
	c->spares = p->spare;
	p->names.len = p->facts.len = p->notes.len = 0;
	p->count = 0;
	p->parcel.bytes = 0;
	p->is_range = p->hashes = p->last = p->damaged = p->failed = false;
	p->bytes = p->zeros = 0;
	p->err = 0;
	return p;
}
