/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tenants who begin a lane, and may not wait for it. The program is linked with
 * --wrap=weir_lane_met_client: by that they are kept from being welcomed.
 */
#ifndef WEIR_TESTS_LIB_MUX_TENANTS_H
#define WEIR_TESTS_LIB_MUX_TENANTS_H

#include "tests/lib/mux/ends.h"

/* He is there as long as his @end of the socket is, and connects to @to. */
struct tenant {
	struct weir_owner owner;
	pthread_t thread;
	const struct end *to;
	uint8_t class_nr;
	int end, rc;
};

/* Returns when he has proven the key, and before he is welcomed, which is after gate_open(). */
void tenant_dials(struct tenant *tenant, const struct end *from, const struct end *to,
		  uint8_t class_nr);
void gate_open(void);
/* He does not wait for the other end; or he does, and learns that there is no lane. */
void tenant_is_gone(struct tenant *tenant);
void tenant_gets_no_lane(struct tenant *tenant);
/* Waits until there are so many. */
void wait_queue_pairs(const struct end *end, unsigned int count);

#endif
