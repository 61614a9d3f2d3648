// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Endpoints: rdma_create_ep() makes a synchronous id ready from a result of rdma_getaddrinfo().
 */
#include <stdlib.h>
#include <string.h>

#include "cm.h"

enum { RESOLVE_MS = 2000 };

static int prepare_passive(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr) < 0)
		return -errno;
	if (pd)
		id->id.pd = pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = id->id.qp_type;
	return 0;
}

static int prepare_active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	if (res->ai_connect_len > sizeof(id->connect_data))
		return -EINVAL;
	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) < 0 ||
	    rdma_resolve_route(&id->id, RESOLVE_MS) < 0)
		return -errno;
	if (attr) {
		attr->qp_type = id->id.qp_type;
		if (rdma_create_qp(&id->id, pd, attr) < 0)
			return -errno;
	}
	if (res->ai_connect_len)
		memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = (uint8_t)res->ai_connect_len;
	return 0;
}

int rdma_create_ep(struct rdma_cm_id **rid, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	enum ibv_qp_type type = res->ai_qp_type ? (enum ibv_qp_type)res->ai_qp_type :
						  cm_id_default_type(res->ai_port_space);
	struct cm_id *id;
	int rc;

	rc = cm_id_check_type(res->ai_port_space, type);
	if (rc)
		return cm_return(rc);
	pthread_mutex_lock(&cm_lock);
	rc = cm_id_new(NULL, NULL, res->ai_port_space, type, &id);
	pthread_mutex_unlock(&cm_lock);
	if (rc)
		return cm_return(rc);
	if (res->ai_flags & RAI_PASSIVE)
		rc = prepare_passive(id, res, pd, attr);
	else
		rc = prepare_active(id, res, pd, attr);
	if (rc)
		rdma_destroy_ep(&id->id);
	else
		*rid = &id->id;
	return cm_return(rc);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
