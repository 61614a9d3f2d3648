/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The field's own headers, seen with default visibility: everything in softnic is
 * hidden except what these declare, for that is what a program expects to find here.
 */
#ifndef WEIR_SOFTNIC_VERBS_VERBS_H
#define WEIR_SOFTNIC_VERBS_VERBS_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#pragma GCC visibility pop

#endif
