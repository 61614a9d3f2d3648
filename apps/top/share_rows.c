/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tenants of weir share, and how much each gets. */
#include "apps/top/sample.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>

static const struct top_column of_tenants[] = {
	{ "party", "party", TOP_TEXT },
	{ "process", "process", TOP_TEXT },
	{ "pid", "pid", TOP_NUMBER },
	{ "connections", "connections", TOP_NUMBER },
	{ NULL, "connections_max", TOP_NUMBER },
	{ NULL, "bytes_sent", TOP_NUMBER },
	{ NULL, "bytes_received", TOP_NUMBER },
	{ NULL, "turns", TOP_NUMBER },
	{ NULL, "waited_ns", TOP_NUMBER },
	{ "sends", "sends_bytes_s", TOP_BYTES_S },
	{ "receives", "receives_bytes_s", TOP_BYTES_S },
	{ "waits", "waits_us", TOP_MICROSECONDS },
	{ "weight", "weight", TOP_NUMBER },
	{ "share", "share", TOP_PART },
	{ "due", "due", TOP_PART },
	{ "memory", "memory_bytes", TOP_BYTES },
	{ NULL, "rate_bytes_s", TOP_NUMBER },
	{ NULL, NULL, TOP_TEXT },
};

const struct top_section top_tenants = { "tenants of weir share", "tenants", of_tenants, NULL, 0 };

/* Bytes sent since the last sample, or since the tenant came. */
static uint64_t bytes_sent_by(const struct top_sample *old,
			      const struct share_snapshot_tenant *tenant)
{
	const struct share_snapshot_tenant *was = share_snapshot_tenant(&old->share, tenant->is.nr);

	return tenant->is.bytes_sent - (was ? was->is.bytes_sent : 0);
}

static uint64_t sent_by_group(const struct top_sample *old, const struct top_sample *new,
			      uint64_t group)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < new->share.count; i++)
		if (new->share.tenants[i].is.group_id == group)
			bytes += bytes_sent_by(old, &new->share.tenants[i]);
	return bytes;
}

/* Whether the tenant is the first of its party. */
static bool is_first(const struct top_sample *new, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (new->share.tenants[i].is.group_id == new->share.tenants[nr].is.group_id)
			return false;
	return true;
}

/* The party's part of all bytes sent, and of the weights of all senders. */
static void party_shares(const struct top_sample *old, const struct top_sample *new,
			 const struct weir_mux_ipc_tenant *of, double *share, double *due)
{
	uint64_t own = sent_by_group(old, new, of->group_id), bytes = 0, weights = 0, sent;

	for (size_t i = 0; i < new->share.count; i++) {
		const struct weir_mux_ipc_tenant *is = &new->share.tenants[i].is;

		if (!is_first(new, i))
			continue;
		sent = sent_by_group(old, new, is->group_id);
		bytes += sent;
		weights += sent ? is->weight : 0;
	}
	*share = bytes ? (double)own / (double)bytes : 0;
	*due = own ? (double)of->weight / (double)weights : 0;
}

/* The cgroup, or the user's name. */
static const char *party_name(const struct weir_mux_ipc_tenant *is, char *buffer, size_t size)
{
	const struct passwd *user;

	if (is->cgroup[0])
		return is->cgroup;
	user = getpwuid(is->uid);
	snprintf(buffer, size, "%u", is->uid);
	return user ? user->pw_name : buffer;
}

static void fill_tenant(const struct top_sample *old, const struct top_sample *new,
			const struct weir_mux_ipc_tenant *is, struct top_row *row)
{
	static const struct weir_mux_ipc_tenant nobody;
	const struct share_snapshot_tenant *found = share_snapshot_tenant(&old->share, is->nr);
	const struct weir_mux_ipc_tenant *was = found ? &found->is : &nobody;
	uint64_t turns = is->turns - was->turns;
	double share, due;
	unsigned int at = 0;
	char name[16];

	party_shares(old, new, is, &share, &due);
	top_row_text(row, &at, party_name(is, name, sizeof(name)));
	top_row_text(row, &at, is->name);
	top_row_number(row, &at, is->pid);
	top_row_number(row, &at, is->connections);
	top_row_number(row, &at, is->connections_max);
	top_row_number(row, &at, (double)is->bytes_sent);
	top_row_number(row, &at, (double)is->bytes_received);
	top_row_number(row, &at, (double)is->turns);
	top_row_number(row, &at, (double)is->waited_ns);
	top_row_number(row, &at, top_rate(old, new, was->bytes_sent, is->bytes_sent));
	top_row_number(row, &at, top_rate(old, new, was->bytes_received, is->bytes_received));
	top_row_number(row, &at,
		       turns ? (double)(is->waited_ns - was->waited_ns) / 1e3 / (double)turns : 0);
	top_row_number(row, &at, is->weight);
	top_row_number(row, &at, share);
	top_row_number(row, &at, due);
	top_row_number(row, &at, (double)is->memory_bytes);
	top_row_number(row, &at, (double)is->rate_bytes_s);
}

int top_share_tenants(const struct top_sample *old, const struct top_sample *new,
		      struct top_section *section)
{
	for (size_t i = 0; i < new->share.count; i++) {
		struct top_row *row = top_section_add(section);

		if (!row)
			return -ENOMEM;
		fill_tenant(old, new, &new->share.tenants[i].is, row);
	}
	return 0;
}

static const struct top_column of_flows[] = {
	{ "connection", "connection", TOP_NUMBER }, { "pid", "pid", TOP_NUMBER },
	{ "to", "to", TOP_TEXT },		    { "class", "class", TOP_NUMBER },
	{ "weight", "weight", TOP_NUMBER },	    { "sends", "sends_bytes_s", TOP_BYTES_S },
	{ "receives", "receives_bytes_s", TOP_BYTES_S },
	{ NULL, "bytes_sent", TOP_NUMBER },	    { NULL, "bytes_received", TOP_NUMBER },
	{ "queued", "queued_bytes", TOP_BYTES },    { NULL, NULL, TOP_TEXT },
};

const struct top_section top_flows = { "connections of the tenants", "flows", of_flows, NULL, 0 };

static void fill_flow(const struct top_sample *old, const struct top_sample *new,
		      const struct weir_mux_ipc_tenant *tenant,
		      const struct weir_mux_ipc_flow *is, struct top_row *row)
{
	static const struct weir_mux_ipc_flow nothing;
	const struct weir_mux_ipc_flow *found = share_snapshot_flow(
		share_snapshot_tenant(&old->share, tenant->nr), is->nr);
	const struct weir_mux_ipc_flow *was = found ? found : &nothing;
	unsigned int at = 0;

	top_row_number(row, &at, is->nr);
	top_row_number(row, &at, tenant->pid);
	top_row_text(row, &at, is->peer);
	top_row_number(row, &at, is->class_nr);
	top_row_number(row, &at, is->weight);
	top_row_number(row, &at, top_rate(old, new, was->bytes_sent, is->bytes_sent));
	top_row_number(row, &at, top_rate(old, new, was->bytes_received, is->bytes_received));
	top_row_number(row, &at, (double)is->bytes_sent);
	top_row_number(row, &at, (double)is->bytes_received);
	top_row_number(row, &at, (double)is->queued_bytes);
}

int top_share_flows(const struct top_sample *old, const struct top_sample *new,
		    struct top_section *section)
{
	for (size_t i = 0; i < new->share.count; i++) {
		const struct share_snapshot_tenant *tenant = &new->share.tenants[i];

		for (size_t k = 0; k < tenant->nr_flows; k++) {
			struct top_row *row = top_section_add(section);

			if (!row)
				return -ENOMEM;
			fill_flow(old, new, &tenant->is, &tenant->flows[k], row);
		}
	}
	return 0;
}
