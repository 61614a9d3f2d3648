/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes. Each request has local memory of its own, in registered pieces, filled with data that no
 * other request has. A queue pair moves the bytes that a WR names, without knowledge of requests.
 * The expected result is computed separately: from the requests as submitted, one at a time.
 */
#include <inttypes.h>

#include "sim/hunt/hunt.h"

#define LOCAL 0x100000000ull /* start of local memory */
#define MR_BYTES 8192 /* size of a registration */
#define GAP_BYTES 64 /* between separate ranges */

static uint8_t *local_at(struct hunt *h, uint64_t addr)
{
	return h->local + (addr - LOCAL);
}

static uint32_t key_of(uint64_t addr)
{
	return 1 + (uint32_t)((addr - LOCAL) / MR_BYTES);
}

/* The last key names the first memory again, as a second registration does. */
uint32_t hunt_memory_key(struct hunt_session *s)
{
	struct sim_rng *rng = &s->hunt->keys;
	uint32_t key = hunt_dice(rng, 800) ? 0 : (uint32_t)sim_rng_below(rng, HUNT_KEYS);

	return 1 + (uint32_t)s->number * HUNT_KEYS + key;
}

int hunt_memory_of(const struct hunt_session *s, uint32_t rkey)
{
	uint32_t key = rkey - 1 - (uint32_t)s->number * HUNT_KEYS;

	return key < HUNT_KEYS ? (int)(key % HUNT_MEMORIES) : -1;
}

uint64_t hunt_memory_alloc(struct hunt *h, uint64_t bytes)
{
	uint64_t at = LOCAL + h->local_bytes;

	h->local_bytes += (bytes + GAP_BYTES + 7) / 8 * 8;
	hunt_expect(h, h->local_bytes <= HUNT_LOCAL_BYTES, "the hunt has too little memory");
	return at;
}

/* Fills with words that occur nowhere else, in this request or others. */
static void fill(uint8_t *to, uint32_t number, uint64_t length)
{
	uint64_t at, word;

	for (at = 0; at < length; at += 8) {
		word = ((uint64_t)(number + 1) << 32 | (at + 8)) * 0x9e3779b97f4a7c15ull;
		word ^= word >> 32;
		memcpy(to + at, &word, length - at < 8 ? length - at : 8);
	}
}

/* Copies the local memory of @r to @bytes, or back. */
static void copy_local(struct hunt_request *r, uint8_t *bytes, bool to)
{
	struct hunt *h = r->session->hunt;
	int i;

	for (i = 0; i < r->asked.nr_sge; bytes += r->asked.sge[i++].length) {
		uint8_t *at = local_at(h, r->asked.sge[i].addr);

		memcpy(to ? bytes : at, to ? at : bytes, r->asked.sge[i].length);
	}
}

static void add_pieces(struct weir_req *req, uint64_t at, uint64_t length)
{
	while (length) {
		uint64_t left = MR_BYTES - (at - LOCAL) % MR_BYTES;
		uint32_t piece = (uint32_t)(length < left ? length : left);

		req->sge[req->nr_sge++] = (struct weir_sge){ at, piece, key_of(at) };
		at += piece;
		length -= piece;
	}
}

void hunt_memory_assign(struct hunt_request *r, uint64_t at, uint64_t apart)
{
	struct hunt *h = r->session->hunt;
	uint8_t bytes[HUNT_REMOTE_BYTES];

	add_pieces(&r->req, at, r->req.length - apart);
	if (apart)
		add_pieces(&r->req, hunt_memory_alloc(h, apart), apart);
	r->did = h->did + h->did_bytes;
	h->did_bytes += r->req.length;
	hunt_expect(h, h->did_bytes <= HUNT_LOCAL_BYTES, "the hunt has too little memory");
	memset(r->did, 0, r->req.length);
	r->asked = r->req;
	fill(bytes, r->number, r->req.length);
	copy_local(r, bytes, false);
}

static bool is_registered(const struct hunt *h, const struct weir_sge *sge)
{
	return sge->addr >= LOCAL && sge->length && sge->length <= MR_BYTES &&
	       sge->addr - LOCAL + sge->length <= h->local_bytes &&
	       sge->lkey == key_of(sge->addr) && sge->lkey == key_of(sge->addr + sge->length - 1);
}

static bool may_move(struct hunt_qp *qp, const struct hunt_wqe *wqe)
{
	struct hunt *h = qp->session->hunt;
	int i;

	hunt_expect(h,
		    wqe->op == WEIR_OP_SEND || (wqe->length <= HUNT_REMOTE_BYTES &&
						wqe->remote <= HUNT_REMOTE_BYTES - wqe->length),
		    "a WR is for %u bytes at %" PRIu64 ", which is beyond the region", wqe->length,
		    wqe->remote);
	hunt_expect(h, wqe->op == WEIR_OP_SEND || hunt_memory_of(qp->session, wqe->rkey) >= 0,
		    "a WR has the rkey %u, which the session does not own", wqe->rkey);
	for (i = 0; i < wqe->nr_sge; i++)
		hunt_expect(h, is_registered(h, &wqe->sge[i]),
			    "a WR names local memory that is not registered so");
	return !*h->why;
}

static uint8_t *remote_at(struct hunt_qp *qp, const struct hunt_wqe *wqe)
{
	return qp->session->memory[hunt_memory_of(qp->session, wqe->rkey)] + wqe->remote;
}

static void do_atomic(struct hunt_qp *qp, const struct hunt_wqe *wqe, bool is_answered)
{
	uint8_t *at = remote_at(qp, wqe);
	uint64_t held, operand = wqe->operand;

	memcpy(&held, at, sizeof(held));
	if (is_answered)
		memcpy(local_at(qp->session->hunt, wqe->sge[0].addr), &held, sizeof(held));
	if (wqe->op == WEIR_OP_FADD)
		operand += held;
	if (wqe->op == WEIR_OP_FADD || held == wqe->compare)
		memcpy(at, &operand, sizeof(operand));
}

static void receive(struct hunt_qp *qp, const struct hunt_wqe *wqe, const uint8_t *bytes)
{
	uint8_t sent[HUNT_MESSAGE_BYTES];

	fill(sent, wqe->reqs[0], wqe->length);
	hunt_expect(qp->session->hunt, !memcmp(bytes, sent, wqe->length),
		    "message %u arrives as another", wqe->reqs[0]);
}

void hunt_memory_move(struct hunt_qp *qp, const struct hunt_wqe *wqe, bool is_answered)
{
	struct hunt *h = qp->session->hunt;
	uint8_t message[HUNT_MESSAGE_BYTES];
	uint8_t *at = message;
	int i;

	if (!may_move(qp, wqe))
		return;
	if (wqe->op != WEIR_OP_SEND)
		at = remote_at(qp, wqe);
	if (wqe->op == WEIR_OP_CAS || wqe->op == WEIR_OP_FADD) {
		do_atomic(qp, wqe, is_answered);
		return;
	}
	for (i = 0; i < wqe->nr_sge; at += wqe->sge[i++].length) {
		uint8_t *local = local_at(h, wqe->sge[i].addr);
		bool is_read = wqe->op == WEIR_OP_READ;

		memcpy(is_read ? local : at, is_read ? at : local, wqe->sge[i].length);
	}
	if (wqe->op == WEIR_OP_SEND)
		receive(qp, wqe, message);
}

static void expect_seen(struct hunt_request *r, const uint8_t *memory, const uint8_t *seen)
{
	hunt_expect(r->session->hunt, !memcmp(memory, seen, r->asked.length),
		    "request %u read data that was not there at its turn", r->number);
}

static void take_turn_atomic(struct hunt_request *r, uint8_t *at, const uint8_t *seen)
{
	uint64_t held;

	if (!r->effects)
		return;
	if (!r->status)
		expect_seen(r, at, seen);
	memcpy(&held, at, sizeof(held));
	if (r->asked.op == WEIR_OP_FADD)
		held += r->asked.operand;
	else if (held == r->asked.compare)
		held = r->asked.operand;
	memcpy(at, &held, sizeof(held));
}

static void take_turn_write(struct hunt_request *r, uint8_t *at, const uint8_t *local)
{
	uint8_t bytes[HUNT_REMOTE_BYTES];
	uint64_t i;

	fill(bytes, r->number, r->asked.length);
	hunt_expect(r->session->hunt, !memcmp(bytes, local, r->asked.length),
		    "the local memory of write request %u has changed", r->number);
	for (i = 0; i < r->asked.length && r->effects; i++)
		at[i] = r->did[i] ? bytes[i] : at[i];
}

/* The data of a failed read is not checked. */
static void take_turn(struct hunt_request *r, uint8_t memories[][HUNT_REMOTE_BYTES])
{
	uint8_t local[HUNT_REMOTE_BYTES], *memory;

	if (r->asked.op > WEIR_OP_FADD)
		return;
	memory = memories[hunt_memory_of(r->session, r->asked.rkey)];
	copy_local(r, local, true);
	if (r->asked.op == WEIR_OP_WRITE)
		take_turn_write(r, memory + r->asked.remote, local);
	else if (r->asked.op != WEIR_OP_READ)
		take_turn_atomic(r, memory + r->asked.remote, local);
	else if (!r->status)
		expect_seen(r, memory + r->asked.remote, local);
}

void hunt_memory_over(struct hunt_session *s)
{
	uint8_t memory[HUNT_MEMORIES][HUNT_REMOTE_BYTES] = { { 0 } };
	struct hunt *h = s->hunt;
	uint32_t i;

	for (i = 0; i < h->nr_requests; i++)
		if (h->requests[i].session == s)
			take_turn(&h->requests[i], memory);
	hunt_expect(h, !memcmp(memory, s->memory, sizeof(memory)),
		    "the memory of session %d differs from the model", s->number);
}
