/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * Entries of one size, found by a hash of 32 bits. They are added and never taken out one by one. A table belongs to
 * whoever has it: no locks.
 */
#ifndef EROFS_BASE_TABLE_H
#define EROFS_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table {
	size_t size;			/* bytes of an entry; all else begins as zeros */
	uint8_t *all;
	struct table_slot *slots;	/* 8 bytes for each entry */
	uint32_t *heads;		/* 4 bytes for each that there is room for */
	size_t count, room;
};

/** erofs_table_add() - a new entry, of zeros; the others may move. NULL: no memory */
void *erofs_table_add(struct table *t, uint32_t hash);

/**
 * erofs_table_next() - the entries of one hash, the youngest first
 * @at: where the search is, 0 to begin with
 * Return: the next one, NULL: there is no more.
 */
void *erofs_table_next(const struct table *t, uint32_t hash, uint32_t *at);

/** erofs_table_fini() - free the entries; the table is empty then */
void erofs_table_fini(struct table *t);

/** erofs_table_hash() - of a number whose bits are not spread yet, such as an inode's */
static inline uint32_t erofs_table_hash(uint64_t number)
{
	return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

#endif
