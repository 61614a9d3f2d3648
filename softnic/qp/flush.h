/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The flush of rdma-core 45 (ibv_wr_flush): earlier writes are visible to all that read the
 * target's memory. Older headers lack its names, so softnic has names of its own.
 */
#ifndef WEIR_SOFTNIC_QP_FLUSH_H
#define WEIR_SOFTNIC_QP_FLUSH_H

#include <stddef.h>
#include <stdint.h>

#include "softnic/verbs/verbs.h"

#define FLUSH_OP ((enum ibv_wr_opcode)14) /* IBV_WR_FLUSH */
#define FLUSH_WC ((enum ibv_wc_opcode)8) /* IBV_WC_FLUSH */
#define FLUSH_OPS (1ull << 11) /* IBV_QP_EX_WITH_FLUSH */
#define FLUSH_CAP (1ull << 38) /* IBV_DEVICE_FLUSH_GLOBAL */

enum {
	FLUSH_ACCESS = 1 << 8, /* IBV_ACCESS_FLUSH_GLOBAL */
	FLUSH_GLOBAL = 1, /* the type; persistent memory is the other */
	FLUSH_RANGE = 0, /* the levels */
	FLUSH_REGION = 1,
};

/* Newer headers have the function at the end of struct ibv_qp_ex. */
struct flush_qp_ex {
	struct ibv_qp_ex ex;
#ifndef HAVE_WR_FLUSH
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
#endif
};

#endif
