// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a fuzz target over files, without a fuzzer: the seeds beside this file and the damaged images of
 * the corpus. In builds with sanitizers this finds what a fuzzer found before. TAP output.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define MAX_FILE (64 << 20)

static unsigned int done;

static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	size_t size;
	long end;

	if (!f)
		return -1;
	fseek(f, 0, SEEK_END);
	end = ftell(f);
	rewind(f);
	if (end < 0 || end > MAX_FILE) {
		fclose(f);
		return 0;
	}
	data = malloc((size_t)end + 1);
	size = data ? fread(data, 1, (size_t)end, f) : 0;
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	printf("ok %u - %s\n", ++done, strrchr(path, '/') + 1);
	fflush(stdout);
	return 0;
}

static void replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *de;
	char path[4096];

	while (dir && (de = readdir(dir))) {
		size_t len = strlen(de->d_name), suffix = strlen(fuzz_suffix);

		if (len <= suffix || strcmp(de->d_name + len - suffix, fuzz_suffix))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, de->d_name);
		replay(path);
	}
	if (dir)
		closedir(dir);
}

int main(int argc, char **argv)
{
	const char *corpus = getenv("CORPUS"), *top = getenv("top_srcdir");
	char path[4096];
	int i;

	for (i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc == 1) {
		snprintf(path, sizeof(path), "%s/tests/fuzz/seeds", top ? top : ".");
		replay_folder(path);
		snprintf(path, sizeof(path), "%s/bad", corpus ? corpus : "");
		if (!corpus)
			snprintf(path, sizeof(path), "%s/../shared/corpus/bad", top ? top : ".");
		replay_folder(path);
	}
	if (done)
		printf("1..%u\n", done);
	else
		puts("1..0 # SKIP no seeds and no corpus here");
	return 0;
}
