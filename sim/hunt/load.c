/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests close together in a small memory, so that they meet: in threes and fours that lie side by
 * side, too. Some come with little patience, some are taken back, a few are wrong.
 */
#include "sim/hunt/hunt.h"

#define LOCAL 0x100000ull /* where a request's local memory begins, times its number */
#define MIRROR 0x70000000ull /* local memory that lies as the remote one does */

static const enum weir_op ops[] = { WEIR_OP_READ,  WEIR_OP_WRITE, WEIR_OP_READ,
				    WEIR_OP_WRITE, WEIR_OP_WRITE, WEIR_OP_CAS,
				    WEIR_OP_FADD,  WEIR_OP_SEND,  WEIR_OP_BARRIER };

static void lay_out_local(struct hunt_request *r)
{
	struct weir_req *req = &r->req;
	uint64_t at = LOCAL * (r->number + 1), left = req->length;

	if (r->number % 3) /* its neighbour's local memory may go on where this ends */
		at = MIRROR + req->remote;
	else if (req->op <= WEIR_OP_WRITE && left > HUNT_CELL_BYTES) {
		req->sge[0] = (struct weir_sge){ at, HUNT_CELL_BYTES, 1 };
		req->nr_sge = 1;
		left -= HUNT_CELL_BYTES;
		at += LOCAL / 2;
	}
	if (left)
		req->sge[req->nr_sge++] = (struct weir_sge){ at, (uint32_t)left, 1 };
}

static void shape(struct hunt_request *r, uint32_t first, uint32_t cells)
{
	struct weir_req *req = &r->req;

	r->first = first < HUNT_CELLS ? first : HUNT_CELLS - 1;
	r->cells = cells < HUNT_CELLS - r->first ? cells : HUNT_CELLS - r->first;
	req->remote = (uint64_t)r->first * HUNT_CELL_BYTES;
	req->length = (uint64_t)r->cells * HUNT_CELL_BYTES;
	if (req->op == WEIR_OP_SEND)
		req->length = 64;
	if (req->op == WEIR_OP_CAS || req->op == WEIR_OP_FADD) {
		r->cells = 1;
		req->length = 8;
	}
	if (req->op == WEIR_OP_BARRIER || req->op == WEIR_OP_SEND)
		r->cells = 0;
	if (req->op == WEIR_OP_BARRIER)
		req->length = 0;
	else
		lay_out_local(r);
}

static void submit(struct hunt_session *s, enum weir_op op, uint32_t first, uint32_t cells)
{
	struct hunt *h = s->hunt;
	struct sim_rng *rng = &h->load;
	struct hunt_request *r;

	if (h->nr_requests == HUNT_REQUESTS)
		return;
	r = &h->requests[h->nr_requests];
	memset(r, 0, sizeof(*r));
	r->number = h->nr_requests++;
	r->session = s;
	r->req.op = op;
	r->req.retries = (uint8_t)sim_rng_below(rng, 3);
	r->req.exclusive = hunt_dice(rng, 500);
	r->req.compare = sim_rng_below(rng, 2);
	r->req.deadline_ns = hunt_dice(rng, 100) ? hunt_now_ns(h) + 1 + sim_rng_below(rng, 20000)
						 : WEIR_NEVER;
	r->req.hint = (uint8_t)sim_rng_below(&h->paths, 3);
	r->is_bad = hunt_dice(rng, h->peril / 4);
	r->is_unregistered = hunt_dice(rng, h->peril / 4);
	shape(r, first, cells);
	r->may_repeat = op == WEIR_OP_READ || (op == WEIR_OP_WRITE && r->req.exclusive);
	r->asked = r->req;
	hunt_note(h, "submit", r->number, op, r->first);
	weir_inbox_push(&s->inbox, &r->node);
}

/* Neighbours, in any order. */
static void submit_neighbours(struct hunt_session *s, enum weir_op op, uint32_t first)
{
	struct sim_rng *rng = &s->hunt->load;
	uint32_t count = 2 + (uint32_t)sim_rng_below(rng, 4), turn = (uint32_t)sim_rng_below(rng, 8);
	uint32_t i;

	for (i = 0; i < count; i++)
		submit(s, op, first + ((i * 3 + turn) % count) * 2, 2);
}

static void cancel_one(struct hunt_session *s)
{
	struct hunt *h = s->hunt;
	struct hunt_request *r;
	int rc;

	if (!h->nr_requests)
		return;
	r = &h->requests[sim_rng_below(&h->load, h->nr_requests)];
	if (!r->is_in || r->has_ended || r->session != s)
		return;
	rc = weir_engine_cancel(&s->engine, &r->req);
	hunt_note(h, "cancel", r->number, rc, 0);
	hunt_host_pull(s);
	hunt_expect(h, rc || (r->has_ended && r->status == -ECANCELED),
		    "request %u was cancelled, and did not come back so", r->number);
}

static void happen(struct sim_event *event)
{
	struct hunt_session *s = container_of(event, struct hunt_session, submit);
	struct sim_rng *rng = &s->hunt->load;
	enum weir_op op = ops[sim_rng_below(rng, sizeof(ops) / sizeof(*ops))];
	uint32_t first = (uint32_t)sim_rng_below(rng, HUNT_CELLS);

	if (op <= WEIR_OP_WRITE && hunt_dice(rng, 200))
		submit_neighbours(s, op, first);
	else
		submit(s, op, first, 1 + (uint32_t)sim_rng_below(rng, hunt_dice(rng, 300) ? 24 : 3));
	hunt_host_wake(s);
	if (hunt_dice(rng, 30))
		cancel_one(s);
	if (--s->to_come)
		sim_clock_in(&s->hunt->clock, event,
			     hunt_dice(rng, 400) ? 0 : hunt_while(rng));
}

void hunt_load_begin(struct hunt_session *s)
{
	s->to_come = 10 + (uint32_t)sim_rng_below(&s->hunt->load, 60);
	s->submit.happen = happen;
	sim_clock_in(&s->hunt->clock, &s->submit, 0);
}
