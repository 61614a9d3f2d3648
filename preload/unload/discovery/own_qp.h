/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* QPs of our own, connected along the program's: the same ports, the same path. */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_OWN_QP_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_OWN_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/unload/clock.h"

#define PSN_BITS 0xffffffu
#define OWN_QP_ASK_NS (10 * NS_PER_MS) /* a device is asked so often at most */

/* Where a QP of the program's leads to. */
struct qp_path {
	struct ibv_qp_attr attr;
	union ibv_gid own;
};

/* Return: 0; -ENOTCONN it leads nowhere, or not by a GID. */
int qp_path_query(struct ibv_qp *qp, struct qp_path *path);

/* Whether a QP of the program's is in an error state, as its device says. */
bool own_qp_is_in_error(struct ibv_qp *qp);

/* @cap: what is wanted; max_inline_data: written, what it takes. Return: NULL: errno says why. */
struct ibv_qp *own_qp_create(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv,
			     struct ibv_qp_cap *cap);

/* Leads @qp along @path to the QP @qpn. Return: 0 or an errno. */
int own_qp_connect(struct ibv_qp *qp, const struct qp_path *path, uint32_t qpn, uint32_t own_psn,
		   uint32_t psn);

/* Nobody can guess them. At most 256. Return: 0 or -EIO. */
int own_qp_random(void *bytes, size_t size);

#endif
