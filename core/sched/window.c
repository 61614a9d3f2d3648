/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The line is strict: only the first waiter may take room, even if a later waiter would fit. A
 * little room is unused for a moment, but nothing starves.
 */
#include "core/sched/window.h"

int weir_window_init(struct weir_window *w, uint64_t bytes_max, uint32_t wrs_max)
{
	if (!bytes_max || !wrs_max)
		return -EINVAL;
	w->learner = NULL;
	w->bytes_min = w->bytes_top = w->bytes_max = bytes_max;
	w->now_ns = 0;
	w->wrs_min = w->wrs_top = w->wrs_max = wrs_max;
	w->bytes = 0;
	w->wrs = 0;
	weir_list_init(&w->waiters);
	w->classes = NULL;
	return 0;
}

int weir_window_set_learner(struct weir_window *w, struct weir_window_learner *learner,
			    const struct weir_window_bounds *least)
{
	if (!least->bytes || least->bytes > w->bytes_top || !least->wrs ||
	    least->wrs > w->wrs_top)
		return -EINVAL;
	w->learner = learner;
	w->bytes_min = w->bytes_max = least->bytes;
	w->wrs_min = w->wrs_max = least->wrs;
	return 0;
}

static uint64_t clamp(uint64_t value, uint64_t min, uint64_t max)
{
	if (value < min)
		return min;
	return value < max ? value : max;
}

void weir_window_run_learner(struct weir_window *w, uint32_t bytes, uint64_t posted_ns)
{
	const struct weir_window_success success = { .posted_ns = posted_ns,
						     .now_ns = w->now_ns,
						     .bytes = bytes,
						     .wrs_in_flight = w->wrs,
						     .in_flight = w->bytes };
	struct weir_window_bounds limits = { w->bytes_max, w->wrs_max };

	w->learner->completed(w->learner, w, &success, &limits);
	w->bytes_max = clamp(limits.bytes, w->bytes_min, w->bytes_top);
	w->wrs_max = (uint32_t)clamp(limits.wrs, w->wrs_min, w->wrs_top);
}

void weir_window_waiter_init(struct weir_window_waiter *waiter)
{
	weir_list_init(&waiter->link);
	waiter->nr = 0;
	waiter->bytes = 0;
	waiter->notified = false;
	waiter->classes = NULL;
}

/* The waiter that may take, whatever it wants; NULL: none now. */
static struct weir_window_waiter *first_waiter(const struct weir_window *w)
{
	if (w->classes)
		return weir_window_classes_first(w);
	if (weir_list_is_empty(&w->waiters))
		return NULL;
	return weir_list_entry(w->waiters.next, struct weir_window_waiter, link);
}

static bool is_turn_of(const struct weir_window *w, const struct weir_window_waiter *waiter)
{
	return weir_list_is_empty(&w->waiters) || w->waiters.next == &waiter->link;
}

static bool try_take(struct weir_window *w, struct weir_window_waiter *waiter, uint32_t bytes)
{
	if (w->classes)
		return weir_window_classes_take(w, waiter, bytes);
	if (is_turn_of(w, waiter) && weir_window_fits(w, bytes)) {
		weir_window_claim(w, bytes);
		return true;
	}
	return false;
}

int weir_window_take(struct weir_window *w, struct weir_window_waiter *waiter, uint32_t bytes)
{
	if (bytes > w->bytes_min)
		return -EMSGSIZE;
	if (try_take(w, waiter, bytes))
		return 0;
	waiter->bytes = bytes;
	waiter->notified = false;
	if (weir_list_is_empty(&waiter->link))
		weir_list_add_tail(&w->waiters, &waiter->link);
	return -EAGAIN;
}

bool weir_window_must_wait(const struct weir_window *w, struct weir_window_waiter *waiter)
{
	if (weir_list_is_empty(&waiter->link) ||
	    (first_waiter(w) == waiter && weir_window_fits(w, waiter->bytes)))
		return false;
	waiter->notified = false; /* an urgent waiter may have taken the room offered before */
	return true;
}

static bool is_among(const struct weir_list *link, const struct weir_window_waiter *own,
		     unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (link == &own[i].link)
			return true;
	}
	return false;
}

/* Whether a waiter other than those at @own is in line. */
static bool has_other_waiter(const struct weir_window *w, const struct weir_window_waiter *own,
			     unsigned int nr)
{
	const struct weir_list *at;
	unsigned int others = 0;

	for (at = w->waiters.next; at != &w->waiters && others < 2; at = at->next)
		others += !is_among(at, own, nr);
	return others > (w->classes ? 1 : 0);
}

bool weir_window_is_awaited(const struct weir_window *w, const struct weir_window_waiter *own,
			    unsigned int nr)
{
	const struct weir_window_waiter *first;

	if (!has_other_waiter(w, own, nr))
		return false;
	first = first_waiter(w);
	return !first || !weir_window_fits(w, first->bytes);
}

struct weir_window_waiter *weir_window_next_waiter(struct weir_window *w)
{
	struct weir_window_waiter *first = first_waiter(w);

	if (!first)
		return NULL;
	if (!weir_window_fits(w, first->bytes)) {
		first->notified = false; /* a learner may have withdrawn the room offered before */
		return NULL;
	}
	if (first->notified)
		return NULL;
	first->notified = true;
	return first;
}
