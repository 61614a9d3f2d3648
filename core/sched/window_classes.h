/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Classes of a window's users (Avatar, section 3.2): the scheduler of sched.h decides, instead of
 * the line, which waiter gets the room that appears.
 *
 * A user has a waiter for each class of its requests. A window has classes only as long as one of
 * its users wants them: a lone request must not pay for them. Then each take passes the scheduler,
 * and no engine takes its short way past the line. Work requests taken earlier are not counted.
 *
 * Context of all: Any; never sleeps; externally serialised with the window.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_CLASSES_H
#define WEIR_CORE_SCHED_WINDOW_CLASSES_H

#include "core/sched/window.h"

/* Most bytes in flight below the first class, unless a segment for each user is more. */
#define WEIR_WINDOW_LOW_BYTES (2 * WEIR_SCHED_SEGMENT_BYTES)
/* Segments that higher classes send while a class waits: then it gets a turn. */
#define WEIR_WINDOW_PASS_SEGMENTS 16

/**
 * struct weir_window_classes - classes of one window
 * @sched: one flow for each waiter of the window
 * @bundles: the waiters of each class
 * @members: users that want classes
 * @sentinel: in the window's line as long as the window has classes, so that the line is never
 *	empty, and no user passes the scheduler by
 */
struct weir_window_classes {
	struct weir_sched sched;
	struct weir_bundle bundles[WEIR_WINDOW_CLASSES];
	unsigned int members;
	struct weir_list sentinel;
};

/* Initialises classes that no window has. */
void weir_window_classes_init(struct weir_window_classes *classes);

/**
 * weir_window_classes_set() - give a waiter a class
 * @classes: of its window; *kept* as long as @waiter
 * @waiter: a waiter that has a class already keeps that class
 * @class: its class. Waiters without a class are of WEIR_WINDOW_NORMAL, with weight 1, from the
 *	first take in a window with classes on
 * @weight: its weight among the waiters of its class, 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_window_classes_set(struct weir_window_classes *classes, struct weir_window_waiter *waiter,
			     enum weir_window_class class, uint16_t weight);

/**
 * weir_window_classes_join() - a user wants classes
 * @w: the window, in use or not
 * @classes: those of @w if it has any; *kept* as long as @w
 *
 * The caller owes a weir_window_classes_part().
 */
void weir_window_classes_join(struct weir_window *w, struct weir_window_classes *classes);

/*
 * A user that has joined ends, with its waiters out of line and nothing in flight. After the last
 * user, the window is without classes.
 */
void weir_window_classes_part(struct weir_window *w);

#endif
