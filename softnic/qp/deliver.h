/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a work request goes, and what becomes of it there.
 */
#ifndef WEIR_SOFTNIC_QP_DELIVER_H
#define WEIR_SOFTNIC_QP_DELIVER_H

#include "softnic/verbs/mcast.h"
#include "qp.h"

/* Whom a datagram to a group still goes to. */
struct mcast_fanout {
	struct remote_qp *left[MCAST_QPS_MAX];
	uint32_t num_left;
	bool has_begun;
	/* What was found when the group was looked up; so it was for all posted before. */
	bool is_known;
	union ibv_gid group;
	uint32_t known_to; /* sq.tail then */
	uint32_t members[MCAST_QPS_MAX], num_members;
};

/**
 * deliver_step() - one step of the work request at the head of a send queue
 * @qp: its queue pair, lock held
 *
 * What goes to a group is done when each member has got it or lost it. Members are all that were
 * attached when it was posted, and none waits for another.
 *
 * Return: how it ended, IBV_WC_SUCCESS if all is done, or RESP_*. With RESP_SILENT another end is
 * not known or does not answer.
 */
int deliver_step(struct qp *qp);

/** deliver_waits_for() - whom it waits for if it cannot go on; how many. qp->lock held. */
uint32_t deliver_waits_for(struct qp *qp, struct remote_qp ***ends);

/** deliver_give_up() - whoever is waited for has not answered in time. UC or UD, lock held. */
void deliver_give_up(struct qp *qp);

#endif
