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

/**
 * weir_endpoint_of_request() - find where the answer to a request goes
 * @id: from the request
 * @gid: receives the peer's GID, or its IP address on a device without GIDs
 *
 * A request may come from an invented address. A REJ reaches only the owner of this address.
 */
void weir_endpoint_of_request(struct rdma_cm_id *id, uint8_t gid[WIRE_GID]);

/**
 * weir_endpoint_network() - find the addresses that one host may have
 * @id: from the request
 * @gid: of weir_endpoint_of_request()
 * @network: receives the first of these addresses: of IPv6, the /64 alone
 *
 * An IPv6 host may take any address of its /64, so limits count the /64. The hosts of a whole
 * InfiniBand subnet share the first half of their GIDs, and there each GID counts.
 */
void weir_endpoint_network(struct rdma_cm_id *id, const uint8_t gid[WIRE_GID],
			   uint8_t network[WIRE_GID]);

#endif
