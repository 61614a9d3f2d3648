/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The window: what may be in flight on one NIC at once, in bytes and in work requests
 * (RDMAbox, section III). Work beyond that waits in its session, where it can still be
 * chained with what comes later, instead of in the NIC, where it thrashes caches.
 *
 * How much that is may be learned: a policy hears of each completion and moves the limit,
 * between one that lets every engine work and one that the host allows.
 *
 * Several engines share a window. Those that it refuses stand in line, and turns go by
 * the line: nobody takes past one who waits, so a large request is not starved by small
 * ones, nor one session by another.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_H
#define WEIR_CORE_SCHED_WINDOW_H

#include "core/base/list.h"

/**
 * struct weir_window_sample - one work request that has succeeded
 * @posted_ns: when it was posted
 * @now_ns: when its completion was seen, not before @posted_ns
 * @bytes: its size
 * @in_flight: bytes, itself included
 */
struct weir_window_sample {
	uint64_t posted_ns;
	uint64_t now_ns;
	uint32_t bytes;
	uint64_t in_flight;
};

struct weir_window;

/**
 * struct weir_window_policy - decides how large a window is; embedded in what it remembers
 * @completed: called for each success, with the window as it is before this gives its room
 *	back; returns the limit from now on, bytes, which is then held to the window's bounds
 *
 * Serialised with the window. Neither allocates nor sleeps nor uses floating point.
 */
struct weir_window_policy {
	uint64_t (*completed)(struct weir_window_policy *policy, const struct weir_window *w,
			      const struct weir_window_sample *sample);
};

/**
 * struct weir_window - room in flight
 * @policy: moves @bytes_max, or NULL when nothing does
 * @bytes_min: the lowest @bytes_max can be; whatever is no larger fits in the end
 * @bytes_top: the highest
 * @bytes_max: limit, at least 1
 * @wrs_max: limit, at least 1
 * @bytes: in flight; at most what @bytes_max was when the last was taken
 * @wrs: in flight, at most @wrs_max
 * @now_ns: the latest time that any engine was told
 * @line: waiters, the one whose turn it is first
 *
 * Serialised by the host, with one lock over all engines that share it.
 */
struct weir_window {
	struct weir_window_policy *policy;
	uint64_t bytes_min;
	uint64_t bytes_top;
	uint64_t bytes_max;
	uint32_t wrs_max;
	uint64_t bytes;
	uint32_t wrs;
	uint64_t now_ns;
	struct weir_list line;
};

/**
 * struct weir_window_waiter - one that takes from a window, and may have to wait
 * @link: in the window's line, or in no list
 * @bytes: what it was refused last
 * @called: it has been told that there is room
 */
struct weir_window_waiter {
	struct weir_list link;
	uint32_t bytes;
	bool called;
};

/**
 * weir_window_init() - an empty window
 * @w: to be initialised
 * @bytes_max: bytes in flight at most, at least 1
 * @wrs_max: work requests in flight at most, at least 1
 *
 * Context: Any.
 * Return: 0, or -EINVAL when a limit is 0.
 */
int weir_window_init(struct weir_window *w, uint64_t bytes_max, uint32_t wrs_max);

/**
 * weir_window_set_policy() - let a policy move the limit, which begins at its lowest
 * @w: a window that no engine uses yet
 * @policy: *kept*; initialised
 * @bytes_min: the limit will never be lower; at least the largest fragment of the engines
 *
 * Context: Any.
 * Return: 0, or -EINVAL when @bytes_min is 0 or above what @w was initialised with.
 */
int weir_window_set_policy(struct weir_window *w, struct weir_window_policy *policy,
			   uint64_t bytes_min);

/**
 * weir_window_tick() - time has passed
 * @w: the window
 * @now_ns: the time; an earlier one does nothing
 *
 * Context: Any; never sleeps. Externally serialised.
 */
static inline void weir_window_tick(struct weir_window *w, uint64_t now_ns)
{
	if (w->now_ns < now_ns)
		w->now_ns = now_ns;
}

/* The same, where there is a policy. */
void weir_window_run_policy(struct weir_window *w, uint32_t bytes, uint64_t posted_ns);

/**
 * weir_window_completed() - one work request has succeeded
 * @w: the window; weir_window_give() is still owed
 * @bytes: as taken
 * @posted_ns: when it was posted
 *
 * Context: Any; never sleeps. Externally serialised.
 */
static inline void weir_window_completed(struct weir_window *w, uint32_t bytes, uint64_t posted_ns)
{
	if (w->policy)
		weir_window_run_policy(w, bytes, posted_ns);
}

/**
 * weir_window_is_filled_by() - whether so much in flight says something about the limit
 * @w: the window
 * @in_flight: bytes, at the most there was
 *
 * For policies: who had less than the window allows would have had no more from a larger one.
 *
 * Context: Any.
 * Return: true when it is most of the limit, or what was left may have been too little for
 *	one more.
 */
bool weir_window_is_filled_by(const struct weir_window *w, uint64_t in_flight);

/**
 * weir_window_waiter_init() - one that will take from a window
 * @waiter: to be initialised; in no line
 *
 * Context: Any.
 */
void weir_window_waiter_init(struct weir_window_waiter *waiter);

/**
 * weir_window_take() - claim room for one work request
 * @w: an initialised window
 * @waiter: who claims; *kept until* weir_window_leave() when refused
 * @bytes: what it will put on the wire; may be 0, for an empty message
 *
 * On success the caller owes one weir_window_give() of the same size, when the
 * completion is seen, whether it succeeded or was flushed. A waiter that stood in line
 * keeps its turn and may take more; it owes a weir_window_leave() when it has enough.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: 0, or
 *	-EAGAIN   the window is full or it is another's turn: nothing claimed; @waiter now
 *	          stands in line and weir_window_next_waiter() names it when there is room;
 *	-EMSGSIZE @bytes can never fit: trying again is useless.
 */
int weir_window_take(struct weir_window *w, struct weir_window_waiter *waiter, uint32_t bytes);

/* Whether there is room for one work request of @bytes. Whose turn it is says the line. */
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
 * weir_window_try_take() - claim room, or let it be
 * @w: an initialised window
 * @bytes: at most its @bytes_min
 *
 * As weir_window_take(), for one who does not wait, and stands in no line.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: whether room was claimed.
 */
static inline bool weir_window_try_take(struct weir_window *w, uint32_t bytes)
{
	if (!weir_list_is_empty(&w->line) || !weir_window_fits(w, bytes))
		return false;
	weir_window_claim(w, bytes);
	return true;
}

/**
 * weir_window_give() - return the room of one work request
 * @w: the window that it was taken from
 * @bytes: as taken
 *
 * Context: Any; never sleeps. Externally serialised.
 */
static inline void weir_window_give(struct weir_window *w, uint32_t bytes)
{
	if (weir_bug(!w->wrs || bytes > w->bytes))
		return;
	w->bytes -= bytes;
	w->wrs--;
}

/**
 * weir_window_leave() - want nothing any more
 * @waiter: who leaves the line, if it stands in one
 *
 * Whoever is next may be able to go now: weir_window_next_waiter() says.
 *
 * Context: Any; never sleeps. Externally serialised.
 */
static inline void weir_window_leave(struct weir_window_waiter *waiter)
{
	weir_list_del(&waiter->link);
	waiter->called = false;
}

/**
 * weir_window_must_wait() - whether asking again is useless now
 * @w: the window
 * @waiter: who would ask
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: true when @waiter stands in line, and it is another's turn or what it was refused
 *	still does not fit.
 */
bool weir_window_must_wait(const struct weir_window *w, const struct weir_window_waiter *waiter);

/**
 * weir_window_is_awaited() - whether another waits for room
 * @w: the window
 * @waiter: who asks
 *
 * Return: true when another stands in line, and there is no room for who is first there.
 */
static inline bool weir_window_is_awaited(const struct weir_window *w,
					  const struct weir_window_waiter *waiter)
{
	const struct weir_list *first = w->line.next;

	if (first == &w->line || (first == &waiter->link && first->next == &w->line))
		return false;
	return !weir_window_fits(w, weir_list_entry(first, struct weir_window_waiter, link)->bytes);
}

/**
 * weir_window_next_waiter() - whose turn has come
 * @w: the window
 *
 * Each time that the first of the line finds room it is named once.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: the first in line if what it was refused fits now, otherwise NULL. It should
 *	take, or leave; until then nobody else can take.
 */
struct weir_window_waiter *weir_window_next_waiter(struct weir_window *w);

#endif
