/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_BASE_LOG_H
#define WEIR_LIB_BASE_LOG_H

#include <weir/donor.h>

/**
 * struct weir_log - where an application wants lines of a log
 * @on_line: receives a line; NULL: nobody wants it
 * @arg: for @on_line
 */
struct weir_log {
	void (*on_line)(void *arg, enum weir_log_level level, const char *line);
	void *arg;
};

/* One line. Context: any thread from which @on_line may be called. */
void weir_log_line(const struct weir_log *log, enum weir_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
