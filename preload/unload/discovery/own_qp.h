/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir's own QPs, connected alongside the program's QPs: same ports, same path. */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_OWN_QP_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_OWN_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"

#define PSN_BITS 0xffffffu
#define OWN_QP_ASK_NS (10 * WEIR_NS_PER_MS) /* minimum between two queries of a device */

/* The path of a program's QP. */
struct qp_path {
	struct ibv_qp_attr attr;
	union ibv_gid own;
};

/* Return: 0; -ENOTCONN the QP is not connected, or has no GID. */
int qp_path_query(struct ibv_qp *qp, struct qp_path *path);

/* Asks the device whether a program's QP is in an error state. */
bool own_qp_is_in_error(struct ibv_qp *qp);

/* @cap: the wanted limits; max_inline_data receives the actual value. Return: NULL: see errno. */
struct ibv_qp *own_qp_create(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv,
			     struct ibv_qp_cap *cap);

/* Connects @qp along @path to the QP @qpn. Return: 0 or an errno. */
int own_qp_connect(struct ibv_qp *qp, const struct qp_path *path, uint32_t qpn, uint32_t own_psn,
		   uint32_t psn);

#endif
