/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Virtual time: what is to happen, and when.
 *
 * An event lives in the object that it happens to, so scheduling one allocates nothing. Two that
 * are due at the same time happen in the order in which they were scheduled: the order is total,
 * and a run depends on nothing but its inputs.
 *
 * Context of all: the thread that runs the simulation; a simulation shares nothing with another.
 */
#ifndef WEIR_SIM_EVENT_EVENT_H
#define WEIR_SIM_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_PS_PER_NS 1000ull
#define SIM_PS_PER_US 1000000ull
#define SIM_PS_PER_S 1000000000000ull
#define SIM_NEVER UINT64_MAX

/**
 * struct sim_event - something that happens; embedded in what it happens to
 * @happen: called when it is due; may schedule it again. Set by the owner
 * @place: in the heap, counted from 1; 0: it is not scheduled
 */
struct sim_event {
	void (*happen)(struct sim_event *event);
	uint32_t place;
};

struct sim_due;

/**
 * struct sim_clock - the time, and what is scheduled
 * @now_ps: the time; never goes back
 * @until_ps: how far it runs
 * @scheduled: how often anything was
 * @happened: how many events have happened, those skipped to included
 * @heap: what is to come
 * @count: of @heap
 * @room: of @heap; grows when needed
 * @top_is_empty: what was the first of @heap happens right now; @count counts its place still
 */
struct sim_clock {
	uint64_t now_ps;
	uint64_t until_ps;
	uint64_t scheduled;
	uint64_t happened;
	struct sim_due *heap;
	uint32_t count;
	uint32_t room;
	bool top_is_empty;
};

/* At time 0, with nothing scheduled. */
void sim_clock_init(struct sim_clock *clock);

/* Frees what it holds; what is scheduled never happens. */
void sim_clock_fini(struct sim_clock *clock);

/**
 * sim_clock_at() - schedule an event, or move it to another time
 * @clock: the clock
 * @event: *kept until* it happens or is cancelled
 * @at_ps: when, not before now
 */
void sim_clock_at(struct sim_clock *clock, struct sim_event *event, uint64_t at_ps);

/* The same, @in_ps from now. */
static inline void sim_clock_in(struct sim_clock *clock, struct sim_event *event, uint64_t in_ps)
{
	sim_clock_at(clock, event, clock->now_ps + in_ps);
}

/* Takes an event back; nothing happens when it is not scheduled. */
void sim_clock_cancel(struct sim_clock *clock, struct sim_event *event);

static inline bool sim_event_is_scheduled(const struct sim_event *event)
{
	return event->place;
}

/**
 * sim_clock_due_ps() - when a scheduled event is due
 *
 * Return: the time, or SIM_NEVER when it is not scheduled.
 */
uint64_t sim_clock_due_ps(const struct sim_clock *clock, const struct sim_event *event);

/**
 * sim_clock_skip() - let time pass, if nobody would notice
 * @clock: the clock
 * @until_ps: not before now
 *
 * For straight code that would schedule an event and wait for just that.
 * Return: true when nothing is due until then, the clock is to run so far, and the time is now
 *	@until_ps.
 */
bool sim_clock_skip(struct sim_clock *clock, uint64_t until_ps);

/**
 * sim_clock_run() - let all happen that is due
 * @clock: the clock
 * @until_ps: up to this time and at it; the time is this afterwards
 */
void sim_clock_run(struct sim_clock *clock, uint64_t until_ps);

#endif
