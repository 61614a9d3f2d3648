/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A heap of four children a node: half as deep as a binary one, and a node's children share two
 * cache lines or three. The keys lie in the heap itself, so that sifting touches no event but the
 * one it moves.
 */
#include <assert.h>
#include <stdlib.h>

#include "sim/event.h"

#define CHILDREN 4
#define ROOM_MIN 256

/* The time above and the number below, so that one comparison tells which comes first. */
struct sim_due {
	unsigned __int128 key;
	struct sim_event *event;
};

static uint64_t at_ps(const struct sim_due *due)
{
	return due->key >> 64;
}

void sim_clock_init(struct sim_clock *clock)
{
	*clock = (struct sim_clock){ 0 };
}

void sim_clock_fini(struct sim_clock *clock)
{
	free(clock->heap);
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

		if (due.key >= clock->heap[parent].key)
			break;
		put(clock, place, &clock->heap[parent]);
		place = parent;
	}
	put(clock, place, &due);
}

static uint32_t earlier(const struct sim_clock *clock, uint32_t a, uint32_t b)
{
	return clock->heap[b].key < clock->heap[a].key ? b : a;
}

static uint32_t first_child(const struct sim_clock *clock, uint32_t place)
{
	uint32_t child = place * CHILDREN + 1, best = child;

	if (child + CHILDREN <= clock->count)
		return earlier(clock, earlier(clock, child, child + 1),
			       earlier(clock, child + 2, child + 3));
	while (++child < clock->count)
		best = earlier(clock, best, child);
	return best;
}

/*
 * What takes a free place comes from the end of the heap as a rule, and so belongs near it: the
 * place moves all the way down, past the first child each time, and then @due up from there.
 */
static void sift(struct sim_clock *clock, uint32_t place, struct sim_due due)
{
	while (place * CHILDREN + 1 < clock->count) {
		uint32_t child = first_child(clock, place);

		put(clock, place, &clock->heap[child]);
		place = child;
	}
	sift_up(clock, place, due);
}

static void grow(struct sim_clock *clock)
{
	clock->room = clock->room ? 2 * clock->room : ROOM_MIN;
	clock->heap = realloc(clock->heap, clock->room * sizeof(*clock->heap));
	if (!clock->heap)
		abort();
}

void sim_clock_at(struct sim_clock *clock, struct sim_event *event, uint64_t when_ps)
{
	struct sim_due due = { (unsigned __int128)when_ps << 64 | clock->scheduled++, event };

	assert(when_ps >= clock->now_ps);
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
	return event->place ? at_ps(&clock->heap[event->place - 1]) : SIM_NEVER;
}

bool sim_clock_skip(struct sim_clock *clock, uint64_t until_ps)
{
	if (until_ps > clock->until_ps || (clock->count && at_ps(&clock->heap[0]) <= until_ps))
		return false;
	clock->now_ps = until_ps;
	clock->happened++;
	return true;
}

void sim_clock_run(struct sim_clock *clock, uint64_t until_ps)
{
	clock->until_ps = until_ps;
	while (clock->count && at_ps(&clock->heap[0]) <= until_ps) {
		struct sim_event *event = clock->heap[0].event;

		clock->now_ps = at_ps(&clock->heap[0]);
		clock->happened++;
		take_out(clock, 0);
		event->happen(event);
	}
	clock->now_ps = until_ps;
}
