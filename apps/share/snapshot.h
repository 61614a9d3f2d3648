/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What weir share says of its tenants to who looks. */
#ifndef WEIR_APPS_SHARE_SNAPSHOT_H
#define WEIR_APPS_SHARE_SNAPSHOT_H

#include "lib/mux/proxy/ipc.h"

/* A tenant, and its @nr_flows connections in @flows. */
struct look_tenant {
	struct weir_share_tenant is;
	struct weir_share_flow *flows;
	size_t nr_flows;
};

/* All that may be seen, by number, at about @at_ns. */
struct look {
	uint64_t at_ns;
	struct look_tenant *tenants;
	size_t count;
};

/**
 * look_take() - look once
 * @look: receives it; look_fini() it
 * @path: of the daemon's socket
 * @flows: also at each tenant's connections
 *
 * Return: 0; -ECONNREFUSED nobody listens there; -ECONNRESET, -ETIMEDOUT, -ENOMEM.
 */
int look_take(struct look *look, const char *path, bool flows, struct weir_error *error);
void look_fini(struct look *look);

/* The tenant, or its connection, as it was then; NULL: there was none. */
const struct look_tenant *look_tenant(const struct look *look, uint32_t nr);
const struct weir_share_flow *look_flow(const struct look_tenant *tenant, uint32_t nr);

#endif
