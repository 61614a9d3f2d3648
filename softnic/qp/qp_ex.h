/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs with the ibv_wr_* posting interface.
 */
#ifndef WEIR_SOFTNIC_QP_QP_EX_H
#define WEIR_SOFTNIC_QP_QP_EX_H

#include "softnic/verbs/verbs.h"

struct qp;

/** qp_ex_create() - ibv_create_qp_ex(), called through the context */
struct ibv_qp *qp_ex_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);

/** qp_ex_fini() - free the WR builder, if any; for every queue pair */
void qp_ex_fini(struct qp *qp);

#endif
