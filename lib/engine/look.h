/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * look: lanes for the public functions that look into an image, outside any job.
 *
 * A lane costs a metadata cache and decoder contexts, so an image keeps a few for reuse: a program
 * that loads one inode after another finds the neighbours of the last one in the cache. A lane that
 * is taken belongs to one thread until it is given back.
 *
 * Lock order: look.lock is a leaf.
 */
#ifndef EROFS_ENGINE_LOOK_H
#define EROFS_ENGINE_LOOK_H

#include "engine/engine_priv.h"

struct look;

/** erofs_look_new() - an empty store of lanes; 0, -ENOMEM */
int erofs_look_new(struct look **ret_look);

/** erofs_look_free() - free the store and its lanes, all of which must have been given back; NULL is fine */
void erofs_look_free(struct look *look);

/**
 * erofs_look_take() - a lane for @img that reports to @diag
 * Return: 0, -ENOMEM.
 */
int erofs_look_take(struct erofs_image *img, struct erofs_diag *diag, struct lane **ret_lane);

/** erofs_look_give() - give a lane back, or free it if enough are kept; NULL is fine */
void erofs_look_give(struct lane *lane);

static inline void erofs_look_cleanup(struct lane **lane)
{
	erofs_look_give(*lane);
}

#define auto_lane auto_call(erofs_look_cleanup)

#endif
