/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/next.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/diag.h"

#define WHYS_MAX 32

struct diag_counters diag_counters;

static uint64_t count_of(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

EXPORT void weir_unload_read(struct diag_counters *out)
{
	out->small = count_of(&diag_counters.small);
	out->unloaded = count_of(&diag_counters.unloaded);
	out->repeated = count_of(&diag_counters.repeated);
	out->copied = count_of(&diag_counters.copied);
	out->refused = count_of(&diag_counters.refused);
	out->pauses = count_of(&diag_counters.pauses);
	out->plain = count_of(&diag_counters.plain);
}

void diag_log(const char *format, ...)
{
	char line[256];
	va_list args;

	if (getenv("WEIR_UNLOAD_QUIET"))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "weir unload: %s\n", line);
}

/* Is this the first time, as far as the table has room to remember? */
static bool is_new(const char *why)
{
	static const char *whys[WHYS_MAX];
	const char *there;
	int i;

	for (i = 0; i < WHYS_MAX; i++) {
		there = NULL;
		if (__atomic_compare_exchange_n(&whys[i], &there, why, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
		if (there == why)
			return false;
	}
	return false;
}

void diag_disabled(uint32_t qpn, const char *why)
{
	DIAG_COUNT(plain);
	if (is_new(why))
		diag_log("QP %#x: nothing is unloaded from now on: %s", qpn, why);
}

void diag_summary(void)
{
	const uint64_t plain = count_of(&diag_counters.plain);

	if (!count_of(&diag_counters.small) && !count_of(&diag_counters.copied))
		return;
	diag_log("%" PRIu64 " of %" PRIu64 " small writes unloaded, %" PRIu64
		 " of them repeated by the device; %" PRIu64 " copied for peers, %" PRIu64
		 " refused; %" PRIu64 " pauses",
		 count_of(&diag_counters.unloaded), count_of(&diag_counters.small),
		 count_of(&diag_counters.repeated), count_of(&diag_counters.copied),
		 count_of(&diag_counters.refused), count_of(&diag_counters.pauses));
	if (plain > 1)
		diag_log("nothing more was unloaded on %" PRIu64 " queue pairs", plain);
}

void diag_forget(void)
{
	diag_counters = (struct diag_counters){ 0 };
}
