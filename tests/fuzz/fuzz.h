/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fuzz target offers: libFuzzer calls the first, replay.c both. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Suffix of files in the corpus that are inputs for this target. */
extern const char *const fuzz_suffix;

#endif
