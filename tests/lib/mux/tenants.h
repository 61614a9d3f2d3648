/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tenants who begin a lane, and may not wait for it. The program is linked with
 * --wrap=weir_mux_qp_dedup_client: by that they are kept from being welcomed.
 */
#ifndef WEIR_TESTS_LIB_MUX_TENANTS_H
#define WEIR_TESTS_LIB_MUX_TENANTS_H

#include "tests/lib/mux/ends.h"

/* He is there as long as his @end of the socket is, and connects to @to. */
struct mux_tenant {
	struct weir_mux_account account;
	pthread_t thread;
	const struct mux_end *to;
	uint8_t class_nr;
	int end, rc;
};

/* Returns when he has proven the key, and before he is welcomed, which is after gate_open(). */
void tenant_dials(struct mux_tenant *tenant, const struct mux_end *from, const struct mux_end *to,
		  uint8_t class_nr);
void gate_open(void);
/* He does not wait for the other end; or he does, and learns that there is no lane. */
void tenant_is_gone(struct mux_tenant *tenant);
void tenant_gets_no_lane(struct mux_tenant *tenant);
/* Waits until there are so many. */
void wait_queue_pairs(const struct mux_end *end, unsigned int count);

#endif
