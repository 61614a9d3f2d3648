/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The steps of an attempt in order, up to the moment when other threads may use the channel. */
#include <errno.h>
#include <string.h>

#include "lib/client/connect_attempt.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/conn/qp.h"

#define ANSWER_NS_MIN (100 * WEIR_NS_PER_MS) /* leaves time for the last attempts */

static int check_device(const struct weir_connect_attempt *a)
{
	const char *wanted = a->session->options.device;
	const char *device = ibv_get_device_name(a->id->verbs->device);

	if (!wanted || !strcmp(wanted, device))
		return 0;
	return weir_error_set(a->error, -ENODEV, "the route to %s goes by device %s, not by %s",
			      a->session->peer, device, wanted);
}

/* Shortage of descriptors, memory or device resources may pass. */
static int explain_no_resources(int err)
{
	return err == EINVAL ? -EINVAL : -ENOMEM;
}

/* With as much inline data as the device accepts. */
static int create_qp_inline(struct weir_connect_attempt *a, struct ibv_qp_init_attr *attr)
{
	static const uint32_t sizes[] = { 256, 128, 64, 0 };
	unsigned int i;
	int rc = -EINVAL;

	for (i = 0; rc && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr asked = *attr;

		asked.cap.max_inline_data = sizes[i];
		rc = weir_qp_create(a->id, a->session->nic->pd, &asked, &a->qp);
		if (!rc)
			a->inline_max = asked.cap.max_inline_data;
	}
	return rc;
}

/*
 * The CQ of the handshake's receives: channel 0 shares that of its messages, the unload channel
 * that of its returns.
 */
static int create_recv_cq(struct weir_connect_attempt *a)
{
	struct weir_session *session = a->session;

	if (!a->link->number || weir_unload_tx_is(a->link)) {
		a->recv_cq = a->link->number ? a->link->cq->ibv : session->recv_cq;
		return 0;
	}
	a->own_cq = ibv_create_cq(session->nic->context, WIRE_HANDSHAKE_RECVS, NULL, NULL, 0);
	if (!a->own_cq)
		return weir_error_set(a->error, explain_no_resources(errno),
				      "no completion queue of %u: %s", WIRE_HANDSHAKE_RECVS,
				      strerror(errno));
	a->recv_cq = a->own_cq;
	return 0;
}

/* Channel 0 also has the buffers for messages. */
static int create_qp(struct weir_connect_attempt *a)
{
	struct weir_session *session = a->session;
	struct weir_link *link = a->link;
	unsigned int recvs = WIRE_HANDSHAKE_RECVS + (link->number ? 0 : WEIR_MESSAGE_RECVS);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = session->options.depth + WEIR_HANDSHAKE_SENDS +
					WEIR_KEEPALIVE_SENDS,
			 .max_recv_wr = recvs,
			 .max_send_sge = session->nic->sge_max,
			 .max_recv_sge = 1 },
	};
	int rc = create_recv_cq(a);

	if (rc)
		return rc;
	if (weir_unload_tx_is(link)) {
		attr.cap.max_send_wr = WEIR_UNLOAD_TX_SENDS + WEIR_HANDSHAKE_SENDS;
		attr.cap.max_recv_wr = WIRE_UNLOAD_SLOTS + WIRE_HANDSHAKE_RECVS;
	}
	attr.send_cq = link->cq->ibv;
	attr.recv_cq = a->recv_cq;
	rc = create_qp_inline(a, &attr);
	return rc ? weir_error_set(a->error, explain_no_resources(-rc),
				   "no queue pair of depth %u: %s", session->options.depth,
				   weir_strerror(rc)) :
		    0;
}

static int post_recvs(const struct weir_connect_attempt *a)
{
	struct weir_handshake_buffers *buffers =
		weir_messages_handshake(a->session, a->link->number);
	int i, rc = 0;

	for (i = 0; !rc && i < WIRE_HANDSHAKE_RECVS; i++) {
		struct ibv_sge sge = { (uintptr_t)buffers->recvs[i], WIRE_HANDSHAKE_MAX,
				       a->session->messages.mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = i + 1, .sg_list = &sge, .num_sge = 1 };

		rc = -ibv_post_recv(a->qp, &wr, &bad);
	}
	if (!rc && !a->link->number)
		rc = weir_messages_post(a->session, a->qp);
	if (!rc && weir_unload_tx_is(a->link))
		rc = weir_unload_tx_post_recvs(a->qp);
	return rc ? weir_error_set(a->error, rc, "cannot post receive buffers: %s",
				   weir_strerror(rc)) :
		    0;
}

/* The first WELCOME on channel 0 counts for the session. */
static void record_welcome(struct weir_session *session,
			   const struct wire_handshake_welcome *welcome)
{
	session->id = welcome->session_id;
	session->incarnation = welcome->incarnation;
	session->quota_bytes = welcome->quota_bytes;
}

/* Credits begin afresh with each channel 0. */
static int check_welcome(const struct weir_connect_attempt *a,
			 const struct wire_handshake_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_messages *m = &session->messages;

	if (!session->id)
		record_welcome(session, welcome);
	if (welcome->session_id != session->id || welcome->incarnation != session->incarnation)
		return weir_error_set(a->error, -ESTALE, "%s is no longer the same donor",
				      session->peer);
	if (weir_unload_tx_is(a->link) && weir_unload_tx_up(session, welcome, a->inline_max))
		return weir_error_set(a->error, -EPROTO, "%s offers no buffer for unloaded writes",
				      session->peer);
	if (a->link->number)
		return 0;
	if (welcome->message_max <= sizeof(struct wire_control_head) ||
	    wire_credit_init(&m->credit, WEIR_MESSAGE_RECVS, welcome->credits))
		return weir_error_set(a->error, -EPROTO, "%s takes no messages", session->peer);
	m->body_max = welcome->message_max - (uint32_t)sizeof(struct wire_control_head);
	if (m->body_max > WIRE_CONTROL_BODY_MAX)
		m->body_max = WIRE_CONTROL_BODY_MAX;
	return 0;
}

/* With nic->lock held, so that no thread gets events of the id before the link has it. */
static int link_up(struct weir_connect_attempt *a, const struct wire_handshake_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_link *link = a->link;
	int rc;

	if (link->state != WEIR_LINK_CLOSED && link->state != WEIR_LINK_BROKEN)
		return weir_error_set(a->error, -ECANCELED, "the session has ended");
	rc = check_welcome(a, welcome);
	if (rc)
		return rc;
	if (rdma_migrate_id(a->id, session->cm))
		return weir_error_set(a->error, -errno, "no connection manager");
	weir_window_tick(session->engine.window, weir_now_ns());
	/*
	 * An earlier QP of another session may have had the same number: its completions must not
	 * be mistaken.
	 */
	if (link->cq->scq)
		weir_links_poll(session, link->cq, weir_now_ns());
	rc = weir_engine_channel_up(&session->engine, link->number,
				    weir_unload_tx_is(link) ? WIRE_UNLOAD_SLOTS :
							      session->options.depth);
	if (rc)
		return weir_error_set(a->error, rc, "channel %u cannot come up: %s", link->number,
				      weir_strerror(rc));
	link->id = a->id;
	link->qp_num = a->qp->qp_num;
	link->recv_cq = a->own_cq;
	link->inline_max = a->inline_max;
	link->unsignalled = 0;
	link->state = WEIR_LINK_UP;
	if (link->number == session->nr_links)
		session->nr_links++;
	return 0;
}

/* All steps before the proof. Shared session state is only read. */
static int resolve_and_connect(struct weir_connect_attempt *a, const struct sockaddr *address)
{
	int rc = weir_connect_attempt_resolve(a, address);

	if (!rc)
		rc = check_device(a);
	if (!rc)
		rc = weir_session_attach_device(a->session, a->id->verbs, a->error);
	if (!rc)
		rc = create_qp(a);
	if (!rc)
		rc = post_recvs(a);
	if (!rc)
		rc = weir_connect_attempt_connect(a);
	return rc;
}

/*
 * A reconnecting attempt stuck on lost packets must leave time for the next, so it gets half of the
 * remaining time. The proof may take all: breaking the proof off tells the donor that the client
 * leaves.
 */
static uint64_t answer_deadline_ns(const struct weir_connect_attempt *a)
{
	uint64_t now_ns = weir_now_ns(), by_ns;

	if (!a->link->id || a->deadline_ns <= now_ns)
		return a->deadline_ns;
	by_ns = now_ns + (a->deadline_ns - now_ns) / 2 + ANSWER_NS_MIN;
	return by_ns < a->deadline_ns ? by_ns : a->deadline_ns;
}

static int attempt(struct weir_connect_attempt *a, const struct sockaddr *address,
		   struct weir_handshake *h)
{
	uint64_t deadline_ns = a->deadline_ns;
	int rc;

	a->deadline_ns = answer_deadline_ns(a);
	rc = resolve_and_connect(a, address);
	a->deadline_ns = deadline_ns;
	return rc ? rc : weir_connect_attempt_prove(a, h);
}

int weir_session_connect(struct weir_session *session, uint16_t number,
			 const struct sockaddr *address, uint64_t deadline_ns,
			 struct weir_error *error)
{
	struct weir_connect_attempt a = {
		.session = session,
		.link = &session->links[number],
		.deadline_ns = deadline_ns,
		.error = error,
	};
	struct rdma_cm_id *old = a.link->id;
	struct weir_handshake h;
	int rc;

	rc = attempt(&a, address, &h);
	if (!rc) {
		weir_session_lock(session);
		rc = link_up(&a, &h.welcome);
		weir_session_unlock(session);
	}
	if (rc) {
		weir_connect_attempt_fini(&a);
		return rc;
	}
	rdma_destroy_event_channel(a.cm);
	/*
	 * Only now: ending the old connection earlier would tell the donor that the client has
	 * left.
	 */
	if (old)
		rdma_destroy_id(old);
	return 0;
}
