/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The libibverbs and librdmacm headers, with default visibility. softnic hides all its symbols
 * except the declarations of these headers, which programs link to.
 */
#ifndef WEIR_SOFTNIC_VERBS_VERBS_H
#define WEIR_SOFTNIC_VERBS_VERBS_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#pragma GCC visibility pop

#endif
