/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The coordinator's host: competes for the leader's key, and puts what the coordinator decides. */
#ifndef WEIR_LIB_POOL_LEAD_H
#define WEIR_LIB_POOL_LEAD_H

#include <weir/donor.h>

#include "core/pool/coordinator.h"
#include "lib/pool/client.h"

/**
 * struct weir_pool_lead - zeroed at first
 * @coordinator: decides
 * @token: version of the leader's key as this donor has it; 0: it does not lead
 */
struct weir_pool_lead {
	struct weir_pool_coordinator coordinator;
	uint64_t token;
};

/**
 * weir_pool_lead_run() - lead, if nobody else does, and make all changes that are due
 * @lead: the state
 * @client: the pool
 * @map: as just read; read again after changes
 * @name: this donor's
 * @lease: ends with this donor
 * @is_back: the store has not answered for a while before
 * @changes: receives the number of changes made
 * @error: may be NULL
 *
 * Return: 0, or an error of store.h.
 */
int weir_pool_lead_run(struct weir_pool_lead *lead, struct weir_pool_client *client,
		       struct weir_pool_map *map, const char *name, uint64_t lease, bool is_back,
		       unsigned int *changes, struct weir_error *error);

#endif
