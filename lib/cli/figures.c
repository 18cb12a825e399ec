// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* --stats: what the engine did. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/cli.h"

uint64_t erofs_cli_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static void print_pages(const struct cli *cli, const struct erofs_stats *s)
{
	static const char *const rows[] = { "pagepool", "reserved", "system", "failed" };
	unsigned int i;

	erofs_cli_say_plain(cli, 'I', "page allocation (us): %10s %12s %10s %10s", "count", "total", "average",
			    "maximum");
	for (i = 0; i < 4; i++) {
		uint64_t n = s->pages[i].count;
		double total = (double)s->pages[i].total_ns / 1e3;

		erofs_cli_say_plain(cli, 'I', "  %-19s %10" PRIu64 " %12.2f %10.2f %10.2f", rows[i], n, total,
				    n ? total / (double)n : 0.0, (double)s->pages[i].max_ns / 1e3);
	}
	erofs_cli_say_plain(cli, 'I', "reserved pool: %u pages, lowest fill %u, refills %" PRIu64,
			    s->reserved_pages, s->lowest_reserved, s->refills);
}

void erofs_cli_print_stats(const struct cli *cli, const struct erofs_engine *eng, const char *asked,
			   uint64_t wall_ns)
{
	struct erofs_stats s;
	struct rusage ru;

	erofs_engine_stats(eng, &s);
	getrusage(RUSAGE_SELF, &ru);
	print_pages(cli, &s);
	erofs_cli_say_plain(cli, 'I', "workers: %u, %s (asked for: %s)", s.workers, s.mode,
			    asked ? asked : "auto");
	erofs_cli_say_plain(cli, 'I', "batches: %" PRIu64 ", stolen %" PRIu64 ", inline %" PRIu64, s.batches,
			    s.stolen, s.inlined);
	erofs_cli_say_plain(cli, 'I', "pclusters: %" PRIu64 ", %" PRIu64 " bytes in, %" PRIu64 " bytes out",
			    s.pclusters, s.bytes_in, s.bytes_out);
	erofs_cli_say_plain(cli, 'I', "fragment cache: %" PRIu64 " hits, %" PRIu64 " fills", s.cache_hits,
			    s.cache_misses);
	erofs_cli_say_plain(cli, 'I', "memory: limit %" PRIu64 " MiB, peak resident %ld MiB",
			    s.max_memory >> 20, ru.ru_maxrss >> 10);
	erofs_cli_say_plain(cli, 'I', "time: %.3f s wall, %.3f s user, %.3f s system", (double)wall_ns / 1e9,
			    seconds(&ru.ru_utime), seconds(&ru.ru_stime));
}
