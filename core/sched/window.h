/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The window: the bytes and work requests that may be in flight on one NIC (RDMAbox, section III).
 * Further work waits in the session, where merging is still possible, instead of thrashing the
 * NIC's caches.
 *
 * A learner can move the limits from completions, between lower bounds that let every engine work
 * and the host's upper bounds.
 *
 * Several engines share a window. A refused engine waits in line, and no engine passes the line.
 * Small requests therefore cannot starve large requests, and no session starves another. A window
 * may have classes, which take the place of the line: window_classes.h.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_H
#define WEIR_CORE_SCHED_WINDOW_H

#include "core/sched/sched.h"

/**
 * struct weir_window_success - one successful work request
 * @posted_ns: time of the post
 * @now_ns: time when the completion was seen, not before @posted_ns
 * @bytes: its size
 * @in_flight: bytes in flight, including this WR
 * @wrs_in_flight: work requests in flight, including this one
 */
struct weir_window_success {
	uint64_t posted_ns;
	uint64_t now_ns;
	uint32_t bytes;
	uint32_t wrs_in_flight;
	uint64_t in_flight;
};

/* Limits of a window, as its fields bytes_max and wrs_max. */
struct weir_window_bounds {
	uint64_t bytes;
	uint32_t wrs;
};

struct weir_window;
struct weir_window_classes;

/* The first goes first. */
enum weir_window_class {
	WEIR_WINDOW_URGENT,
	WEIR_WINDOW_NORMAL,
	WEIR_WINDOW_BULK,
	WEIR_WINDOW_CLASSES,
};

/**
 * struct weir_window_learner - decides the size of a window; embedded in the learner's state
 * @completed: called for each success, before the WR's room is returned. Changes @limits, which
 *	hold the present limits; both are then clamped to the window's bounds
 *
 * Serialised with the window. Must not allocate, sleep or use floating point.
 */
struct weir_window_learner {
	void (*completed)(struct weir_window_learner *learner, const struct weir_window *w,
			  const struct weir_window_success *success,
			  struct weir_window_bounds *limits);
};

/**
 * struct weir_window - room in flight
 * @learner: moves @bytes_max and @wrs_max, or NULL for fixed limits
 * @bytes_min: lowest @bytes_max; a WR up to this size can always fit eventually
 * @bytes_top: highest @bytes_max
 * @bytes_max: limit, at least 1
 * @wrs_min: lowest @wrs_max
 * @wrs_top: highest @wrs_max
 * @wrs_max: limit, at least 1
 * @bytes: bytes in flight; at most the @bytes_max of the last take
 * @wrs: WRs in flight; at most the @wrs_max of the last take
 * @now_ns: the latest time reported by any engine
 * @waiters: waiters, in order; with classes in any order, and never empty
 * @classes: decide which waiter is next, or NULL
 *
 * Serialised by the host, with one lock over all engines that share the window.
 */
struct weir_window {
	struct weir_window_learner *learner;
	uint64_t bytes_min;
	uint64_t bytes_top;
	uint64_t bytes_max;
	uint32_t wrs_min;
	uint32_t wrs_top;
	uint32_t wrs_max;
	uint32_t wrs;
	uint64_t bytes;
	uint64_t now_ns;
	struct weir_list waiters;
	struct weir_window_classes *classes;
};

/**
 * struct weir_window_waiter - one class of a user's requests, which may have to wait
 * @link: in the window's line, or in no list
 * @nr: which of its user's waiters; 0 unless the user sets it
 * @bytes: the size last refused
 * @notified: the waiter has been told that there is room
 * @classes: of the window, once the waiter has a class; else NULL
 * @flow: with @classes
 */
struct weir_window_waiter {
	struct weir_list link;
	uint8_t nr;
	uint32_t bytes;
	bool notified;
	struct weir_window_classes *classes;
	struct weir_flow flow;
};

/**
 * weir_window_init() - initialise an empty window
 * @w: to be initialised
 * @bytes_max: bytes in flight at most, at least 1
 * @wrs_max: work requests in flight at most, at least 1
 *
 * Return: 0, or -EINVAL if a limit is 0.
 */
int weir_window_init(struct weir_window *w, uint64_t bytes_max, uint32_t wrs_max);

/**
 * weir_window_set_learner() - let a learner move the limits, starting at the lowest
 * @w: a window not used by any engine yet
 * @learner: *kept*; initialised
 * @least: lowest limits; bytes: at least the largest fragment of any engine. A limit that is not to
 *	be moved is the initial limit of @w
 *
 * Return: 0, or -EINVAL if a lowest limit is 0 or above the initial limit of @w.
 */
int weir_window_set_learner(struct weir_window *w, struct weir_window_learner *learner,
			    const struct weir_window_bounds *least);

/**
 * weir_window_tick() - report the time
 * @w: the window
 * @now_ns: the time; no effect if earlier than the last
 */
static inline void weir_window_tick(struct weir_window *w, uint64_t now_ns)
{
	if (w->now_ns < now_ns)
		w->now_ns = now_ns;
}

/* weir_window_completed() for a window with a learner. */
void weir_window_run_learner(struct weir_window *w, uint32_t bytes, uint64_t posted_ns);

/**
 * weir_window_completed() - one work request has succeeded
 * @w: the window; weir_window_give() is still owed
 * @bytes: as taken
 * @posted_ns: time of the post
 */
static inline void weir_window_completed(struct weir_window *w, uint32_t bytes, uint64_t posted_ns)
{
	if (w->learner)
		weir_window_run_learner(w, bytes, posted_ns);
}

/**
 * weir_window_waiter_init() - initialise a waiter outside the line
 * @waiter: to be initialised
 */
void weir_window_waiter_init(struct weir_window_waiter *waiter);

/**
 * weir_window_take() - claim room for one work request
 * @w: an initialised window
 * @waiter: the claimant; if refused, *kept until* weir_window_leave()
 * @bytes: size on the wire; may be 0, for an empty message
 *
 * On success the caller owes one weir_window_give() of the same size when the WR completes,
 * successful or flushed. A waiter in line keeps its turn and may take more, and then owes a
 * weir_window_leave().
 *
 * Return: 0, or
 *	-EAGAIN   the window is full or another waiter is first: nothing claimed. @waiter is in line
 *	  now, and weir_window_next_waiter() returns it when there is room;
 *	-EMSGSIZE @bytes can never fit: trying again is useless.
 */
int weir_window_take(struct weir_window *w, struct weir_window_waiter *waiter, uint32_t bytes);

/* Whether @bytes fit now, regardless of the line. */
static inline bool weir_window_fits(const struct weir_window *w, uint32_t bytes)
{
	return w->wrs < w->wrs_max && w->bytes + bytes <= w->bytes_max;
}

static inline void weir_window_claim(struct weir_window *w, uint32_t bytes)
{
	w->bytes += bytes;
	w->wrs++;
}

/**
 * weir_window_try_take() - claim room without waiting
 * @w: an initialised window
 * @bytes: at most its @bytes_min
 *
 * As weir_window_take(), without a waiter. Fails if any waiter is in line.
 *
 * Return: true if room was claimed.
 */
static inline bool weir_window_try_take(struct weir_window *w, uint32_t bytes)
{
	if (!weir_list_is_empty(&w->waiters) || !weir_window_fits(w, bytes))
		return false;
	weir_window_claim(w, bytes);
	return true;
}

/**
 * weir_window_give() - return the room of one work request
 * @w: the same window
 * @bytes: as taken
 */
static inline void weir_window_give(struct weir_window *w, uint32_t bytes)
{
	if (weir_bug(!w->wrs || bytes > w->bytes))
		return;
	w->bytes -= bytes;
	w->wrs--;
}

/**
 * weir_window_lend() - claim room for work requests that others post
 * @w: an initialised window without a learner
 * @bytes: in flight at most
 * @wrs: in flight at most
 *
 * The caller has made sure that there is room, and owes a weir_window_unlend() with the same
 * arguments.
 */
static inline void weir_window_lend(struct weir_window *w, uint32_t bytes, uint32_t wrs)
{
	w->bytes += bytes;
	w->wrs += wrs;
}

static inline void weir_window_unlend(struct weir_window *w, uint32_t bytes, uint32_t wrs)
{
	if (weir_bug(wrs > w->wrs || bytes > w->bytes))
		return;
	w->bytes -= bytes;
	w->wrs -= wrs;
}

/* window_classes.c: the parts of functions here that windows with classes need. */
struct weir_window_waiter *weir_window_classes_first(const struct weir_window *w);
bool weir_window_classes_take(struct weir_window *w, struct weir_window_waiter *waiter,
			      uint32_t bytes);
void weir_window_classes_leave(struct weir_window_waiter *waiter);

/*
 * A work request of @bytes, taken by @waiter while the window had classes, has completed. The
 * caller still owes the weir_window_give().
 */
void weir_window_classes_completed(struct weir_window_waiter *waiter, uint32_t bytes);

/**
 * weir_window_leave() - leave the line
 * @waiter: in line or not
 *
 * The next waiter may be able to go now: see weir_window_next_waiter().
 */
static inline void weir_window_leave(struct weir_window_waiter *waiter)
{
	weir_list_del(&waiter->link);
	waiter->notified = false;
	if (waiter->classes)
		weir_window_classes_leave(waiter);
}

/**
 * weir_window_must_wait() - whether a take is useless now
 * @w: the window
 * @waiter: the claimant
 *
 * Return: true if @waiter is in line, and another is first or the refused size still does not fit.
 */
bool weir_window_must_wait(const struct weir_window *w, struct weir_window_waiter *waiter);

/**
 * weir_window_is_awaited() - whether another user is short of room
 * @w: the window
 * @own, @nr: the caller's waiters
 *
 * Return: true if a waiter of another is in line and the first of the line does not fit.
 */
bool weir_window_is_awaited(const struct weir_window *w, const struct weir_window_waiter *own,
			    unsigned int nr);

/**
 * weir_window_next_waiter() - take the waiter to be called next
 * @w: the window
 *
 * The first waiter is returned once each time that room appears.
 *
 * Return: the first in line if its refused size fits now, else NULL. The waiter must take or leave;
 *	until then no other can take.
 */
struct weir_window_waiter *weir_window_next_waiter(struct weir_window *w);

#endif
