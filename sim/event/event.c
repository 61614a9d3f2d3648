/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A heap with four children a node: half as deep as a binary heap, and the children of a node share
 * two or three cache lines. The heap holds the keys, so that sifting touches only the moved event.
 *
 * Most events schedule another event. While an event runs, its place at the top stays empty, and
 * the first event that it schedules is sifted down from there. This saves filling the top from the
 * end. The old key stays at the top and precedes all others, so that no event moves up to the empty
 * place.
 */
#include <assert.h>
#include <stdlib.h>

#include "sim/event/event.h"

#define CHILDREN 4
#define ROOM_MIN 256

/* Time in the high half, sequence number in the low half: one comparison orders two events. */
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

static void put_event(struct sim_clock *clock, uint32_t place, const struct sim_due *due)
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
		put_event(clock, place, &clock->heap[parent]);
		place = parent;
	}
	put_event(clock, place, &due);
}

/* Index of the smaller of two adjacent keys. No branch, because a branch could not be predicted. */
static uint32_t later_is_first(const struct sim_due *pair)
{
	return pair[1].key < pair[0].key;
}

static uint32_t first_child(const struct sim_clock *clock, uint32_t place)
{
	uint32_t child = place * CHILDREN + 1, best = child;
	const struct sim_due *heap = clock->heap;

	if (child + CHILDREN <= clock->count) {
		const struct sim_due *left = heap + child, *right = left + 2;

		left += later_is_first(left);
		right += later_is_first(right);
		return (uint32_t)((right->key < left->key ? right : left) - heap);
	}
	while (++child < clock->count)
		if (heap[child].key < heap[best].key)
			best = child;
	return best;
}

/*
 * Fills a free place with @due, which usually comes from the end of the heap and belongs near the
 * end. The free place moves down to a leaf along the first children; then @due moves up.
 */
static void sift(struct sim_clock *clock, uint32_t place, struct sim_due due)
{
	while (place * CHILDREN + 1 < clock->count) {
		uint32_t child = first_child(clock, place);

		put_event(clock, place, &clock->heap[child]);
		place = child;
	}
	sift_up(clock, place, due);
}

/* As sift(), for an event that may belong anywhere: stops on the way down. */
static void sift_down(struct sim_clock *clock, struct sim_due due)
{
	uint32_t place = 0;

	while (place * CHILDREN + 1 < clock->count) {
		uint32_t child = first_child(clock, place);

		if (due.key < clock->heap[child].key)
			break;
		put_event(clock, place, &clock->heap[child]);
		place = child;
	}
	put_event(clock, place, &due);
}

static void grow_heap(struct sim_clock *clock)
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
	if (clock->top_is_empty) {
		clock->top_is_empty = false;
		sift_down(clock, due);
		return;
	}
	if (clock->count == clock->room)
		grow_heap(clock);
	sift_up(clock, clock->count++, due);
}

/* Moves the last event of the heap to a free place. */
static void fill_top(struct sim_clock *clock, uint32_t place)
{
	if (place < --clock->count)
		sift(clock, place, clock->heap[clock->count]);
}

void sim_clock_cancel(struct sim_clock *clock, struct sim_event *event)
{
	if (!event->place)
		return;
	fill_top(clock, event->place - 1);
	event->place = 0;
}

uint64_t sim_clock_due_ps(const struct sim_clock *clock, const struct sim_event *event)
{
	return event->place ? at_ps(&clock->heap[event->place - 1]) : SIM_NEVER;
}

bool sim_clock_skip(struct sim_clock *clock, uint64_t until_ps)
{
	/* With an empty top, the first event is the first child of the top. */
	uint32_t first = clock->top_is_empty ? first_child(clock, 0) : 0;

	if (until_ps > clock->until_ps ||
	    (first < clock->count && at_ps(&clock->heap[first]) <= until_ps))
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
		event->place = 0;
		clock->top_is_empty = true;
		event->happen(event);
		if (clock->top_is_empty)
			fill_top(clock, 0);
		clock->top_is_empty = false;
	}
	clock->now_ps = until_ps;
}
