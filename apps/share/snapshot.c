/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/share/snapshot.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_S 10

static int ask(int socket, enum weir_mux_ipc_op what, uint32_t nr, uint32_t value,
	       struct weir_mux_ipc_reply *answer)
{
	const struct weir_mux_ipc_request ask = { .what = what, .nr = nr, .value = value };
	int rc = weir_mux_ipc_send(socket, &ask, sizeof(ask), NULL, 0);

	if (!rc)
		rc = weir_mux_ipc_recv(socket, answer, sizeof(*answer), NULL);
	return rc ? rc : answer->status;
}

/* Makes room for one more element; the capacity is the next power of two. */
static void *grow(void *array, size_t count, size_t size)
{
	return count & (count - 1) ? array : realloc(array, (count ? 2 * count : 1) * size);
}

/* Fetches the tenant's connections, up to -ENOENT. */
static int fetch_flows(int socket, struct share_snapshot_tenant *tenant)
{
	struct weir_mux_ipc_reply answer;
	uint32_t next = 0;
	int rc;

	while (!(rc = ask(socket, WEIR_MUX_IPC_FLOW, tenant->is.nr, next, &answer))) {
		struct weir_mux_ipc_flow *flows =
			grow(tenant->flows, tenant->nr_flows, sizeof(*flows));

		if (!flows)
			return -ENOMEM;
		tenant->flows = flows;
		flows[tenant->nr_flows++] = answer.flow;
		next = answer.flow.nr + 1;
	}
	return rc == -ENOENT ? 0 : rc;
}

/* A daemon of an older version knows no classes. */
static int fetch_classes(int socket, struct share_snapshot_tenant *tenant)
{
	struct weir_mux_ipc_reply answer;
	int rc = 0;

	while (!rc && tenant->nr_classes < WEIR_MUX_CLASSES_MAX) {
		rc = ask(socket, WEIR_MUX_IPC_CLASS, tenant->is.nr, tenant->nr_classes, &answer);
		if (!rc)
			tenant->classes[tenant->nr_classes++] = answer.of_class;
	}
	return rc == -ENOENT || rc == -EPROTO ? 0 : rc;
}

static int fetch_parts(int socket, struct share_snapshot_tenant *tenant, unsigned int parts)
{
	int rc = parts & SHARE_SNAPSHOT_FLOWS ? fetch_flows(socket, tenant) : 0;

	return rc || !(parts & SHARE_SNAPSHOT_CLASSES) ? rc : fetch_classes(socket, tenant);
}

static int fetch_tenants(int socket, struct share_snapshot *snapshot, unsigned int parts)
{
	struct weir_mux_ipc_reply answer;
	uint32_t last = 0;
	int rc;

	while (!(rc = ask(socket, WEIR_MUX_IPC_TENANT, last, 0, &answer))) {
		struct share_snapshot_tenant *tenants =
			grow(snapshot->tenants, snapshot->count, sizeof(*tenants));

		if (!tenants)
			return -ENOMEM;
		snapshot->tenants = tenants;
		last = answer.tenant.nr;
		tenants[snapshot->count] = (struct share_snapshot_tenant){ .is = answer.tenant };
		rc = fetch_parts(socket, &tenants[snapshot->count], parts);
		snapshot->count++;
		if (rc)
			return rc;
	}
	return rc == -ENOENT ? 0 : rc;
}

int share_snapshot_take(struct share_snapshot *snapshot, const char *path, unsigned int parts,
			struct weir_error *error)
{
	int rc, socket = weir_mux_ipc_connect(path, error);

	*snapshot = (struct share_snapshot){ .at_ns = weir_now_ns() };
	if (socket < 0)
		return socket;
	weir_mux_ipc_set_timeout(socket, PATIENCE_S);
	rc = fetch_tenants(socket, snapshot, parts);
	close(socket);
	if (!rc)
		return 0;
	share_snapshot_fini(snapshot);
	return weir_error_set(error, rc, "%s: weir share does not answer the query: %s", path,
			      weir_strerror(rc));
}

void share_snapshot_fini(struct share_snapshot *snapshot)
{
	size_t i;

	for (i = 0; i < snapshot->count; i++)
		free(snapshot->tenants[i].flows);
	free(snapshot->tenants);
	*snapshot = (struct share_snapshot){ 0 };
}

const struct share_snapshot_tenant *share_snapshot_tenant(const struct share_snapshot *snapshot,
							  uint32_t nr)
{
	size_t i;

	for (i = 0; i < snapshot->count; i++)
		if (snapshot->tenants[i].is.nr == nr)
			return &snapshot->tenants[i];
	return NULL;
}

const struct weir_mux_ipc_flow *share_snapshot_flow(const struct share_snapshot_tenant *tenant,
						    uint32_t nr)
{
	size_t i;

	for (i = 0; tenant && i < tenant->nr_flows; i++)
		if (tenant->flows[i].nr == nr)
			return &tenant->flows[i];
	return NULL;
}
