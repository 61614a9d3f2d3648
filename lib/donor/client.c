/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

void weir_donor_client_put(struct weir_peer *client)
{
	bool last = !--client->refs;

	pthread_mutex_unlock(&client->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&client->lock);
	free(client);
}

int weir_donor_client_check_limits(const struct weir_donor *donor, unsigned int tenant,
				   struct weir_error *error)
{
	const struct weir_donor_options *options = &donor->options;

	if (donor->tenants[tenant].nr_clients >= options->key_clients_max)
		return weir_error_set(error, -EDQUOT,
				      "this key has %u clients at the donor already: its limit",
				      options->key_clients_max);
	if (weir_counter_read(&donor->nr_clients) >= options->clients_max)
		return weir_error_set(error, -EDQUOT, "the donor has %u clients already: its limit",
				      options->clients_max);
	return 0;
}

uint64_t weir_donor_client_quota(const struct weir_donor *donor,
				 const struct weir_donor_secret *secret)
{
	uint64_t quota = donor->options.quota_bytes, bytes_max = secret->budget.bytes_max;

	return bytes_max < quota ? bytes_max : quota;
}

int weir_donor_client_new(struct weir_donor *donor, struct weir_donor_conn *conn,
			  struct weir_peer **out, struct weir_error *error)
{
	struct weir_peer *client;
	int rc;

	rc = weir_donor_client_check_limits(donor, conn->tenant, error);
	if (rc)
		return rc;
	client = calloc(1, sizeof(*client));
	if (!client)
		return weir_error_set(error, -ENOMEM, "the donor is out of memory");
	client->donor = donor;
	client->tenant = conn->tenant;
	client->qp = conn->id->qp;
	client->refs = 1;
	snprintf(client->name, sizeof(client->name), "%s", conn->name);
	weir_region_account_init(&client->account, client->tenant,
				 weir_donor_client_quota(donor, conn->secret));
	client->account.budget = &conn->secret->budget;
	client->account.reads_only = !(conn->secret->rights & WEIR_RIGHT_WRITE);
	rc = weir_donor_messages_init(client, weir_keyring_pd(donor, conn->secret),
				      conn->handshake->hello.credits, error);
	if (rc) {
		free(client);
		return rc;
	}
	client->secret = weir_keyring_get(conn->secret);
	pthread_mutex_init(&client->lock, NULL);
	client->id = ++donor->client_ids;
	do {
		randombytes_buf(&client->session_id, sizeof(client->session_id));
	} while (!client->session_id);
	client->conns[0] = conn;
	weir_list_add_tail(&donor->clients, &client->link);
	weir_counter_add(&donor->nr_clients, 1);
	donor->tenants[client->tenant].nr_clients++;
	*out = client;
	return 0;
}

static bool is_connected(const struct weir_peer *client)
{
	return client->conns[0] && !client->conns[0]->is_dead;
}

struct weir_peer *weir_donor_client_find(struct weir_donor *donor, uint64_t session_id,
					 const struct weir_donor_secret *secret)
{
	struct weir_list *link;
	struct weir_peer *client;

	for (link = donor->clients.next; link != &donor->clients; link = link->next) {
		client = weir_list_entry(link, struct weir_peer, link);
		if (client->session_id == session_id && client->secret == secret &&
		    is_connected(client))
			return client;
	}
	return NULL;
}

int weir_donor_client_attach(struct weir_peer *client, struct weir_donor_conn *conn,
			     struct weir_error *error)
{
	const struct wire_handshake_hello *hello = &conn->handshake->hello;
	struct ibv_qp_attr error_state = { .qp_state = IBV_QPS_ERR };
	struct weir_donor_conn *old = client->conns[hello->channel];
	int rc = 0;

	if (old) {
		/* Messages now wait for the new channel. The error state bounds the drain. */
		weir_donor_client_conn_broken(client, old);
		ibv_modify_qp(old->id->qp, &error_state, IBV_QP_STATE);
		weir_donor_conn_drain(old);
		weir_donor_conn_break(old, "replaced");
	}
	if (old && old->is_dead)
		return weir_error_set(error, -ESTALE, "the session has ended");
	if (!hello->channel)
		rc = weir_donor_messages_resume(client, conn->id->qp, hello->credits, error);
	if (rc == -ESTALE)
		weir_donor_conn_kill(old, error->text);
	if (rc)
		return rc;
	client->conns[hello->channel] = conn;
	if (old)
		weir_donor_conn_retire(old);
	return 0;
}

void weir_donor_client_conn_broken(struct weir_peer *client, const struct weir_donor_conn *conn)
{
	if (client->conns[0] != conn)
		return;
	pthread_mutex_lock(&client->lock);
	client->qp = NULL;
	pthread_mutex_unlock(&client->lock);
}

void weir_donor_client_mute(struct weir_peer *client, const struct weir_donor_conn *conn)
{
	unsigned int i;

	for (i = 0; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (client->conns[i] == conn)
			client->conns[i] = NULL;
	if (client->conns[0])
		return;
	pthread_mutex_lock(&client->lock);
	client->qp = NULL;
	client->is_gone = true;
	pthread_mutex_unlock(&client->lock);
	for (i = 1; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (client->conns[i])
			weir_donor_conn_kill(client->conns[i], "its session has ended");
}

static bool has_conns(const struct weir_peer *client)
{
	unsigned int i;

	for (i = 0; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (client->conns[i])
			return true;
	return false;
}

static void log_end(const struct weir_peer *client)
{
	static const char *const words[] = {
		[WEIR_PEER_DIED] = "died",
		[WEIR_PEER_CLOSED] = "left",
		[WEIR_PEER_CUT] = "cut",
	};

	weir_donor_log_of(client->donor, &client->donor->tenants[client->tenant], client->name,
			  client->end == WEIR_PEER_DIED ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
			  "%s peer=%llu client=%s%s", words[client->end],
			  (unsigned long long)client->id, client->name,
			  client->end == WEIR_PEER_DIED ? " id=W105" : "");
}

void weir_donor_client_conn_gone(struct weir_peer *client)
{
	struct weir_donor *donor = client->donor;

	if (has_conns(client))
		return;
	pthread_mutex_lock(&donor->lock);
	weir_region_table_leave(&donor->region_table, &client->account);
	pthread_mutex_unlock(&donor->lock);
	log_end(client);
	if (donor->options.on_leave)
		donor->options.on_leave(donor->options.arg, client);
	weir_list_del(&client->link);
	weir_counter_add(&donor->nr_clients, -1ull);
	donor->tenants[client->tenant].nr_clients--;
	weir_donor_messages_fini(client);
	weir_keyring_put(donor, client->secret);
	weir_keyring_settle_tenant(donor, client->tenant);
	pthread_mutex_lock(&client->lock);
	weir_donor_client_put(client);
}

unsigned int weir_peer_tenant(const struct weir_peer *client)
{
	return client->tenant;
}

unsigned int weir_peer_rights(const struct weir_peer *client)
{
	return client->secret->rights;
}

bool weir_peer_is_revoked(const struct weir_peer *client)
{
	return client->secret->is_revoked;
}

uint64_t weir_peer_id(const struct weir_peer *client)
{
	return client->id;
}

bool weir_peer_has_closed(const struct weir_peer *client)
{
	return client->end == WEIR_PEER_CLOSED;
}

const char *weir_peer_name(const struct weir_peer *client)
{
	return client->name;
}
