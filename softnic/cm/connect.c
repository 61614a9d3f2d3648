// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The user's calls that make and end a connection.
 *
 * If no listener answers, rdma_connect() retries for a moment before the rejection. On a network
 * the earlier steps take about as long, and programs depend on the delay: perftest's server closes
 * and reopens the listener while the client is connecting.
 */
#include <string.h>

#include "cm.h"
#include "event.h"
#include "softnic/cm_far/cm_far.h"

enum {
	REFUSED_MS = 300,
	TRY_AGAIN_MS = 5,
	RETRY_COUNT_MAX = 7,
};

/* Context: without cm_lock; the id's state keeps other threads away. */
static int read_param(struct cm_id *id, const struct rdma_conn_param *param, struct cm_msg *msg)
{
	const struct rdma_conn_param defaults = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRY_COUNT_MAX,
		.rnr_retry_count = RETRY_COUNT_MAX,
	};
	size_t len = param && param->private_data ? param->private_data_len : 0;
	struct ibv_qp *qp = id->id.qp;

	if (!param && !qp && !cm_id_is_datagram(id))
		return -EINVAL;
	if (!param)
		param = &defaults;
	if (msg->private_len + len > cm_msg_private_max(msg->type))
		return -EINVAL;
	if (len)
		memcpy(msg->private_data + msg->private_len, param->private_data, len);
	msg->private_len += len;
	msg->responder_resources = param->responder_resources;
	msg->initiator_depth = param->initiator_depth;
	msg->retry_count = cm_min(param->retry_count, RETRY_COUNT_MAX);
	msg->rnr_retry_count = cm_min(param->rnr_retry_count, RETRY_COUNT_MAX);
	msg->flow_control = param->flow_control;
	msg->traffic_class = id->path.traffic_class;
	msg->mtu = id->is_far ? id->path.mtu : 0;
	msg->psn = id->psn;
	msg->qp_num = (qp ? qp->qp_num : param->qp_num) & 0xffffff;
	msg->srq = qp ? !!qp->srq : !!param->srq;
	msg->ece_vendor = id->local_ece.vendor_id;
	msg->ece_options = id->local_ece.options;
	return 0;
}

/* RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH have one value and ask for the maximum. */
static int negotiate(uint8_t *resources, uint8_t asked, uint8_t most, uint8_t device_max)
{
	if (asked != RDMA_MAX_RESP_RES && asked > device_max)
		return -EINVAL;
	*resources = asked == RDMA_MAX_RESP_RES ? cm_min(most, device_max) : asked;
	return 0;
}

/* Negotiate the reads that the QP serves and issues, within @served, @issued and the device. */
static int negotiate_depths(struct cm_id *id, struct cm_msg *msg, uint8_t served, uint8_t issued)
{
	const struct cm_device *device;
	int rc = cm_device_get(&device);

	if (!rc)
		rc = negotiate(&id->responder_resources, msg->responder_resources, served,
			       device->responder_resources_max);
	if (!rc)
		rc = negotiate(&id->initiator_depth, msg->initiator_depth, issued,
			       device->initiator_depth_max);
	msg->responder_resources = id->responder_resources;
	msg->initiator_depth = id->initiator_depth;
	return rc;
}

/* No listener: push the event that a remote host's CM would cause. */
static void fail_connect(struct cm_id *id, int rc)
{
	const struct cm_msg refusal = { .type = CM_MSG_REJ };

	cm_id_set_state(id, CM_CLOSED);
	if (rc == -ECONNREFUSED && cm_id_is_datagram(id))
		cm_event_push(id, id, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_UNSUPPORTED, NULL);
	else if (rc == -ECONNREFUSED)
		cm_event_push(id, id, RDMA_CM_EVENT_REJECTED, CM_REASON_INVALID_SERVICE_ID,
			      &refusal);
	else
		cm_event_push(id, id, RDMA_CM_EVENT_UNREACHABLE, rc, NULL);
}

static bool may_retry_connect(const struct cm_id *id, int rc)
{
	uint64_t tried_ms = (softnic_loop_now_ns() - id->called_ns) / 1000000;

	if (rc == -EAGAIN)
		return tried_ms < CM_ANSWER_MS;
	return rc == -ECONNREFUSED && tried_ms < REFUSED_MS;
}

static void retry_connect(struct softnic_timer *timer);

static bool connects_later(struct cm_id *id, int rc)
{
	bool may_retry = may_retry_connect(id, rc);

	if (may_retry)
		softnic_timer_arm(&id->timer, TRY_AGAIN_MS * 1000000ull, retry_connect);
	return may_retry;
}

bool cm_connect_again(struct cm_id *id)
{
	return connects_later(id, -ECONNREFUSED);
}

static int call_listener(struct cm_id *id)
{
	int rc = id->is_far ? 0 : cm_port_connect(id->fd, id->id.ps, &id->request.dst);

	if (!rc)
		rc = cm_conn_send(id, &id->request);
	return rc || id->is_far ? rc : cm_conn_watch(id);
}

/* Context: cm_lock held. */
static void try_connect(struct cm_id *id)
{
	int rc = call_listener(id);

	if (rc && !connects_later(id, rc))
		fail_connect(id, rc == -EAGAIN ? -ETIMEDOUT : rc);
}

static void retry_connect(struct softnic_timer *timer)
{
	struct cm_id *id = (void *)((char *)timer - offsetof(struct cm_id, timer));

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_SENT)
		try_connect(id);
	pthread_mutex_unlock(&cm_lock);
}

static int send_request(struct cm_id *id, const struct cm_msg *msg)
{
	int rc = -EINVAL;

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_ROUTE_RESOLVED) {
		id->request = *msg;
		cm_id_src(id, &id->request.src);
		cm_id_dst(id, &id->request.dst);
		id->retry_count = msg->retry_count;
		id->called_ns = softnic_loop_now_ns();
		id->local_qpn = msg->qp_num;
		cm_id_set_state(id, CM_REQ_SENT);
		try_connect(id);
		rc = 0;
	}
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

int rdma_connect(struct rdma_cm_id *rid, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id(rid);
	struct cm_msg msg = { .type = cm_id_is_datagram(id) ? CM_MSG_SIDR_REQ : CM_MSG_REQ };
	int rc;

	msg.private_len = id->connect_len;
	memcpy(msg.private_data, id->connect_data, id->connect_len);
	rc = read_param(id, param, &msg);
	if (!rc)
		rc = negotiate_depths(id, &msg, UINT8_MAX, UINT8_MAX);
	if (!rc)
		rc = send_request(id, &msg);
	return cm_return(rc ? rc : cm_event_complete(id));
}

/* The remote side may close before the user accepts or rejects. */
static int check_requested(struct cm_id *id)
{
	if (id->state == CM_REQ_RCVD)
		return 0;
	return id->state == CM_CLOSED ? -ECONNRESET : -EINVAL;
}

static int send_reply(struct cm_id *id, const struct cm_msg *msg)
{
	int rc;

	pthread_mutex_lock(&cm_lock);
	rc = check_requested(id);
	if (!rc)
		rc = cm_conn_send(id, msg);
	if (!rc) {
		id->local_qpn = msg->qp_num;
		cm_id_set_state(id, CM_REP_SENT);
		if (!id->is_far)
			cm_conn_await(id);
	}
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

/* For datagrams: SIDR_REP ends the exchange. */
static int accept_request(struct cm_id *id, struct rdma_conn_param *param)
{
	struct cm_msg msg = { .type = CM_MSG_SIDR_REP, .reason = CM_SIDR_SUCCESS };
	int rc = read_param(id, param, &msg);

	if (rc)
		return rc;
	pthread_mutex_lock(&cm_lock);
	rc = check_requested(id);
	if (!rc) {
		cm_conn_send(id, &msg);
		cm_conn_shutdown(id);
	}
	pthread_mutex_unlock(&cm_lock);
	if (!rc)
		cm_event_ack_last(id);
	return rc;
}

int rdma_accept(struct rdma_cm_id *rid, struct rdma_conn_param *param)
{
	struct cm_msg msg = { .type = CM_MSG_REP };
	struct cm_id *id = cm_id(rid);
	int rc;

	if (cm_id_is_datagram(id))
		return cm_return(accept_request(id, param));

	pthread_mutex_lock(&cm_lock);
	rc = check_requested(id);
	pthread_mutex_unlock(&cm_lock);
	if (!rc)
		rc = read_param(id, param, &msg);
	if (!rc)
		rc = negotiate_depths(id, &msg, id->responder_resources, id->initiator_depth);
	if (rc)
		return cm_return(rc);

	rc = cm_qp_connect(id);
	if (!rc)
		rc = send_reply(id, &msg);
	if (rc) {
		cm_qp_fail(id);
		return cm_return(rc);
	}
	return cm_return(cm_event_complete(id));
}

static int reject_request(struct cm_id *id, enum cm_reason reason, const void *data, uint8_t len)
{
	int rc = 0;

	if (!data)
		len = 0;
	if (len > cm_msg_private_max(cm_id_is_datagram(id) ? CM_MSG_SIDR_REP : CM_MSG_REJ))
		return -EINVAL;
	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_RCVD || id->state == CM_REP_RCVD)
		cm_conn_reject(id, reason, data, len);
	else if (id->state != CM_CLOSED)
		rc = -EINVAL;
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

int rdma_reject(struct rdma_cm_id *rid, const void *data, uint8_t len)
{
	return cm_return(reject_request(cm_id(rid), CM_REASON_CONSUMER_DEFINED, data, len));
}

int rdma_reject_ece(struct rdma_cm_id *rid, const void *data, uint8_t len)
{
	return cm_return(reject_request(cm_id(rid), CM_REASON_VENDOR_OPTION, data, len));
}

int cm_connect_finish(struct cm_id *id)
{
	const struct cm_msg msg = { .type = CM_MSG_RTU };
	int rc = 0;

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REP_RCVD) {
		cm_id_set_state(id, CM_ESTABLISHED);
		cm_conn_send(id, &msg);
	} else if (id->state != CM_CLOSED) {
		rc = -EINVAL;
	}
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

/* For programs that move the QP to RTS themselves. */
int rdma_establish(struct rdma_cm_id *rid)
{
	return cm_return(rid->qp ? -EINVAL : cm_connect_finish(cm_id(rid)));
}

/* Data may arrive before RTU; a program that sees data need not wait for RTU. */
int rdma_notify(struct rdma_cm_id *rid, enum ibv_event_type event)
{
	struct cm_id *id = cm_id(rid);

	if (event != IBV_EVENT_COMM_EST)
		return cm_return(-EINVAL);
	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REP_SENT && id->is_far)
		cm_far_heard_packet(id);
	else if (id->state == CM_REP_SENT)
		cm_conn_established(id);
	pthread_mutex_unlock(&cm_lock);
	return 0;
}

/*
 * Each side gets DISCONNECTED once. This side gets the event at once: an answer would tell nothing
 * new, and a dead peer would send none.
 */
int rdma_disconnect(struct rdma_cm_id *rid)
{
	struct cm_id *id = cm_id(rid);
	bool event_waits;
	int rc;

	if (!rid->verbs)
		return cm_return(-EINVAL);
	rc = cm_qp_fail(id);
	if (rc)
		return cm_return(rc);

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_ESTABLISHED || id->state == CM_REP_RCVD || id->state == CM_REP_SENT) {
		cm_conn_shutdown(id);
		cm_conn_disconnected(id);
	} else if (id->state != CM_CLOSED) {
		rc = -EINVAL;
	}
	event_waits = !TAILQ_EMPTY(&cm_channel(rid->channel)->events);
	pthread_mutex_unlock(&cm_lock);
	if (!rc && event_waits)
		rc = cm_event_complete(id);
	return cm_return(rc);
}
