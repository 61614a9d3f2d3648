/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The listening end of the setup: handles each message as it comes, and never waits. */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/exchange/setup.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/identity.h"
#include "lib/conn/listener.h"
#include "lib/conn/proof.h"

/* Sends a refusal, so the peer learns the reason before the disconnect. Return: 0. */
static int send_refusal(struct weir_exchange *x, int status, const struct weir_error *why)
{
	struct weir_exchange_setup_state *g = x->setup;
	size_t length;

	weir_handshake_refuse(g->handshake, status, why->text, g->out[0], &length);
	if (weir_exchange_send_message(x, length, NULL))
		return status;
	g->stage = WEIR_EXCHANGE_AWAITS_REFUSAL_SENT;
	g->status = status;
	return 0;
}

/* Handles HELLO and PROOF. */
static int handle_proof(struct weir_exchange *x, const void *message, size_t length,
			struct weir_error *error)
{
	const struct wire_handshake_welcome welcome = { .session_id = 1,
							.message_max = WIRE_HANDSHAKE_MAX };
	struct weir_exchange_setup_state *g = x->setup;
	size_t out_length;
	int rc = weir_handshake_input(g->handshake, message, length, g->out[0], &out_length);

	if (out_length && weir_exchange_send_message(x, out_length, NULL))
		return weir_error_set(error, -EPROTO, "%s cannot be answered", x->info.peer);
	if (rc) {
		weir_handshake_explain(g->handshake, rc, x->info.peer, error);
		if (!out_length)
			return rc;
		g->stage = WEIR_EXCHANGE_AWAITS_REFUSAL_SENT; /* a refusal was sent */
		g->status = rc;
		return 0;
	}
	if (g->handshake->state != WEIR_HANDSHAKE_PROVEN)
		return 0;
	weir_places_leave(&g->newcomer);
	rc = weir_proof_open(g->handshake, x->qp, WEIR_EXCHANGE_ACCESS);
	if (rc)
		return weir_error_set(error, -EPROTO, "cannot open the queue pair to %s: %s",
				      x->info.peer, weir_strerror(rc));
	weir_handshake_welcome(g->handshake, &welcome, g->out[0], &out_length);
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
	x->setup->stage = WEIR_EXCHANGE_AWAITS_PLACES;
	return weir_exchange_send_offer(x, error);
}

static int accept_qp(struct weir_exchange *x, const struct rdma_conn_param *asked,
		     struct weir_error *error)
{
	struct weir_handshake_setup setup = {
		.key = x->options.key,
		.takes_clear = x->options.encryption == WEIR_ENCRYPTION_AUTO,
		.service.magic = WIRE_EXCHANGE_MAGIC,
		.version = WIRE_EXCHANGE_PROOF,
		.version_max = WIRE_EXCHANGE_PROOF,
	};
	int rc;

	x->setup->handshake = weir_handshake_new();
	if (!x->setup->handshake)
		return weir_error_set(error, -ENOMEM, "out of memory");
	rc = weir_exchange_post_setup_recvs(x, WIRE_HANDSHAKE_RECVS + WIRE_EXCHANGE_OFFERS_IN,
					    error);
	if (rc)
		return rc;
	rc = weir_listener_accept(x->id, x->qp, asked, WEIR_EXCHANGE_READS_MAX,
				  WEIR_EXCHANGE_READS_MAX);
	if (!rc && x->options.identity)
		weir_identity_pair(x->options.identity, &setup.identity);
	if (!rc)
		rc = weir_proof_setup(x->id, false, &setup);
	if (rc) {
		weir_noise_wipe(&setup.identity, sizeof(setup.identity));
		return weir_error_set(error, rc, "cannot accept: %s", weir_strerror(rc));
	}
	weir_handshake_donor(x->setup->handshake, &setup);
	return 0;
}

int weir_exchange_accept_start(struct weir_exchange *x, const struct rdma_conn_param *asked,
			       struct weir_error *error)
{
	int rc = weir_exchange_create_qp(x, error);

	weir_address_format(rdma_get_peer_addr(x->id), x->info.peer);
	x->setup->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	return rc ? rc : accept_qp(x, asked, error);
}

/*
 * A thread that serves many newcomers may come back late. So each message renews the deadline;
 * messages are few. A proven peer gets as much time as a connecting end.
 */
static void renew_deadline(struct weir_exchange *x)
{
	bool is_stranger = x->setup->stage == WEIR_EXCHANGE_AWAITS_PROOF;

	x->setup->deadline_ns = weir_after_ns(weir_now_ns(), is_stranger ? WEIR_HANDSHAKE_NS :
									   x->options.timeout_ns);
}

/* The handshake's secrets take locked memory, of which a user may have little. */
static void settle(struct weir_exchange *x)
{
	struct weir_exchange_setup_state *g = x->setup;

	g->stage = WEIR_EXCHANGE_ESTABLISHED;
	weir_handshake_free(g->handshake);
	g->handshake = NULL;
	x->is_started = true;
}

static int handle_message(struct weir_exchange *x, const void *message, size_t length,
			  struct weir_error *error)
{
	int rc;

	switch (x->setup->stage) {
	case WEIR_EXCHANGE_AWAITS_PROOF:
		return handle_proof(x, message, length, error);
	case WEIR_EXCHANGE_AWAITS_OFFER:
		return handle_offer(x, message, length, error);
	case WEIR_EXCHANGE_AWAITS_PLACES:
		rc = weir_exchange_take_offer(x, message, length, error);
		if (!rc)
			settle(x);
		return rc;
	default:
		return 0; /* ignore a refused peer's messages */
	}
}

static bool peer_has_left(const struct weir_exchange *x)
{
	struct weir_cm_event event;

	return weir_event_channel_get(x->cm, &event) > 0 &&
	       event.type == RDMA_CM_EVENT_DISCONNECTED;
}

/* Receives a message if there is one. Return: 0; -EAGAIN; -ETIMEDOUT; -EPROTO the peer has left. */
static int poll_message(struct weir_exchange *x, const void **message, size_t *length,
			struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->setup;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(x->cq, 1, &wc)) == 1 && wc.status == IBV_WC_SUCCESS) {
		if (wc.opcode != IBV_WC_RECV) {
			g->sent++;
			continue;
		}
		*message = g->in[wc.wr_id - WEIR_PROOF_WR];
		*length = wc.byte_len;
		return 0;
	}
	/* Messages sent before the peer left are taken first. */
	if (n || g->left)
		return weir_error_set(error, -EPROTO,
				      "%s ended the connection during the proof of the key",
				      x->info.peer);
	g->left = peer_has_left(x);
	if (!g->left && weir_now_ns() > g->deadline_ns)
		return weir_error_set(error, -ETIMEDOUT, "%s did not answer in time", x->info.peer);
	return -EAGAIN;
}

int weir_exchange_accept_step(struct weir_exchange *x, struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->setup;
	const void *message = NULL;
	size_t length = 0;
	int rc;

	while (g->stage != WEIR_EXCHANGE_ESTABLISHED) {
		rc = poll_message(x, &message, &length, error);
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
