// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A rule that is broken in a loop is printed a few times only; the sum at exit counts all.
 *
 * The sum is printed, and the exit status set, by a destructor of this library: it runs after the
 * program's own exit handlers, which may still find something. A program that ends by _exit() or
 * by a signal has no sum, but each message is printed when it occurs.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "softnic/cq/cq.h"
#include "softnic/verbs/nic.h"
#include "softnic/verbs/pd.h"
#include "finding.h"
#include "strict.h"

enum { PRINTED_MAX = 5, TEXT_BYTES = 512 };

static const struct {
	const char *name, *source;
} rules[] = {
#define STRICT_ROW(NAME, name, source) { name, source },
	STRICT_RULES(STRICT_ROW)
#undef STRICT_ROW
};

static uint64_t found[STRICT_RULES_NUM];
static bool reports_at_exit, reports_leaks;
static int exit_status;

void strict_find(enum strict_rule rule, const char *format, ...)
{
	uint64_t before = __atomic_fetch_add(&found[rule], 1, __ATOMIC_RELAXED);
	char text[TEXT_BYTES];
	va_list args;

	if (before < PRINTED_MAX) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		fprintf(stderr, "softnic: strict: %s: %s [%s]%s\n", rules[rule].name, text,
			rules[rule].source,
			before + 1 == PRINTED_MAX ? "; more of this rule are only counted" : "");
	}
	if (strict_level > 1) {
		fflush(NULL);
		abort();
	}
}

void strict_forget_findings(void)
{
	int i;

	for (i = 0; i < STRICT_RULES_NUM; i++)
		store_relaxed(&found[i], 0);
}

static void find_leak(const char *kind, uint64_t number)
{
	if (number)
		strict_find(STRICT_LEAK, "at exit: %" PRIu64 " %s left", number, kind);
}

static void find_leaks(void)
{
	uint64_t cqs = 0;
	uint32_t i;

	for (i = 0; i < SHARED_CQS; i++)
		cqs += !!cq_at(i);
	find_leak("queue pairs", load_relaxed(&nic.pub->counters.qps));
	find_leak("completion queues", cqs);
	find_leak("memory regions", load_relaxed(&nic.pub->counters.mrs));
	find_leak("protection domains", pd_count());
}

static void keep_status(int status, void *unused)
{
	(void)unused;
	exit_status = status;
}

void strict_report_at_exit(int leaks)
{
	if (reports_at_exit)
		return;
	reports_at_exit = true;
	reports_leaks = leaks;
	on_exit(keep_status, NULL);
}

static uint64_t print_sum(void)
{
	uint64_t n, sum = 0;
	int i;

	for (i = 0; i < STRICT_RULES_NUM; i++)
		sum += load_relaxed(&found[i]);
	if (!sum)
		return 0;
	fprintf(stderr, "softnic: strict: %" PRIu64 " finding%s:", sum, sum == 1 ? "" : "s");
	for (i = 0; i < STRICT_RULES_NUM; i++) {
		n = load_relaxed(&found[i]);
		if (n)
			fprintf(stderr, " %s %" PRIu64, rules[i].name, n);
	}
	fprintf(stderr, "\n");
	return sum;
}

/* After the other destructors of this library: _exit() runs none. */
__attribute__((destructor(101))) static void report(void)
{
	if (!reports_at_exit)
		return;
	if (reports_leaks && nic.is_open)
		find_leaks();
	if (print_sum() && !exit_status) {
		fflush(NULL);
		_exit(STRICT_EXIT_STATUS);
	}
}
