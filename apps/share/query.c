/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What who looks sees of the tenants, as weir top does. */
#include "apps/share/daemon.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Who is not root sees those of his own user. */
static bool may_see(const struct tenant *who, const struct tenant *whom)
{
	return !who->uid || who->uid == whom->uid;
}

/* What fits of a text's end; whoever has chosen it, it is printable then. */
static void tail_copy(char *out, size_t size, const char *text)
{
	size_t i, length = strlen(text);

	if (length >= size)
		text += length - size + 1;
	strcpy(out, text);
	for (i = 0; out[i]; i++)
		if (!isprint((unsigned char)out[i]))
			out[i] = '?';
}

static void tenant_fill(struct tenant *tenant, struct weir_share_tenant *out)
{
	struct weir_owner *owner = &tenant->owner;

	*out = (struct weir_share_tenant){
		.nr = tenant->nr,
		.pid = (uint32_t)tenant->pid,
		.uid = tenant->uid,
		.weight = tenant->terms.weight,
		.connections_max = tenant->terms.connections,
		.rate_bytes_s = tenant->terms.rate_bytes_s,
		.bytes_sent = owner->counts.bytes_sent,
		.bytes_received = owner->counts.bytes_received,
		.party = tenant->terms.party,
		.turns = owner->counts.work_requests,
		.waited_ns = owner->counts.waited_ns,
	};
	strcpy(out->name, tenant->name);
	if (tenant->terms.is_cgroup)
		tail_copy(out->cgroup, sizeof(out->cgroup), tenant->cgroup);
	pthread_mutex_lock(&owner->hub->lock);
	out->connections = owner->nr_conns;
	out->memory_bytes = owner->bytes;
	pthread_mutex_unlock(&owner->hub->lock);
}

int show_tenant(const struct tenant *who, const struct weir_share_ask *ask,
		struct weir_share_tenant *out)
{
	struct share *share = who->share;
	struct weir_list *at;
	int rc = -ENOENT;

	pthread_mutex_lock(&share->lock);
	for (at = share->tenants.next; rc && at != &share->tenants; at = at->next) {
		struct tenant *tenant = weir_list_entry(at, struct tenant, link);

		if (tenant->nr <= ask->nr || !tenant->is_in || !may_see(who, tenant))
			continue;
		tenant_fill(tenant, out);
		rc = 0;
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static struct tenant *tenant_find(const struct share *share, uint32_t nr)
{
	const struct weir_list *at;

	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		if (weir_list_entry(at, struct tenant, link)->nr == nr)
			return weir_list_entry(at, struct tenant, link);
	return NULL;
}

static void flow_fill(const struct weir_circuit *conn, struct weir_share_flow *out)
{
	uint64_t sent = __atomic_load_n(&conn->sent, __ATOMIC_RELAXED);
	uint64_t lent = __atomic_load_n(&conn->sent_lent, __ATOMIC_RELAXED);
	uint64_t put = __atomic_load_n(&conn->put, __ATOMIC_RELAXED);
	uint64_t fetched = __atomic_load_n(&conn->fetched, __ATOMIC_RELAXED);

	*out = (struct weir_share_flow){
		.nr = conn->nr,
		.class_nr = conn->class,
		.weight = __atomic_load_n(&conn->weight, __ATOMIC_RELAXED),
		.bytes_sent = sent + lent + put,
		.bytes_received = __atomic_load_n(&conn->received, __ATOMIC_RELAXED) + fetched,
		.queued_bytes = __atomic_load_n(&conn->door->out.tail, __ATOMIC_RELAXED) - sent,
	};
	if (out->queued_bytes > conn->size)
		out->queued_bytes = conn->size;
	tail_copy(out->peer, sizeof(out->peer), conn->node->name);
}

int show_flow(const struct tenant *who, const struct weir_share_ask *ask,
	      struct weir_share_flow *out)
{
	struct share *share = who->share;
	const struct tenant *tenant;
	uint32_t i = ask->value;
	int rc = -ENOENT;

	pthread_mutex_lock(&share->lock);
	tenant = tenant_find(share, ask->nr);
	while (tenant && may_see(who, tenant) && i < WEIR_SHARE_CONNS_MAX &&
	       !tenant->conns[i])
		i++;
	if (tenant && may_see(who, tenant) && i < WEIR_SHARE_CONNS_MAX) {
		flow_fill(tenant->conns[i], out);
		rc = 0;
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}
