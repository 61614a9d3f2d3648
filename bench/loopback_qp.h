/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue pair connected to itself, so that only this process is measured. */
#ifndef WEIR_BENCH_LOOPBACK_QP_H
#define WEIR_BENCH_LOOPBACK_QP_H

#include <infiniband/verbs.h>

/* Brings a reliable QP on port 1 up to RTS, connected to itself, or exits the program. */
void loopback_qp_connect(struct ibv_qp *qp);

#endif
