// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Ids in lists of objects: those bound to the device, and listeners. The kernel makes a listener of
 * each device for an id that listens on all addresses; here the id itself is listed.
 */
#include <string.h>

#include "cm.h"
#include "softnic/verbs/device.h"

/* As enum rdma_cm_state of the kernel, which the names in rdma(8) follow. */
static uint32_t state_of(const struct cm_id *id)
{
	enum {
		IDLE,
		ADDR_RESOLVED = 2,
		ROUTE_RESOLVED = 4,
		CONNECT,
		DISCONNECT,
		ADDR_BOUND,
		LISTEN
	};
	static const uint8_t states[] = {
		[CM_IDLE] = IDLE,
		[CM_BOUND] = ADDR_BOUND,
		[CM_ADDR_RESOLVED] = ADDR_RESOLVED,
		[CM_ROUTE_RESOLVED] = ROUTE_RESOLVED,
		[CM_LISTENING] = LISTEN,
		[CM_REQ_SENT] = CONNECT,
		[CM_REP_RCVD] = CONNECT,
		[CM_REQ_WAIT] = CONNECT,
		[CM_REQ_RCVD] = CONNECT,
		[CM_REP_SENT] = CONNECT,
		[CM_ESTABLISHED] = CONNECT,
		[CM_CLOSED] = DISCONNECT,
	};

	return states[id->state];
}

static void put_address(struct sockaddr_in6 *to, const union cm_addr *addr)
{
	memcpy(to, addr, sizeof(*to));
}

/* Readers find fields of different moments, as those of queue pairs. */
static void describe(const struct cm_id *id, struct shared_object *o)
{
	union cm_addr src, dst;

	cm_id_src(id, &src);
	cm_id_dst(id, &dst);
	put_address(&o->src, &src);
	put_address(&o->dst, &dst);
	store_relaxed(&o->qpn, id->local_qpn);
	store_relaxed(&o->type, id->id.qp_type);
	store_relaxed(&o->port, id->id.port_num);
	store_relaxed(&o->port_space, id->id.ps);
	store_relaxed(&o->state, state_of(id));
}

void cm_listing_begin(struct cm_id *id)
{
	struct shared_object o = { .kind = SHARED_CM_ID };

	if (listing_entry(&id->listing))
		return;
	describe(id, &o);
	listing_begin(&id->listing, &o);
}

void cm_listing_update(struct cm_id *id)
{
	struct shared_object *o = listing_entry(&id->listing);

	if (o)
		describe(id, o);
}

void cm_id_set_state(struct cm_id *id, enum cm_state state)
{
	id->state = state;
	cm_listing_update(id);
}
