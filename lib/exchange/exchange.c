/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/sized.h"
#include "lib/exchange/setup.h"
#include "lib/exchange/memory.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"
#include "lib/base/yield.h"

/* covers a retransmission, which takes 2.1 s as rdma_cm connects over Ethernet */
#define SETTLE_NS (5 * WEIR_NS_PER_S)
#define FAREWELL_NS (1 * WEIR_NS_PER_S) /* a peer that lives takes it in a round trip */

int weir_exchange_info(const struct weir_exchange *x, struct weir_exchange_info *given, size_t size)
{
	struct weir_exchange_info known = x->info, *info = &known;
	uint64_t end = x->sending != WEIR_EXCHANGE_SENDING;

	info->mode = x->options.mode;
	info->memory = x->options.memory;
	info->staged = weir_exchange_is_staged(x);
	info->slots = x->out.slots;
	info->peer_slots = x->in.slots;
	info->slot_bytes = x->options.slot_bytes;
	info->peer_slot_bytes = x->peer.slot_bytes;
	info->put = x->out.committed - end;
	info->arrived = x->out.committed - weir_exchange_unconfirmed(x);
	if (info->arrived > info->put || x->sending == WEIR_EXCHANGE_ENDED)
		info->arrived = info->put;
	info->released = x->out.freed;
	if (end && !weir_slot_bitmap_tx_is_full(&x->out, x->end_slot))
		info->released--;
	return weir_sized_out(given, size, info, sizeof(*info));
}

static bool has_end_sends_in_flight(const struct weir_exchange *x)
{
	const uint32_t all = (1u << WEIR_EXCHANGE_RETURN_BUFFERS) - 1;

	return x->is_end_ack_posted ||
	       (x->is_finished && (x->nr_returns || x->return_buffers_free != all));
}

/*
 * A finished peer waits for our acknowledgement, so wait for its completion before the QP goes;
 * not if the peer has left.
 */
static void drain_end_ack(struct weir_exchange *x)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), SETTLE_NS), now_ns;

	while (has_end_sends_in_flight(x) && !weir_exchange_completion_poll(x)) {
		weir_exchange_post_returns(x);
		weir_exchange_take_events(x);
		weir_yield(&now_ns);
		if (now_ns >= deadline_ns)
			break;
	}
}

/* Only so can the peer tell a close from a death: both end the connection alike. */
static void say_farewell(struct weir_exchange *x)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), FAREWELL_NS), now_ns;

	if (!x->is_started || x->is_closed || weir_exchange_post_close(x))
		return;
	while (x->is_close_posted && !weir_exchange_completion_poll(x)) {
		weir_exchange_take_events(x);
		weir_yield(&now_ns);
		if (now_ns >= deadline_ns)
			break;
	}
}

/* The QP goes before the memory that the peer may write. */
void weir_exchange_close(struct weir_exchange *x)
{
	if (!x)
		return;
	if (x->qp) {
		drain_end_ack(x);
		say_farewell(x);
		rdma_disconnect(x->id);
		ibv_destroy_qp(x->qp);
		x->id->qp = NULL;
	}
	if (x->cq)
		ibv_destroy_cq(x->cq);
	weir_exchange_memory_free(x);
	if (x->setup && x->setup->mr)
		ibv_dereg_mr(x->setup->mr);
	if (x->setup) {
		weir_places_leave(&x->setup->newcomer);
		weir_handshake_free(x->setup->handshake);
	}
	free(x->setup);
	if (x->pd)
		ibv_dealloc_pd(x->pd);
	if (x->fd >= 0)
		close(x->fd);
	if (x->events)
		ibv_destroy_comp_channel(x->events);
	if (x->id)
		rdma_destroy_id(x->id);
	if (x->cm)
		rdma_destroy_event_channel(x->cm);
	free(x);
}
