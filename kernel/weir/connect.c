// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection step by step. The connection manager finds a device and a route and connects; then
 * both ends prove the key over the new QP. Between steps the thread sleeps in link->wait, where the
 * end of the session can wake the thread.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "kernel/weir/connect.h"
#include "kernel/weir/session.h"

#define RETRY_COUNT 7 /* the largest value; Soft-RoCE takes 7 as "for ever" */
#define NOTHING_NEW (-1)
#define ATTEMPTS 4 /* attempts within a reconnect's time: packet loss may stall one attempt */

/* State of one attempt to connect. */
struct connect_attempt {
	struct kweir_session *session;
	struct kweir_conn *conn;
	u64 deadline_ns;
	struct kweir_error *error;
	u8 cookie[WIRE_COOKIE]; /* of the donor's refusal, to bring back */
	struct wire_handshake_versions versions; /* of the protocol, that this end speaks */
	u16 version, offered; /* to ask for, and in the donor's refusal */
};

static ushort newest_version = WIRE_VERSION;
module_param(newest_version, ushort, 0600);
MODULE_PARM_DESC(newest_version, "newest version of the protocol to ask for; for tests only");

static unsigned int left_ms(const struct connect_attempt *a)
{
	u64 now_ns = ktime_get_ns();

	return a->deadline_ns <= now_ns ? 1 : (a->deadline_ns - now_ns) / NSEC_PER_MSEC + 1;
}

/* The connection has ended. If the link has published @conn, the session must learn of the loss. */
static void lost(struct kweir_conn *conn, bool device_goes)
{
	struct kweir_session *session = conn->link->session;

	WRITE_ONCE(conn->gone, true);
	if (!session->nic)
		return;
	kweir_nic_lock(session->nic);
	if (device_goes)
		kweir_session_lose(session, -ENODEV);
	if (conn->link->conn == conn)
		kweir_link_fail(conn->link);
	kweir_nic_unlock(session->nic);
}

/* Context: a work of the connection manager, which ends before the id does. */
static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kweir_conn *conn = id->context;
	const struct rdma_conn_param *said = &event->param.conn;

	if (event->event == RDMA_CM_EVENT_REJECTED)
		wire_handshake_reject_decode(said->private_data, said->private_data_len,
					     &conn->reject);
	conn->heard_status = event->status;
	smp_store_release(&conn->heard, event->event); /* pairs with the acquire in has_heard() */
	if (event->event == RDMA_CM_EVENT_DISCONNECTED ||
	    event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		lost(conn, event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
	wake_up(&conn->link->wait);
	return 0;
}

static int explain_reject(const struct connect_attempt *a)
{
	const struct kweir_conn *conn = a->conn;
	const char *reason = rdma_reject_msg(conn->id, conn->heard_status);

	if (conn->reject.refusal.head.magic)
		return kweir_handshake_refusal_explain(&conn->reject.refusal, a->version,
						       a->session->peer, a->error);
	if (conn->heard_status == IB_CM_REJ_INVALID_SERVICE_ID)
		return kweir_fail(a->error, -ECONNREFUSED,
				  "nobody listens at %s: does 'weir serve' run there?",
				  a->session->peer);
	return kweir_fail(a->error, -EAGAIN, "%s refused the connection for now: %s",
			  a->session->peer, reason);
}

/*
 * The route leads to no RDMA device. A session that has had a device waits for the route to come
 * back, because a link that is down removes the route. The removal of a device is reported
 * separately.
 */
static int explain_route(const struct connect_attempt *a, int status)
{
	bool is_final = status == -ENODEV && !a->session->nic;

	return kweir_fail(a->error, is_final ? -ENODEV : -EHOSTUNREACH,
			  "no RDMA device reaches %s (%d)", a->session->peer, status);
}

static int explain_event(const struct connect_attempt *a)
{
	const char *peer = a->session->peer;
	int heard = a->conn->heard, status = a->conn->heard_status;

	switch (heard) {
	case RDMA_CM_EVENT_REJECTED:
		return explain_reject(a);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return explain_route(a, status);
	case RDMA_CM_EVENT_DISCONNECTED:
		return kweir_fail(a->error, -EPROTO,
				  "%s ended the connection during the proof of the key", peer);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return kweir_fail(a->error, -ENODEV, "the device has been removed");
	default:
		return kweir_fail(a->error, -EHOSTUNREACH, "%s cannot be reached: %s (%d)", peer,
				  rdma_event_msg(heard), status);
	}
}

static int explain_wait(const struct connect_attempt *a, long left)
{
	if (!kweir_session_may_reconnect(a->session))
		return kweir_fail(a->error, -ECANCELED, "the session has ended");
	if (left < 0)
		return kweir_fail(a->error, -EINTR, "interrupted");
	return kweir_fail(a->error, -ETIMEDOUT, "%s did not answer in time", a->session->peer);
}

static bool is_over(const struct connect_attempt *a)
{
	return !kweir_session_may_reconnect(a->session);
}

static bool has_heard(const struct kweir_conn *conn)
{
	/* Pairs with the release in cm_event(): the fields of the event are visible after @heard.
	 */
	return smp_load_acquire(&conn->heard) != NOTHING_NEW;
}

/* Waits until the connection manager reports @wanted or any other event. */
static int wait_event_of(const struct connect_attempt *a, enum rdma_cm_event_type wanted)
{
	struct kweir_conn *conn = a->conn;
	long left;

	left = wait_event_interruptible_timeout(conn->link->wait, has_heard(conn) || is_over(a),
						msecs_to_jiffies(left_ms(a)));
	if (conn->heard == NOTHING_NEW || is_over(a))
		return explain_wait(a, left);
	return conn->heard == wanted ? 0 : explain_event(a);
}

static int resolve(struct connect_attempt *a)
{
	struct kweir_conn *conn = a->conn;
	struct rdma_cm_id *id = rdma_create_id(&init_net, cm_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	int rc;

	if (IS_ERR(id))
		return kweir_fail(a->error, PTR_ERR(id), "the connection manager gives no id (%ld)",
				  PTR_ERR(id));
	conn->id = id;
	conn->heard = NOTHING_NEW;
	rc = rdma_resolve_addr(id, NULL, (struct sockaddr *)&a->session->donor, left_ms(a));
	if (rc)
		return explain_route(a, rc);
	rc = wait_event_of(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rc)
		return rc;
	conn->heard = NOTHING_NEW;
	rc = rdma_resolve_route(id, left_ms(a));
	if (rc)
		return kweir_fail(a->error, -EHOSTUNREACH, "no route to %s (%d)", a->session->peer,
				  rc);
	return wait_event_of(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int post_recvs(const struct connect_attempt *a)
{
	struct kweir_conn *conn = a->conn;
	int i, rc = 0;

	for (i = 0; !rc && i < WIRE_HANDSHAKE_RECVS; i++) {
		struct ib_sge sge = {
			.addr = conn->dma + i * sizeof(*conn->buffers),
			.length = sizeof(*conn->buffers),
			.lkey = a->session->nic->pd->local_dma_lkey,
		};
		const struct ib_recv_wr wr = {
			.wr_id = KWEIR_CONN_RECEIVED + i,
			.sg_list = &sge,
			.num_sge = 1,
		};

		rc = ib_post_recv(conn->id->qp, &wr, NULL);
	}
	if (!rc && !conn->link->number)
		rc = kweir_control_post(&a->session->control, conn);
	return rc;
}

static int prepare_qp(const struct connect_attempt *a)
{
	int rc = kweir_session_attach(a->session, a->conn->id->device, a->error);

	if (rc)
		return rc;
	rc = kweir_conn_make_buffers(a->conn);
	if (!rc)
		rc = kweir_conn_make_qp(a->conn);
	if (!rc)
		rc = post_recvs(a);
	return rc ? kweir_fail(a->error, rc, "no queue pair of depth %u (%d)",
			       a->session->options.depth, rc) :
		    0;
}

static int connect_qp(const struct connect_attempt *a)
{
	struct kweir_session *session = a->session;
	struct wire_handshake_connect connect = {
		.magic = WIRE_MAGIC,
		.version = a->version,
		.channel = a->conn->link->number,
		.session_id = session->id,
		.key_id = session->secret.key_id,
	};
	struct rdma_conn_param param = {
		.private_data = &connect,
		.private_data_len = sizeof(connect),
		.responder_resources = session->nic->rd_atomic,
		.initiator_depth = session->nic->rd_atomic,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = WEIR_CREDIT_RNR_RETRIES,
	};
	int rc;

	memcpy(connect.cookie, a->cookie, sizeof(connect.cookie));
	a->conn->heard = NOTHING_NEW;
	rc = rdma_connect(a->conn->id, &param);
	if (rc)
		return kweir_fail(a->error, rc, "cannot connect to %s (%d)", session->peer, rc);
	return wait_event_of(a, RDMA_CM_EVENT_ESTABLISHED);
}

/* The addresses of both ends of the QP, as the verbs report them. */
static int query_ends(const struct kweir_conn *conn, struct weir_endpoint *local,
		      struct weir_endpoint *remote)
{
	struct ib_qp *qp = conn->id->qp;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	union ib_gid sgid, dgid;
	int rc;

	rc = ib_query_qp(qp, &attr, IB_QP_AV | IB_QP_DEST_QPN | IB_QP_PORT, &init);
	if (rc)
		return rc;
	if (rdma_ah_get_ah_flags(&attr.ah_attr) & IB_AH_GRH) {
		const struct ib_global_route *route = rdma_ah_read_grh(&attr.ah_attr);

		dgid = route->dgid;
		rc = rdma_query_gid(conn->id->device, conn->id->port_num, route->sgid_index, &sgid);
		if (rc)
			return rc;
	} else {
		/* Within an InfiniBand subnet the QP knows only LIDs; the path record has the GIDs.
		 */
		rdma_addr_get_sgid(&conn->id->route.addr.dev_addr, &sgid);
		rdma_addr_get_dgid(&conn->id->route.addr.dev_addr, &dgid);
	}
	memcpy(local->gid, sgid.raw, WIRE_GID);
	memcpy(remote->gid, dgid.raw, WIRE_GID);
	local->qpn = qp->qp_num;
	remote->qpn = attr.dest_qp_num;
	return 0;
}

/* @buffer: index of the send buffer that holds the message. */
static int send_message(const struct connect_attempt *a, unsigned int buffer, size_t length)
{
	struct kweir_conn *conn = a->conn;
	struct ib_sge sge = {
		.addr = conn->dma + buffer * sizeof(*conn->buffers),
		.length = length,
		.lkey = a->session->nic->pd->local_dma_lkey,
	};
	const struct ib_send_wr wr = {
		.wr_id = KWEIR_CONN_SENT,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int rc;

	ib_dma_sync_single_for_device(conn->id->device, sge.addr, length, DMA_TO_DEVICE);
	rc = ib_post_send(conn->id->qp, &wr, NULL);
	return rc ? kweir_fail(a->error, rc, "cannot send to %s (%d)", a->session->peer, rc) : 0;
}

static bool has_received(const struct kweir_conn *conn, unsigned int number)
{
	/* Pairs with the release in handshake_received(): the length is visible after @nr_received.
	 */
	return smp_load_acquire(&conn->nr_received) > number;
}

/* Waits until handshake message @number has arrived. */
static int wait_message(const struct connect_attempt *a, unsigned int number)
{
	struct kweir_conn *conn = a->conn;
	long left;

	left = wait_event_interruptible_timeout(conn->link->wait,
						has_received(conn, number) ||
							READ_ONCE(conn->failed) ||
							READ_ONCE(conn->gone) || is_over(a),
						msecs_to_jiffies(left_ms(a)));
	/* A donor may give a reason before closing the connection: a message goes before a
	 * disconnect. */
	if (has_received(conn, number)) {
		ib_dma_sync_single_for_cpu(conn->id->device,
					   conn->dma + number * sizeof(*conn->buffers),
					   sizeof(*conn->buffers), DMA_FROM_DEVICE);
		return 0;
	}
	if (conn->failed || conn->gone)
		return kweir_fail(a->error, -EPROTO,
				  "%s ended the connection during the proof of the key",
				  a->session->peer);
	return explain_wait(a, left);
}

static int prove(const struct connect_attempt *a, struct weir_handshake *h)
{
	struct kweir_session *session = a->session;
	struct kweir_conn *conn = a->conn;
	struct weir_handshake_setup setup = {
		/* IPv6 has its port at the same place. */
		.service = { WIRE_MAGIC,
			     be16_to_cpu(((struct sockaddr_in *)&session->donor)->sin_port) },
		.session_id = session->id,
		.channel = conn->link->number,
		.credits = KWEIR_CONTROL_RECVS,
		.version = a->version,
		.version_max = a->versions.max,
	};
	unsigned int i;
	size_t length;
	int rc;

	rc = query_ends(conn, &setup.local, &setup.remote);
	if (rc)
		return kweir_fail(a->error, rc, "cannot query the queue pair (%d)", rc);
	kweir_handshake_secrets(&setup, &session->secret);
	weir_handshake_client(h, &setup, conn->buffers[WIRE_HANDSHAKE_RECVS].data, &length);
	for (i = 0; i < WIRE_HANDSHAKE_RECVS && length; i++) {
		rc = send_message(a, WIRE_HANDSHAKE_RECVS + i, length);
		if (!rc)
			rc = wait_message(a, i);
		if (!rc)
			rc = kweir_handshake_input(h, session->peer, conn->buffers[i].data,
						   conn->received[i],
						   conn->buffers[WIRE_HANDSHAKE_RECVS + 1].data,
						   &length, a->error);
		if (rc)
			return rc;
	}
	return h->state == WEIR_HANDSHAKE_DONE ?
		       0 :
		       kweir_fail(a->error, -EPROTO, "the handshake did not end");
}

static int run(struct connect_attempt *a, struct weir_handshake *h)
{
	int rc = resolve(a);

	if (!rc)
		rc = prepare_qp(a);
	if (!rc)
		rc = connect_qp(a);
	return rc ? rc : prove(a, h);
}

/* @a->conn is a new connection; or NULL after a failure. */
static int run_anew(struct connect_attempt *a, struct kweir_link *link, struct weir_handshake *h)
{
	int rc;

	a->conn = kzalloc(sizeof(*a->conn), GFP_KERNEL);
	if (!a->conn)
		return kweir_fail(a->error, -ENOMEM, "out of memory");
	a->conn->link = link;
	rc = run(a, h);
	if (rc) {
		memcpy(a->cookie, a->conn->reject.cookie, sizeof(a->cookie));
		a->offered = a->conn->reject.refusal.head.version;
		kweir_conn_free(a->conn);
		a->conn = NULL;
	}
	return rc;
}

/* A donor under load wants its cookie back; an old one wants an older version. */
static bool tries_again(struct connect_attempt *a, int rc, bool *had_cookie)
{
	u16 version;

	if (rc == -EAGAIN && wire_handshake_has_cookie(a->cookie) && !*had_cookie) {
		*had_cookie = true;
		return true;
	}
	if (rc != -EPROTONOSUPPORT)
		return false;
	version = wire_handshake_next_version(&a->versions, a->version, a->offered);
	if (version)
		a->version = version;
	return version;
}

int kweir_conn_open(struct kweir_link *link, struct kweir_conn **conn,
		    struct wire_handshake_welcome *welcome, struct kweir_error *error)
{
	bool is_first = link->core.state == WEIR_LINK_CLOSED;
	struct connect_attempt a = {
		.session = link->session,
		.deadline_ns = ktime_get_ns() +
			       div_u64(link->session->timeout_ns, is_first ? 1 : ATTEMPTS),
		.error = error,
		.versions = { WIRE_VERSION_MIN, READ_ONCE(newest_version) },
	};
	struct weir_handshake handshake = { 0 };
	bool had_cookie = false;
	int rc;

	a.version = a.versions.max;
	do
		rc = run_anew(&a, link, &handshake);
	while (tries_again(&a, rc, &had_cookie));
	weir_handshake_fini(&handshake);
	if (rc)
		return rc;
	*conn = a.conn;
	*welcome = handshake.welcome;
	return 0;
}
