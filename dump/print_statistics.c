// SPDX-License-Identifier: GPL-2.0-or-later
/* Statistics: counts, sizes and their distributions (cli.md 6). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dump.h"

#define BAR 50		/* columns of 100 per cent */
#define LABEL 40

/* Percent; of nothing: all of it. */
static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static void print_bar(uint64_t count, uint64_t total)
{
	double share = total ? (double)count / (double)total : 0.0;
	int marks = share > 1.0 ? BAR : (int)(share * BAR);

	printf("\t%-14" PRIu64 "%6.2f%% |%.*s%*s|\n", count, share * 100.0, marks,
	       "##################################################", BAR - marks, "");
}

static void print_sizes(const char *title, const uint64_t classes[EROFS_SIZE_CLASSES], uint64_t total)
{
	unsigned int i;

	printf("\n%s\n>=(KB) .. <(KB)        count            ratio |distribution"
	       "                                      |\n", title);
	for (i = 0; i < EROFS_SIZE_CLASSES; i++) {
		unsigned int from = i ? 1u << (i - 1) : 0;

		if (i < EROFS_SIZE_CLASSES - 1)
			printf("%6u .. %-6u", from, 1u << i);
		else
			printf("%6u .. %-6s", from, "");
		print_bar(classes[i], total);
	}
}

static void print_types(const struct erofs_statistics *s)
{
	static const char *const names[] = { "unknown type", "regular file", "directory", "char dev",
					     "block dev", "FIFO file", "SOCK file", "symlink file" };
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < 8; i++)
		total += s->types[i];
	printf("Filesystem total file count:\t\t%" PRIu64 "\n", total);
	for (i = 0; i < 8; i++)
		printf("Filesystem %s count:\t\t%" PRIu64 "\n", names[i], s->types[i]);
}

void dump_print_statistics(const struct erofs_statistics *s)
{
	uint64_t files = s->types[1];
	unsigned int i;

	print_types(s);
	printf("%-*s%" PRIu64 "\n", LABEL, "Filesystem compressed files:", s->compressed);
	printf("%-*s%" PRIu64 "\n", LABEL, "Filesystem uncompressed files:", s->uncompressed);
	printf("%-*s%" PRIu64 " Bytes\n", LABEL, "Filesystem total original file size:", s->original_bytes);
	printf("%-*s%" PRIu64 " Bytes\n", LABEL, "Filesystem total file size:", s->stored_bytes);
	printf("%-*s%.2f%%\n", LABEL, "Filesystem compress rate:", percent(s->stored_bytes, s->original_bytes));
	print_sizes("Original file size distribution:", s->original_sizes, files);
	print_sizes("On-disk file size distribution:", s->stored_sizes, files);
	puts("\nFile type distribution:\n"
	     "type                   count            ratio |distribution"
	     "                                      |");
	for (i = 0; erofs_suffix_name(i); i++) {
		printf("%-17s", erofs_suffix_name(i));
		print_bar(s->suffixes[i], files);
	}
}
