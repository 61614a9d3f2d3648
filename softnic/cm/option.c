// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Options, with the kernel's checks. The type of service appears in the QP's address attributes,
 * but no packets carry the mark. A path is accepted and has no effect, because there is only one.
 */
#include <infiniband/sa.h>
#include <string.h>

#include "cm.h"

enum { ACK_TIMEOUT_MAX = 31 }; /* 5 bits in the QP attributes */

static int set_reuse(struct cm_id *id, const void *value)
{
	int reuse;

	memcpy(&reuse, value, sizeof(reuse));
	if (id->state != CM_IDLE && (!reuse || id->state == CM_LISTENING))
		return -EINVAL;
	/* A name already claimed without sharing stays unshared. */
	if (id->state == CM_IDLE)
		id->reuse = reuse ? cm_port_token() : 0;
	return 0;
}

static int set_afonly(struct cm_id *id, const void *value)
{
	int afonly;

	memcpy(&afonly, value, sizeof(afonly));
	if (id->state != CM_IDLE && id->state != CM_BOUND)
		return -EINVAL;
	id->afonly = afonly;
	return 0;
}

static int set_ack_timeout(struct cm_id *id, const void *value)
{
	uint8_t timeout = *(const uint8_t *)value;

	if (id->id.qp_type != IBV_QPT_RC || timeout > ACK_TIMEOUT_MAX)
		return -EINVAL;
	id->ack_timeout = timeout;
	return 0;
}

static int set_tos(struct cm_id *id, const void *value)
{
	memcpy(&id->tos, value, sizeof(id->tos));
	return 0;
}

/* Context: cm_lock held. */
static int set_id_option(struct cm_id *id, int name, const void *value, size_t len)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return len == sizeof(uint8_t) ? set_tos(id, value) : -EINVAL;
	case RDMA_OPTION_ID_REUSEADDR:
		return len == sizeof(int) ? set_reuse(id, value) : -EINVAL;
	case RDMA_OPTION_ID_AFONLY:
		return len == sizeof(int) ? set_afonly(id, value) : -EINVAL;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return len == sizeof(uint8_t) ? set_ack_timeout(id, value) : -EINVAL;
	default:
		return -ENOSYS;
	}
}

/* Resolves the route if one of the records is a bidirectional path. */
static int set_path(struct cm_id *id, const void *value, size_t len)
{
	const uint32_t usable = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct ibv_path_data *path = value;
	size_t i, nr = len / sizeof(*path);

	if (len % sizeof(*path))
		return -EINVAL;
	for (i = 0; i < nr; i++)
		if (path[i].flags == usable)
			return cm_resolve_route(id);
	return -EINVAL;
}

int rdma_set_option(struct rdma_cm_id *rid, int level, int optname, void *optval, size_t optlen)
{
	struct cm_id *id = cm_id(rid);
	int rc;

	if (level != RDMA_OPTION_ID && level != RDMA_OPTION_IB)
		return cm_return(-ENOSYS);
	if (!optval)
		return cm_return(-EFAULT);
	if (level == RDMA_OPTION_IB)
		return cm_return(optname == RDMA_OPTION_IB_PATH ? set_path(id, optval, optlen) :
								  -ENOSYS);
	pthread_mutex_lock(&cm_lock);
	rc = set_id_option(id, optname, optval, optlen);
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc);
}
