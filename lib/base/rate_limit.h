/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bounds the lines that a source can write to a log. The owner serialises. */
#ifndef WEIR_LIB_BASE_RATE_LIMIT_H
#define WEIR_LIB_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_RATE_LIMIT_MAX 50 /* lines in WEIR_RATE_LIMIT_NS */
#define WEIR_RATE_LIMIT_NS 10000000000ull

/**
 * struct weir_rate_limit - one source; zero at first
 * @since_ns: begin of the current period
 * @lines: seen in this period; @dropped: of these and of earlier periods, not yet reported
 */
struct weir_rate_limit {
	uint64_t since_ns;
	uint32_t lines, dropped;
};

/**
 * weir_rate_limit_pass() - count a line
 * @dropped: receives the number of lines dropped before, to report with this one
 *
 * Return: whether to write the line.
 */
static inline bool weir_rate_limit_pass(struct weir_rate_limit *limit, uint64_t now_ns,
					uint32_t *dropped)
{
	if (now_ns - limit->since_ns >= WEIR_RATE_LIMIT_NS) {
		limit->since_ns = now_ns;
		limit->lines = 0;
	}
	if (limit->lines >= WEIR_RATE_LIMIT_MAX) {
		limit->dropped++;
		return false;
	}
	limit->lines++;
	*dropped = limit->dropped;
	limit->dropped = 0;
	return true;
}

#endif
