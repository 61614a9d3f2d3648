/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast groups and their attached queue pairs, in all processes of this user.
 *
 * Each attachment is a bound but unused abstract socket, named after the group and the queue pair.
 * The kernel's list of socket names is the table. An attachment is in the list when the attach call
 * returns, and disappears when its process ends for any reason. No messages are needed.
 */
#ifndef WEIR_SOFTNIC_VERBS_MCAST_H
#define WEIR_SOFTNIC_VERBS_MCAST_H

#include "device.h"

struct qp;

enum {
	MCAST_QPS_MAX = 64, /* per group, of all processes */
	MCAST_ATTACHMENTS_MAX = 512, /* per process */
	MCAST_QPN = 0xffffff, /* destination of multicast WRs; no queue pair has this number */
};

/**
 * mcast_members() - list the queue pairs attached to a group now
 * @gid: the group
 * @qpns: set to the QP numbers, in no order
 *
 * Reads the names of all sockets on the host, so the time grows with their number.
 *
 * Context: Any thread.
 * Return: the number of members; 0 also if the list cannot be read.
 */
uint32_t mcast_members(const union ibv_gid *gid, uint32_t qpns[MCAST_QPS_MAX]);

/** mcast_reset() - in the child of a fork, forget the parent's attachments; nic.lock held */
void mcast_reset(void);

#endif
