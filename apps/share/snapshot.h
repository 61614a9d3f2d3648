/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tenants of weir share as seen from outside. */
#ifndef WEIR_APPS_SHARE_SNAPSHOT_H
#define WEIR_APPS_SHARE_SNAPSHOT_H

#include "lib/mux/proxy/ipc.h"

/* A tenant with @nr_flows connections in @flows. */
struct share_snapshot_tenant {
	struct weir_mux_ipc_tenant is;
	struct weir_mux_ipc_flow *flows;
	size_t nr_flows;
};

/* All visible tenants by number, at about @at_ns. */
struct share_snapshot {
	uint64_t at_ns;
	struct share_snapshot_tenant *tenants;
	size_t count;
};

/**
 * share_snapshot_take() - query the daemon once
 * @snapshot: receives the result; free with share_snapshot_fini()
 * @path: of the daemon's socket
 * @flows: query each tenant's connections, too
 *
 * Return: 0; -ECONNREFUSED nobody listens there; -ECONNRESET, -ETIMEDOUT, -ENOMEM.
 */
int share_snapshot_take(struct share_snapshot *snapshot, const char *path, bool flows,
			struct weir_error *error);
void share_snapshot_fini(struct share_snapshot *snapshot);

/* The tenant or connection with the number @nr; NULL if not in the snapshot. */
const struct share_snapshot_tenant *share_snapshot_tenant(const struct share_snapshot *snapshot,
							  uint32_t nr);
const struct weir_mux_ipc_flow *share_snapshot_flow(const struct share_snapshot_tenant *tenant,
						    uint32_t nr);

#endif
