/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the connection manager as MADs, for peers on other hosts.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_CM_FAR_FAR_MSG_H
#define WEIR_SOFTNIC_CM_FAR_FAR_MSG_H

#include "softnic/cm/cm.h"
#include "softnic/roce_cm/cm.h"

/** far_msg_is_request() - is it a REQ or SIDR_REQ? */
static inline bool far_msg_is_request(const struct roce_mad *m)
{
	return m->kind == ROCE_MAD_REQ || m->kind == ROCE_MAD_SIDR_REQ;
}

/** far_msg_write() - the MAD for a message of @id; fields that the manager fills in are 0 */
void far_msg_write(struct roce_mad *m, const struct cm_id *id, const struct cm_msg *msg);

/** far_msg_read() - the message in a MAD; for REQ and SIDR_REQ, far_msg_read_request() */
void far_msg_read(struct cm_msg *msg, const struct roce_mad *m);

/**
 * far_msg_read_request() - the message in a REQ or SIDR_REQ
 * @path: the way it came
 * @ps: set to the port space that is called
 *
 * Return: 0, or -EPROTO if its addresses are not those of @path, or no port is called.
 */
int far_msg_read_request(struct cm_msg *msg, const struct roce_mad *m,
			 const struct roce_cm_path *path, enum rdma_port_space *ps);

#endif
