// SPDX-License-Identifier: GPL-2.0-or-later OR MIT
/* Option tables: parsing by getopt_long(), help, numbers. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <erofs/version.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/cli.h"

#define LONG_BASE 0x10000	/* getopt's val of row i is LONG_BASE + i */
#define HELP_COLUMN 28
#define HELP_WIDTH 80
#define NAMES_COLUMN 12	/* of the names of a group whose options are not described */

/* ---- parsing ---- */

static int arg_kind(const struct cli_option *o)
{
	return !o->arg[0] ? no_argument : o->arg[0] == '[' ? optional_argument : required_argument;
}

int erofs_cli_parse_begin(struct cli_parse *p, struct cli *cli, const struct cli_option *table,
			  int usage_status)
{
	size_t i, rows = 0, n = 0, at = 0;
	struct option *longs;

	*p = (struct cli_parse){ .cli = cli, .table = table, .usage_status = usage_status };
	while (table[rows].id)
		rows++;
	longs = calloc(rows + 1, sizeof(*longs));
	if (!longs)
		return -ENOMEM;
	p->letters[at++] = ':';
	for (i = 0; i < rows; i++) {
		const struct cli_option *o = &table[i];

		if (o->name[0])
			longs[n++] = (struct option){ o->name, arg_kind(o), NULL, LONG_BASE + (int)i };
		if (!o->letter || at + 3 > sizeof(p->letters))
			continue;
		p->letters[at++] = o->letter;
		if (arg_kind(o) == required_argument)
			p->letters[at++] = ':';
	}
	p->getopt = longs;
	opterr = 0;
	optind = 1;
	return 0;
}

void erofs_cli_parse_end(struct cli_parse *p)
{
	free(p->getopt);
	p->getopt = NULL;
}

static const struct cli_option *find_row(const struct cli_parse *p, int val)
{
	const struct cli_option *o;

	if (val >= LONG_BASE)
		return &p->table[val - LONG_BASE];
	for (o = p->table; o->id; o++)
		if (o->letter == val)
			return o;
	return NULL;
}

bool erofs_cli_is_value(const struct cli_option *opt, const char *word)
{
	const char *at = opt[1].id == CLI_WORDS ? opt[1].help : "";
	size_t len = strlen(word), n;

	for (; *at; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		if (n == len && !memcmp(at, word, n))
			return true;
	}
	return false;
}

const char *erofs_cli_option_name(const struct cli_option *opt, char buf[32])
{
	if (opt->name[0])
		snprintf(buf, 32, "--%s", opt->name);
	else
		snprintf(buf, 32, "-%c", opt->letter);
	return buf;
}

/* Long names that begin with @len bytes at @word. */
static unsigned int count_prefixed(const struct cli_option *table, const char *word, size_t len)
{
	const struct cli_option *o;
	unsigned int n = 0;

	for (o = table; o->id; o++)
		n += o->name[0] && !strncmp(o->name, word, len);
	return n;
}

static void refuse_long(const struct cli_parse *p, const char *word, const char *shown)
{
	size_t len = strcspn(word, "=");
	const char *near;

	if (len > 2 && count_prefixed(p->table, word + 2, len - 2) > 1) {
		erofs_cli_usage(p->cli, p->usage_status, "ambiguous option '%s'", shown);
		return;
	}
	near = len > 2 ? erofs_cli_suggest(p->table, word + 2, len - 2) : NULL;
	if (near)
		erofs_cli_usage(p->cli, p->usage_status, "unknown option '%s'; did you mean --%s?", shown, near);
	else
		erofs_cli_usage(p->cli, p->usage_status, "unknown option '%s'", shown);
}

static int refuse(const struct cli_parse *p, int got, char **argv)
{
	const struct cli_option *o = optopt ? find_row(p, optopt) : NULL;
	const char *word = argv[optind - 1] ? argv[optind - 1] : "";
	char name[32], shown[400];

	erofs_escape_name(word, strlen(word), shown, sizeof(shown));
	if (o && got == ':')
		erofs_cli_usage(p->cli, p->usage_status, "option '%s' needs an argument",
				erofs_cli_option_name(o, name));
	else if (o && o->name[0])
		erofs_cli_usage(p->cli, p->usage_status, "option '--%s' takes no argument: '%s'", o->name,
				shown);
	else if (optopt)
		erofs_cli_usage(p->cli, p->usage_status, "unknown option '-%c'",
				optopt > 0x20 && optopt < 0x7f ? optopt : '?');
	else
		refuse_long(p, word, shown);
	return -EINVAL;
}

int erofs_cli_parse_next(struct cli_parse *p, int argc, char **argv)
{
	int got = getopt_long(argc, argv, p->letters, p->getopt, NULL);

	if (got == -1) {
		p->operand = optind;
		return 0;
	}
	if (got == '?' || got == ':')
		return refuse(p, got, argv);
	p->opt = find_row(p, got);
	p->arg = optarg;
	return 1;
}

/* ---- help ---- */

static bool is_negation(const struct cli_option *o, const struct cli_option *next)
{
	return !next->help && !strncmp(next->name, "no-", 3) && !strcmp(next->name + 3, o->name);
}

/* One spelling, and its argument: "-x, --name=ARG". */
static void format_row(FILE *out, const struct cli_option *o, bool negated)
{
	const char *no = negated ? "[no-]" : "";

	if (o->letter && o->name[0])
		fprintf(out, "-%c, --%s%s", o->letter, no, o->name);
	else if (o->letter)
		fprintf(out, "-%c", o->letter);
	else
		fprintf(out, "--%s%s", no, o->name);
	if (o->arg[0] == '[')
		fprintf(out, "[=%s", o->arg + 1);
	else if (o->arg[0])
		fprintf(out, "%s%s", o->name[0] ? "=" : "", o->arg);
}

/* The row with those that it describes too; free() it. NULL: no memory. */
static char *format_names(const struct cli_option *o)
{
	bool negated = is_negation(o, o + 1);
	const struct cli_option *also;
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	format_row(out, o, negated);
	for (also = o + 1 + negated; also->id && !also->help; also++) {
		fputs(", ", out);
		format_row(out, also, false);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static void describe(const struct cli_option *o, const char *names)
{
	const char *indent = o->letter ? "  " : "      ";
	int used = (int)(strlen(indent) + strlen(names));

	printf("%s%s%*s%s\n", indent, names, used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", o->help);
}

/* Name an option in the running line. Return: the column behind it. */
static int name_only(const char *names, int column)
{
	int len = (int)strlen(names);

	if (column + 2 + len > HELP_WIDTH) {
		printf("\n%*s", NAMES_COLUMN, "");
		column = NAMES_COLUMN;
	} else if (column > NAMES_COLUMN) {
		fputs("  ", stdout);
		column += 2;
	}
	fputs(names, stdout);
	return column + len;
}

static int begin_group(const struct cli_option *o, bool all, int column)
{
	if (column)
		putchar('\n');
	if (all) {
		printf("\n%s:\n", o->help);
		return 0;
	}
	if (o->arg[0])
		return 0;
	printf("%-*s", NAMES_COLUMN, o->help);
	return NAMES_COLUMN;
}

void erofs_cli_print_options(const struct cli_option *table, bool all)
{
	const struct cli_option *o;
	int column = 0;		/* 0: options are described, one a line */

	for (o = table; o->id; o++) {
		auto_free char *names = NULL;

		if (o->id == CLI_GROUP) {
			column = begin_group(o, all, column);
			continue;
		}
		names = o->help && o->id != CLI_WORDS ? format_names(o) : NULL;
		if (!names)
			continue;
		if (column)
			column = name_only(names, column);
		else
			describe(o, names);
	}
	if (column)
		putchar('\n');
}

int erofs_cli_take_help(const struct cli_parse *p, bool *ret_all)
{
	if (p->arg && strcmp(p->arg, "all"))
		return erofs_cli_bad_value(p, "all");
	*ret_all = p->arg;
	return 1;
}

void erofs_cli_print_version(const struct cli *cli)
{
	printf("%s (compatible with erofs-utils) %s\n", cli->tool, EROFS_UTILS_COMPAT);
	printf("available decompressors: %s\n", erofs_codec_list());
	printf("erofs-tools %s\n", erofs_version());
}

/* ---- numbers ---- */

static bool parse_number(const char *text, uint64_t *ret, const char **ret_end)
{
	unsigned long long v;
	char *end;

	/* strtoull() would take blanks and signs */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text)
		return false;
	*ret = v;
	*ret_end = end;
	return true;
}

bool erofs_cli_number(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t v;

	if (!text || !parse_number(text, &v, &end) || *end)
		return false;
	*ret = v;
	return true;
}

bool erofs_cli_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGTkmgt";
	const char *end, *unit;
	uint64_t v;

	if (!text || !parse_number(text, &v, &end))
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || !mul_ok(v, UINT64_C(1) << 10 * ((unit - units) % 4 + 1), &v))
			return false;
		end++;
		if (!strcmp(end, "iB"))
			end += 2;
	}
	if (*end)
		return false;
	*ret = v;
	return true;
}

bool erofs_cli_memory(const char *text, uint64_t *ret)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	const char *end;
	uint64_t v;

	if (!text || !parse_number(text, &v, &end) || strcmp(end, "%"))
		return erofs_cli_size(text, ret);
	if (!v || v > 100 || pages <= 0 || size <= 0)
		return false;
	*ret = (uint64_t)pages / 100 * v * (uint64_t)size;
	return true;
}
