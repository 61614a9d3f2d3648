/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines on standard error that another process can cause: their number is bounded. */
#ifndef WEIR_SOFTNIC_CONTROL_WARNING_H
#define WEIR_SOFTNIC_CONTROL_WARNING_H

#include <stdint.h>

#define WARNING_LINES_MAX 50 /* in WARNING_PERIOD_NS: as many as a source of weir's logs has */
#define WARNING_PERIOD_NS 10000000000ll

/**
 * struct warning_limit - one cause of lines; zero at first
 * @since_ns: begin of the current period
 * @lines: seen in this period; @dropped: of these and of earlier periods, not yet reported
 */
struct warning_limit {
	uint64_t since_ns;
	uint32_t lines, dropped;
};

/**
 * warning_write() - write a line that begins with "softnic: ", within the bound of its cause
 *
 * The next line that passes reports the number of dropped lines first.
 *
 * Context: any thread; takes no lock, because a child of a fork may write too.
 */
void warning_write(struct warning_limit *limit, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
