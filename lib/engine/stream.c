// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A file's contents in order: extents decoded behind each other, holes and raw data as they come. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "engine/lane_priv.h"

#define GATHER_RAW (UINT32_C(128) << 10)	/* raw data up to this long is copied to join its neighbours */

/* Extents of these kinds may be read from any byte on. */
static bool is_cuttable(const struct extent *ext)
{
	return ext->kind != EXTENT_ENCODED;
}

/* Load the next extent of the range. Return: 1, 0 at the end, negative errno. */
static int load_extent(struct stream *s)
{
	int r;

	if (s->has_ext)
		return 1;
	r = erofs_map_next(&s->map, &s->ext);
	if (r <= 0)
		return r;
	if (s->ext.la >= s->end)
		return 0;
	s->raw_done = 0;
	if (is_cuttable(&s->ext) && s->ext.len > s->end - s->ext.la)
		s->ext.len = s->end - s->ext.la;
	s->has_ext = true;
	return 1;
}

int erofs_stream_begin(struct stream *s, struct lane *lane, const struct erofs_inode *ino, uint64_t from,
		       uint64_t to)
{
	int r;

	s->lane = lane;
	s->ino = ino;
	s->end = min_u64(to, ino->size);
	s->has_ext = false;
	s->raw_done = 0;
	r = erofs_map_begin(&s->map, ino, &lane->mb, false);
	if (r || !from || from >= s->end)
		return r;
	r = erofs_map_seek(&s->map, from);
	if (r)
		return r;
	r = load_extent(s);
	if (r < 0)
		return r;
	if (r && s->ext.la < from) {
		if (is_cuttable(&s->ext))
			s->raw_done = from - s->ext.la;
		else
			s->has_ext = false;	/* belongs to the range in front of us */
	}
	return 0;
}

static void advance(struct stream *s, uint64_t len)
{
	s->raw_done += len;
	if (s->raw_done == s->ext.len)
		s->has_ext = false;
}

/* Decode or copy a piece of the current extent behind what the output holds. */
static int append(struct stream *s, size_t at, size_t len)
{
	struct lane *lane = s->lane;
	int err = erofs_lane_reserve(lane, at + len);

	if (err)
		return err;
	if (s->ext.kind == EXTENT_ENCODED)
		return erofs_lane_decode(lane, s->ino, &s->ext, lane->out + at, len);
	if (s->ext.kind == EXTENT_FRAGMENT)
		return erofs_lane_read_fragment(lane, s->ino, &s->ext, s->raw_done, lane->out + at, len);
	return erofs_lane_read_raw(lane, s->ino, &s->ext, s->raw_done, lane->out + at, len);
}

/* Bytes of the current extent that go into the output now; 0: it must be a run of its own. */
static size_t piece(const struct stream *s, size_t at)
{
	uint64_t left = s->ext.len - s->raw_done;

	switch (s->ext.kind) {
	case EXTENT_ENCODED:
		return !at || at + left <= STREAM_RUN ? (size_t)left : 0;
	case EXTENT_FRAGMENT:
		return (size_t)min_u64(left, STREAM_RUN - min_u64(at, STREAM_RUN));
	case EXTENT_RAW:
		if (s->ext.meta || left <= GATHER_RAW)
			return at + left <= STREAM_RUN ? (size_t)left : 0;
		return 0;
	case EXTENT_HOLE:
		break;
	}
	return 0;
}

static int next_hole(struct stream *s, struct run *ret_run)
{
	ret_run->la = s->ext.la + s->raw_done;
	ret_run->len = s->ext.len - s->raw_done;
	ret_run->data = NULL;
	s->has_ext = false;
	return 1;
}

static int next_raw(struct stream *s, struct run *ret_run)
{
	size_t len = (size_t)min_u64(s->ext.len - s->raw_done, LANE_IN);
	uint64_t pa = s->ext.pa + s->raw_done;
	int err = erofs_lane_fetch(s->lane, s->ext.dev, pa, len, &ret_run->data);

	if (err)
		return erofs_lane_report_read(s->lane, s->ino, s->ext.la + s->raw_done, s->ext.dev, pa, err);
	ret_run->la = s->ext.la + s->raw_done;
	ret_run->len = len;
	advance(s, len);
	return 1;
}

int erofs_stream_next(struct stream *s, struct run *ret_run)
{
	size_t have = 0, len;
	uint64_t la = 0;
	int r;

	while ((r = load_extent(s)) > 0) {
		len = piece(s, have);
		if (!len && have)
			break;
		if (!len)
			return s->ext.kind == EXTENT_HOLE ? next_hole(s, ret_run) : next_raw(s, ret_run);
		if (!have)
			la = s->ext.la + s->raw_done;
		r = append(s, have, len);
		if (r)
			return r;
		have += len;
		advance(s, len);
		if (have >= STREAM_RUN)
			break;
	}
	if (r < 0 || !have)
		return r < 0 ? r : 0;
	ret_run->la = la;
	ret_run->len = have;
	ret_run->data = s->lane->out;
	return 1;
}
