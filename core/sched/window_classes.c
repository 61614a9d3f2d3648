/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A waiter is ready, in the scheduler's words, from its take until its leave. So between two calls
 * exactly the waiters in line are ready.
 */
#include "core/sched/window_classes.h"

static const struct weir_sched_config configs[WEIR_WINDOW_CLASSES] = {
#define CLASS(of_level)                                                                           \
	{                                                                                         \
		.level = (of_level), .weight = 1, .policy = WEIR_SCHED_FAIR,                      \
		.segment_bytes = WEIR_SCHED_SEGMENT_BYTES, .wrs_max = UINT32_MAX,                 \
		.pass_bytes_max = (uint64_t)WEIR_WINDOW_PASS_SEGMENTS * WEIR_SCHED_SEGMENT_BYTES, \
	}
	[WEIR_WINDOW_URGENT] = CLASS(0),
	[WEIR_WINDOW_NORMAL] = CLASS(1),
	[WEIR_WINDOW_BULK] = CLASS(2),
#undef CLASS
};

/* Waiters of older, longer work requests pay for a segment. */
static uint32_t segment_of(uint32_t bytes)
{
	return bytes < WEIR_SCHED_SEGMENT_BYTES ? bytes : WEIR_SCHED_SEGMENT_BYTES;
}

static struct weir_window_waiter *waiter_of(struct weir_flow *flow)
{
	return container_of(flow, struct weir_window_waiter, flow);
}

void weir_window_classes_init(struct weir_window_classes *classes)
{
	unsigned int i;

	weir_sched_init(&classes->sched, configs, WEIR_WINDOW_CLASSES, WEIR_WINDOW_LOW_BYTES);
	for (i = 0; i < WEIR_WINDOW_CLASSES; i++)
		weir_sched_bundle_init(&classes->bundles[i], (uint8_t)i, 1);
	classes->members = 0;
	weir_list_init(&classes->sentinel);
}

void weir_window_classes_set(struct weir_window_classes *classes, struct weir_window_waiter *waiter,
			     enum weir_window_class class, uint16_t weight)
{
	if (waiter->classes)
		return;
	waiter->classes = classes;
	weir_sched_flow_init(&waiter->flow, &classes->bundles[class], weight);
}

static void make_ready(struct weir_window_classes *classes, struct weir_window_waiter *waiter)
{
	weir_window_classes_set(classes, waiter, WEIR_WINDOW_NORMAL, 1);
	weir_sched_ready(&classes->sched, &waiter->flow);
}

void weir_window_classes_join(struct weir_window *w, struct weir_window_classes *classes)
{
	struct weir_list *at;

	if (classes->members++)
		return;
	w->classes = classes;
	for (at = w->waiters.next; at != &w->waiters; at = at->next)
		make_ready(classes, weir_list_entry(at, struct weir_window_waiter, link));
	weir_list_add(&w->waiters, &classes->sentinel);
}

/* The waiters in line keep their places, and their work requests in flight stay counted. */
void weir_window_classes_part(struct weir_window *w)
{
	struct weir_window_classes *classes = w->classes;
	struct weir_list *at;

	if (--classes->members)
		return;
	weir_list_del(&classes->sentinel);
	w->classes = NULL;
	for (at = w->waiters.next; at != &w->waiters; at = at->next)
		weir_window_classes_leave(weir_list_entry(at, struct weir_window_waiter, link));
}

struct weir_window_waiter *weir_window_classes_first(const struct weir_window *w)
{
	struct weir_flow *flow = weir_sched_next(&w->classes->sched, WEIR_SCHED_CLASSES_ALL);

	return flow ? waiter_of(flow) : NULL;
}

bool weir_window_classes_take(struct weir_window *w, struct weir_window_waiter *waiter,
			      uint32_t bytes)
{
	struct weir_window_classes *classes = w->classes;

	make_ready(classes, waiter);
	if (weir_window_classes_first(w) != waiter || !weir_window_fits(w, bytes))
		return false;
	weir_window_claim(w, bytes);
	weir_sched_posted(&classes->sched, &waiter->flow, segment_of(bytes));
	return true;
}

void weir_window_classes_leave(struct weir_window_waiter *waiter)
{
	weir_sched_idle(&waiter->classes->sched, &waiter->flow);
}

void weir_window_classes_completed(struct weir_window_waiter *waiter, uint32_t bytes)
{
	weir_sched_completed(&waiter->classes->sched, &waiter->flow, segment_of(bytes));
}
