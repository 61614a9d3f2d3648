/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A token bucket for the CPU time of a target thread on unloaded writes: polling, copying,
 * reporting. Beyond its budget the thread asks initiators to pause until the time is earned again.
 * Unused time is kept for one period, for bursts.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_CPU_BUDGET_H
#define WEIR_CORE_UNLOAD_CPU_BUDGET_H

#include "core/base/platform.h"

#define WEIR_CPU_BUDGET_PERIOD_NS 10000000ull

/**
 * struct weir_cpu_budget - the budget of one thread
 * @percent: share of its time, 1 to 100; 100 means no limit
 * @now_ns: wall clock at the last call
 * @cpu_ns: CPU clock at the last call
 * @kept_ns: CPU time left; negative: overdrawn
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
 * weir_cpu_budget_pause() - for how long initiators should not unload
 * @c: the budget
 * @cpu_ns: CPU time that the thread has used so far
 * @now_ns: the time; both clocks must be monotonic
 *
 * Return: nanoseconds; 0: unloaded writes are welcome.
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

/* The same in milliseconds, as returned to the initiator: 0 only if welcome, at most 255. */
static inline uint8_t weir_cpu_budget_pause_ms(struct weir_cpu_budget *c, uint64_t cpu_ns,
					       uint64_t now_ns)
{
	uint64_t ns = weir_cpu_budget_pause(c, cpu_ns, now_ns);

	return ns > 254000000 ? 255 : (uint8_t)((ns + 999999) / 1000000);
}

#endif
