/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The listening end of how two meet, a step for each thing that it hears: it never waits.
 *
 * Until the key is proven the QP admits no RDMA: as rdma_accept() would open it, if only for an
 * instant, it is made and moved by hand.
 */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/exchange/setup.h"

#define READS_MAX 4 /* looks of a peer that are answered at once: it has one under way */

static int move(struct weir_exchange *x, enum ibv_qp_state state, uint8_t reads)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(x->id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = 0;
	if (state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = reads;
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = reads;
	return -ibv_modify_qp(x->id->qp, &attr, mask);
}

/* The QP is not the connection manager's while it accepts, or it would move it again. */
static int let_in(struct weir_exchange *x, uint8_t reads)
{
	struct rdma_conn_param param = {
		.responder_resources = reads,
		.initiator_depth = reads,
		.rnr_retry_count = 7,
		.qp_num = x->id->qp->qp_num,
	};
	struct ibv_qp *qp = x->id->qp;
	int rc = move(x, IBV_QPS_INIT, reads);

	if (!rc)
		rc = weir_exchange_expect(x, WIRE_HANDSHAKE_RECVS + WIRE_OFFERS_IN, NULL);
	if (!rc)
		rc = move(x, IBV_QPS_RTR, reads);
	if (!rc)
		rc = move(x, IBV_QPS_RTS, reads);
	if (rc)
		return rc;
	x->id->qp = NULL;
	rc = rdma_accept(x->id, &param) ? -errno : 0;
	x->id->qp = qp;
	return rc;
}

static int open_queue(struct weir_exchange *x)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};

	return -ibv_modify_qp(x->id->qp, &attr, IBV_QP_ACCESS_FLAGS);
}

/* What is wrong is said to the peer, and heard by it before the connection ends. Return: 0. */
static int refuse(struct weir_exchange *x, int status, const struct weir_error *why)
{
	struct weir_exchange_greeting *g = x->greeting;
	size_t length;

	weir_handshake_refuse(&g->handshake, status, why->text, g->out, &length);
	if (weir_exchange_say(x, length, NULL))
		return status;
	g->stage = WEIR_EXCHANGE_LEAVES;
	g->status = status;
	return 0;
}

/* HELLO and PROOF. */
static int prove(struct weir_exchange *x, const void *message, size_t length,
		 struct weir_error *error)
{
	const struct wire_welcome welcome = { .session_id = 1, .message_max = WIRE_HANDSHAKE_MAX };
	struct weir_exchange_greeting *g = x->greeting;
	size_t out_length;
	int rc = weir_handshake_input(&g->handshake, message, length, g->out, &out_length);

	if (out_length && weir_exchange_say(x, out_length, NULL))
		return weir_fail(error, -EPROTO, "%s cannot be answered", x->info.peer);
	if (rc) {
		weir_fail(error, rc, "%s: %s", x->info.peer, g->handshake.error.text);
		if (!out_length)
			return rc;
		g->stage = WEIR_EXCHANGE_LEAVES; /* what was just said is the refusal */
		g->status = rc;
		return 0;
	}
	if (g->handshake.state != WEIR_HANDSHAKE_PROVEN)
		return 0;
	rc = open_queue(x);
	if (rc)
		return weir_fail(error, rc, "cannot open the queue pair: %s", weir_strerror(rc));
	weir_handshake_welcome(&g->handshake, &welcome, g->out, &out_length);
	g->stage = WEIR_EXCHANGE_OFFERS;
	return weir_exchange_say(x, out_length, error);
}

static int agree(struct weir_exchange *x, const void *message, size_t length,
		 struct weir_error *error)
{
	int rc = weir_exchange_weigh(x, message, length, error);

	if (!rc)
		rc = weir_exchange_begin(x, error);
	if (rc)
		return refuse(x, rc, error);
	x->greeting->stage = WEIR_EXCHANGE_PLACES;
	return weir_exchange_offer(x, error);
}

int weir_exchange_greet(struct weir_exchange *x, const struct rdma_conn_param *param,
			struct weir_error *error)
{
	uint8_t reads = param->responder_resources < READS_MAX ? param->responder_resources :
								  READS_MAX;
	struct weir_handshake_setup setup;
	struct ibv_qp_init_attr attr;
	int rc = weir_exchange_prepare(x, &attr, error);

	if (rc)
		return rc;
	x->id->qp = ibv_create_qp(x->pd, &attr);
	if (!x->id->qp)
		return weir_fail(error, -ENOMEM, "no queue pair for %u slots: %s",
				 x->options.slots, weir_strerror(-errno));
	x->greeting->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	rc = let_in(x, reads ? reads : 1);
	if (rc)
		return weir_fail(error, rc, "cannot accept: %s", weir_strerror(rc));
	rc = weir_exchange_setup(x, &setup, error);
	if (!rc)
		weir_handshake_donor(&x->greeting->handshake, &setup);
	return rc;
}

/*
 * Who serves many, and makes memory for each, may come back to one late. That one's time begins
 * anew with all that it says, of which there is little; and who has proven the key has as much as
 * who connects.
 */
static void renew(struct weir_exchange *x)
{
	bool is_stranger = x->greeting->stage == WEIR_EXCHANGE_PROVES;

	x->greeting->deadline_ns = weir_after_ns(
		weir_now_ns(), is_stranger ? WEIR_HANDSHAKE_NS : x->options.timeout_ns);
}

static int heard(struct weir_exchange *x, const void *message, size_t length,
		 struct weir_error *error)
{
	int rc;

	switch (x->greeting->stage) {
	case WEIR_EXCHANGE_PROVES:
		return prove(x, message, length, error);
	case WEIR_EXCHANGE_OFFERS:
		return agree(x, message, length, error);
	case WEIR_EXCHANGE_PLACES:
		rc = weir_exchange_weigh(x, message, length, error);
		if (!rc)
			x->greeting->stage = WEIR_EXCHANGE_MET;
		return rc;
	default:
		return 0; /* who is refused may say what he likes */
	}
}

int weir_exchange_greet_on(struct weir_exchange *x, struct weir_error *error)
{
	struct weir_exchange_greeting *g = x->greeting;
	const void *message;
	size_t length;
	int rc;

	while (g->stage != WEIR_EXCHANGE_MET) {
		rc = weir_exchange_listen_for(x, &message, &length, error);
		if (g->stage == WEIR_EXCHANGE_LEAVES &&
		    (g->sent == g->said || (rc && rc != -EAGAIN)))
			return g->status;
		if (!rc)
			rc = heard(x, message, length, error);
		if (rc)
			return rc;
		renew(x);
	}
	return 0;
}
