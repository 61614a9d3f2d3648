// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "softnic/udp/neighbor.h"
#include "softnic/qp/req.h"
#include "softnic/qp/resp.h"
#include "softnic/qp/sq.h"
#include "softnic/shm/peer.h"
#include "softnic/tap/peers.h"
#include "softnic/verbs/ah.h"
#include "softnic/verbs/mw.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/far_seal.h"
#include "softnic/qp_far/far_timer.h"
#include "softnic/qp_far/reply.h"

#define IDLE_NS 5000000000ull
#define EARLY_NS 50000000ull /* a process of a busy host pauses for less, mostly */

enum {
	WINDOW_BYTES = 256 << 10, /* what a socket's buffer bears by default */
	READ_BYTES = 32 << 10, /* of one request, so that responses grow with the window */
	PACKETS_MAX = 256, /* at a time, for a long read; then others have their turn */
	MTU_SHIFT = 7, /* enum ibv_mtu 1 is 256 bytes */
};

#define GIVE_UP_NS_MIN 2000000000ull

static enum roce_transport transport_of(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_RC ? ROCE_RC :
	       qp->ibv.qp_type == IBV_QPT_UC ? ROCE_UC :
					       ROCE_UD;
}

/* UD sends each datagram at once, so one entry is enough; so it is without a send queue. */
static uint32_t send_size_of(const struct qp *qp)
{
	return qp_is_datagram(qp) || !qp->sq.size ? 1 : qp->sq.size;
}

static int alloc_queues(struct far *f, uint32_t send_size, uint32_t resources)
{
	f->wqes = calloc(send_size, sizeof(*f->wqes));
	f->resources = calloc(resources ? resources : 1, sizeof(*f->resources));
	return f->wqes && f->resources ? 0 : ENOMEM;
}

static void free_far(struct far *f)
{
	if (f->self)
		peer_put(f->self);
	far_seal_fini(f);
	free(f->wqes);
	free(f->resources);
	free(f);
}

/*
 * Ports have an active MTU of 4096, for peers on this host, and programs use it for all. Ends on
 * links of one kind then lower it alike.
 */
static uint32_t path_mtu_of(const struct qp *qp, const struct ibv_qp_attr *attr, uint32_t way_mtu)
{
	uint32_t mtu = 1u << (MTU_SHIFT + attr->path_mtu);

	return qp_is_datagram(qp) ? ROCE_PAYLOAD_MAX : mtu < way_mtu ? mtu : way_mtu;
}

static void init_transport(struct qp *qp, struct far *f, const struct ibv_qp_attr *attr,
			   uint32_t way_mtu)
{
	uint32_t mtu = path_mtu_of(qp, attr, way_mtu);
	const struct roce_config config = {
		.ops = &far_ops,
		.host = qp,
		.wqes = f->wqes,
		.resources = f->resources,
		.transport = transport_of(qp),
		.send_size = send_size_of(qp),
		.qpn = qp->ibv.qp_num,
		.dest_qpn = attr->dest_qp_num,
		.receive_psn = attr->rq_psn,
		.mtu = mtu,
		.window = WINDOW_BYTES / mtu,
		.read_packets = READ_BYTES / mtu,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.rnr_timer = attr->min_rnr_timer,
		.qkey = attr->qkey,
	};

	roce_qp_init(&f->roce, &config);
	f->armed_ns = f->wait_until_ns = ROCE_NEVER;
}

static int connect_far(struct qp *qp, struct far *f, const struct ibv_qp_attr *attr,
		       const struct av *av)
{
	int rc = udp_socket_open();

	if (rc)
		return -rc;
	f->path = far_path(av);
	f->peer = peers_get(&av->dgid);
	rc = peer_get(nic.slot, &f->self);
	if (!rc && f->self->state != PEER_READY)
		rc = -EPERM;
	if (!rc) {
		init_transport(qp, f, attr, av->mtu);
		rc = far_seal_init(qp, f, attr);
	}
	return -rc;
}

/* Without sockets a UD queue pair hears this host only. */
static int listen_far(struct qp *qp, struct far *f, const struct ibv_qp_attr *attr)
{
	int rc = -udp_socket_open();

	if (!rc)
		init_transport(qp, f, attr, 0);
	return rc;
}

int far_create(struct qp *qp, const struct ibv_qp_attr *attr)
{
	bool is_datagram = qp_is_datagram(qp);
	struct av av = { 0 };
	struct far *f;
	int rc = 0;

	if (!is_datagram)
		rc = ah_resolve(qp->ibv.context, &attr->ah_attr, &av);
	if (rc || (!is_datagram && !av.is_far))
		return rc;
	if (qp->ibv.qp_type == IBV_QPT_XRC_SEND || qp->ibv.qp_type == IBV_QPT_XRC_RECV)
		return EOPNOTSUPP; /* the transport between hosts does not carry SRQ numbers */
	if (!is_datagram && !attr->dest_qp_num)
		return EINVAL; /* no queue pair of a program has this number */
	f = calloc(1, sizeof(*f));
	if (!f)
		return ENOMEM;
	rc = alloc_queues(f, send_size_of(qp), attr->max_dest_rd_atomic);
	if (!rc)
		rc = is_datagram ? listen_far(qp, f, attr) : connect_far(qp, f, attr, &av);
	if (rc) {
		free_far(f);
		return is_datagram ? 0 : rc;
	}
	f->posted = qp->sq.done;
	qp->far = f;
	return 0;
}

/* The sender of UC gets no answers from which to learn the port. Returns false: try later. */
static bool finds_port(struct qp *qp)
{
	struct far *f = qp->far;
	uint16_t port;

	f->is_asking = false;
	if (f->is_known || qp->ibv.qp_type != IBV_QPT_UC || f->posted == qp->sq.done)
		return true;
	port = neighbor_port(&f->path, qp->attr.dest_qp_num);
	f->is_asking = !port;
	if (port)
		f->path.to.port = port;
	return port;
}

static void transmit(struct qp *qp)
{
	uint64_t now_ns = softnic_loop_now_ns();
	uint32_t left = PACKETS_MAX;

	if (!finds_port(qp))
		return;
	send_begin();
	if (far_seal_may_send(qp) && !reply_is_awaited(qp, now_ns))
		while (left && far_seal_output(qp, now_ns))
			left--;
	send_end();
	if (!left)
		softnic_loop_kick_work(&qp->work);
}

/* An acknowledgement that waits for a reply must leave before the queue pair ends. */
static void send_owed(struct qp *qp)
{
	if (far_is_connected(qp) && reply_is_owed(qp)) {
		qp->far->wait_until_ns = 0;
		transmit(qp);
	}
}

void far_destroy(struct qp *qp)
{
	send_owed(qp);
	if (qp->far)
		free_far(qp->far);
	qp->far = NULL;
}

/* After an error of UC the PSNs go on, so that the peer takes the next message for no late one. */
static void start_sending(struct qp *qp, enum ibv_qp_state from)
{
	struct roce_qp *roce = &qp->far->roce;

	roce->config.idle_ns = IDLE_NS;
	roce->config.early_ns = EARLY_NS;
	roce->config.send_psn = from == IBV_QPS_SQE ? (uint32_t)roce->req.next : qp->attr.sq_psn;
	roce_qp_start_sending(roce);
	qp->far->posted = qp->sq.done;
	if (!qp_is_datagram(qp))
		far_seal_start(qp);
}

/*
 * A loaded host answers slower than a network. So the peer may be silent for two seconds at least,
 * as on one host, but lost packets are still sent again after the program's timeout.
 */
static uint8_t retries_of(const struct ibv_qp_attr *attr)
{
	uint64_t retries = GIVE_UP_NS_MIN / (4096ull << attr->timeout);

	if (retries < attr->retry_cnt)
		return attr->retry_cnt;
	return retries < UINT8_MAX ? (uint8_t)retries : UINT8_MAX;
}

void far_apply(struct qp *qp, enum ibv_qp_state from)
{
	const struct ibv_qp_attr *attr = &qp->attr;
	struct roce_config *c;

	if (!qp->far)
		return;
	c = &qp->far->roce.config;
	c->qkey = attr->qkey;
	c->rnr_timer = attr->min_rnr_timer;
	c->timeout = attr->timeout;
	c->retries = retries_of(attr);
	c->rnr_retries = attr->rnr_retry;
	c->max_rd_atomic = attr->max_rd_atomic;
	if (qp->state == IBV_QPS_RTS && (from == IBV_QPS_RTR || from == IBV_QPS_SQE))
		start_sending(qp, from);
}

void far_fail(struct qp *qp)
{
	if (!far_is_connected(qp))
		return;
	send_owed(qp);
	roce_qp_fail(&qp->far->roce);
	qp->far->posted = qp->sq.done;
}

static bool has_work(const struct qp *qp)
{
	return qp->far->posted != load_ordered(&qp->sq.tail);
}

/* Binds and invalidations wait for what was posted before them. Returns false: try later. */
static bool run_local(struct qp *qp, const struct send_wqe *wqe)
{
	int status;

	if (qp->far->posted != qp->sq.done)
		return false;
	status = mw_step(qp, wqe);
	if (status == RESP_BUSY) {
		softnic_loop_kick_work(&qp->work);
		return false;
	}
	if (status != IBV_WC_SUCCESS) {
		req_fail(qp, status);
		return false;
	}
	qp->far->posted++;
	req_complete(qp, IBV_WC_SUCCESS);
	return true;
}

static void post_all(struct qp *qp)
{
	if (has_work(qp))
		reply_posted(qp);
	while (qp->state == IBV_QPS_RTS && has_work(qp)) {
		const struct send_wqe *wqe = &qp->sq.wqes[qp->far->posted & (qp->sq.size - 1)];

		if (wr_is_local(wqe->opcode)) {
			if (!run_local(qp, wqe))
				return;
		} else if (far_post(qp, 0)) {
			if (qp->far->posted == qp->sq.done)
				req_fail(qp, IBV_WC_LOC_QP_OP_ERR);
			return;
		}
	}
}

static enum ibv_wc_status wc_status(enum roce_status status)
{
	static const enum ibv_wc_status names[] = {
		[ROCE_SUCCESS] = IBV_WC_SUCCESS,
		[ROCE_LOC_LEN] = IBV_WC_LOC_LEN_ERR,
		[ROCE_LOC_PROT] = IBV_WC_LOC_PROT_ERR,
		[ROCE_REM_INV_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[ROCE_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[ROCE_REM_OP] = IBV_WC_REM_OP_ERR,
		[ROCE_RETRY_EXC] = IBV_WC_RETRY_EXC_ERR,
		[ROCE_RNR_RETRY_EXC] = IBV_WC_RNR_RETRY_EXC_ERR,
		[ROCE_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
	};

	return names[status];
}

/* A failed work request ends the queue, and with it the transport's other completions. */
void far_complete(struct qp *qp)
{
	struct roce_completion c;

	while (qp->far->posted != qp->sq.done && roce_qp_completion(&qp->far->roce, &c)) {
		if (c.status == ROCE_SUCCESS) {
			req_complete(qp, IBV_WC_SUCCESS);
			continue;
		}
		req_fail(qp, wc_status(c.status));
		qp->far->posted = qp->sq.done;
	}
}

void far_count(struct qp *qp, struct softnic_peer_counters *peer)
{
	const struct roce_counters *now = &qp->far->roce.counters;
	struct roce_counters *before = &qp->far->counted;
	uint64_t accepted = now->refused[ROCE_ACCEPTED] - before->refused[ROCE_ACCEPTED];

	count(packets_out, now->packets_out - before->packets_out);
	count(packets_in, accepted);
	count(refused, now->packets_in - before->packets_in - accepted);
	count(retransmitted, now->retransmitted - before->retransmitted);
	count(duplicates, now->duplicates - before->duplicates);
	count(gaps, now->gaps - before->gaps);
	peers_count(peer, before, now);
	*before = *now;
}

void far_run(struct qp *qp)
{
	uint32_t done;

	do {
		done = qp->sq.done;
		if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
			req_flush(qp);
		if (!qp_is_connected(qp))
			return;
		post_all(qp);
		transmit(qp);
		far_complete(qp);
	} while (done != qp->sq.done && has_work(qp));
	far_count(qp, qp->far->peer);
	far_timer_set(qp);
}
