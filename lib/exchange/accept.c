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

static int move_qp(struct weir_exchange *x, enum ibv_qp_state state, uint8_t reads)
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

/* The QP is not the connection manager's while it accepts, or it would move_qp it again. */
static int accept_closed(struct weir_exchange *x, uint8_t reads)
{
	struct rdma_conn_param param = {
		.responder_resources = reads,
		.initiator_depth = reads,
		.rnr_retry_count = 7,
		.qp_num = x->id->qp->qp_num,
	};
	struct ibv_qp *qp = x->id->qp;
	int rc = move_qp(x, IBV_QPS_INIT, reads);

	if (!rc)
		rc = weir_exchange_post_setup_recvs(
			x, WIRE_HANDSHAKE_RECVS + WIRE_EXCHANGE_OFFERS_IN, NULL);
	if (!rc)
		rc = move_qp(x, IBV_QPS_RTR, reads);
	if (!rc)
		rc = move_qp(x, IBV_QPS_RTS, reads);
	if (rc)
		return rc;
	x->id->qp = NULL;
	rc = rdma_accept(x->id, &param) ? -errno : 0;
	x->id->qp = qp;
	return rc;
}

static int open_qp(struct weir_exchange *x)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};

	return -ibv_modify_qp(x->id->qp, &attr, IBV_QP_ACCESS_FLAGS);
}

/* What is wrong is said to the peer, and handle_message by it before the connection ends. Return: 0. */
static int send_refusal(struct weir_exchange *x, int status, const struct weir_error *why)
{
	struct weir_exchange_setup_state *g = x->greeting;
	size_t length;

	weir_handshake_refuse(&g->handshake, status, why->text, g->out, &length);
	if (weir_exchange_send_message(x, length, NULL))
		return status;
	g->stage = WEIR_EXCHANGE_AWAITS_REFUSAL_SENT;
	g->status = status;
	return 0;
}

/* HELLO and PROOF. */
static int handle_proof(struct weir_exchange *x, const void *message, size_t length,
			struct weir_error *error)
{
	const struct wire_handshake_welcome welcome = { .session_id = 1,
							.message_max = WIRE_HANDSHAKE_MAX };
	struct weir_exchange_setup_state *g = x->greeting;
	size_t out_length;
	int rc = weir_handshake_input(&g->handshake, message, length, g->out, &out_length);

	if (out_length && weir_exchange_send_message(x, out_length, NULL))
		return weir_fail(error, -EPROTO, "%s cannot be answered", x->info.peer);
	if (rc) {
		weir_fail(error, rc, "%s: %s", x->info.peer, g->handshake.error.text);
		if (!out_length)
			return rc;
		g->stage =
			WEIR_EXCHANGE_AWAITS_REFUSAL_SENT; /* what was just said is the refusal */
		g->status = rc;
		return 0;
	}
	if (g->handshake.state != WEIR_HANDSHAKE_PROVEN)
		return 0;
	rc = open_qp(x);
	if (rc)
		return weir_fail(error, rc, "cannot open the queue pair: %s", weir_strerror(rc));
	weir_handshake_welcome(&g->handshake, &welcome, g->out, &out_length);
	g->stage = WEIR_EXCHANGE_AWAITS_OFFER;
	return weir_exchange_send_message(x, out_length, error);
}

static int handle_offer(struct weir_exchange *x, const void *message, size_t length,
			struct weir_error *error)
{
	int rc = weir_exchange_take_offer(x, message, length, error);

	if (!rc)
		rc = weir_exchange_start(x, error);
	if (rc)
		return send_refusal(x, rc, error);
	x->greeting->stage = WEIR_EXCHANGE_AWAITS_PLACES;
	return weir_exchange_send_offer(x, error);
}

int weir_exchange_accept_start(struct weir_exchange *x, const struct rdma_conn_param *param,
			       struct weir_error *error)
{
	uint8_t reads = param->responder_resources < READS_MAX ? param->responder_resources :
								 READS_MAX;
	struct weir_handshake_setup setup;
	struct ibv_qp_init_attr attr;
	int rc = weir_exchange_create_queues(x, &attr, error);

	if (rc)
		return rc;
	x->id->qp = ibv_create_qp(x->pd, &attr);
	if (!x->id->qp)
		return weir_fail(error, -ENOMEM, "no queue pair for %u slots: %s", x->options.slots,
				 weir_strerror(-errno));
	x->greeting->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	rc = accept_closed(x, reads ? reads : 1);
	if (rc)
		return weir_fail(error, rc, "cannot accept: %s", weir_strerror(rc));
	rc = weir_exchange_begin_handshake(x, &setup, error);
	if (!rc)
		weir_handshake_donor(&x->greeting->handshake, &setup);
	return rc;
}

/*
 * Who serves many, and makes memory for each, may come back to one late. That one's time begins
 * anew with all that it says, of which there is little; and who has proven the key has as much as
 * who connects.
 */
static void renew_deadline(struct weir_exchange *x)
{
	bool is_stranger = x->greeting->stage == WEIR_EXCHANGE_AWAITS_PROOF;

	x->greeting->deadline_ns = weir_after_ns(
		weir_now_ns(), is_stranger ? WEIR_HANDSHAKE_NS : x->options.timeout_ns);
}

static int handle_message(struct weir_exchange *x, const void *message, size_t length,
			  struct weir_error *error)
{
	int rc;

	switch (x->greeting->stage) {
	case WEIR_EXCHANGE_AWAITS_PROOF:
		return handle_proof(x, message, length, error);
	case WEIR_EXCHANGE_AWAITS_OFFER:
		return handle_offer(x, message, length, error);
	case WEIR_EXCHANGE_AWAITS_PLACES:
		rc = weir_exchange_take_offer(x, message, length, error);
		if (!rc)
			x->greeting->stage = WEIR_EXCHANGE_ESTABLISHED;
		return rc;
	default:
		return 0; /* who is refused may say what he likes */
	}
}

int weir_exchange_accept_step(struct weir_exchange *x, struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->greeting;
	const void *message;
	size_t length;
	int rc;

	while (g->stage != WEIR_EXCHANGE_ESTABLISHED) {
		rc = weir_exchange_poll_message(x, &message, &length, error);
		if (g->stage == WEIR_EXCHANGE_AWAITS_REFUSAL_SENT &&
		    (g->sent == g->said || (rc && rc != -EAGAIN)))
			return g->status;
		if (!rc)
			rc = handle_message(x, message, length, error);
		if (rc)
			return rc;
		renew_deadline(x);
	}
	return 0;
}
