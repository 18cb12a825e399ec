/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that fail when they are told to. They are caught by the linker (--wrap). */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdbool.h>

enum kind {
	K_MEMORY, K_PREAD, K_OPEN, K_OPENAT, K_MMAP, K_THREAD, K_MEMFD, K_PWRITE, K_MKDIR, K_LINK, K_SYMLINK,
	K_MKNOD, K_TRUNCATE, K_CHOWN, K_CHMOD, K_TIMES, K_CLOSE, K_WRITE, K_RENAME, K_FOLDER, K_TARGET,
	K_XATTR, K_FLUSH, K_READ, K_STAT, K_NAMES, K_SEEK, K_SIZE, K_COUNT,
};

/* K_SIZE: fstat() of a file of so many bytes tells of more. */
#define FAULT_LARGE (2 << 20)

extern const char *const fault_names[K_COUNT];

/* The n-th call of this kind from now on fails, once. K_COUNT: none. */
void fault_arm(enum kind kind, long n);
/* No call fails any more. Return: did one? */
bool fault_disarm(void);

/* The folder and all that is in it. */
void fault_remove_tree(const char *path);

#endif
