/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What weir share says of its tenants to who looks. */
#ifndef WEIR_APPS_SHARE_SNAPSHOT_H
#define WEIR_APPS_SHARE_SNAPSHOT_H

#include "lib/mux/proxy/ipc.h"

/* A tenant, and its @nr_flows connections in @flows. */
struct share_snapshot_tenant {
	struct weir_mux_ipc_tenant is;
	struct weir_mux_ipc_flow *flows;
	size_t nr_flows;
};

/* All that may be seen, by number, at about @at_ns. */
struct share_snapshot {
	uint64_t at_ns;
	struct share_snapshot_tenant *tenants;
	size_t count;
};

/**
 * share_snapshot_take() - look once
 * @look: receives it; share_snapshot_fini() it
 * @path: of the daemon's socket
 * @flows: also at each tenant's connections
 *
 * Return: 0; -ECONNREFUSED nobody listens there; -ECONNRESET, -ETIMEDOUT, -ENOMEM.
 */
int share_snapshot_take(struct share_snapshot *look, const char *path, bool flows,
			struct weir_error *error);
void share_snapshot_fini(struct share_snapshot *look);

/* The tenant, or its connection, as it was then; NULL: there was none. */
const struct share_snapshot_tenant *share_snapshot_tenant(const struct share_snapshot *look,
							  uint32_t nr);
const struct weir_mux_ipc_flow *share_snapshot_flow(const struct share_snapshot_tenant *tenant,
						    uint32_t nr);

#endif
