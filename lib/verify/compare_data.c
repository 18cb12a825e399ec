// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Contents: what the image decodes to against what the source holds, piece by piece. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fdio.h"
#include "verify/verify_priv.h"

/* Offset of the first byte that differs; @len: none. @a NULL: zeros. */
static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i;

	if (a && !memcmp(a, b, len))
		return len;
	if (!a && (!len || (!*b && !memcmp(b, b + 1, len - 1))))
		return len;
	for (i = 0; i < len; i++)
		if (b[i] != (a ? a[i] : 0))
			break;
	return i;
}

static void note_byte(struct compare_parcel *p, size_t i, uint64_t la, unsigned int found, unsigned int wanted)
{
	char a[64], b[16];

	snprintf(a, sizeof(a), "0x%02x at byte %" PRIu64, found, la);
	snprintf(b, sizeof(b), "0x%02x", wanted);
	erofs_compare_note(p, i, "data", a, b);
}

static int fail_read(struct compare_lane *l, struct compare_parcel *p, size_t i, int err)
{
	p->failed = true;
	return erofs_diag_fail_path(l->c->diag, err, (const char *)p->names.data + p->items[i].path,
				    "cannot read it in the source");
}

/* The source's bytes [la, la + len) where the image has a hole: jump over its holes. */
static uint64_t skip_hole(const struct compare_lane *l, uint64_t la, uint64_t end)
{
	off_t data = l->fd >= 0 ? lseek(l->fd, (off_t)(l->fd_off + la), SEEK_DATA) : -1;

	if (data < 0)
		return errno == ENXIO && l->fd >= 0 ? end : la;
	return min_u64((uint64_t)data - l->fd_off, end);
}

static ssize_t get_piece(struct compare_lane *l, uint64_t la, size_t len, const uint8_t **ret)
{
	if (l->data) {
		*ret = l->data + la;
		return (ssize_t)(la < l->data_len ? min_u64(len, l->data_len - la) : 0);
	}
	if (!l->piece)
		l->piece = malloc(COMPARE_PIECE);
	if (!l->piece)
		return -ENOMEM;
	*ret = l->piece;
	return erofs_fdio_pread(l->fd, l->piece, len, l->fd_off + la);
}

/* Return: 1 the same, 0 a difference was noted, negative errno (reported). */
static int compare_run(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct run *run)
{
	uint64_t la = run->la, end = run->la + run->len;
	const uint8_t *data;

	while (la < end) {
		size_t len, same;
		ssize_t n;

		if (erofs_job_is_cancelled(l->c->job))
			return -ECANCELED;
		if (!run->data)
			la = skip_hole(l, la, end);
		len = (size_t)min_u64(COMPARE_PIECE, end - la);
		if (!len)
			break;
		n = get_piece(l, la, len, &data);
		if (n < 0)
			return fail_read(l, p, i, (int)n);
		same = first_difference(run->data ? run->data + (la - run->la) : NULL, data, (size_t)n);
		if (same < (size_t)n) {
			note_byte(p, i, la + same, run->data ? run->data[la - run->la + same] : 0, data[same]);
			return 0;
		}
		if ((size_t)n < len)
			return fail_read(l, p, i, -ESTALE);	/* it became shorter */
		la += len;
	}
	p->bytes += run->len;
	return 1;
}

static void compare_stream(struct compare_lane *l, struct compare_parcel *p, size_t i, uint64_t from, uint64_t to)
{
	const struct erofs_inode *ino = &p->items[i].ino;
	struct stream s;
	struct run run;
	int r = erofs_stream_begin(&s, l->lane, ino, from, to);

	while (!r && (r = erofs_stream_next(&s, &run)) > 0) {
		r = compare_run(l, p, i, &run);
		if (r <= 0)
			return;
		r = 0;
	}
	p->damaged |= r < 0;
}

void erofs_compare_data(struct compare_lane *l, struct compare_parcel *p, size_t i, const struct wanted *w)
{
	if (w->has_sha256 || w->has_sha512 || w->has_verity)
		erofs_compare_digests(l, p, i, w);
	else if (p->items[i].ino.size && (l->fd >= 0 || l->data))
		compare_stream(l, p, i, 0, p->items[i].ino.size);
}

/* A piece of the image in memory. */
static const uint8_t *read_image(struct compare_lane *l, struct compare_parcel *p, uint64_t la, size_t len)
{
	if (!l->whole)
		l->whole = malloc(COMPARE_BATCH);
	if (!l->whole)
		p->err = -ENOMEM;
	else if (erofs_lane_read(l->lane, &p->items[0].ino, la, l->whole, len))
		p->damaged = true;
	return p->err || p->damaged ? NULL : l->whole;
}

/* A range of an archive has borders of its own: pclusters at them are decoded for both sides. */
static void compare_bytes(struct compare_lane *l, struct compare_parcel *p)
{
	const uint8_t *found = read_image(l, p, p->from, (size_t)(p->to - p->from));
	size_t len = (size_t)(p->to - p->from), same;

	if (!found)
		return;
	same = first_difference(found, l->data, len);
	if (same < len)
		note_byte(p, 0, p->from + same, found[same], l->data[same]);
	p->bytes += same;
}

/* The extent that holds byte @la. */
static int find_extent(struct compare_lane *l, const struct compare_parcel *p, uint64_t la, struct extent *ret)
{
	struct map map;
	int r = erofs_map_begin(&map, &p->items[0].ino, erofs_lane_metabuf(l->lane), false);

	if (!r && la)
		r = erofs_map_seek(&map, la);
	return r ? r : erofs_map_next(&map, ret);
}

/* Is the range zeros in the image? */
static void compare_zeros(struct compare_lane *l, struct compare_parcel *p)
{
	uint64_t la = p->from, n;
	struct extent ext;

	for (; la < p->to && !erofs_job_is_cancelled(l->c->job); la += n) {
		const uint8_t *found;
		size_t same;

		if (find_extent(l, p, la, &ext) <= 0) {
			p->damaged = true;
			return;
		}
		n = min_u64(ext.la + ext.len, p->to) - la;
		if (ext.kind == EXTENT_HOLE) {
			p->bytes += n;
			continue;
		}
		n = min_u64(n, COMPARE_BATCH);
		found = read_image(l, p, la, (size_t)n);
		if (!found)
			return;
		same = first_difference(NULL, found, (size_t)n);
		p->bytes += same;
		if (same < n) {
			note_byte(p, 0, la + same, found[same], 0);
			return;
		}
	}
}

void erofs_compare_range(struct compare_lane *l, struct compare_parcel *p, const struct wanted *w)
{
	if (w->has_zeros)
		compare_zeros(l, p);
	else if (l->data)
		compare_bytes(l, p);
	else if (l->fd >= 0)
		compare_stream(l, p, 0, p->from, p->to);
}
