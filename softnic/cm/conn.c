// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One connection: the socket, and the messages that arrive.
 *
 * Each state allows certain messages. Any other message breaks the protocol and ends the
 * connection, as does the end of the socket. A closed connection only waits to be destroyed.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fd/passed_fd.h"
#include "cm.h"
#include "event.h"
#include "softnic/cm_far/cm_far.h"

enum {
	MESSAGES_A_TURN = 4, /* then the engine serves other sockets */
	ACK_TIMEOUT_UNIT_NS = 4096,
};

/* Never blocks: at most two packets wait in the socket's buffer, and the buffer holds more. */
int cm_conn_send(struct cm_id *id, const struct cm_msg *msg)
{
	uint8_t buf[CM_MSG_BYTES_MAX];
	size_t len;

	if (id->is_far)
		return cm_far_send(id, msg);
	len = cm_msg_encode(msg, buf);
	return send(id->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -ECONNRESET : 0;
}

void cm_conn_shutdown(struct cm_id *id)
{
	cm_id_set_state(id, CM_CLOSED);
	if (id->is_far)
		cm_far_end(id);
	else
		shutdown(id->fd, SHUT_RDWR);
}

void cm_conn_reject(struct cm_id *id, enum cm_reason reason, const void *data, uint8_t len)
{
	struct cm_msg msg = { .type = CM_MSG_REJ, .reason = reason, .private_len = len };

	if (cm_id_is_datagram(id)) {
		msg.type = CM_MSG_SIDR_REP;
		msg.reason = cm_msg_sidr_status(reason);
	}
	if (len)
		memcpy(msg.private_data, data, len);
	cm_conn_send(id, &msg);
	cm_conn_shutdown(id);
}

void cm_conn_established(struct cm_id *id)
{
	cm_id_set_state(id, CM_ESTABLISHED);
	cm_event_push(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

/* TIMEWAIT lasts as long as packets may be in flight: as long as a sender waits for an ACK. */
static void timewait_over(struct softnic_timer *timer)
{
	struct cm_id *id = (void *)((char *)timer - offsetof(struct cm_id, timer));

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_CLOSED)
		cm_event_push(id, id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
	pthread_mutex_unlock(&cm_lock);
}

void cm_conn_disconnected(struct cm_id *id)
{
	cm_event_push(id, id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	softnic_timer_arm(&id->timer, (uint64_t)ACK_TIMEOUT_UNIT_NS << id->ack_timeout,
			  timewait_over);
}

void cm_conn_lost(struct cm_id *id, int status)
{
	enum cm_state state = id->state;

	cm_conn_shutdown(id);
	switch (state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
		cm_event_push(id, id, RDMA_CM_EVENT_UNREACHABLE, status, NULL);
		break;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
		cm_conn_disconnected(id);
		break;
	default:
		break; /* rdma_accept() will fail */
	}
}

/* A call to ::1 also reaches the IPv4 wildcard: see port.c. */
static bool is_of_excluded_family(const struct cm_id *listener, const struct cm_msg *msg)
{
	union cm_addr bound, called = msg->dst;

	cm_id_src(listener, &bound);
	cm_addr_unmap(&called);
	return listener->afonly && bound.sa.sa_family == AF_INET && called.sa.sa_family == AF_INET6;
}

enum cm_reason cm_conn_refusal(const struct cm_id *listener, const struct cm_msg *msg)
{
	const struct cm_device *device;

	if (listener->state != CM_LISTENING || is_of_excluded_family(listener, msg) ||
	    cm_device_get(&device))
		return CM_REASON_INVALID_SERVICE_ID;
	return listener->nr_requests >= listener->backlog ? CM_REASON_CONSUMER_DEFINED :
							    CM_REASON_NONE;
}

void cm_conn_request(struct cm_id *id, const struct cm_msg *msg)
{
	const struct cm_device *device;

	if (cm_device_get(&device))
		return; /* removed since: its listeners and their children are closed */
	id->remote_qpn = msg->qp_num;
	id->remote_psn = msg->psn;
	id->responder_resources = msg->initiator_depth;
	id->initiator_depth = msg->responder_resources;
	id->retry_count = msg->retry_count;
	id->rnr_retry_count = msg->rnr_retry_count;
	id->remote_ece = (struct ibv_ece){ msg->ece_vendor, msg->ece_options, 0 };
	cm_id_set_src(id, &msg->dst);
	cm_id_set_dst(id, &msg->src);
	cm_device_bind(id, device);
	id->tos = msg->traffic_class;
	cm_device_route(id, device);
	if (msg->mtu && msg->mtu < id->path.mtu)
		id->path.mtu = msg->mtu;
	cm_id_set_state(id, CM_REQ_RCVD);
	id->listener->nr_requests++;
	cm_event_push(id->listener, id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, msg);
}

static void req_received(struct cm_id *id, const struct cm_msg *msg)
{
	enum cm_reason reason = cm_conn_refusal(id->listener, msg);

	if (reason)
		cm_conn_reject(id, reason, NULL, 0);
	else
		cm_conn_request(id, msg);
}

static void rep_received(struct cm_id *id, const struct cm_msg *msg)
{
	id->remote_qpn = msg->qp_num;
	id->remote_psn = msg->psn;
	id->responder_resources = cm_min(id->responder_resources, msg->initiator_depth);
	id->initiator_depth = cm_min(id->initiator_depth, msg->responder_resources);
	id->rnr_retry_count = msg->rnr_retry_count;
	id->remote_ece = (struct ibv_ece){ msg->ece_vendor, msg->ece_options, 0 };
	cm_id_set_state(id, CM_REP_RCVD);
	cm_event_push(id, id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, msg);
}

static void rej_received(struct cm_id *id, const struct cm_msg *msg)
{
	cm_conn_shutdown(id);
	cm_event_push(id, id, RDMA_CM_EVENT_REJECTED, msg->reason, msg);
}

/* SIDR_REP is the last message. */
static void sidr_rep_received(struct cm_id *id, const struct cm_msg *msg)
{
	cm_conn_shutdown(id);
	if (msg->reason == CM_SIDR_SUCCESS)
		cm_event_push(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, msg);
	else
		cm_event_push(id, id, RDMA_CM_EVENT_UNREACHABLE, msg->reason, msg);
}

static void datagram_received(struct cm_id *id, const struct cm_msg *msg)
{
	if (msg->type == CM_MSG_SIDR_REQ && id->state == CM_REQ_WAIT)
		req_received(id, msg);
	else if (msg->type == CM_MSG_SIDR_REP && id->state == CM_REQ_SENT)
		sidr_rep_received(id, msg);
	else
		cm_conn_lost(id, -EPROTO);
}

static void stream_received(struct cm_id *id, const struct cm_msg *msg)
{
	if (msg->type == CM_MSG_REQ && id->state == CM_REQ_WAIT)
		req_received(id, msg);
	else if (msg->type == CM_MSG_REP && id->state == CM_REQ_SENT)
		rep_received(id, msg);
	else if (msg->type == CM_MSG_RTU && id->state == CM_REP_SENT)
		cm_conn_established(id);
	else if (msg->type == CM_MSG_RTU && id->state == CM_ESTABLISHED)
		return; /* rdma_notify() came first */
	else if (msg->type == CM_MSG_REJ && (id->state == CM_REQ_SENT || id->state == CM_REP_SENT))
		rej_received(id, msg);
	else
		cm_conn_lost(id, -EPROTO);
}

void cm_conn_received(struct cm_id *id, const struct cm_msg *msg)
{
	if (cm_id_is_datagram(id))
		datagram_received(id, msg);
	else
		stream_received(id, msg);
}

/* Return: false if no more can be read now. */
static bool read_msg(struct cm_id *id)
{
	uint8_t buf[CM_MSG_BYTES_MAX];
	ssize_t len = passed_fd_recv(id->fd, buf, sizeof(buf), MSG_DONTWAIT);
	struct cm_msg msg;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len <= 0)
		cm_conn_lost(id, id->timed_out ? -ETIMEDOUT : -ECONNRESET);
	else if (id->state == CM_REQ_WAIT && cm_far_passed_on(buf, len))
		cm_conn_shutdown(id);
	else if (cm_msg_decode(&msg, buf, len))
		cm_conn_lost(id, -EPROTO);
	else
		cm_conn_received(id, &msg);
	return true;
}

/* A child that closed before a request arrived: a request binds the id to the device. */
static bool is_nobodys(const struct cm_id *id)
{
	return id->state == CM_CLOSED && id->listener && !id->id.verbs;
}

static void conn_ready(void *arg, uint32_t events)
{
	struct cm_id *id = arg;
	bool nobodys;
	int i;

	(void)events;
	pthread_mutex_lock(&cm_lock);
	for (i = 0; i < MESSAGES_A_TURN && id->state != CM_CLOSED && read_msg(id); i++)
		;
	/*
	 * The destroying thread waits for this handler only while the handler is registered.
	 * After the unlock the id may be freed.
	 */
	if (id->state == CM_CLOSED)
		softnic_loop_del(id->fd);
	nobodys = is_nobodys(id);
	if (nobodys)
		cm_listen_forget(id);
	pthread_mutex_unlock(&cm_lock);
	if (nobodys)
		cm_id_free(id);
}

/* Shuts down the socket, and the engine then sees the end. */
static void answer_timed_out(struct softnic_timer *timer)
{
	struct cm_id *id = (void *)((char *)timer - offsetof(struct cm_id, timer));

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_WAIT || id->state == CM_REQ_SENT || id->state == CM_REP_SENT) {
		id->timed_out = true;
		shutdown(id->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&cm_lock);
}

void cm_conn_await(struct cm_id *id)
{
	softnic_timer_arm(&id->timer, CM_ANSWER_MS * 1000000ull, answer_timed_out);
}

int cm_conn_watch(struct cm_id *id)
{
	cm_conn_await(id);
	return softnic_loop_add(id->fd, EPOLLIN, conn_ready, id);
}
