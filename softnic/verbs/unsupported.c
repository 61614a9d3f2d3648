// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Verbs that softnic does not support. The real libibverbs would treat our objects as its own, so
 * every exported call that takes such an object is defined here. Verbs called through the context
 * need no function: verbs.h returns EOPNOTSUPP for a null pointer.
 */
#include <errno.h>
#include <stddef.h>

#include "verbs.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static void *refuse(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	return refuse();
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	return refuse();
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return refuse();
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	return refuse();
}

/* A copy of up to 1 MiB may write its bytes in any order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return EOPNOTSUPP;
}
