/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* extract: write an image's tree, in parallel, never outside the target folder. */
#ifndef EROFS_EXTRACT_H
#define EROFS_EXTRACT_H

#include <erofs/engine.h>
#include <erofs/image.h>
#include <erofs/select.h>

EROFS_BEGIN_DECLS

struct erofs_extract_options {
	size_t size;			/* sizeof(struct erofs_extract_options) */
	const char *target;		/* folder to create or use; if @nid is no directory: the file to create */
	int has_nid;			/* start at @nid, not at the root */
	uint64_t nid;
	int overwrite;			/* replace what stands in the way (cli.md X3) */
	int force;			/* allow "/" as the target */
	int preserve_owner;		/* 1 yes, 0 no, -1 as root yes, else no */
	int preserve_perms;		/* 1 exact, 0 less the umask, -1 as root exact, else less the umask */
	int no_times;			/* leave times alone */
	int xattrs;			/* restore extended attributes and ACLs */
	int strict;			/* what was skipped makes the run fail (-EPERM) */
	int fail_fast;			/* stop at the first error */
	int sparse;			/* punch holes for runs of zero blocks too */
	int mkdir_parents;		/* create missing parents of the target */
	int safe_writes;		/* a temporary name for every file, not only large ones */
	int fsync;			/* flush every file before it counts as done */
	const char *const *xattr_include;	/* globs, ends with NULL: only these; NULL: all */
	const char *const *xattr_exclude;	/* globs, ends with NULL: never these; NULL: none */
	const struct erofs_select *select;	/* what comes out, from the start on; NULL: everything */
	unsigned int strip_components;	/* leading parts of paths to be dropped; shorter ones are left out */
	int salvage;			/* keep damaged files: what cannot be read of them is zeros (cli.md X10) */
};

struct erofs_extract_result {
	uint64_t files, directories, symlinks, hard_links, specials;
	uint64_t bytes;			/* of file contents written */
	uint64_t skipped;		/* things that could not be set or made for lack of privilege */
	uint64_t failed;		/* entries that are not there */
	uint64_t damaged;		/* files that are there with holes (salvage) */
};

/**
 * erofs_extract() - extract an image, a subtree or one file
 * @diag:       receives findings and failures, named by path; not flushed
 * @ret_result: may be NULL; filled also after an error
 * Directories above selected names are made with their own attributes, but only where something below them
 * is selected; what cannot be selected is not read. Rules X1 to X13 of cli.md. One bad file does not stop
 * the others (unless fail_fast).
 * Return: 0; -EUCLEAN damaged contents; -ECANCELED; errno of the first target failure (reported).
 */
EROFS_API int erofs_extract(struct erofs_image *img, struct erofs_engine *eng,
			    const struct erofs_extract_options *options, struct erofs_diag *diag,
			    struct erofs_extract_result *ret_result);

EROFS_END_DECLS

#endif
