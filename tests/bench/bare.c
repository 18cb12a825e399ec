// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bare decoder (engine.md F4): as many threads as CPUs, each reads one pcluster after another from the
 * hot file into one buffer and calls the codec; beside it the same from memory, without reading. Prints
 * the seconds of both.
 *
 * usage: bare IMAGE [ROUNDS]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdio.h"
#include "refs.h"

#define AT_ONCE 64	/* pclusters that a thread takes at a time */

struct bare {
	struct erofs_image *img;
	const struct pcref *refs;
	size_t count;
	const uint8_t *memory;		/* NULL: read the file */
	int fd;
	atomic_size_t next;
	atomic_size_t failed;
};

static void decode_one(struct bare *b, struct codec_ctx *ctx, const struct pcref *r, uint8_t *in, uint8_t *out)
{
	uint64_t len = pcref_plen(r), done, n;
	struct codec_fault fault;
	struct codec_request req;

	if (pcref_is_raw(r) || pcref_alg(r) >= CODEC_SHIFTED) {
		/* plain data: to have read it is all */
		for (done = 0; !b->memory && done < len; done += n) {
			n = len - done < CODEC_MAX_PLEN ? len - done : CODEC_MAX_PLEN;
			if (erofs_fdio_pread(b->fd, in, n, r->addr + done) != (ssize_t)n)
				atomic_fetch_add(&b->failed, 1);
		}
		return;
	}
	req = (struct codec_request){ .alg = pcref_alg(r), .src = in, .src_len = len, .dst = out,
				      .dst_len = pcref_dlen(r), .partial = pcref_partial(r),
				      .blksz = b->img->blksz };
	if (b->memory)
		req.src = b->memory + r->addr;
	else if (erofs_fdio_pread(b->fd, in, len, r->addr) != (ssize_t)len)
		atomic_fetch_add(&b->failed, 1);
	if (erofs_codec_decode(ctx, &req, &fault))
		atomic_fetch_add(&b->failed, 1);
}

static void *run(void *arg)
{
	struct bare *b = arg;
	uint8_t *in = malloc(CODEC_MAX_PLEN), *out = malloc(CODEC_MAX_DLEN);
	struct codec_ctx *ctx;
	size_t i, at;

	if (!in || !out || erofs_codec_ctx_new(&b->img->super->codec, &ctx))
		bench_die("thread", -ENOMEM);
	while ((at = atomic_fetch_add(&b->next, AT_ONCE)) < b->count)
		for (i = at; i < at + AT_ONCE && i < b->count; i++)
			decode_one(b, ctx, &b->refs[i], in, out);
	erofs_codec_ctx_free(ctx);
	free(in);
	free(out);
	return NULL;
}

static double time_once(struct bare *b, unsigned int threads)
{
	pthread_t t[64];
	uint64_t begin = erofs_now_ns();
	unsigned int i;

	atomic_store(&b->next, 0);
	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, run, b))
			bench_die("pthread_create", -EAGAIN);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return (double)(erofs_now_ns() - begin) / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1, i;
	struct bare b = { 0 };
	double file[100], memory[100];
	const void *map;
	cpu_set_t set;
	unsigned int threads;

	if (argc < 2 || rounds < 1 || rounds > 100) {
		fputs("usage: bare IMAGE [ROUNDS]\n", stderr);
		return 2;
	}
	b.img = bench_open(argv[1]);
	b.refs = bench_collect(b.img, &b.count);
	b.fd = open(argv[1], O_RDONLY);
	map = mmap(NULL, b.img->devs[0].size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, b.fd, 0);
	if (b.fd < 0 || map == MAP_FAILED)
		bench_die(argv[1], -errno);
	sched_getaffinity(0, sizeof(set), &set);
	threads = (unsigned int)CPU_COUNT(&set) < 64 ? (unsigned int)CPU_COUNT(&set) : 64;
	for (i = 0; i < rounds; i++) {
		b.memory = NULL;
		file[i] = time_once(&b, threads);
		b.memory = map;
		memory[i] = time_once(&b, threads);
	}
	qsort(file, (size_t)rounds, sizeof(*file), compare);
	qsort(memory, (size_t)rounds, sizeof(*memory), compare);
	printf("%.6f %.6f\n", file[rounds / 2], memory[rounds / 2]);
	free((void *)b.refs);
	erofs_close(b.img);
	return atomic_load(&b.failed) != 0;
}
