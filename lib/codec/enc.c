// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* The search for the longest input that fits, for libraries that cannot be told the size of the output. */
#include <string.h>

#include "codec/enc.h"

/*
 * A pcluster counts as full with 1/512 of it to spare; after this many tries the best is taken. 1/256 saves
 * 3 per cent of the time and costs 0.1 of size, 1/1024 the reverse; more tries gain less than 0.2 of size and
 * cost a fifth of the time each.
 */
#define FULL_SHARE 512
#define MAX_TRIES 7
#define FIRST_RATIO 3		/* of the first guess, before anything is known of the data */

/* The next length to try, from what is known: @fits does, @over does not, @size came of @tried. */
static size_t guess_next(size_t fits, size_t over, size_t tried, size_t size, size_t room)
{
	size_t next;

	if (size) {
		/* a little less than the proportion says: too much is a wasted try */
		next = (size_t)((double)tried * (double)room / (double)size * 0.999);
	} else {
		next = fits + (over - fits) / 2;
	}
	if (next <= fits)
		next = fits + (over - fits) / 2;
	if (next >= over)
		next = over - 1 - (over - fits) / 8;
	return next > fits ? next : fits;
}

int erofs_enc_search(const struct enc_search *s, const uint8_t *src, size_t *len, uint8_t *dst, size_t room)
{
	size_t fits = 0, over = *len + 1, at = room * FIRST_RATIO, spare_room = room + room / 4;
	int best = 0, tries, got;

	if (at > *len)
		at = *len;
	for (tries = 0; tries < MAX_TRIES && at > fits; tries++) {
		/* the spare buffer is larger, so that a try that fails says by how much */
		got = s->try(s->state, src, at, s->spare, spare_room);
		if (got < 0)
			return got;
		if (got && (size_t)got <= room) {
			memcpy(dst, s->spare, (size_t)got);
			fits = at;
			best = got;
			if (fits == *len || room - (size_t)got <= room / FULL_SHARE)
				break;
		} else {
			over = at;
		}
		if (fits + 1 >= over)
			break;
		at = guess_next(fits, over, at, (size_t)got, room);
	}
	*len = fits;
	return best;
}
