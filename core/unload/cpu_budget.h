/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of its time a target's CPU may spend on unloaded writes: looking for them, copying them
 * and saying so. A thread that takes more owes, and initiators are told to leave it alone until it
 * would have earned that again. What it did not take is kept for one period, so that a burst goes
 * through.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_CPU_BUDGET_H
#define WEIR_CORE_UNLOAD_CPU_BUDGET_H

#include "core/base/platform.h"

#define WEIR_CPU_BUDGET_PERIOD_NS 10000000ull

/**
 * struct weir_cpu_budget - one thread's
 * @percent: of its time, 1 to 100: with 100 there is no ceiling
 * @now_ns, @cpu_ns: both clocks when it last asked
 * @kept_ns: of CPU time it may take before it owes; negative: it owes
 */
struct weir_cpu_budget {
	uint32_t percent;
	uint64_t now_ns;
	uint64_t cpu_ns;
	int64_t kept_ns;
};

static inline void weir_cpu_budget_init(struct weir_cpu_budget *c, uint32_t percent)
{
	*c = (struct weir_cpu_budget){ .percent = percent };
}

/**
 * weir_cpu_budget_pause() - for how long unloaded writes are not wanted
 * @c: the ceiling
 * @cpu_ns: the CPU time that the thread has taken so far
 * @now_ns: the time; both from clocks that do not go back
 *
 * Return: nanoseconds; 0: they are wanted.
 */
static inline uint64_t weir_cpu_budget_pause(struct weir_cpu_budget *c, uint64_t cpu_ns,
					     uint64_t now_ns)
{
	const uint64_t share_ns = c->percent * WEIR_CPU_BUDGET_PERIOD_NS / 100;
	uint64_t passed_ns = now_ns - c->now_ns;

	c->kept_ns -= (int64_t)(cpu_ns - c->cpu_ns);
	c->kept_ns += (int64_t)(passed_ns / 100 * c->percent + passed_ns % 100 * c->percent / 100);
	if (c->kept_ns > (int64_t)share_ns)
		c->kept_ns = (int64_t)share_ns;
	c->now_ns = now_ns;
	c->cpu_ns = cpu_ns;
	return c->percent >= 100 || c->kept_ns >= 0 ? 0 : (uint64_t)-c->kept_ns * 100 / c->percent;
}

/* The same in milliseconds, as a return says it: 255 at most, and at least 1 if at all. */
static inline uint8_t weir_cpu_budget_pause_ms(struct weir_cpu_budget *c, uint64_t cpu_ns,
					       uint64_t now_ns)
{
	uint64_t ns = weir_cpu_budget_pause(c, cpu_ns, now_ns);

	return ns > 254000000 ? 255 : (uint8_t)((ns + 999999) / 1000000);
}

#endif
