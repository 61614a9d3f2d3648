/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The two ends of a connected QP, as the verbs report them and not as the peer claims. */
#ifndef WEIR_LIB_CONN_ENDPOINT_H
#define WEIR_LIB_CONN_ENDPOINT_H

#include "lib/conn/handshake.h"

struct rdma_cm_id;

/**
 * weir_endpoint_query() - find the QPs that a connection joins
 * @id: after RDMA_CM_EVENT_ESTABLISHED, with its QP
 *
 * Return: 0 or the negative errno of ibv_query_qp() or ibv_query_gid().
 */
int weir_endpoint_query(struct rdma_cm_id *id, struct weir_endpoint *local,
			struct weir_endpoint *remote);

#endif
