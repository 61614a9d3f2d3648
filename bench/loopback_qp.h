/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue pair that is its own peer: what is measured is this process's, and nobody else's. */
#ifndef WEIR_BENCH_LOOPBACK_QP_H
#define WEIR_BENCH_LOOPBACK_QP_H

#include <infiniband/verbs.h>

/* Brings a reliable one, of port 1, up to RTS, or ends the program. It may be written to by itself. */
void loopback_qp_connect(struct ibv_qp *qp);

#endif
