// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* A damaged file, read piece by piece: what cannot be read is reported with its cause and passed over. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "engine/lane_priv.h"

int erofs_salvage_begin(struct salvage *s, struct lane *lane, const struct erofs_inode *ino)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->lane = lane;
	s->ino = ino;
	s->step = LANE_IN;
	s->cause.nid = ino->nid;
	err = erofs_diag_filter_new(lane->diag, &s->cause, &s->filter);
	if (err)
		return err;
	s->diag = erofs_lane_divert(lane, s->filter);
	err = erofs_map_begin(&s->map, ino, &lane->mb, false);
	s->unmapped = erofs_diag_is_loss(err);
	return s->unmapped ? 0 : err;
}

/* Report the range that was lost last. */
static void tell_lost(struct salvage *s)
{
	char pieces[40] = "";

	if (!s->lost.len)
		return;
	if (s->lost.pieces > 1)
		snprintf(pieces, sizeof(pieces), " (%u pieces; of the first)", s->lost.pieces);
	erofs_diag_report(s->diag, EROFS_FINDING_DATA_HOLE, s->lost.err,
			  AT_RANGE(s->ino->nid, s->lost.la, s->lost.len),
			  "%" PRIu64 " bytes cannot be read and are zeros%s: %s", s->lost.len, pieces,
			  s->lost.text);
	s->lost.len = 0;
}

/* @len bytes at s->next are lost. Return: 0, or @err if that is none to go on after. */
static int lose(struct salvage *s, uint64_t len, int err)
{
	enum erofs_finding_id id = s->cause.caught ? s->cause.id : EROFS_FINDING_DATA_HOLE;
	char why[80];

	if (!erofs_diag_is_loss(err))
		return err;
	if (s->cause.caught)
		err = s->cause.err;
	s->total += len;
	if (s->lost.len && s->lost.id == id && s->lost.err == err &&
	    s->lost.la + s->lost.len == s->next) {
		s->lost.len += len;
		s->lost.pieces++;
	} else {
		tell_lost(s);
		s->lost.la = s->next;
		s->lost.len = len;
		s->lost.pieces = 1;
		s->lost.id = id;
		s->lost.err = err;
		snprintf(s->lost.text, sizeof(s->lost.text), "%s", s->cause.caught ? s->cause.text :
			 erofs_diag_strerror(err, why, sizeof(why)));
	}
	s->next += len;
	return 0;
}

/* Find what holds s->next. Return: 1, 0 it is lost, -ENOMEM. */
static int load(struct salvage *s)
{
	int r;

	s->has_ext = s->has_ext && s->next - s->ext.la < s->ext.len;
	if (s->has_ext)
		return 1;
	s->cause.caught = s->unmapped && s->cause.caught;
	if (s->unmapped)
		return lose(s, s->ino->size - s->next, -EUCLEAN);
	r = erofs_map_salvage(&s->map, s->next, &s->ext);
	if (!r)
		return lose(s, s->ext.len, -EUCLEAN);
	s->has_ext = r > 0;
	return r;
}

/* Plain data in large steps; where those fail, block by block. */
static int read_raw(struct salvage *s, uint64_t skip, uint64_t left, struct run *run)
{
	struct lane *lane = s->lane;
	size_t len = (size_t)min_u64(left, s->step);
	int err = erofs_lane_fetch(lane, s->ext.dev, s->ext.pa + skip, len, &run->data);

	if (err && len > lane->img->blksz) {
		s->step = lane->img->blksz;
		len = s->step;
		err = erofs_lane_fetch(lane, s->ext.dev, s->ext.pa + skip, len, &run->data);
	}
	run->len = len;
	if (!err) {
		s->step = (size_t)min_u64(2 * (uint64_t)s->step, LANE_IN);
		return 0;
	}
	return erofs_lane_report_read(lane, s->ino, s->next, s->ext.dev, s->ext.pa + skip, err);
}

/* One extent of the packed file at a time. */
static int read_fragment(struct salvage *s, uint64_t skip, uint64_t left, struct run *run)
{
	const struct erofs_inode *packed = s->lane->img->super->packed;
	uint64_t pos = s->ext.pa + skip;
	struct extent ext;
	struct map map;
	int err = erofs_map_begin(&map, packed, &s->lane->mb, false), r;

	run->len = left;
	if (err == -ENOMEM)
		return err;
	r = err ? 0 : erofs_map_salvage(&map, pos, &ext);
	if (r < 0)
		return r;
	if (!err)
		run->len = min_u64(min_u64(left, STREAM_RUN), ext.la + ext.len - pos);
	if (r) {
		err = erofs_lane_reserve(s->lane, (size_t)run->len);
		if (!err)
			err = erofs_lane_read_extent(s->lane, packed, &ext, pos - ext.la, s->lane->out,
						     (size_t)run->len);
		run->data = s->lane->out;
	}
	if (r && !err)
		return 0;
	if (!r || erofs_diag_is_loss(err))
		return erofs_diag_damage(s->lane->diag, DATA_DECODE, AT(s->ino->nid, s->next),
					 "bytes at %" PRIu64 " of the packed file cannot be read", pos);
	return err;
}

/* The bytes at s->next, or how many of them are lost: run->len either way. */
static int read_piece(struct salvage *s, struct run *run)
{
	uint64_t skip = s->next - s->ext.la, left = s->ext.len - skip;
	int err;

	s->cause.caught = false;
	run->la = s->next;
	if (s->ext.kind == EXTENT_FRAGMENT)
		return read_fragment(s, skip, left, run);
	if (s->ext.kind == EXTENT_RAW && !s->ext.meta)
		return read_raw(s, skip, left, run);
	run->len = left;
	err = erofs_lane_reserve(s->lane, (size_t)s->ext.len);
	if (err)
		return err;
	run->data = s->lane->out;
	return erofs_lane_read_extent(s->lane, s->ino, &s->ext, skip, s->lane->out, (size_t)left);
}

int erofs_salvage_next(struct salvage *s, struct run *ret_run)
{
	int r;

	while (s->next < s->ino->size) {
		r = load(s);
		if (r < 0)
			return r;
		if (!r)
			continue;
		if (s->ext.kind == EXTENT_HOLE) {
			s->next = s->ext.la + s->ext.len;
			continue;
		}
		r = read_piece(s, ret_run);
		if (!r) {
			s->next += ret_run->len;
			return 1;
		}
		r = lose(s, ret_run->len, r);
		if (r)
			return r;
	}
	return 0;
}

uint64_t erofs_salvage_end(struct salvage *s)
{
	if (!s->filter)
		return 0;
	erofs_lane_divert(s->lane, s->diag);
	tell_lost(s);
	/* whoever met damage before us said nothing, since we would */
	if (!s->total && s->next == s->ino->size)
		erofs_diag_damage(s->diag, DATA_HOLE, AT_RANGE(s->ino->nid, 0, 0),
				  "the map is damaged, but all data could be read");
	erofs_diag_free(s->filter);
	s->filter = NULL;
	return s->total;
}
