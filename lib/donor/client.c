/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

void weir_peer_put(struct weir_peer *peer)
{
	bool last = !--peer->refs;

	pthread_mutex_unlock(&peer->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&peer->lock);
	free(peer);
}

int weir_peer_new(struct weir_donor *donor, struct weir_gate *gate, struct weir_peer **out,
		  struct weir_error *error)
{
	struct weir_peer *peer;
	int ret;

	if (donor->nr_peers >= donor->options.clients_max)
		return weir_fail(error, -EDQUOT, "the donor has %u clients already: its limit",
				 donor->options.clients_max);
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return weir_fail(error, -ENOMEM, "the donor is out of memory");
	peer->donor = donor;
	peer->tenant = gate->tenant;
	peer->qp = gate->id->qp;
	peer->refs = 1;
	snprintf(peer->name, sizeof(peer->name), "%s", gate->name);
	weir_account_init(&peer->account, peer->tenant, donor->options.quota_bytes);
	ret = weir_mail_init(peer, donor->tenants[peer->tenant].pd, gate->handshake.hello.credits,
			     error);
	if (ret) {
		free(peer);
		return ret;
	}
	pthread_mutex_init(&peer->lock, NULL);
	peer->id = ++donor->peer_ids;
	do {
		randombytes_buf(&peer->session_id, sizeof(peer->session_id));
	} while (!peer->session_id);
	peer->gates[0] = gate;
	weir_list_add_tail(&donor->peers, &peer->link);
	donor->nr_peers++;
	*out = peer;
	return 0;
}

static bool is_there(const struct weir_peer *peer)
{
	return peer->gates[0] && !peer->gates[0]->is_dead;
}

struct weir_peer *weir_peer_find(struct weir_donor *donor, uint64_t session_id, unsigned int tenant)
{
	struct weir_list *link;
	struct weir_peer *peer;

	for (link = donor->peers.next; link != &donor->peers; link = link->next) {
		peer = weir_list_entry(link, struct weir_peer, link);
		if (peer->session_id == session_id && peer->tenant == tenant && is_there(peer))
			return peer;
	}
	return NULL;
}

int weir_peer_attach(struct weir_peer *peer, struct weir_gate *gate, struct weir_error *error)
{
	const struct wire_hello *hello = &gate->handshake.hello;
	struct ibv_qp_attr error_state = { .qp_state = IBV_QPS_ERR };
	struct weir_gate *old = peer->gates[hello->channel];
	int ret = 0;

	if (old) {
		weir_peer_gate_broken(peer, old); /* what is sent from here on waits for the new
						   * one */
		ibv_modify_qp(old->id->qp, &error_state, IBV_QP_STATE); /* or it might never end */
		weir_gate_drain(old);
		weir_gate_break(old, "replaced");
	}
	if (old && old->is_dead)
		return weir_fail(error, -ESTALE, "the session has ended");
	if (!hello->channel)
		ret = weir_mail_resume(peer, gate->id->qp, hello->credits, error);
	if (ret == -ESTALE)
		weir_gate_kill(old, error->text);
	if (ret)
		return ret;
	peer->gates[hello->channel] = gate;
	if (old)
		weir_gate_retire(old);
	return 0;
}

void weir_peer_gate_broken(struct weir_peer *peer, const struct weir_gate *gate)
{
	if (peer->gates[0] != gate)
		return;
	pthread_mutex_lock(&peer->lock);
	peer->qp = NULL;
	pthread_mutex_unlock(&peer->lock);
}

void weir_peer_mute(struct weir_peer *peer, const struct weir_gate *gate)
{
	unsigned int i;

	for (i = 0; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (peer->gates[i] == gate)
			peer->gates[i] = NULL;
	if (peer->gates[0])
		return;
	pthread_mutex_lock(&peer->lock);
	peer->qp = NULL;
	peer->is_gone = true;
	pthread_mutex_unlock(&peer->lock);
	for (i = 1; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (peer->gates[i])
			weir_gate_kill(peer->gates[i], "its session has ended");
}

static bool has_gates(const struct weir_peer *peer)
{
	unsigned int i;

	for (i = 0; i <= WIRE_CHANNEL_UNLOAD; i++)
		if (peer->gates[i])
			return true;
	return false;
}

void weir_peer_gate_gone(struct weir_peer *peer)
{
	struct weir_donor *donor = peer->donor;

	if (has_gates(peer))
		return;
	pthread_mutex_lock(&donor->lock);
	weir_lender_leave(&donor->lender, &peer->account);
	pthread_mutex_unlock(&donor->lock);
	weir_donor_log(donor, WEIR_LOG_INFO, "left peer=%llu client=%s",
		       (unsigned long long)peer->id, peer->name);
	if (donor->options.on_leave)
		donor->options.on_leave(donor->options.arg, peer);
	weir_list_del(&peer->link);
	donor->nr_peers--;
	weir_mail_fini(peer);
	pthread_mutex_lock(&peer->lock);
	weir_peer_put(peer);
}

unsigned int weir_peer_tenant(const struct weir_peer *peer)
{
	return peer->tenant;
}

uint64_t weir_peer_id(const struct weir_peer *peer)
{
	return peer->id;
}

const char *weir_peer_name(const struct weir_peer *peer)
{
	return peer->name;
}
