/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "lib/conn/endpoint.h"

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
