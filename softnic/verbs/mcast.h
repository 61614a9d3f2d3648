/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast groups: which queue pairs are attached to which, in all processes of this user.
 *
 * Each attachment is an abstract socket that is bound and never used; its name says the group and
 * the queue pair. The kernel's list of names is the table: an attachment is in it when the call
 * returns, goes with the process that made it, however that ends, and nobody need be asked or told.
 */
#ifndef WEIR_SOFTNIC_VERBS_MCAST_H
#define WEIR_SOFTNIC_VERBS_MCAST_H

#include "device.h"

struct qp;

enum {
	MCAST_QPS_MAX = 64, /* attached to one, of all processes */
	MCAST_ATTACHMENTS_MAX = 512, /* of one process */
	MCAST_QPN = 0xffffff, /* where to send; no queue pair has that number */
};

/**
 * mcast_members() - which queue pairs are attached to a group now
 * @gid: of the group
 * @qpns: their numbers, in no order
 *
 * Takes as long as the host has sockets, for it reads the names of all.
 *
 * Context: any thread.
 * Return: how many; 0 also if the list cannot be read.
 */
uint32_t mcast_members(const union ibv_gid *gid, uint32_t qpns[MCAST_QPS_MAX]);

/** mcast_reset() - after a fork, in the child: they are the parent's. nic.lock held. */
void mcast_reset(void);

#endif
