// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* --stats: the two tables of the run, and its totals, for people and for machines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "cli/json.h"

#define BASELINE_MAX 65536	/* bytes of a file that --stats=json wrote; it has about 2000 */

static const char *const page_rows[] = { "pagepool", "reserved", "system", "failed" };

/* What is measured outside the engine. */
struct totals {
	uint64_t wall_ns, user_ns, system_ns;
	long rss_kib;
};

static uint64_t to_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000000u + (uint64_t)tv->tv_usec * 1000u;
}

/* Of this program alone: getrusage() also counts what the process was before it was executed. */
static long read_peak_kib(long otherwise)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = otherwise;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static struct totals take_totals(uint64_t wall_ns)
{
	struct totals t = { .wall_ns = wall_ns };
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	t.user_ns = to_ns(&ru.ru_utime);
	t.system_ns = to_ns(&ru.ru_stime);
	t.rss_kib = read_peak_kib(ru.ru_maxrss);
	return t;
}

/* ---- a baseline ---- */

/* The number behind "KEY": in the object "OBJECT": {...}. */
static bool find_number(const char *json, const char *object, const char *key, double *ret)
{
	char quoted[64];
	const char *at, *end;

	snprintf(quoted, sizeof(quoted), "\"%s\": {", object);
	at = strstr(json, quoted);
	end = at ? strchr(at, '}') : NULL;
	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = end ? strstr(at, quoted) : NULL;
	return at && at < end && sscanf(at + strlen(quoted), "%lf", ret) == 1;
}

static char *read_baseline(const struct cli *cli, const char *path)
{
	char *text = calloc(1, BASELINE_MAX + 1);
	FILE *f = text ? fopen(path, "re") : NULL;
	double wake;

	if (f && fread(text, 1, BASELINE_MAX, f) && find_number(text, "wake_ns", "average", &wake)) {
		fclose(f);
		return text;
	}
	erofs_cli_say_plain(cli, 'E', "%s: not a file that --stats=json wrote", path);
	if (f)
		fclose(f);
	free(text);
	return NULL;
}

/* "-12.34%" against the baseline's value, or nothing. */
static void format_diff(char buf[16], const char *baseline, const char *object, const char *key, double now)
{
	double then;

	buf[0] = '\0';
	if (baseline && find_number(baseline, object, key, &then) && then > 0.0)
		snprintf(buf, 16, "%+.2f%%", 100.0 * (now - then) / then);
}

/* ---- for people ---- */

static void print_latency_row(const struct cli *cli, const char *row, const char *key, const char *baseline,
			      double wake, double queue)
{
	char diff[16];

	format_diff(diff, baseline, "wake_ns", key, wake);
	erofs_cli_say_plain(cli, 'I', "  %-20s %14.2f %18s %14.2f %9s", row, wake / 1e3, "", queue / 1e3, diff);
}

static void print_latency(const struct cli *cli, const struct erofs_stats *s, const char *baseline)
{
	const struct erofs_latency *w = &s->wake, *q = &s->queue;
	char delay[32] = "not measured", diff[16];

	if (s->has_run_delay)
		snprintf(delay, sizeof(delay), "%.2f", s->run_delay.average / 1e3);
	erofs_cli_say_plain(cli, 'I', "scheduling latency (us):      wake-up    run-queue delay     queue wait%s",
			    baseline ? "      diff" : "");
	format_diff(diff, baseline, "wake_ns", "average", w->average);
	erofs_cli_say_plain(cli, 'I', "  %-20s %14.2f %18s %14.2f %9s", "average", w->average / 1e3, delay,
			    q->average / 1e3, diff);
	print_latency_row(cli, "median", "median", baseline, (double)w->median, (double)q->median);
	print_latency_row(cli, "minimum", "min", baseline, (double)w->min, (double)q->min);
	print_latency_row(cli, "maximum", "max", baseline, (double)w->max, (double)q->max);
	print_latency_row(cli, "standard deviation", "deviation", baseline, w->deviation, q->deviation);
	print_latency_row(cli, "p99", "p99", baseline, (double)w->p99, (double)q->p99);
	erofs_cli_say_plain(cli, 'I', "  %-20s %14" PRIu64 " %18" PRIu64 " %14" PRIu64, "count", w->count,
			    s->run_delay.count, q->count);
	erofs_cli_say_plain(cli, 'I', "  %-20s %14.2f %18.2f %14.2f", "total", (double)w->total / 1e3,
			    (double)s->run_delay.total / 1e3, (double)q->total / 1e3);
	if (!s->has_run_delay)
		erofs_cli_say_plain(cli, 'I', "  run-queue delay: not measured: no worker thread ran, or no "
				    "/proc/self/task/TID/schedstat");
}

static void print_pages(const struct cli *cli, const struct erofs_stats *s)
{
	unsigned int i;

	erofs_cli_say_plain(cli, 'I', "page allocation (us):           count          total        average"
			    "      maximum");
	for (i = 0; i < 4; i++) {
		uint64_t n = s->pages[i].count;
		double total = (double)s->pages[i].total_ns / 1e3;

		erofs_cli_say_plain(cli, 'I', "  %-20s %14" PRIu64 " %14.2f %14.2f %12.2f", page_rows[i], n, total,
				    n ? total / (double)n : 0.0, (double)s->pages[i].max_ns / 1e3);
	}
	erofs_cli_say_plain(cli, 'I', "  pool: %u pages, lowest fill %u, full at the end: %s, refills %" PRIu64
			    ", locked: %s%s%s", s->reserved_pages, s->lowest_reserved,
			    s->final_reserved == s->reserved_pages ? "yes" : "no", s->refills,
			    s->locked ? "yes" : "no", s->locked || !s->reserved_pages ? "" : ", because ",
			    s->locked || !s->reserved_pages ? "" : strerror(s->lock_error));
}

static void print_totals(const struct cli *cli, const struct erofs_stats *s, const char *asked,
			 const struct totals *t)
{
	double wall = (double)t->wall_ns / 1e9;

	erofs_cli_say_plain(cli, 'I', "workers: %u, %s (asked for: %s), page policy: %s", s->workers, s->mode,
			    asked ? asked : "auto", s->policy);
	erofs_cli_say_plain(cli, 'I', "batches: %" PRIu64 ", stolen %" PRIu64 ", inline %" PRIu64
			    ", workers retired %u", s->batches, s->stolen, s->inlined, s->retired);
	erofs_cli_say_plain(cli, 'I', "pclusters: %" PRIu64 ", %" PRIu64 " bytes in, %" PRIu64
			    " bytes out, %.0f MB/s", s->pclusters, s->bytes_in, s->bytes_out,
			    wall > 0.0 ? (double)s->bytes_out / 1e6 / wall : 0.0);
	erofs_cli_say_plain(cli, 'I', "fragment cache: %" PRIu64 " hits, %" PRIu64 " fills", s->cache_hits,
			    s->cache_misses);
	erofs_cli_say_plain(cli, 'I', "memory: limit %" PRIu64 " MiB, peak in flight %" PRIu64
			    " KiB, peak resident %ld KiB", s->max_memory >> 20, s->peak_bytes >> 10, t->rss_kib);
	erofs_cli_say_plain(cli, 'I', "time: %.3f s wall, %.3f s user, %.3f s system", wall,
			    (double)t->user_ns / 1e9, (double)t->system_ns / 1e9);
}

/* ---- for machines ---- */

static void json_latency(struct cli_json *j, const char *name, const struct erofs_latency *l)
{
	erofs_json_object(j, name);
	erofs_json_unsigned(j, "count", l->count);
	erofs_json_unsigned(j, "total", l->total);
	erofs_json_real(j, "average", l->average);
	erofs_json_unsigned(j, "median", l->median);
	erofs_json_unsigned(j, "min", l->min);
	erofs_json_unsigned(j, "max", l->max);
	erofs_json_real(j, "deviation", l->deviation);
	erofs_json_unsigned(j, "p99", l->p99);
	erofs_json_end(j);
}

static void json_run_delay(struct cli_json *j, const struct erofs_stats *s)
{
	if (!s->has_run_delay) {
		erofs_json_null(j, "run_delay_ns");
		return;
	}
	erofs_json_object(j, "run_delay_ns");
	erofs_json_unsigned(j, "count", s->run_delay.count);
	erofs_json_unsigned(j, "total", s->run_delay.total);
	erofs_json_real(j, "average", s->run_delay.average);
	erofs_json_end(j);
}

static void json_pages(struct cli_json *j, const struct erofs_stats *s)
{
	static const char *const names[] = { "pages_pagepool_ns", "pages_reserved_ns", "pages_system_ns",
					     "pages_failed_ns" };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		erofs_json_object(j, names[i]);
		erofs_json_unsigned(j, "count", s->pages[i].count);
		erofs_json_unsigned(j, "total", s->pages[i].total_ns);
		erofs_json_unsigned(j, "max", s->pages[i].max_ns);
		erofs_json_end(j);
	}
	erofs_json_object(j, "reserved");
	erofs_json_unsigned(j, "pages", s->reserved_pages);
	erofs_json_unsigned(j, "lowest", s->lowest_reserved);
	erofs_json_unsigned(j, "final", s->final_reserved);
	erofs_json_unsigned(j, "refills", s->refills);
	erofs_json_bool(j, "locked", s->locked);
	erofs_json_end(j);
}

static void json_times(struct cli_json *j, const struct totals *t)
{
	erofs_json_unsigned(j, "wall_ns", t->wall_ns);
	erofs_json_unsigned(j, "user_ns", t->user_ns);
	erofs_json_unsigned(j, "system_ns", t->system_ns);
}

static void json_totals(struct cli_json *j, const struct erofs_stats *s, const struct totals *t)
{
	erofs_json_unsigned(j, "batches", s->batches);
	erofs_json_unsigned(j, "stolen", s->stolen);
	erofs_json_unsigned(j, "inline", s->inlined);
	erofs_json_unsigned(j, "retired", s->retired);
	erofs_json_unsigned(j, "pclusters", s->pclusters);
	erofs_json_unsigned(j, "bytes_in", s->bytes_in);
	erofs_json_unsigned(j, "bytes_out", s->bytes_out);
	erofs_json_unsigned(j, "cache_hits", s->cache_hits);
	erofs_json_unsigned(j, "cache_fills", s->cache_misses);
	erofs_json_unsigned(j, "max_memory", s->max_memory);
	erofs_json_unsigned(j, "peak_in_flight", s->peak_bytes);
	erofs_json_unsigned(j, "peak_resident", (uint64_t)t->rss_kib << 10);
	json_times(j, t);
}

static void json_engine(struct cli_json *j, const struct erofs_stats *s, const char *asked,
			const struct totals *t)
{
	erofs_json_object(j, "engine");
	erofs_json_unsigned(j, "workers", s->workers);
	erofs_json_text(j, "mode", s->mode);
	erofs_json_text(j, "asked", asked ? asked : "auto");
	erofs_json_text(j, "policy", s->policy);
	json_latency(j, "wake_ns", &s->wake);
	json_run_delay(j, s);
	json_latency(j, "queue_ns", &s->queue);
	json_pages(j, s);
	json_totals(j, s, t);
	erofs_json_end(j);
}

void erofs_cli_json_engine(struct cli_json *j, struct erofs_engine *eng, const struct cli_engine *e,
			   uint64_t wall_ns)
{
	struct totals totals = take_totals(wall_ns);
	struct erofs_stats s;

	erofs_engine_stats(eng, &s);
	json_engine(j, &s, e->workers, &totals);
}

void erofs_cli_json_times(struct cli_json *j, uint64_t wall_ns)
{
	struct totals totals = take_totals(wall_ns);

	erofs_json_object(j, "times");
	json_times(j, &totals);
	erofs_json_end(j);
}

static void print_json(const struct erofs_stats *s, const char *asked, const struct totals *t)
{
	struct cli_json j;

	erofs_json_init(&j, stderr, 1u << 2);
	erofs_json_object(&j, NULL);
	json_engine(&j, s, asked, t);
	erofs_json_end(&j);
}

void erofs_cli_print_stats(const struct cli *cli, struct erofs_engine *eng, const struct cli_engine *e,
			   uint64_t wall_ns)
{
	struct totals totals = take_totals(wall_ns);
	struct erofs_stats s;
	char *baseline = NULL;

	erofs_engine_stats(eng, &s);
	if (e->stats_how && !strcmp(e->stats_how, "json")) {
		print_json(&s, e->workers, &totals);
		return;
	}
	if (e->stats_how)
		baseline = read_baseline(cli, e->stats_how);
	print_latency(cli, &s, baseline);
	print_pages(cli, &s);
	print_totals(cli, &s, e->workers, &totals);
	free(baseline);
}
