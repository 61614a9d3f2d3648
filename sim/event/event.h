/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Virtual time and the events scheduled in it.
 *
 * An event is embedded in the object concerned, so scheduling allocates nothing. Two events due at
 * the same time happen in the order scheduled. The order is total: a run depends on its inputs
 * only.
 *
 * Context of all: the thread that runs the simulation. Two simulations share nothing.
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
 * struct sim_event - an event; embedded in the object concerned
 * @happen: called when due; may schedule the event again. Set by the owner
 * @place: in the heap, counted from 1; 0: not scheduled
 */
struct sim_event {
	void (*happen)(struct sim_event *event);
	uint32_t place;
};

struct sim_due;

/**
 * struct sim_clock - the time and the scheduled events
 * @now_ps: the time; never goes back
 * @until_ps: end of the current run
 * @scheduled: calls that scheduled an event
 * @happened: events so far, including skips
 * @heap: the scheduled events
 * @count: events in @heap
 * @room: capacity of @heap; grows when needed
 * @top_is_empty: the first event of @heap is happening now; @count still includes its place
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

/* Time 0, no events. */
void sim_clock_init(struct sim_clock *clock);

/* Frees the heap; events still scheduled never happen. */
void sim_clock_fini(struct sim_clock *clock);

/**
 * sim_clock_at() - schedule an event, or move it to another time
 * @clock: the clock
 * @event: *kept until* it happens or is cancelled
 * @at_ps: due time, not before now
 */
void sim_clock_at(struct sim_clock *clock, struct sim_event *event, uint64_t at_ps);

/* As sim_clock_at(), @in_ps from now. */
static inline void sim_clock_in(struct sim_clock *clock, struct sim_event *event, uint64_t in_ps)
{
	sim_clock_at(clock, event, clock->now_ps + in_ps);
}

/* Cancels an event; no effect on an event that is not scheduled. */
void sim_clock_cancel(struct sim_clock *clock, struct sim_event *event);

static inline bool sim_event_is_scheduled(const struct sim_event *event)
{
	return event->place;
}

/**
 * sim_clock_due_ps() - time at which an event is due
 *
 * Return: the time, or SIM_NEVER for an event that is not scheduled.
 */
uint64_t sim_clock_due_ps(const struct sim_clock *clock, const struct sim_event *event);

/**
 * sim_clock_skip() - advance the time, if no event is due before
 * @clock: the clock
 * @until_ps: not before now
 *
 * For straight code that would otherwise schedule an event and wait for just this event.
 * Return: true if no event is due until @until_ps and the clock runs that far. The time is now
 *	@until_ps.
 */
bool sim_clock_skip(struct sim_clock *clock, uint64_t until_ps);

/**
 * sim_clock_run() - run all events that are due
 * @clock: the clock
 * @until_ps: last time to run, inclusive; the time afterwards
 */
void sim_clock_run(struct sim_clock *clock, uint64_t until_ps);

#endif
