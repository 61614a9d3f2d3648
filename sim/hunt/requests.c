/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests close together in a small memory, so that many overlap, some as groups of neighbours.
 * Some have short deadlines, some are cancelled, a few are invalid.
 */
#include "sim/hunt/hunt.h"

static const enum weir_op ops[] = { WEIR_OP_READ,  WEIR_OP_WRITE, WEIR_OP_READ,
				    WEIR_OP_WRITE, WEIR_OP_WRITE, WEIR_OP_CAS,
				    WEIR_OP_FADD,  WEIR_OP_SEND,  WEIR_OP_BARRIER };

/* Draws the remote range: some cells, or a little less or more. */
static void draw_range(struct hunt_request *r, uint32_t first, uint32_t cells)
{
	struct sim_rng *rng = &r->session->hunt->places;
	uint64_t at = (uint64_t)first * HUNT_CELL_BYTES;
	uint64_t end = at + (uint64_t)cells * HUNT_CELL_BYTES;

	if (hunt_dice(rng, 300))
		at += sim_rng_below(rng, HUNT_CELL_BYTES);
	if (hunt_dice(rng, 500))
		end += sim_rng_below(rng, 2);
	if (hunt_dice(rng, 200))
		end -= sim_rng_below(rng, HUNT_CELL_BYTES);
	at = at < HUNT_REMOTE_BYTES ? at : HUNT_REMOTE_BYTES - 1;
	end = end < HUNT_REMOTE_BYTES ? end : HUNT_REMOTE_BYTES;
	r->req.remote = at;
	r->req.length = end > at ? end - at : 1;
}

/* Few words and few values, so that a compare often succeeds. */
static void place_atomic(struct hunt_request *r, uint32_t first)
{
	struct sim_rng *rng = &r->session->hunt->places;

	r->req.remote = hunt_dice(rng, 500) ? 8 * sim_rng_below(rng, 4) :
					      (uint64_t)first * HUNT_CELL_BYTES;
	r->req.length = 8;
	r->req.compare = sim_rng_below(rng, 3);
	r->req.operand = 1 + sim_rng_below(rng, 2);
}

static void draw_shape(struct hunt_request *r, uint32_t first, uint32_t cells)
{
	struct hunt *h = r->session->hunt;
	uint64_t apart = 0;

	switch (r->req.op) {
	case WEIR_OP_BARRIER:
		break;
	case WEIR_OP_SEND:
		r->req.length = sim_rng_below(&h->places, HUNT_MESSAGE_BYTES + 1);
		break;
	case WEIR_OP_CAS:
	case WEIR_OP_FADD:
		place_atomic(r, first);
		break;
	default:
		draw_range(r, first, cells);
		if (hunt_dice(&h->places, 300))
			apart = sim_rng_below(&h->places, r->req.length);
	}
	hunt_memory_assign(r, hunt_memory_alloc(h, r->req.length), apart);
}

/* Mixes short and long deadlines, in some hunts far apart. */
static uint64_t deadline_draw(struct hunt *h)
{
	uint64_t most_ns = hunt_dice(&h->waits, 500) ? h->deadline_ns_max / 10 : h->deadline_ns_max;

	if (!hunt_dice(&h->waits, h->haste))
		return WEIR_NEVER;
	return hunt_now_ns(h) + 1 + sim_rng_below(&h->waits, most_ns);
}

/* The next request, without a range; NULL after the last. */
static struct hunt_request *next_request(struct hunt_session *s, enum weir_op op)
{
	struct hunt *h = s->hunt;
	struct sim_rng *rng = &h->load;
	struct hunt_request *r;

	if (h->nr_requests == HUNT_REQUESTS)
		return NULL;
	r = &h->requests[h->nr_requests];
	r->number = h->nr_requests++;
	r->session = s;
	r->req.op = op;
	r->req.retries = (uint8_t)sim_rng_below(rng, 3);
	r->req.exclusive = hunt_dice(rng, 500);
	r->req.deadline_ns = deadline_draw(h);
	r->req.rkey = hunt_memory_key(s);
	r->req.hint = (uint8_t)sim_rng_below(&h->paths, 3);
	if (h->has_classes)
		r->req.class = (uint8_t)sim_rng_below(&h->ranks, WEIR_WINDOW_CLASSES + 1);
	r->is_bad = hunt_dice(rng, h->peril / 4);
	r->is_unregistered = hunt_dice(rng, h->peril / 4);
	r->may_repeat = op == WEIR_OP_READ || (op == WEIR_OP_WRITE && r->req.exclusive);
	return r;
}

static void spoil_length(struct weir_req *req, uint64_t length)
{
	req->nr_sge = 1;
	req->sge[0].length = (uint32_t)length;
	req->length = length;
}

/* A message may be empty or too long; an atomic has one aligned word. */
static int spoil_shape(struct hunt *h, struct weir_req *req)
{
	switch (req->op) {
	case WEIR_OP_SEND:
		spoil_length(req, h->config.fragment_bytes + 1);
		return -EMSGSIZE;
	case WEIR_OP_CAS:
	case WEIR_OP_FADD:
		if (hunt_dice(&h->errors, 500))
			req->remote += 1 + sim_rng_below(&h->errors, 7);
		else
			spoil_length(req, 16);
		return -EINVAL;
	default:
		spoil_length(req, 0);
		return -EINVAL;
	}
}

/* Makes a request invalid. Returns the status that the engine must give. */
static int make_invalid(struct hunt *h, struct weir_req *req)
{
	switch (sim_rng_below(&h->errors, 4)) {
	case 0:
		req->op = (enum weir_op)(WEIR_OP_BARRIER + 1 + sim_rng_below(&h->errors, 100));
		return -EINVAL;
	case 1:
		req->length += hunt_dice(&h->errors, 500) ? 1 : -1ull;
		return -EINVAL;
	case 2:
		if (req->op == WEIR_OP_SEND || req->length < 2)
			return spoil_shape(h, req);
		req->remote = UINT64_MAX - sim_rng_below(&h->errors, req->length - 1);
		return -EINVAL;
	default:
		return spoil_shape(h, req);
	}
}

static void submit(struct hunt_request *r)
{
	struct hunt *h = r->session->hunt;

	if (r->req.op != WEIR_OP_BARRIER && hunt_dice(&h->errors, 10))
		r->refusal = make_invalid(h, &r->req);
	hunt_note(h, "submit", r->number, r->req.op, (int64_t)r->req.remote);
	weir_inbox_push(&r->session->inbox, &r->node);
}

static void submit_one(struct hunt_session *s, enum weir_op op, uint32_t first, uint32_t cells)
{
	struct hunt_request *r = next_request(s, op);

	if (!r)
		return;
	draw_shape(r, first, cells);
	submit(r);
}

/* Submits neighbours in any order, mostly adjacent in local memory, too. */
static void submit_neighbours(struct hunt_session *s, enum weir_op op, uint32_t first)
{
	struct hunt *h = s->hunt;
	uint32_t count = 2 + (uint32_t)sim_rng_below(&h->load, 4);
	uint32_t turn = (uint32_t)sim_rng_below(&h->load, 8), length = 2 * HUNT_CELL_BYTES, i;
	uint64_t base = (uint64_t)first * HUNT_CELL_BYTES, local = 0;
	uint32_t rkey = hunt_memory_key(s);
	bool is_beside = hunt_dice(&h->places, 700);
	bool is_in_pieces = hunt_dice(&h->wear, 200);

	if (hunt_dice(&h->places, 300))
		length -= (uint32_t)sim_rng_below(&h->places, length);
	if (base + (uint64_t)count * length > HUNT_REMOTE_BYTES)
		base = HUNT_REMOTE_BYTES - (uint64_t)count * length;
	if (is_beside)
		local = hunt_memory_alloc(h, (uint64_t)count * length);
	for (i = 0; i < count; i++) {
		uint32_t at = (i * (count == 3 ? 2 : 3) + turn) % count * length;
		struct hunt_request *r = next_request(s, op);

		if (!r)
			return;
		r->req.remote = base + at;
		r->req.rkey = hunt_dice(&h->keys, 100) ? r->req.rkey : rkey;
		r->req.length = length;
		hunt_memory_assign(r, is_beside ? local + at : hunt_memory_alloc(h, length),
				   is_in_pieces ? length / 2 : 0);
		submit(r);
	}
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
		    "request %u was cancelled, and ended otherwise", r->number);
	hunt_expect(h, !rc || rc == -EINPROGRESS, "the cancellation of request %u returns %d",
		    r->number, rc);
}

/* The host finds a connection broken, with or without WRs in flight, or gives it up. */
static void break_one(struct hunt_session *s)
{
	struct hunt *h = s->hunt;
	struct hunt_qp *qp = &s->qps[sim_rng_below(&h->wear, (uint64_t)s->nr_qps)];

	if (hunt_dice(&h->wear, 300))
		hunt_qp_lose(qp);
	else
		hunt_qp_fail(qp);
	hunt_note(h, "break", s->number, qp->number, qp->is_gone);
	if (!qp->is_down && hunt_dice(&h->wear, 500)) {
		qp->is_down = true;
		weir_engine_channel_broken(&s->engine, qp->number);
	}
	hunt_expect(h, !qp->count || weir_engine_channel_up(&s->engine, qp->number, 1) == -EBUSY,
		    "channel %u comes up with WRs in flight", qp->number);
	hunt_host_pull(s);
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
		submit_one(s, op, first,
			   1 + (uint32_t)sim_rng_below(rng, hunt_dice(rng, 400) ? 24 : 3));
	hunt_host_wake(s);
	if (hunt_dice(rng, 30))
		cancel_one(s);
	if (hunt_dice(&s->hunt->wear, s->hunt->peril / 4))
		break_one(s);
	if (--s->to_come)
		sim_clock_in(&s->hunt->clock, event, hunt_dice(rng, 400) ? 0 : hunt_while(rng));
}

void hunt_requests_begin(struct hunt_session *s)
{
	s->to_come = 10 + (uint32_t)sim_rng_below(&s->hunt->load, 60);
	s->submit.happen = happen;
	sim_clock_in(&s->hunt->clock, &s->submit, 0);
}
