// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Far ids, and the process's connection manager (softnic/roce_cm) behind them.
 *
 * Any process of the user may receive a host's first message, because all share the RoCE port. So
 * a request goes to the process that listens at the address called. That process is found by the
 * name of the listening socket: see port.c. The request crosses that socket. Later messages name a
 * communication ID of this host, whose upper bits are the slot of its process.
 *
 * A host can make this process remember only as many requests as a listener's backlog and the
 * table of connections allow.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "softnic/cm_far/cm_far.h"
#include "softnic/cm_far/far_msg.h"
#include "softnic/cm_far/listeners.h"
#include "softnic/qp_far/lost.h"
#include "softnic/roce_cm/cm.h"
#include "softnic/verbs/device.h"
#include "softnic/udp/udp.h"

enum {
	CONNS = 1024,
	SLOT_BITS = 10, /* of a communication ID */
	PROGRAM_TIMEOUT = 24, /* 4.096 us << 24: 69 s, in which a program accepts or rejects */
	PASSED_MAGIC = 0x66637377, /* "wscf" */
	PSN_BITS = 24,
};

/* Where a process has just ended, requests are repeated sooner, and silence soon refuses them. */
#define REPEAT_NS 50000000ull
#define SILENT_NS 350000000ull /* since rdma_connect(); refusals count after 300 ms */

_Static_assert(SOFTNIC_SLOTS == 1 << SLOT_BITS, "a slot fits a communication ID");

struct passed {
	uint32_t magic;
	struct roce_cm_path path;
	uint8_t mad[ROCE_MAD_BYTES];
};

_Static_assert(sizeof(struct passed) < CM_MSG_BYTES_MAX, "a passed-on request fits the buffer");

/* All under cm_lock. */
static struct {
	struct roce_cm_conn *conns; /* NULL until cm_far_open() */
	struct roce_cm cm;
	struct softnic_timer timer;
} far;

static void far_timer(struct softnic_timer *timer);

/* Send what the manager wants to send, and wait for its next deadline. */
static void flush(void)
{
	uint64_t now_ns = softnic_loop_now_ns(), at_ns;
	uint8_t bytes[ROCE_MAD_BYTES];
	struct udp_address to = { 0 };
	struct roce_cm_path path;
	union ibv_gid from;
	struct roce_mad m;

	while (roce_cm_next_mad(&far.cm, &m, &path)) {
		roce_mad_encode(&m, bytes);
		memcpy(&to.gid, path.peer, sizeof(to.gid));
		memcpy(&from, path.local, sizeof(from));
		to.ifindex = path.ifindex;
		to.port = path.port;
		udp_mad_send(&from, &to, bytes);
	}
	at_ns = roce_cm_deadline_ns(&far.cm);
	if (at_ns != ROCE_CM_NEVER)
		softnic_timer_arm(&far.timer, at_ns > now_ns ? at_ns - now_ns : 0, far_timer);
}

static void refuse(struct roce_cm_conn *conn, const struct roce_mad *m, enum cm_reason reason)
{
	const struct roce_mad rep = { .kind = ROCE_MAD_SIDR_REP,
				      .service_id = m->service_id,
				      .status = cm_msg_sidr_status(reason) };
	uint64_t now_ns = softnic_loop_now_ns();

	if (roce_cm_reject(&far.cm, conn, reason, NULL, 0))
		roce_cm_accept(&far.cm, conn, &rep, now_ns);
	roce_cm_release(&far.cm, conn, now_ns);
}

static void request_received(struct roce_cm_conn *conn, const struct roce_mad *m)
{
	enum cm_reason reason = CM_REASON_INVALID_SERVICE_ID;
	struct cm_id *listener = NULL, *child = NULL;
	enum rdma_port_space ps;
	struct cm_msg msg;

	if (!far_msg_read_request(&msg, m, &conn->path, &ps))
		listener = cm_id_listening(ps, &msg.dst);
	if (listener && cm_id_is_datagram(listener) == conn->is_sidr)
		reason = cm_conn_refusal(listener, &msg);
	if (!reason) {
		reason = CM_REASON_CONSUMER_DEFINED;
		child = cm_listen_add_child(listener, -1);
	}
	if (!child) {
		refuse(conn, m, reason);
		return;
	}
	cm_far_begin(child);
	child->conn = conn;
	conn->context = child;
	roce_cm_wait(&far.cm, conn, PROGRAM_TIMEOUT);
	cm_conn_request(child, &msg);
}

/* No process listens: maybe the service is about to return, as for a near id. */
static bool calls_again(struct cm_id *id, const struct roce_mad *m)
{
	bool is_refused = m->kind == ROCE_MAD_REJ ?
				  m->reason == CM_REASON_INVALID_SERVICE_ID :
				  m->kind == ROCE_MAD_SIDR_REP && m->status == CM_SIDR_UNSUPPORTED;

	if (!is_refused || id->state != CM_REQ_SENT || !cm_connect_again(id))
		return false;
	cm_far_end(id);
	return true;
}

static void answer_received(struct cm_id *id, const struct roce_mad *m)
{
	struct cm_msg msg;

	if (calls_again(id, m))
		return;
	if (m->kind == ROCE_MAD_REP)
		listeners_learn(id, m->qpn);
	far_msg_read(&msg, m);
	cm_conn_received(id, &msg);
}

static void handle(const struct roce_cm_event *event)
{
	const struct cm_msg rtu = { .type = CM_MSG_RTU };
	struct cm_id *id = event->conn->context;

	switch (event->kind) {
	case ROCE_CM_REQUEST:
		request_received(event->conn, event->mad);
		break;
	case ROCE_CM_REPLY:
	case ROCE_CM_REJECTED:
		answer_received(id, event->mad);
		break;
	case ROCE_CM_IS_ESTABLISHED:
		cm_conn_received(id, &rtu);
		break;
	case ROCE_CM_UNREACHABLE:
		cm_conn_lost(id, -ETIMEDOUT);
		break;
	case ROCE_CM_DISCONNECTED:
		cm_conn_lost(id, -ECONNRESET);
		break;
	default: /* the id has left the connection before */
		break;
	}
}

static void handle_all(void)
{
	struct roce_cm_event event;

	while (roce_cm_next_event(&far.cm, &event))
		handle(&event);
	flush();
}

static void far_timer(struct softnic_timer *timer)
{
	(void)timer;
	pthread_mutex_lock(&cm_lock);
	roce_cm_expired(&far.cm, softnic_loop_now_ns());
	handle_all();
	pthread_mutex_unlock(&cm_lock);
}

/* Return: false if no other process listens at the address called. */
static bool pass_on(const struct udp_mad *in, const struct roce_mad *m,
		    const struct roce_cm_path *path)
{
	struct passed passed = { .magic = PASSED_MAGIC, .path = *path };
	enum rdma_port_space ps;
	struct cm_msg msg;
	int s;

	if (roce_cm_knows(&far.cm, m, path) || far_msg_read_request(&msg, m, path, &ps) ||
	    cm_id_listening(ps, &msg.dst))
		return false;
	s = cm_port_open(ps, &msg.dst);
	if (s < 0)
		return s != -ECONNREFUSED; /* not now: the peer will repeat the request */
	memcpy(passed.mad, in->bytes, sizeof(passed.mad));
	send(s, &passed, sizeof(passed), MSG_DONTWAIT | MSG_NOSIGNAL);
	passed_fd_close_socket(s);
	return true;
}

bool cm_far_passed_on(const void *buf, size_t len)
{
	struct passed passed;
	struct roce_mad m;

	if (len != sizeof(passed) || !far.conns)
		return false;
	memcpy(&passed, buf, sizeof(passed));
	if (passed.magic != PASSED_MAGIC || roce_mad_decode(&m, passed.mad, sizeof(passed.mad)) ||
	    !far_msg_is_request(&m))
		return false;
	roce_cm_received(&far.cm, &m, &passed.path, softnic_loop_now_ns());
	handle_all();
	return true;
}

/* The slot whose process knows the message's connection; 0: a request, or unknown. */
static uint32_t slot_of(const struct roce_mad *m)
{
	uint32_t id = m->kind == ROCE_MAD_SIDR_REP ? m->local_id : m->remote_id;

	return far_msg_is_request(m) ? 0 : id >> (32 - SLOT_BITS);
}

/* A process of softnic answers at the port that it sends from, other peers at RoCE's. */
static uint16_t port_of(const struct udp_address *peer)
{
	return udp_port_is_softnic(peer->port) ? peer->port : UDP_ROCE_PORT;
}

/* Nobody is at the RoCE port of the host called: as if a process said that no program listens. */
static void mad_refused(const struct roce_mad *m, const struct roce_cm_path *path)
{
	const struct roce_mad rej = {
		.kind = ROCE_MAD_REJ,
		.tid = m->tid,
		.remote_id = m->local_id,
		.reason = ROCE_MAD_INVALID_SERVICE,
	};
	const struct roce_mad sidr = {
		.kind = ROCE_MAD_SIDR_REP,
		.tid = m->tid,
		.local_id = m->local_id,
		.status = CM_SIDR_UNSUPPORTED,
	};

	if (far_msg_is_request(m))
		roce_cm_received(&far.cm, m->kind == ROCE_MAD_REQ ? &rej : &sidr, path,
				 softnic_loop_now_ns());
}

static uint32_t mad_received(const struct udp_mad *in)
{
	struct roce_cm_path path = { .ifindex = in->from.ifindex, .port = port_of(&in->from) };
	struct roce_mad m;
	uint32_t slot;

	if (roce_mad_decode(&m, in->bytes, UDP_MAD_BYTES))
		return 0;
	slot = slot_of(&m);
	if (slot && slot != softnic_nic_slot() && !in->is_refused)
		return slot;
	memcpy(path.peer, &in->from.gid, sizeof(path.peer));
	memcpy(path.local, &in->to, sizeof(path.local));
	pthread_mutex_lock(&cm_lock);
	if (far.conns && in->is_refused) {
		mad_refused(&m, &path);
		handle_all();
	} else if (far.conns && !(far_msg_is_request(&m) && pass_on(in, &m, &path))) {
		roce_cm_received(&far.cm, &m, &path, softnic_loop_now_ns());
		handle_all();
	}
	pthread_mutex_unlock(&cm_lock);
	return 0;
}

/* As the end of a near peer's socket ends a near connection. */
static void end_lost(void)
{
	uint32_t i;

	pthread_mutex_lock(&cm_lock);
	for (i = 0; far.conns && i < far.cm.nr_used; i++) {
		const struct roce_cm_conn *c = &far.conns[i];

		if (c->state == ROCE_CM_ESTABLISHED && c->context && lost_has(c->qpn))
			cm_conn_lost(c->context, -ECONNRESET);
	}
	pthread_mutex_unlock(&cm_lock);
}

static int init(void)
{
	uint64_t random[2];

	if (far.conns)
		return 0;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	far.conns = calloc(CONNS, sizeof(*far.conns));
	if (!far.conns)
		return -ENOMEM;
	/* A GUID for this process: a queue pair of a process that has ended is another's. */
	roce_cm_init(&far.cm, far.conns, CONNS, random[0], random[1]);
	roce_cm_set_prefix(&far.cm, softnic_nic_slot(), SLOT_BITS);
	udp_mad_listen(mad_received);
	lost_listen(end_lost);
	return 0;
}

int cm_far_open(void)
{
	int rc = udp_socket_open();

	if (rc)
		return rc;
	pthread_mutex_lock(&cm_lock);
	rc = init();
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

void cm_far_reset(void)
{
	free(far.conns);
	far.conns = NULL;
}

static uint32_t ifindex_of(const union cm_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_scope_id : 0;
}

static int find_route(const union cm_addr *src, const union cm_addr *dst, struct udp_route *route)
{
	union ibv_gid from, to;

	cm_addr_gid(src, &from);
	cm_addr_gid(dst, &to);
	return udp_route(&to, &from, ifindex_of(dst), route);
}

int cm_far_route(union cm_addr *src, const union cm_addr *dst)
{
	struct udp_route route;

	if (cm_addr_is_any(src))
		cm_addr_route(src, dst);
	if (cm_addr_is_loopback(src) != cm_addr_is_loopback(dst))
		return -EHOSTUNREACH;
	return find_route(src, dst, &route);
}

enum ibv_mtu cm_far_mtu(const struct cm_id *id)
{
	enum ibv_mtu mtu = IBV_MTU_256;
	struct udp_route route;
	union cm_addr src, dst;

	cm_id_src(id, &src);
	cm_id_dst(id, &dst);
	if (find_route(&src, &dst, &route))
		return mtu;
	while (mtu < IBV_MTU_4096 && 256u << (mtu - IBV_MTU_256 + 1) <= route.mtu)
		mtu++;
	return mtu;
}

/* Without random numbers the PSN is 0: a sender that forges packets must still guess the QPN. */
void cm_far_begin(struct cm_id *id)
{
	id->is_far = true;
	if (getrandom(&id->psn, sizeof(id->psn), 0) != sizeof(id->psn))
		id->psn = 0;
	id->psn &= (1 << PSN_BITS) - 1;
}

static void hurry(struct softnic_timer *timer);

/* No answer yet. Once the end is a while ago, the call waits as long as any other, but repeats. */
static void repeat_or_refuse(struct cm_id *id)
{
	const struct cm_msg rej = { .type = CM_MSG_REJ, .reason = CM_REASON_INVALID_SERVICE_ID };
	uint64_t now_ns = softnic_loop_now_ns();

	if (!roce_cm_repeat(&far.cm, id->conn, now_ns))
		return;
	if (now_ns - id->called_ns < SILENT_NS || !listeners_have_lost(id)) {
		softnic_timer_arm(&id->timer, REPEAT_NS, hurry);
		flush();
		return;
	}
	cm_far_end(id);
	cm_conn_received(id, &rej);
}

static void hurry(struct softnic_timer *timer)
{
	struct cm_id *id = (void *)((char *)timer - offsetof(struct cm_id, timer));

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_SENT && id->conn)
		repeat_or_refuse(id);
	pthread_mutex_unlock(&cm_lock);
}

static int call(struct cm_id *id, const struct roce_mad *req, uint64_t now_ns)
{
	const struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	struct roce_cm_path path = { .port = UDP_ROCE_PORT };
	union cm_addr dst;

	cm_id_dst(id, &dst);
	memcpy(path.peer, &ib->dgid, sizeof(path.peer));
	memcpy(path.local, &ib->sgid, sizeof(path.local));
	path.ifindex = ifindex_of(&dst);
	if (roce_cm_connect(&far.cm, req, &path, now_ns, &id->conn))
		return -EAGAIN;
	id->conn->context = id;
	if (!cm_id_is_datagram(id) && listeners_have_lost(id))
		softnic_timer_arm(&id->timer, REPEAT_NS, hurry);
	return 0;
}

int cm_far_send(struct cm_id *id, const struct cm_msg *msg)
{
	uint64_t now_ns = softnic_loop_now_ns();
	struct roce_mad m;
	int rc;

	if (!far.conns || (!id->conn && id->state != CM_REQ_SENT))
		return -ECONNRESET;
	far_msg_write(&m, id, msg);
	switch (msg->type) {
	case CM_MSG_REQ:
	case CM_MSG_SIDR_REQ:
		rc = call(id, &m, now_ns);
		break;
	case CM_MSG_RTU:
		rc = roce_cm_confirm(&far.cm, id->conn);
		break;
	case CM_MSG_REJ:
		rc = roce_cm_reject(&far.cm, id->conn, m.reason, m.private_data, msg->private_len);
		break;
	default:
		rc = roce_cm_accept(&far.cm, id->conn, &m, now_ns);
		break;
	}
	flush();
	return rc == -EINVAL ? -ECONNRESET : rc;
}

/* At the end of the process, as a socket does: the peers' programs need not wait for time. */
__attribute__((destructor)) static void end_all(void)
{
	uint64_t now_ns = softnic_loop_now_ns();
	uint32_t i;

	pthread_mutex_lock(&cm_lock);
	for (i = 0; far.conns && i < far.cm.nr_used; i++)
		if (far.conns[i].state != ROCE_CM_FREE && !far.conns[i].is_released)
			roce_cm_release(&far.cm, &far.conns[i], now_ns);
	if (far.conns)
		flush();
	pthread_mutex_unlock(&cm_lock);
}

void cm_far_heard_packet(struct cm_id *id)
{
	if (!id->conn)
		return;
	roce_cm_heard_packet(&far.cm, id->conn);
	handle_all();
}

void cm_far_end(struct cm_id *id)
{
	if (!id->conn)
		return;
	id->conn->context = NULL;
	roce_cm_release(&far.cm, id->conn, softnic_loop_now_ns());
	id->conn = NULL;
	flush();
}
