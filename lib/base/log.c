/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/log.h"

void weir_log_line(const struct weir_log *log, enum weir_log_level level, const char *format, ...)
{
	char line[640];
	va_list args;

	if (!log->on_line)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log->on_line(log->arg, level, line);
}
