/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bringing up one channel, for the first time or again: the connection manager resolves and
 * connects, then both ends prove the key over the new QP (lib/handshake.h). It blocks, with
 * a deadline, and touches nothing that others use until it has succeeded: it has an event
 * channel of its own, and looks for the few messages of the handshake in naps, because events
 * of CQs are for whoever drives the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/endpoint.h"
#include "lib/error.h"
#include "lib/handshake.h"
#include "lib/session.h"

#define RETRY_COUNT 7 /* of the transport, the most there is */
#define RNR_RETRY_COUNT 6 /* credits make it needless; 7 would mean for ever */
#define LISTEN_REJECT 8 /* IB spec, 12.6.7.2: invalid service id, that is nobody listens */

#define NAP_US 50
#define CANCEL_MS 20 /* how soon a session that closes is noticed */

/**
 * struct attempt - what every step needs
 * @cm: where the connection manager speaks of @id
 * @id, @cq, @recv_cq, @inline_max: become the link's
 */
struct attempt {
	struct weir_session *session;
	struct weir_link *link;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_cq *cq, *recv_cq;
	uint32_t inline_max;
	uint64_t deadline_ns;
	struct weir_error *error;
};

/* Return: 0, or why there is no point in going on. */
static int check_time(const struct attempt *a)
{
	if (__atomic_load_n(&a->session->stopping, __ATOMIC_RELAXED))
		return weir_fail(a->error, -ECANCELED, "the session is closed");
	if (weir_now_ns() < a->deadline_ns)
		return 0;
	return weir_fail(a->error, -ETIMEDOUT, "%s did not answer in time", a->session->peer);
}

/* The connection manager reports either a negative errno, or, on a reject, a reason. */
static int explain_reject(const struct attempt *a, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct wire_refusal refusal;

	if (conn->private_data &&
	    !wire_refusal_decode(conn->private_data, conn->private_data_len, &refusal))
		return weir_refusal_explain(&refusal, a->error);
	if (event->status == LISTEN_REJECT || event->status == -ECONNREFUSED)
		return weir_fail(a->error, -ECONNREFUSED, "nobody listens at %s",
				 a->session->peer);
	return weir_fail(a->error, -ECONNREFUSED, "%s refused the connection, reason %d",
			 a->session->peer, event->status);
}

static int explain_event(const struct attempt *a, const struct rdma_cm_event *event)
{
	const char *peer = a->session->peer;

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return explain_reject(a, event);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return weir_fail(a->error, event->status == -ENODEV ? -ENODEV : -EHOSTUNREACH,
				 "no verbs device reaches %s: %s", peer,
				 weir_strerror(event->status));
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return weir_fail(a->error, -EHOSTUNREACH, "no route to %s: %s", peer,
				 weir_strerror(event->status));
	case RDMA_CM_EVENT_DISCONNECTED:
		return weir_fail(a->error, -EPROTO,
				 "%s ended the connection during the proof of the key", peer);
	case RDMA_CM_EVENT_UNREACHABLE:
		return weir_fail(a->error, -EHOSTUNREACH, "%s cannot be reached: %s", peer,
				 weir_strerror(event->status));
	default:
		return weir_fail(a->error, -EHOSTUNREACH, "connecting to %s ended in %s", peer,
				 rdma_event_str(event->event));
	}
}

/* Takes one event. Return: 1 what was waited for; 0 there is none; or an error. */
static int take_event(const struct attempt *a, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	int rc;

	if (rdma_get_cm_event(a->cm, &event))
		return errno == EAGAIN ? 0 : weir_fail(a->error, -errno, "no connection manager");
	rc = event->event == wanted ? 1 : explain_event(a, event);
	rdma_ack_cm_event(event);
	return rc;
}

static int wait_event(const struct attempt *a, enum rdma_cm_event_type wanted)
{
	struct pollfd fd = { .fd = a->cm->fd, .events = POLLIN };
	int rc;

	while (!(rc = take_event(a, wanted))) {
		rc = check_time(a);
		if (rc)
			return rc;
		poll(&fd, 1, CANCEL_MS);
	}
	return rc < 0 ? rc : 0;
}

static int left_ms(const struct attempt *a)
{
	int ms = weir_poll_ms(a->deadline_ns);

	return ms > 0 ? ms : 1;
}

static int resolve(struct attempt *a, const struct sockaddr *address)
{
	int rc;

	if (rdma_create_id(a->cm, &a->id, a->link, RDMA_PS_TCP))
		return weir_fail(a->error, -errno, "the connection manager gives no id: %s",
				 weir_strerror(-errno));
	if (rdma_resolve_addr(a->id, NULL, (struct sockaddr *)address, left_ms(a)))
		return weir_fail(a->error, errno == ENODEV ? -ENODEV : -EHOSTUNREACH,
				 "no verbs device reaches %s: %s", a->session->peer,
				 weir_strerror(-errno));
	rc = wait_event(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rc)
		return rc;
	if (!a->id->verbs)
		return weir_fail(a->error, -ENODEV, "no verbs device reaches %s", a->session->peer);
	if (rdma_resolve_route(a->id, left_ms(a)))
		return weir_fail(a->error, -EHOSTUNREACH, "no route to %s: %s", a->session->peer,
				 weir_strerror(-errno));
	return wait_event(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int check_device(const struct attempt *a)
{
	const char *wanted = a->session->options.device;
	const char *device = ibv_get_device_name(a->id->verbs->device);

	if (!wanted || !strcmp(wanted, device))
		return 0;
	return weir_fail(a->error, -ENODEV, "the route to %s goes by device %s, not by %s",
			 a->session->peer, device, wanted);
}

/* With as much inline data as the device gives: what is too much for it, it refuses. */
static int create_qp_inline(struct attempt *a, struct ibv_qp_init_attr *attr)
{
	static const uint32_t sizes[] = { 256, 128, 64, 0 };
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr asked = *attr;

		asked.cap.max_inline_data = sizes[i];
		if (rdma_create_qp(a->id, a->session->nic->pd, &asked))
			continue;
		a->inline_max = asked.cap.max_inline_data;
		return 0;
	}
	return -errno;
}

/* Channel 0 has its messages' buffers and CQ besides. */
static int create_qp(struct attempt *a)
{
	struct weir_session *session = a->session;
	struct weir_link *link = a->link;
	unsigned int recvs = WIRE_HANDSHAKE_RECVS + (link->number ? 0 : WEIR_MESSAGE_RECVS);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = session->options.depth + WEIR_HANDSHAKE_SENDS, .max_recv_wr = recvs,
			 .max_send_sge = session->nic->sge_max, .max_recv_sge = 1 },
	};

	a->cq = ibv_create_cq(session->nic->context,
			      (int)session->options.depth + WEIR_HANDSHAKE_SENDS +
				      WIRE_HANDSHAKE_RECVS,
			      NULL, session->comp, 0);
	if (!a->cq)
		return weir_fail(a->error, -errno, "no completion queue of %u: %s",
				 session->options.depth, weir_strerror(-errno));
	a->recv_cq = link->number ? a->cq : session->recv_cq;
	attr.send_cq = a->cq;
	attr.recv_cq = a->recv_cq;
	if (create_qp_inline(a, &attr))
		return weir_fail(a->error, -errno, "no queue pair of depth %u: %s",
				 session->options.depth, weir_strerror(-errno));
	return 0;
}

static int post_recvs(const struct attempt *a)
{
	struct weir_handshake_buffers *buffers =
		weir_messages_handshake(a->session, a->link->number);
	int i, rc = 0;

	for (i = 0; !rc && i < WIRE_HANDSHAKE_RECVS; i++) {
		struct ibv_sge sge = { (uintptr_t)buffers->recvs[i], WIRE_HANDSHAKE_MAX,
				       a->session->messages.mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = i + 1, .sg_list = &sge, .num_sge = 1 };

		rc = -ibv_post_recv(a->id->qp, &wr, &bad);
	}
	if (!rc && !a->link->number)
		rc = weir_messages_post(a->session, a->id->qp);
	return rc ? weir_fail(a->error, rc, "cannot post receive buffers: %s", weir_strerror(rc)) :
		    0;
}

static int connect_qp(const struct attempt *a)
{
	struct weir_session *session = a->session;
	struct wire_connect hello = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.channel = a->link->number,
		.session_id = session->id,
		.key_id = weir_key_id(session->options.key),
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.responder_resources = session->nic->rd_atomic,
		.initiator_depth = session->nic->rd_atomic,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
	};

	if (rdma_connect(a->id, &param))
		return weir_fail(a->error, -errno, "cannot connect to %s: %s", session->peer,
				 weir_strerror(-errno));
	return wait_event(a, RDMA_CM_EVENT_ESTABLISHED);
}

static int send_handshake(const struct attempt *a, const void *message, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)message, (uint32_t)length,
			       a->session->messages.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int rc = -ibv_post_send(a->id->qp, &wr, &bad);

	return rc ? weir_fail(a->error, rc, "cannot send to %s: %s", a->session->peer,
			      weir_strerror(rc)) :
		    0;
}

/*
 * One completion of the handshake; the CQ of messages may still hold some of an earlier QP.
 * Return: 1 a message, in @wc; 0 none yet; or an error.
 */
static int poll_handshake(const struct attempt *a, struct ibv_wc *wc)
{
	struct ibv_wc sent;

	if (a->cq != a->recv_cq)
		ibv_poll_cq(a->cq, 1, &sent); /* what failed is flushed on the other, too */
	while (ibv_poll_cq(a->recv_cq, 1, wc) > 0) {
		if (wc->qp_num != a->id->qp->qp_num)
			continue;
		if (wc->status != IBV_WC_SUCCESS)
			return weir_fail(a->error, -EPROTO,
					 "%s ended the connection during the proof of the key",
					 a->session->peer);
		if (wc->wr_id)
			return 1;
	}
	return 0;
}

/* A donor that cuts the connection may have said why: its last message counts more. */
static int wait_handshake(const struct attempt *a, struct ibv_wc *wc)
{
	int rc;

	while (!(rc = poll_handshake(a, wc))) {
		rc = take_event(a, RDMA_CM_EVENT_TIMEWAIT_EXIT);
		if (rc < 0)
			return poll_handshake(a, wc) > 0 ? 0 : rc;
		rc = check_time(a);
		if (rc)
			return rc;
		usleep(NAP_US);
	}
	return rc < 0 ? rc : 0;
}

static int begin_handshake(const struct attempt *a, struct weir_handshake *h, void *out,
			   size_t *out_length)
{
	struct weir_handshake_setup setup = {
		.key = a->session->options.key,
		.session_id = a->session->id,
		.channel = a->link->number,
		.credits = WEIR_MESSAGE_RECVS,
	};
	int rc = weir_endpoint_query(a->id, &setup.local, &setup.remote);

	if (rc)
		return weir_fail(a->error, rc, "cannot query the queue pair: %s",
				 weir_strerror(rc));
	weir_nonce(setup.nonce);
	weir_handshake_client(h, &setup, out, out_length);
	return 0;
}

static int handshake(const struct attempt *a, struct weir_handshake *h)
{
	struct weir_handshake_buffers *buffers =
		weir_messages_handshake(a->session, a->link->number);
	struct ibv_wc wc;
	size_t length;
	int i, rc;

	rc = begin_handshake(a, h, buffers->sends[0], &length);
	for (i = 0; !rc && i < WEIR_HANDSHAKE_SENDS; i++) {
		rc = send_handshake(a, buffers->sends[i], length);
		if (!rc)
			rc = wait_handshake(a, &wc);
		if (rc)
			return rc;
		rc = weir_handshake_input(h, buffers->recvs[wc.wr_id - 1], wc.byte_len,
					  buffers->sends[i + 1], &length);
		if (rc)
			return weir_fail(a->error, rc, "%s: %s", a->session->peer, h->error.text);
	}
	return rc;
}

/* What the donor says when it lets channel 0 in for the first time counts for the session. */
static int meet(struct weir_session *session, const struct wire_welcome *welcome)
{
	session->id = welcome->session_id;
	session->incarnation = welcome->incarnation;
	session->quota_bytes = welcome->quota_bytes;
	return 0;
}

/* Credits begin anew with each channel 0. */
static int agree(const struct attempt *a, const struct wire_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_messages *m = &session->messages;

	if (!session->id)
		meet(session, welcome);
	if (welcome->session_id != session->id || welcome->incarnation != session->incarnation)
		return weir_fail(a->error, -ESTALE, "%s is not the donor it was", session->peer);
	if (a->link->number)
		return 0;
	if (welcome->message_max <= sizeof(struct wire_head) ||
	    wire_credit_init(&m->credit, WEIR_MESSAGE_RECVS, welcome->credits))
		return weir_fail(a->error, -EPROTO, "%s takes no messages", session->peer);
	m->body_max = welcome->message_max - (uint32_t)sizeof(struct wire_head);
	if (m->body_max > WIRE_BODY_MAX)
		m->body_max = WIRE_BODY_MAX;
	return 0;
}

/* With nic->lock held. From here on the channel is everybody's. */
static int link_up(struct attempt *a, const struct wire_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_link *link = a->link;
	int rc;

	if (link->state != WEIR_LINK_CLOSED && link->state != WEIR_LINK_BROKEN)
		return weir_fail(a->error, -ECANCELED, "the session has ended");
	rc = agree(a, welcome);
	if (rc)
		return rc;
	rc = weir_engine_channel_up(&session->engine, link->number, session->options.depth);
	if (rc)
		return weir_fail(a->error, rc, "channel %u cannot come up: %s", link->number,
				 weir_strerror(rc));
	link->id = a->id;
	link->cq = a->cq;
	link->recv_cq = a->recv_cq;
	link->inline_max = a->inline_max;
	link->unsignalled = 0;
	link->state = WEIR_LINK_UP;
	if (link->number == session->nr_links)
		session->nr_links++;
	return 0;
}

static int begin(struct attempt *a)
{
	a->cm = rdma_create_event_channel();
	if (!a->cm)
		return weir_fail(a->error, -ENODEV,
				 "no RDMA device and no connection manager here: 'weir doctor' "
				 "says what to do");
	return fcntl(a->cm->fd, F_SETFL, fcntl(a->cm->fd, F_GETFL) | O_NONBLOCK) ?
		       weir_fail(a->error, -errno, "no connection manager") :
		       0;
}

static void undo(struct attempt *a)
{
	if (a->id && a->id->qp) {
		rdma_disconnect(a->id);
		rdma_destroy_qp(a->id);
	}
	if (a->cq)
		ibv_destroy_cq(a->cq);
	if (a->id)
		rdma_destroy_id(a->id);
	if (a->cm)
		rdma_destroy_event_channel(a->cm);
}

/* Up to the proof. What is there already of the session is for use, and not changed. */
static int prove(struct attempt *a, const struct sockaddr *address, struct weir_handshake *h)
{
	int rc = begin(a);

	if (!rc)
		rc = resolve(a, address);
	if (!rc)
		rc = check_device(a);
	if (!rc)
		rc = weir_session_attach(a->session, a->id->verbs, a->error);
	if (!rc)
		rc = create_qp(a);
	if (!rc)
		rc = post_recvs(a);
	if (!rc)
		rc = connect_qp(a);
	return rc ? rc : handshake(a, h);
}

int weir_session_connect(struct weir_session *session, uint16_t number,
			 const struct sockaddr *address, uint64_t deadline_ns,
			 struct weir_error *error)
{
	struct attempt a = {
		.session = session,
		.link = &session->links[number],
		.deadline_ns = deadline_ns,
		.error = error,
	};
	struct rdma_cm_id *old = a.link->id;
	struct weir_handshake h;
	int rc;

	rc = prove(&a, address, &h);
	if (!rc && rdma_migrate_id(a.id, session->cm))
		rc = weir_fail(error, -errno, "no connection manager");
	if (!rc) {
		weir_session_lock(session);
		rc = link_up(&a, &h.welcome);
		weir_session_unlock(session);
	}
	if (rc) {
		undo(&a);
		return rc;
	}
	rdma_destroy_event_channel(a.cm);
	/* Only now: an end of the old connection would tell the donor that we have left. */
	if (old)
		rdma_destroy_id(old);
	return 0;
}

void weir_session_retire(struct weir_session *session, uint16_t number)
{
	struct weir_link *link = &session->links[number];
	struct ibv_cq *cq = link->cq;
	struct ibv_wc wc;

	link->cq = NULL;
	link->armed = false;
	weir_session_unlock(session);
	if (link->id && link->id->qp)
		rdma_destroy_qp(link->id);
	if (cq)
		ibv_destroy_cq(cq);
	weir_session_lock(session);
	while (!number && session->recv_cq && ibv_poll_cq(session->recv_cq, 1, &wc) > 0)
		; /* flushed receives: their buffers are free */
}

void weir_session_disconnect(struct weir_session *session, uint16_t number)
{
	struct weir_link *link = &session->links[number];

	if (link->id)
		rdma_disconnect(link->id);
	if (!session->nic)
		return; /* and no QP */
	weir_session_lock(session);
	weir_session_retire(session, number);
	link->state = WEIR_LINK_CLOSED;
	weir_session_unlock(session);
}

void weir_session_hear(struct weir_session *session)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(session->cm, &event)) {
		struct weir_link *link = event->id->context;
		enum rdma_cm_event_type type = event->event;
		bool is_current = event->id == link->id;

		rdma_ack_cm_event(event);
		if (is_current && (type == RDMA_CM_EVENT_DISCONNECTED ||
				   type == RDMA_CM_EVENT_DEVICE_REMOVAL))
			weir_link_fail(link);
	}
}
