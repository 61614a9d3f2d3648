/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The connection manager's part of an attempt, and the explanation of its errors. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

#include "lib/client/connect_attempt.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/conn/qp.h"

#define RETRY_COUNT 7 /* of the transport; the maximum */
#define RNR_RETRY_COUNT 6 /* credits make retries needless; 7 would mean for ever */
#define LISTEN_REJECT 8 /* IB spec, 12.6.7.2: invalid service id: no listener */
#define CANCEL_MS 20 /* poll interval for a closing session */

int weir_connect_attempt_check_time(const struct weir_connect_attempt *a)
{
	if (__atomic_load_n(&a->session->is_stopping, __ATOMIC_RELAXED))
		return weir_error_set(a->error, -ECANCELED, "the session is closed");
	if (weir_now_ns() < a->deadline_ns)
		return 0;
	return weir_error_set(a->error, -ETIMEDOUT, "%s did not answer in time", a->session->peer);
}

/* The connection manager reports either a negative errno, or, on a reject, a reason. */
static int explain_reject(const struct weir_connect_attempt *a, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct wire_handshake_refusal refusal;

	if (conn->private_data &&
	    !wire_handshake_refusal_decode(conn->private_data, conn->private_data_len, &refusal))
		return weir_handshake_refusal_explain(&refusal, a->error);
	if (event->status == LISTEN_REJECT || event->status == -ECONNREFUSED)
		return weir_error_set(a->error, -ECONNREFUSED, "nobody listens at %s",
				      a->session->peer);
	/* No resources, a full backlog, a stale connection: may pass. */
	return weir_error_set(a->error, -EAGAIN, "%s refused the connection for now, reason %d",
			      a->session->peer, event->status);
}

static int explain_disconnect(const struct weir_connect_attempt *a)
{
	return weir_error_set(a->error, -EPROTO,
			      "%s ended the connection during the proof of the key",
			      a->session->peer);
}

/* A donor may also reject a connection that it has accepted, until it receives the RTU. */
static int explain_event(const struct weir_connect_attempt *a, const struct rdma_cm_event *event,
			 enum rdma_cm_event_type wanted)
{
	const char *peer = a->session->peer;

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return wanted == RDMA_CM_EVENT_CONNECT_RESPONSE ? explain_reject(a, event) :
								  explain_disconnect(a);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return weir_error_set(a->error, event->status == -ENODEV ? -ENODEV : -EHOSTUNREACH,
				      "no verbs device reaches %s: %s", peer,
				      weir_strerror(event->status));
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return weir_error_set(a->error, -EHOSTUNREACH, "no route to %s: %s", peer,
				      weir_strerror(event->status));
	case RDMA_CM_EVENT_DISCONNECTED:
		return explain_disconnect(a);
	case RDMA_CM_EVENT_UNREACHABLE:
		return weir_error_set(a->error, -EHOSTUNREACH, "%s cannot be reached: %s", peer,
				      weir_strerror(event->status));
	default:
		return weir_error_set(a->error, -EHOSTUNREACH, "connecting to %s ended in %s", peer,
				      rdma_event_str(event->event));
	}
}

int weir_connect_attempt_get_event(const struct weir_connect_attempt *a,
				   enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	int rc;

	if (rdma_get_cm_event(a->cm, &event))
		return errno == EAGAIN ? 0 :
					 weir_error_set(a->error, -errno, "no connection manager");
	rc = event->event == wanted ? 1 : explain_event(a, event, wanted);
	rdma_ack_cm_event(event);
	return rc;
}

static int wait_event(const struct weir_connect_attempt *a, enum rdma_cm_event_type wanted)
{
	struct pollfd fd = { .fd = a->cm->fd, .events = POLLIN };
	int rc;

	while (!(rc = weir_connect_attempt_get_event(a, wanted))) {
		rc = weir_connect_attempt_check_time(a);
		if (rc)
			return rc;
		poll(&fd, 1, CANCEL_MS);
	}
	return rc < 0 ? rc : 0;
}

static int left_ms(const struct weir_connect_attempt *a)
{
	int ms = weir_poll_ms(a->deadline_ns);

	if (ms < 0)
		return INT_MAX;
	return ms > 0 ? ms : 1;
}

static int create_cm_id(struct weir_connect_attempt *a)
{
	a->cm = rdma_create_event_channel();
	if (!a->cm && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return weir_error_set(a->error, -ENOMEM, "no descriptors: %s",
				      weir_strerror(-errno));
	if (!a->cm)
		return weir_error_set(
			a->error, -ENODEV,
			"no RDMA device and no connection manager here: 'weir doctor' "
			"says what to do");
	return fcntl(a->cm->fd, F_SETFL, fcntl(a->cm->fd, F_GETFL) | O_NONBLOCK) ?
		       weir_error_set(a->error, -errno, "no connection manager") :
		       0;
}

int weir_connect_attempt_resolve(struct weir_connect_attempt *a, const struct sockaddr *address)
{
	int rc = create_cm_id(a);

	if (rc)
		return rc;
	if (rdma_create_id(a->cm, &a->id, a->link, RDMA_PS_TCP))
		return weir_error_set(a->error, -errno,
				      "the connection manager cannot create an id: %s",
				      weir_strerror(-errno));
	if (rdma_resolve_addr(a->id, NULL, (struct sockaddr *)address, left_ms(a)))
		return weir_error_set(a->error, errno == ENODEV ? -ENODEV : -EHOSTUNREACH,
				      "no verbs device reaches %s: %s", a->session->peer,
				      weir_strerror(-errno));
	rc = wait_event(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rc)
		return rc;
	if (!a->id->verbs)
		return weir_error_set(a->error, -ENODEV, "no verbs device reaches %s",
				      a->session->peer);
	if (rdma_resolve_route(a->id, left_ms(a)))
		return weir_error_set(a->error, -EHOSTUNREACH, "no route to %s: %s",
				      a->session->peer, weir_strerror(-errno));
	return wait_event(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int weir_connect_attempt_connect(const struct weir_connect_attempt *a)
{
	struct weir_session *session = a->session;
	struct wire_handshake_connect hello = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.channel = weir_unload_tx_channel(a->link),
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
	int rc = weir_qp_connect(a->id, a->qp, &param);

	if (rc)
		return weir_error_set(a->error, rc, "cannot connect to %s: %s", session->peer,
				      weir_strerror(rc));
	rc = wait_event(a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rc)
		return rc;
	rc = weir_qp_establish(a->id, a->qp);
	return rc ? weir_error_set(a->error, -EHOSTUNREACH, "cannot connect to %s: %s",
				   session->peer, weir_strerror(rc)) :
		    0;
}

void weir_connect_attempt_fini(struct weir_connect_attempt *a)
{
	if (a->qp) {
		rdma_disconnect(a->id);
		ibv_destroy_qp(a->qp);
		a->id->qp = NULL;
	}
	if (a->own_cq)
		ibv_destroy_cq(a->own_cq);
	if (a->id)
		rdma_destroy_id(a->id);
	if (a->cm)
		rdma_destroy_event_channel(a->cm);
}
