/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/unload/hooks/fork.h"
#include "preload/unload/diag.h"

#define WHYS_MAX 32

struct said said;

static uint64_t count_of(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

__attribute__((visibility("default"))) void weir_unload_read(struct said *out)
{
	out->small = count_of(&said.small);
	out->unloaded = count_of(&said.unloaded);
	out->repeated = count_of(&said.repeated);
	out->copied = count_of(&said.copied);
	out->refused = count_of(&said.refused);
	out->pauses = count_of(&said.pauses);
	out->plain = count_of(&said.plain);
}

void say(const char *format, ...)
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

/* Whether it is so for the first time, as far as there is room to remember. */
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

void say_plain(uint32_t qpn, const char *why)
{
	COUNT(plain);
	if (is_new(why))
		say("QP %#x: nothing is unloaded from now on: %s", qpn, why);
}

void say_all(void)
{
	const uint64_t plain = count_of(&said.plain);

	if (!count_of(&said.small) && !count_of(&said.copied))
		return;
	say("%" PRIu64 " of %" PRIu64 " small writes unloaded, %" PRIu64
	    " of them repeated by the device; %" PRIu64 " copied for peers, %" PRIu64 " refused; %" PRIu64 " pauses",
	    count_of(&said.unloaded), count_of(&said.small), count_of(&said.repeated),
	    count_of(&said.copied), count_of(&said.refused), count_of(&said.pauses));
	if (plain > 1)
		say("nothing more was unloaded on %" PRIu64 " queue pairs", plain);
}

void say_forget(void)
{
	said = (struct said){ 0 };
}
