// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Extended attributes: all of the image's, and what of the source was not met. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/escape.h"
#include "verify/verify_priv.h"

#define SHOWN 64	/* bytes of a value that are told */

unsigned int erofs_compare_xattr_kind(const char *name)
{
	if (!strncmp(name, "system.posix_acl_", 17))
		return EROFS_COMPARE_ACL;
	if (!strcmp(name, "security.capability"))
		return EROFS_COMPARE_CAPS;
	if (!strcmp(name, "security.selinux"))
		return EROFS_COMPARE_LABEL;
	return EROFS_COMPARE_XATTR;
}

bool erofs_compare_is_storable(const char *name)
{
	return !strncmp(name, "user.", 5) || !strncmp(name, "trusted.", 8) || !strncmp(name, "security.", 9) ||
	       !strcmp(name, "system.posix_acl_access") || !strcmp(name, "system.posix_acl_default");
}

static bool is_text(const uint8_t *value, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (value[i] < 0x20 || value[i] > 0x7e || value[i] == '\\')
			return false;
	return size;
}

/* A value for people: text where it is text (labels end with a NUL), else digits. */
static void show(const uint8_t *value, size_t size, char *buf, size_t room)
{
	size_t shown = size < SHOWN ? size : SHOWN, i, at, text = size;

	if (text > 1 && !value[text - 1])
		text--;
	if (text <= 4 * SHOWN && is_text(value, text)) {
		snprintf(buf, room, "%.*s%s", (int)text, (const char *)value, text < size ? "\\000" : "");
		return;
	}
	at = (size_t)snprintf(buf, room, "0x");
	for (i = 0; i < shown; i++)
		at += (size_t)snprintf(buf + at, room - at, "%02x", value[i]);
	if (shown < size)
		snprintf(buf + at, room - at, "... (%zu bytes)", size);
}

static void note(struct compare_parcel *p, size_t i, const char *name, const uint8_t *found, size_t found_size,
		 const uint8_t *wanted, size_t wanted_size)
{
	char key[4 * XATTR_NAME_SIZE + 8] = "xattr.", a[4 * SHOWN + 40] = "none", b[4 * SHOWN + 40] = "none";

	erofs_escape_name(name, strlen(name), key + 6, sizeof(key) - 6);
	if (found)
		show(found, found_size, a, sizeof(a));
	if (wanted)
		show(wanted, wanted_size, b, sizeof(b));
	erofs_compare_note(p, i, key, a, b);
}

static struct wanted_xattr *find_wanted(struct wanted_xattr *list, size_t count, const uint8_t *base, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp((const char *)base + list[i].name, name))
			return &list[i];
	return NULL;
}

static void compare_one(struct compare_lane *l, struct compare_parcel *p, size_t i, struct wanted_xattr *list,
			size_t count, const struct xattr_view *xa)
{
	struct wanted_xattr *want = find_wanted(list, count, l->base, xa->name);
	const uint8_t *value = want ? l->base + want->value : NULL;

	/* a digest that mkfs added, to files with contents, is no part of the source */
	if (!want && xa->is_digest && S_ISREG(p->items[i].ino.mode) && p->items[i].ino.size)
		return;
	if (want)
		want->met = true;
	if (!(erofs_compare_xattr_kind(xa->name) & l->c->what) ||
	    (!want && l->c->source.hides_trusted && !strncmp(xa->name, "trusted.", 8)))
		return;
	if (!want || want->size != xa->size || memcmp(value, xa->value, xa->size))
		note(p, i, xa->name, xa->value, xa->size, value, want ? want->size : 0);
}

void erofs_compare_xattrs(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	const struct erofs_inode *ino = &p->items[i].ino;
	struct xattr_iter *it = ino->xattr_size ? erofs_lane_xattrs(l->lane) : NULL;
	struct wanted_xattr *list = NULL;
	struct xattr_view xa;
	size_t k;
	int r = 0;

	if (ino->xattr_size && !it) {
		p->err = -ENOMEM;
		return;
	}
	if (w->nxattrs) {
		list = malloc(w->nxattrs * sizeof(*list));
		if (!list) {
			p->err = -ENOMEM;
			return;
		}
		memcpy(list, l->base + w->xattrs, w->nxattrs * sizeof(*list));
	}
	if (it)
		r = erofs_xattr_begin(it, ino);
	while (it && !r && (r = erofs_xattr_next(it, &xa)) > 0) {
		r = 0;
		if (!xa.hidden)
			compare_one(l, p, i, list, w->nxattrs, &xa);
	}
	if (r || (it && erofs_xattr_damage(it))) {
		p->damaged = true;
		free(list);
		return;
	}
	for (k = 0; k < w->nxattrs; k++) {
		const char *name = (const char *)l->base + list[k].name;

		if (!list[k].met && erofs_compare_xattr_kind(name) & l->c->what)
			note(p, i, name, NULL, 0, l->base + list[k].value, list[k].size);
	}
	free(list);
}
