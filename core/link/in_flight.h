/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The WRs in flight on one QP, and which of them the NIC signals.
 *
 * The NIC need not write a completion that no thread waits for. So only the last WR of a chain is
 * signalled, and one now and then, because the send queue frees its entries by completions. The
 * send queue works in order, and a failing WR always completes. A completion therefore means that
 * all earlier WRs succeeded.
 *
 * Inline, because each request passes here. Context of all: Any; never sleeps; externally
 * serialised.
 */
#ifndef WEIR_CORE_LINK_IN_FLIGHT_H
#define WEIR_CORE_LINK_IN_FLIGHT_H

#include "core/engine/request.h"

/**
 * struct weir_in_flight - WRs posted and not known to be complete
 * @oldest, @newest: the first and the last posted, chained by next; undefined if @count is 0
 * @count: number of WRs
 * @unsignalled: WRs posted after the last signalled one
 */
struct weir_in_flight {
	struct weir_wr *oldest, *newest;
	uint32_t count;
	uint32_t unsignalled;
};

/**
 * weir_in_flight_signal() - decide whether the next WR is signalled
 * @f: the WRs in flight
 * @is_last: the WR ends its chain
 * @interval: the most WRs for one completion
 *
 * Called once for each WR, in the order of posting, before the post.
 * Return: true if the NIC must write a completion.
 */
static inline bool weir_in_flight_signal(struct weir_in_flight *f, bool is_last, uint32_t interval)
{
	if (!is_last && ++f->unsignalled < interval)
		return false;
	f->unsignalled = 0;
	return true;
}

/**
 * weir_in_flight_append() - the NIC has accepted WRs
 * @f: the WRs in flight
 * @first: the chain
 * @count: how many of its WRs the NIC has accepted, at least 1
 *
 * Return: the rest of the chain, which the NIC has refused, or NULL.
 */
static inline struct weir_wr *weir_in_flight_append(struct weir_in_flight *f, struct weir_wr *first,
						    uint32_t count)
{
	struct weir_wr *last = first, *rest;
	uint32_t i;

	for (i = 1; i < count; i++)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	if (f->count)
		f->newest->next = first;
	else
		f->oldest = first;
	f->newest = last;
	f->count += count;
	return rest;
}

/* Takes the oldest WR; there is one. */
static inline struct weir_wr *weir_in_flight_pop(struct weir_in_flight *f)
{
	struct weir_wr *wr = f->oldest;

	f->oldest = wr->next;
	f->count--;
	return wr;
}

/**
 * weir_in_flight_complete() - take the next WR that a completion ends
 * @f: the WRs in flight
 * @cqe: the completion; its wr is NULL for the drain WR (link.h), which ends all WRs
 * @wc: all zero at the first call; receives a WR and its status: success for WRs before @cqe's
 *
 * Return: true if @wc holds a WR to report to the engine; false when there are no more.
 */
static inline bool weir_in_flight_complete(struct weir_in_flight *f, const struct weir_wc *cqe,
					   struct weir_wc *wc)
{
	if (!f->count || (wc->wr && wc->wr == cqe->wr))
		return false;
	*wc = (struct weir_wc){ .wr = weir_in_flight_pop(f) };
	if (wc->wr == cqe->wr)
		*wc = *cqe;
	return true;
}

#endif
