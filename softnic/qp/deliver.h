/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery of a work request (WR) to its remote queue pair or queue pairs.
 */
#ifndef WEIR_SOFTNIC_QP_DELIVER_H
#define WEIR_SOFTNIC_QP_DELIVER_H

#include "softnic/verbs/mcast.h"
#include "qp.h"

/* The members that a datagram to a multicast group has yet to reach. */
struct mcast_fanout {
	struct remote_qp *left[MCAST_QPS_MAX];
	uint32_t num_left;
	bool has_begun;
	/* The last lookup of a group; valid for all WRs posted before the lookup. */
	bool is_known;
	union ibv_gid group;
	uint32_t known_to; /* sq.tail at the lookup */
	uint32_t members[MCAST_QPS_MAX], num_members;
};

/**
 * deliver_step() - execute one step of the WR at the head of a send queue
 * @qp: its queue pair
 *
 * A multicast WR is done when each member has received or lost the datagram. The members are the
 * queue pairs attached when the WR was posted. No member waits for another.
 *
 * Context: qp->lock held.
 * Return: IBV_WC_SUCCESS if the WR is done, another enum ibv_wc_status, or RESP_*. RESP_SILENT
 *	means that a remote queue pair is unknown or does not answer.
 */
int deliver_step(struct qp *qp);

/**
 * deliver_waits_for() - list the remote queue pairs that a stalled WR waits for
 *
 * Context: qp->lock held.
 * Return: the length of @ends.
 */
uint32_t deliver_waits_for(struct qp *qp, struct remote_qp ***ends);

/**
 * deliver_give_up() - drop for remote queue pairs that did not answer in time; UC and UD
 *
 * Context: qp->lock held.
 */
void deliver_give_up(struct qp *qp);

#endif
