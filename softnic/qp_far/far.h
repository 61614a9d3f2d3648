/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Far queue pairs: those whose peer is on another host. The transport is softnic/roce; memory,
 * receives and completions are those of every queue pair, with the same checks.
 *
 * A connected queue pair is near or far from ibv_modify_qp(RTR) on, by its destination GID. A UD
 * queue pair hears both; each datagram goes near or far by its address handle.
 *
 * The send queue of struct qp holds the work requests until they are polled; the transport has
 * those from sq.done to @posted. A posting thread transmits itself; the engine goes on when
 * acknowledgements, time or room in the window allow.
 *
 * Context of all, unless said otherwise: qp->lock held.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_FAR_H
#define WEIR_SOFTNIC_QP_FAR_FAR_H

#include "softnic/qp/qp.h"
#include "softnic/verbs/ah.h"
#include "softnic/roce/qp.h"
#include "softnic/seal/agree.h"
#include "softnic/udp/send.h"

/**
 * struct far - the far side of a queue pair
 * @roce: the transport; its host is the struct qp
 * @path: to the peer; not for UD
 * @is_known: the port of @path is the peer's own, learned from an accepted packet; or the peer is
 *	no softnic and has answered from another port
 * @agree: whether packets are sealed, and the keys: far_seal.h; NULL for UD
 * @has_keys: @agree is in memory for keys
 * @posted: position in the send queue of the next work request for the transport
 * @self: this process as its own peer, by which requests reach our memory; not for UD
 * @receive: taken from the receive queue
 * @has_receive: the transport uses @receive
 * @is_kept: the transport returned @receive unused; the next message uses it. If the queue pair
 *	fails first, @receive is flushed.
 * @grh_flags: IBV_WC_GRH and RECV_IPV4 of the datagram being received
 * @is_asking: packets of UC wait until the port of @path is known
 * @is_lost: the peer's process has ended, or its host
 * @heard: the responder's next PSN after the last requests that want an acknowledgement
 * @heard_ns: when they came; 0: the program has posted since
 * @replies: in a row that came soon
 * @wait_until_ns: an acknowledgement waits for a reply, or ROCE_NEVER
 * @armed_ns: deadline of qp->timer, or ROCE_NEVER
 * @counted: what the process's counters have of the transport's
 * @peer: the counters of the peer's host; not for UD
 */
struct far {
	struct roce_qp roce;
	struct udp_path path;
	bool is_known, is_asking, is_lost;
	struct agree *agree;
	bool has_keys;
	uint32_t posted;
	struct shm_peer *self;
	struct rq_receive receive;
	bool has_receive, is_kept;
	uint32_t grh_flags;
	uint32_t replies;
	uint64_t heard, heard_ns, wait_until_ns;
	uint64_t armed_ns;
	struct roce_counters counted;
	struct softnic_peer_counters *peer;
	struct roce_wqe *wqes;
	struct roce_resource *resources;
};

/** far_path() - the way to a peer that has not answered: all RoCE peers hear port 4791 */
static inline struct udp_path far_path(const struct av *av)
{
	return (struct udp_path){
		.from = av->sgid,
		.to = { .gid = av->dgid, .ifindex = av->ifindex, .port = UDP_ROCE_PORT },
	};
}

/** far_is_connected() - is the peer of a connected queue pair on another host? */
static inline bool far_is_connected(const struct qp *qp)
{
	return qp->far && !qp_is_datagram(qp);
}

/**
 * far_create() - at RTR: make the queue pair far if its destination is
 * @attr: the attributes with which it becomes RTR
 *
 * For UD: listen to other hosts, too, if that is possible.
 *
 * Context: nic.lock and qp->lock held. The caller owes far_destroy().
 * Return: 0 (qp->far is NULL if the peer is near); EHOSTUNREACH; EINVAL; ENOMEM; or why the
 *	sockets or the way to our own memory cannot be had.
 */
int far_create(struct qp *qp, const struct ibv_qp_attr *attr);

/** far_destroy() - in the reset state; nic.lock held, too; without effect on a near queue pair */
void far_destroy(struct qp *qp);

/** far_apply() - qp->attr and qp->state have changed; @from: the state before */
void far_apply(struct qp *qp, enum ibv_qp_state from);

/** far_fail() - the queue pair enters the error state; the caller flushes its queues */
void far_fail(struct qp *qp);

/** far_has_begun() - are work requests in flight? */
static inline bool far_has_begun(const struct qp *qp)
{
	return far_is_connected(qp) && qp->far->posted != qp->sq.done;
}

/** far_run() - post to the transport, transmit, and take completions of a connected queue pair */
void far_run(struct qp *qp);

/** far_count() - add what the transport has counted to the counters of the process and a peer */
void far_count(struct qp *qp, struct softnic_peer_counters *peer);

/** far_complete() - take the completions of the transport */
void far_complete(struct qp *qp);

/**
 * far_send_datagram() - send the datagram at the head of the send queue
 * @av: of its address handle
 *
 * Return: enum ibv_wc_status, or RESP_ASKED: nothing is sent yet.
 */
int far_send_datagram(struct qp *qp, const struct send_wqe *wqe, const struct av *av);

/** far_post() - hand the work request at @posted to the transport; 0 or a negative errno */
int far_post(struct qp *qp, uint64_t path);

extern const struct roce_ops far_ops;

#endif
