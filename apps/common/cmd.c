/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmd.h"

#include <stdarg.h>
#include <stdio.h>

static void complain(const char *cmd, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", cmd);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int usage_error(const char *cmd, const char *format, ...)
{
	va_list args;

	if (format) {
		va_start(args, format);
		complain(cmd, format, args);
		va_end(args);
	}
	fprintf(stderr, "Try '%s --help'.\n", cmd);
	return EXIT_USAGE;
}

int failure(const char *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(cmd, format, args);
	va_end(args);
	return EXIT_FAILED;
}
