/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A heap of four children a node: half as deep as a binary one, and a node's children share two
 * cache lines or three. The keys lie in the heap itself, so that sifting touches no event but the
 * one it moves.
 *
 * What happens mostly schedules something: while it does, its place at the top stays empty, and
 * what it schedules first goes down from there, which saves filling it from the end. Its key stays
 * too, before all others, so that none of them moves up to the empty place.
 */
#include <assert.h>
#include <stdlib.h>

#include "sim/event/event.h"

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

/* Of two that lie side by side, which; in numbers, since no branch could be foretold. */
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
 * What takes a free place comes from the end of the heap as a rule, and so belongs near it: the
 * place moves all the way down, past the first child each time, and then @due up from there.
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

/* The same for what comes from anywhere, and so belongs anywhere: it stops on the way down. */
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

/* What comes from the end of the heap takes a free place. */
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
	/* Where the top is empty, what comes first is the first child of it. */
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
