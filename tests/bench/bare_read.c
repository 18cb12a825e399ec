// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a comparison cannot do without: reading a tree, and hashing as many bytes. As many threads as CPUs open
 * and read one file after another of a list that was made before; and take the SHA-256 of as many blocks of
 * 4 KiB as the files have, from memory. Prints the seconds of both.
 *
 * usage: bare_read FOLDER
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sha.h"

#define AT_ONCE 16		/* files that a thread takes at a time */
#define PIECE ((size_t)256 << 10)
#define BLOCK ((size_t)4096)
#define POOL ((size_t)64 << 20)

static char **files;
static size_t count, room;
static uint64_t blocks;
static uint8_t *pool;
static atomic_size_t next_file;
static _Atomic uint64_t next_block;
static atomic_bool failed;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	if (count == room) {
		room = room ? 2 * room : 4096;
		files = realloc(files, room * sizeof(*files));
		if (!files)
			return -1;
	}
	blocks += ((uint64_t)st->st_size + BLOCK - 1) / BLOCK;
	files[count] = strdup(path);
	return files[count++] ? 0 : -1;
}

static void read_file(const char *path, uint8_t *buf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, PIECE)) != 0)
		if (n < 0) {
			atomic_store(&failed, true);
			break;
		}
	if (fd < 0)
		atomic_store(&failed, true);
	else
		close(fd);
}

static void *read_files(void *arg)
{
	uint8_t *buf = malloc(PIECE);
	size_t at, i;

	(void)arg;
	while (buf && (at = atomic_fetch_add(&next_file, AT_ONCE)) < count)
		for (i = at; i < at + AT_ONCE && i < count; i++)
			read_file(files[i], buf);
	free(buf);
	return NULL;
}

static void *hash_blocks(void *arg)
{
	struct sha *sha = erofs_sha_new(SHA_256);
	uint8_t digest[SHA_MAX_SIZE];
	uint64_t at, i;

	(void)arg;
	while (sha && (at = atomic_fetch_add(&next_block, 256)) < blocks)
		for (i = at; i < at + 256 && i < blocks; i++) {
			erofs_sha_begin(sha);
			erofs_sha_update(sha, pool + i * BLOCK % POOL, BLOCK);
			if (!erofs_sha_final(sha, digest))
				atomic_store(&failed, true);
		}
	if (!sha)
		atomic_store(&failed, true);
	erofs_sha_free(sha);
	return NULL;
}

static double time_once(void *(*fn)(void *arg), unsigned int threads)
{
	uint64_t begin = erofs_now_ns();
	pthread_t t[64];
	unsigned int i;

	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, fn, NULL))
			exit(1);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return (double)(erofs_now_ns() - begin) / 1e9;
}

int main(int argc, char **argv)
{
	double reading, hashing;
	unsigned int threads;
	cpu_set_t set;
	size_t i;

	if (argc != 2) {
		fputs("usage: bare_read FOLDER\n", stderr);
		return 2;
	}
	pool = malloc(POOL);
	if (!pool || nftw(argv[1], add_file, 64, FTW_PHYS)) {
		fprintf(stderr, "%s: cannot list it\n", argv[1]);
		return 1;
	}
	for (i = 0; i < POOL; i++)
		pool[i] = (uint8_t)(i * 2654435761u >> 13);
	sched_getaffinity(0, sizeof(set), &set);
	threads = (unsigned int)CPU_COUNT(&set);
	threads = threads > 64 ? 64 : threads;
	reading = time_once(read_files, threads);
	hashing = time_once(hash_blocks, threads);
	printf("%.6f %.6f\n", reading, hashing);
	return atomic_load(&failed);
}
