/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Words for a failure, from a room that cannot report it: whoever called it does. */
#ifndef EROFS_BASE_WHY_H
#define EROFS_BASE_WHY_H

#include <stdarg.h>
#include <stdio.h>

struct why {
	char text[512];
};

/* Return: @err. */
static inline int __attribute__((format(printf, 3, 4))) why_is(struct why *why, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	return err;
}

#endif
