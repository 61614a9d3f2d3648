/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queries of weir top about tenants. */
#include "apps/share/daemon.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Root sees all tenants, others those of their own user. */
static bool may_see(const struct share_tenant *who, const struct share_tenant *whom)
{
	return !who->uid || who->uid == whom->uid;
}

/* Copies the end of @text that fits, made printable. */
static void copy_tail(char *out, size_t size, const char *text)
{
	size_t i, length = strlen(text);

	if (length >= size)
		text += length - size + 1;
	strcpy(out, text);
	for (i = 0; out[i]; i++)
		if (!isprint((unsigned char)out[i]))
			out[i] = '?';
}

static void add_class(struct weir_mux_class_counters *sum,
		      const struct weir_mux_class_counters *of_class)
{
	sum->turns += weir_counter_read(&of_class->turns);
	sum->waited_ns += weir_counter_read(&of_class->waited_ns);
	sum->bytes_sent += weir_counter_read(&of_class->bytes_sent);
	sum->bytes_received += weir_counter_read(&of_class->bytes_received);
}

static void fill_tenant(struct share_tenant *tenant, struct weir_mux_ipc_tenant *out)
{
	struct weir_mux_account *account = &tenant->account;
	struct weir_mux_class_counters sum = { 0 };

	for (unsigned int i = 0; i < WEIR_MUX_CLASSES_MAX; i++)
		add_class(&sum, &account->classes[i]);
	*out = (struct weir_mux_ipc_tenant){
		.nr = tenant->nr,
		.pid = (uint32_t)tenant->pid,
		.uid = tenant->uid,
		.weight = tenant->policy.weight,
		.connections_max = tenant->policy.connections,
		.rate_bytes_s = tenant->policy.rate_bytes_s,
		.bytes_sent = sum.bytes_sent,
		.bytes_received = sum.bytes_received,
		.group_id = tenant->policy.group_id,
		.turns = sum.turns,
		.waited_ns = sum.waited_ns,
	};
	strcpy(out->name, tenant->name);
	if (tenant->policy.is_cgroup)
		copy_tail(out->cgroup, sizeof(out->cgroup), tenant->cgroup);
	pthread_mutex_lock(&account->mux->lock);
	out->connections = account->nr_conns;
	out->memory_bytes = account->bytes;
	pthread_mutex_unlock(&account->mux->lock);
}

int share_query_tenant(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		       struct weir_mux_ipc_tenant *out)
{
	struct share_daemon *share = who->share;
	struct weir_list *at;
	int rc = -ENOENT;

	pthread_mutex_lock(&share->lock);
	for (at = share->tenants.next; rc && at != &share->tenants; at = at->next) {
		struct share_tenant *tenant = weir_list_entry(at, struct share_tenant, link);

		if (tenant->nr <= ask->nr || !tenant->is_in || !may_see(who, tenant))
			continue;
		fill_tenant(tenant, out);
		rc = 0;
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static struct share_tenant *tenant_find(const struct share_daemon *share, uint32_t nr)
{
	const struct weir_list *at;

	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		if (weir_list_entry(at, struct share_tenant, link)->nr == nr)
			return weir_list_entry(at, struct share_tenant, link);
	return NULL;
}

static void fill_flow(const struct weir_mux_vconn *conn, struct weir_mux_ipc_flow *out)
{
	uint64_t sent = __atomic_load_n(&conn->sent, __ATOMIC_RELAXED);
	uint64_t zc_posted = __atomic_load_n(&conn->zc_sent, __ATOMIC_RELAXED);
	uint64_t written_done = __atomic_load_n(&conn->written_done, __ATOMIC_RELAXED);
	uint64_t read_done = __atomic_load_n(&conn->read_done, __ATOMIC_RELAXED);

	*out = (struct weir_mux_ipc_flow){
		.nr = conn->nr,
		.class_nr = conn->class,
		.weight = __atomic_load_n(&conn->weight, __ATOMIC_RELAXED),
		.bytes_sent = sent + zc_posted + written_done,
		.bytes_received = __atomic_load_n(&conn->received, __ATOMIC_RELAXED) + read_done,
		.queued_bytes = __atomic_load_n(&conn->shm->out.tail, __ATOMIC_RELAXED) - sent,
	};
	if (out->queued_bytes > conn->size)
		out->queued_bytes = conn->size;
	copy_tail(out->peer, sizeof(out->peer), conn->remote->name);
}

int share_query_flow(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		     struct weir_mux_ipc_flow *out)
{
	struct share_daemon *share = who->share;
	const struct share_tenant *tenant;
	uint32_t i = ask->value;
	int rc = -ENOENT;

	pthread_mutex_lock(&share->lock);
	tenant = tenant_find(share, ask->nr);
	while (tenant && may_see(who, tenant) && i < WEIR_MUX_IPC_CONNS_MAX && !tenant->conns[i])
		i++;
	if (tenant && may_see(who, tenant) && i < WEIR_MUX_IPC_CONNS_MAX) {
		fill_flow(tenant->conns[i], out);
		rc = 0;
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static void fill_class(const struct share_tenant *tenant, uint8_t nr,
		       struct weir_mux_ipc_class *out)
{
	struct weir_mux_class_counters sum = { 0 };

	add_class(&sum, &tenant->account.classes[nr]);
	*out = (struct weir_mux_ipc_class){
		.turns = sum.turns,
		.waited_ns = sum.waited_ns,
		.bytes_sent = sum.bytes_sent,
		.bytes_received = sum.bytes_received,
	};
	for (unsigned int i = 0; i < WEIR_MUX_IPC_CONNS_MAX; i++)
		out->connections += tenant->conns[i] && tenant->conns[i]->class == nr;
}

int share_query_class(const struct share_tenant *who, const struct weir_mux_ipc_request *ask,
		      struct weir_mux_ipc_class *out)
{
	struct share_daemon *share = who->share;
	const struct share_tenant *tenant;
	int rc = -ENOENT;

	if (ask->value >= share->mux->options.nr_classes)
		return -ENOENT;
	pthread_mutex_lock(&share->lock);
	tenant = tenant_find(share, ask->nr);
	if (tenant && may_see(who, tenant)) {
		fill_class(tenant, (uint8_t)ask->value, out);
		rc = 0;
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}
