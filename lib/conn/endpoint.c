/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "lib/conn/endpoint.h"

#define NETWORK_BYTES 8 /* of an IPv6 address */

int weir_endpoint_query(struct rdma_cm_id *id, struct weir_endpoint *local,
			struct weir_endpoint *remote)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	union ibv_gid sgid, dgid;
	int rc;

	rc = ibv_query_qp(id->qp, &attr, IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PORT, &init);
	if (rc)
		return -rc;
	if (attr.ah_attr.is_global) {
		dgid = attr.ah_attr.grh.dgid;
		rc = ibv_query_gid(id->verbs, attr.ah_attr.port_num, attr.ah_attr.grh.sgid_index,
				   &sgid);
		if (rc)
			return rc < 0 && errno ? -errno : -EIO;
	} else {
		/* Within one InfiniBand subnet the QP knows LIDs only; the path has the GIDs. */
		sgid = id->route.addr.addr.ibaddr.sgid;
		dgid = id->route.addr.addr.ibaddr.dgid;
	}
	memcpy(local->gid, sgid.raw, WIRE_GID);
	memcpy(remote->gid, dgid.raw, WIRE_GID);
	local->qpn = id->qp->qp_num;
	remote->qpn = attr.dest_qp_num;
	return 0;
}

/*
 * The REQ's private data name an IP address, and librdmacm shows that one, as a GID, too. RoCE and
 * InfiniBand answer along the path of the REQ.
 */
void weir_endpoint_of_request(struct rdma_cm_id *id, uint8_t gid[WIRE_GID])
{
	const struct rdma_route *route = &id->route;
	const struct sockaddr *sa = rdma_get_peer_addr(id);

	memset(gid, 0, WIRE_GID);
	if (route->num_paths > 0)
		memcpy(gid, &route->path_rec[0].dgid, WIRE_GID);
	else if (sa->sa_family == AF_INET6)
		memcpy(gid, &((const struct sockaddr_in6 *)sa)->sin6_addr, WIRE_GID);
	else
		memcpy(gid, &((const struct sockaddr_in *)sa)->sin_addr, sizeof(struct in_addr));
}

static bool is_infiniband(struct rdma_cm_id *id)
{
	struct ibv_port_attr port;

	return id->verbs && !ibv_query_port(id->verbs, id->port_num, &port) &&
	       port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* IPv4 addresses and loopback lie in the /64 of zeroes. */
void weir_endpoint_network(struct rdma_cm_id *id, const uint8_t gid[WIRE_GID],
			   uint8_t network[WIRE_GID])
{
	static const uint8_t zeroes[NETWORK_BYTES];

	memcpy(network, gid, WIRE_GID);
	if (memcmp(gid, zeroes, NETWORK_BYTES) && !is_infiniband(id))
		memset(network + NETWORK_BYTES, 0, WIRE_GID - NETWORK_BYTES);
}
