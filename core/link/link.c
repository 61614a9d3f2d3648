/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link is BROKEN only after its last WR has ended, so a WR of an old QP never completes on the
 * next one.
 */
#include "core/link/link.h"

void weir_link_up(struct weir_link *link)
{
	if (weir_bug(!weir_link_may_connect(link) || link->in_flight.count))
		return;
	link->in_flight.unsignalled = 0;
	link->state = WEIR_LINK_UP;
}

bool weir_link_fail(struct weir_link *link)
{
	if (link->state != WEIR_LINK_UP)
		return false;
	link->state = WEIR_LINK_FAILING;
	return true;
}

bool weir_link_needs_drain(const struct weir_link *link)
{
	if (link->is_posting)
		return false;
	return link->in_flight.count;
}

void weir_link_begin_post(struct weir_link *link)
{
	if (weir_bug(link->is_posting || link->state != WEIR_LINK_UP))
		return;
	link->is_posting = true;
}

struct weir_wr *weir_link_end_post(struct weir_link *link, struct weir_wr *first, uint32_t count)
{
	link->is_posting = false;
	return count ? weir_in_flight_append(&link->in_flight, first, count) : first;
}

bool weir_link_settle(struct weir_link *link, bool is_read, bool may_reconnect)
{
	enum weir_link_state before = link->state;

	if (link->state == WEIR_LINK_FAILING && !link->in_flight.count && !link->is_probed &&
	    !link->is_posting && is_read)
		link->state = WEIR_LINK_BROKEN;
	if (link->state == WEIR_LINK_BROKEN && !may_reconnect)
		link->state = WEIR_LINK_DOWN;
	return link->state != before;
}

void weir_link_close(struct weir_link *link)
{
	link->state = WEIR_LINK_CLOSED;
}
