/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A heap of four children a node: half as deep as a binary one, and a node's children share a
 * cache line or two. The keys lie in the heap itself, so that sifting touches no event but the
 * one it moves.
 */
#include <assert.h>
#include <stdlib.h>

#include "sim/event.h"

#define CHILDREN 4
#define ROOM_MIN 256

struct sim_due {
	uint64_t at_ps;
	uint64_t number;
	struct sim_event *event;
};

void sim_clock_init(struct sim_clock *clock)
{
	*clock = (struct sim_clock){ 0 };
}

void sim_clock_fini(struct sim_clock *clock)
{
	free(clock->heap);
}

static bool is_before(const struct sim_due *a, const struct sim_due *b)
{
	return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->number < b->number);
}

static void put(struct sim_clock *clock, uint32_t place, const struct sim_due *due)
{
	clock->heap[place] = *due;
	due->event->place = place + 1;
}

static void sift_up(struct sim_clock *clock, uint32_t place, struct sim_due due)
{
	while (place) {
		uint32_t parent = (place - 1) / CHILDREN;

		if (!is_before(&due, &clock->heap[parent]))
			break;
		put(clock, place, &clock->heap[parent]);
		place = parent;
	}
	put(clock, place, &due);
}

static uint32_t first_child(const struct sim_clock *clock, uint32_t place)
{
	uint32_t child = place * CHILDREN + 1, best = child, end = child + CHILDREN;

	if (end > clock->count)
		end = clock->count;
	for (; child < end; child++) {
		if (is_before(&clock->heap[child], &clock->heap[best]))
			best = child;
	}
	return best;
}

static void sift_down(struct sim_clock *clock, uint32_t place, struct sim_due due)
{
	uint32_t child;

	while (place * CHILDREN + 1 < clock->count) {
		child = first_child(clock, place);
		if (!is_before(&clock->heap[child], &due))
			break;
		put(clock, place, &clock->heap[child]);
		place = child;
	}
	put(clock, place, &due);
}

static void sift(struct sim_clock *clock, uint32_t place, struct sim_due due)
{
	if (place && is_before(&due, &clock->heap[(place - 1) / CHILDREN]))
		sift_up(clock, place, due);
	else
		sift_down(clock, place, due);
}

static void grow(struct sim_clock *clock)
{
	clock->room = clock->room ? 2 * clock->room : ROOM_MIN;
	clock->heap = realloc(clock->heap, clock->room * sizeof(*clock->heap));
	if (!clock->heap)
		abort();
}

void sim_clock_at(struct sim_clock *clock, struct sim_event *event, uint64_t at_ps)
{
	struct sim_due due = { at_ps, clock->scheduled++, event };

	assert(at_ps >= clock->now_ps);
	if (event->place) {
		sift(clock, event->place - 1, due);
		return;
	}
	if (clock->count == clock->room)
		grow(clock);
	sift_up(clock, clock->count++, due);
}

static void take_out(struct sim_clock *clock, uint32_t place)
{
	struct sim_due last = clock->heap[--clock->count];

	clock->heap[place].event->place = 0;
	if (place < clock->count)
		sift(clock, place, last);
}

void sim_clock_cancel(struct sim_clock *clock, struct sim_event *event)
{
	if (event->place)
		take_out(clock, event->place - 1);
}

uint64_t sim_clock_due_ps(const struct sim_clock *clock, const struct sim_event *event)
{
	return event->place ? clock->heap[event->place - 1].at_ps : SIM_NEVER;
}

bool sim_clock_skip(struct sim_clock *clock, uint64_t until_ps)
{
	if (until_ps > clock->until_ps || (clock->count && clock->heap[0].at_ps <= until_ps))
		return false;
	clock->now_ps = until_ps;
	clock->happened++;
	return true;
}

void sim_clock_run(struct sim_clock *clock, uint64_t until_ps)
{
	clock->until_ps = until_ps;
	while (clock->count && clock->heap[0].at_ps <= until_ps) {
		struct sim_event *event = clock->heap[0].event;

		clock->now_ps = clock->heap[0].at_ps;
		clock->happened++;
		take_out(clock, 0);
		event->happen(event);
	}
	clock->now_ps = until_ps;
}
