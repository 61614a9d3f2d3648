/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tenants of weir share as seen from outside. */
#ifndef WEIR_APPS_SHARE_SNAPSHOT_H
#define WEIR_APPS_SHARE_SNAPSHOT_H

#include "lib/mux/proxy/ipc.h"

/* A tenant with @nr_flows connections in @flows, and the first @nr_classes of @classes. */
struct share_snapshot_tenant {
	struct weir_mux_ipc_tenant is;
	struct weir_mux_ipc_flow *flows;
	size_t nr_flows;
	struct weir_mux_ipc_class classes[WEIR_MUX_CLASSES_MAX];
	unsigned int nr_classes;
};

/* All visible tenants by number, at about @at_ns. */
struct share_snapshot {
	uint64_t at_ns;
	struct share_snapshot_tenant *tenants;
	size_t count;
};

/* Further parts of a tenant to query. */
enum share_snapshot_parts {
	SHARE_SNAPSHOT_NOTHING = 0,
	SHARE_SNAPSHOT_FLOWS = 1,
	SHARE_SNAPSHOT_CLASSES = 2,
};

/**
 * share_snapshot_take() - query the daemon once
 * @snapshot: receives the result; free with share_snapshot_fini()
 * @path: of the daemon's socket
 * @parts: of enum share_snapshot_parts
 *
 * Return: 0; -ECONNREFUSED nobody listens there; -ECONNRESET, -ETIMEDOUT, -ENOMEM.
 */
int share_snapshot_take(struct share_snapshot *snapshot, const char *path, unsigned int parts,
			struct weir_error *error);
void share_snapshot_fini(struct share_snapshot *snapshot);

/* The tenant or connection with the number @nr; NULL if not in the snapshot. */
const struct share_snapshot_tenant *share_snapshot_tenant(const struct share_snapshot *snapshot,
							  uint32_t nr);
const struct weir_mux_ipc_flow *share_snapshot_flow(const struct share_snapshot_tenant *tenant,
						    uint32_t nr);

#endif
