/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the benchmark programs: all pclusters of an image, once, in physical order. */
#ifndef TESTS_BENCH_REFS_H
#define TESTS_BENCH_REFS_H

#include "check/check_priv.h"

/* Ends the program with a message if it cannot. free() what is returned. */
struct pcref *bench_collect(struct erofs_image *img, size_t *ret_count);
/* The same for opening. */
struct erofs_image *bench_open(const char *path);
void bench_die(const char *what, int err) __attribute__((noreturn));

#endif
