/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Unlinked files in TMPDIR, for what does not fit into memory (cli.md 13). */
#ifndef EROFS_BASE_TEMP_H
#define EROFS_BASE_TEMP_H

/** erofs_temp_folder() - TMPDIR or /tmp */
const char *erofs_temp_folder(void);

/** erofs_temp_file() - return: a descriptor for reading and writing; negative errno */
int erofs_temp_file(void);

#endif
