/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tenants that dial a QP and may leave early. Link with --wrap=weir_mux_qp_dedup_client, which
 * holds back WELCOME.
 */
#ifndef WEIR_TESTS_LIB_MUX_TENANTS_H
#define WEIR_TESTS_LIB_MUX_TENANTS_H

#include "tests/lib/mux/ends.h"

/* A tenant that lives while @end of the socket is open, and connects to @to. */
struct mux_tenant {
	struct weir_mux_account account;
	pthread_t thread;
	const struct mux_end *to;
	uint8_t class_nr;
	int end, rc;
};

/* Returns once the tenant has proven the key, before WELCOME, which gate_open() releases. */
void tenant_dials(struct mux_tenant *tenant, const struct mux_end *from, const struct mux_end *to,
		  uint8_t class_nr);
void gate_open(void);
/* Ends the tenant; or waits until the tenant learns that there is no QP. */
void tenant_is_gone(struct mux_tenant *tenant);
void tenant_gets_no_lane(struct mux_tenant *tenant);
/* Waits for that number. */
void wait_queue_pairs(const struct mux_end *end, unsigned int count);

#endif
