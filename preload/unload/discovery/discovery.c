/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each end sends offers once its QP is ready. The earlier end hears the later end's first offer at
 * once, so the earlier end may offer less and less often.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/discovery/offer_socket.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/discovery/discovery.h"
#include "preload/unload/discovery/proof.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/tracked_qp.h"

#define SEEK_WAIT_NS (5 * WEIR_NS_PER_MS) /* for an answer to the first offer; then */
#define SEEK_WAIT_GROWS 4 /* times as long: eight offers in all */
#define SEEK_NS (30 * WEIR_NS_PER_S) /* in all: every process under weir has answered by then */
#define HEAR_WAIT_NS (WEIR_NS_PER_MS / 4) /* for the first return; then twice as long */

int discovery_open(struct discovery_sockets *sockets)
{
	proof_init();
	sockets->here = offer_socket_open_local();
	sockets->hosts = proof_has_key() ? offer_socket_open_hosts() : -1;
	return sockets->here < 0 && sockets->hosts < 0 ? -EADDRNOTAVAIL : 0;
}

static bool is_own_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	union ibv_gid own;
	int i;

	for (i = 0; !NEXT(ibv_query_gid)(context, port, i, &own); i++)
		if (!memcmp(&own, gid, sizeof(own)))
			return true;
	return false;
}

/*
 * Where the peer is. A GID is an IP address, except for GIDs that no host routes. A GID of this
 * host, on any device, means a local peer.
 */
struct peer_address {
	struct in6_addr ip;
	bool is_here;
};

static struct peer_address address_of(const struct tracked_qp *w, const struct qp_path *path)
{
	const struct ibv_ah_attr *ah = &path->attr.ah_attr;
	const union ibv_gid *gid = &ah->grh.dgid;
	struct peer_address place;

	memcpy(&place.ip, gid->raw, sizeof(place.ip));
	place.is_here = is_own_gid(w->qp->context, ah->port_num, gid) ||
			offer_socket_is_own(&place.ip);
	return place;
}

/* Can a datagram from @from be the peer's? */
static bool is_from_peer(const struct offer_address *from, const struct peer_address *peer)
{
	return peer->is_here ? offer_socket_is_local(from) : offer_socket_is_from(from, &peer->ip);
}

static struct wire_discovery_secret secret_of(const struct tracked_qp *w, bool is_asker)
{
	return (struct wire_discovery_secret){ .psn = is_asker ? w->own_psn : w->peer_psn };
}

void discovery_stop(struct tracked_qp *w)
{
	struct unload_tx *tx = w->tx_sought;

	w->tx_sought = NULL;
	unload_tx_free(tx);
	w->seek = SEEK_OVER;
}

static void give_up(struct tracked_qp *w, const char *why)
{
	discovery_stop(w);
	tracked_qp_disable(w, why);
}

static struct wire_discovery_offer offer_of(const struct tracked_qp *w, const struct qp_path *path)
{
	const struct unload_tx *tx = w->tx_sought;
	struct wire_discovery_offer offer = {
		.magic = WIRE_DISCOVERY_MAGIC,
		.version = WIRE_DISCOVERY_VERSION,
		.type = WIRE_DISCOVERY_OFFER,
		.nonce = tx->nonce,
		.addr = (uintptr_t)&tx->memory->last_return,
		.from_qpn = w->qp->qp_num,
		.to_qpn = path->attr.dest_qp_num,
		.qpn = tx->qp->qp_num,
		.psn = tx->psn,
		.rkey = tx->mr->rkey,
	};
	const struct wire_discovery_secret secret = secret_of(w, true);

	memcpy(offer.from_gid, path->own.raw, sizeof(offer.from_gid));
	proof_seal(&offer, &secret);
	return offer;
}

/* Return: the reason against an offer; or NULL. */
static const char *offer_send(const struct discovery_sockets *sockets, struct tracked_qp *w)
{
	struct wire_discovery_offer offer;
	struct in6_addr own;
	struct peer_address to;
	struct qp_path path;

	if (qp_path_query(w->qp, &path))
		return NULL;
	to = address_of(w, &path);
	offer = offer_of(w, &path);
	if (to.is_here && sockets->here < 0)
		return "no name of a socket is free";
	if (to.is_here) {
		offer_socket_send_local(sockets->here, &offer);
		return NULL;
	}
	if (sockets->hosts < 0)
		return "its peer is on another host, and there is no --key, or no UDP port is free";
	if (!offer_socket_reaches(&to.ip))
		return "its peer's GID is no address";
	/* The peer accepts the offer from this address only. */
	memcpy(&own, path.own.raw, sizeof(own));
	offer_socket_send_host(sockets->hosts, &offer, &to.ip, &own);
	return NULL;
}

struct seek_pass {
	const struct discovery_sockets *sockets;
	uint64_t now_ns;
	uint64_t next_ns;
};

static void seek_begin(struct tracked_qp *w, uint64_t now_ns)
{
	w->tx_sought = unload_tx_create(w);
	w->seek = SEEK_OUT;
	w->seek_at_ns = now_ns;
	w->seek_wait_ns = SEEK_WAIT_NS;
	w->seek_until_ns = now_ns + SEEK_NS;
	if (!w->tx_sought)
		give_up(w, "the device gives no QP to go beside it");
}

static void schedule_seek(struct tracked_qp *w, uint64_t now_ns, uint64_t grows)
{
	w->seek_at_ns = now_ns + w->seek_wait_ns;
	if (w->seek_at_ns > w->seek_until_ns)
		w->seek_at_ns = w->seek_until_ns;
	w->seek_wait_ns *= grows;
}

static void seek_again(struct tracked_qp *w, const struct discovery_sockets *sockets,
		       uint64_t now_ns)
{
	const char *why;

	if (now_ns >= w->seek_until_ns) {
		give_up(w, "nobody answers for its peer: does it run under weir, too, "
			   "as the same user, or with the same key?");
		return;
	}
	why = offer_send(sockets, w);
	if (why)
		give_up(w, why);
	else
		schedule_seek(w, now_ns, SEEK_WAIT_GROWS);
}

/* No write of the program depends on the peer before the first return. */
static void check_first_return(struct tracked_qp *w, uint64_t now_ns)
{
	struct unload_tx *tx = w->tx_sought;
	int rc = unload_tx_check_ready(tx);

	if (!rc) {
		w->seek = SEEK_OVER;
		w->tx_sought = NULL;
		__atomic_store_n(&w->tx, tx, __ATOMIC_RELEASE);
	} else if (rc != -EAGAIN || now_ns >= w->seek_until_ns) {
		give_up(w, "the connection beside it cannot be made");
	} else {
		schedule_seek(w, now_ns, 2);
	}
}

static void seek_one(struct tracked_qp *w, void *arg)
{
	struct seek_pass *s = arg;

	if (w->seek == SEEK_WANTED)
		seek_begin(w, s->now_ns);
	if (w->seek == SEEK_OUT && w->seek_at_ns <= s->now_ns)
		seek_again(w, s->sockets, s->now_ns);
	if (w->seek == SEEK_GREETED && w->seek_at_ns <= s->now_ns)
		check_first_return(w, s->now_ns);
	if ((w->seek == SEEK_OUT || w->seek == SEEK_GREETED) && w->seek_at_ns < s->next_ns)
		s->next_ns = w->seek_at_ns;
}

uint64_t discovery_run(const struct discovery_sockets *sockets, uint64_t now_ns)
{
	struct seek_pass s = { .sockets = sockets, .now_ns = now_ns, .next_ns = UINT64_MAX };

	tracked_qp_for_each(seek_one, &s);
	return s.next_ns;
}

bool discovery_want(struct tracked_qp *w)
{
	if (w->seek != SEEK_NONE || tracked_qp_is_disabled(w))
		return false;
	w->seek = SEEK_WANTED;
	return true;
}

/* The program's QP that an offer names, if connected to the offering QP. */
struct offer_match {
	const struct wire_discovery_offer *offer;
	struct tracked_qp *w;
	struct qp_path path;
};

static void match_offer(struct tracked_qp *w, void *arg)
{
	struct offer_match *m = arg;
	struct qp_path path;

	if (w->qp->qp_num != m->offer->to_qpn || qp_path_query(w->qp, &path) ||
	    path.attr.dest_qp_num != m->offer->from_qpn ||
	    memcmp(path.attr.ah_attr.grh.dgid.raw, m->offer->from_gid, WIRE_DISCOVERY_GID))
		return;
	m->w = w;
	m->path = path;
}

static bool may_be_written(const struct offer_match *m)
{
	return m->path.attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE;
}

/*
 * Neither the peer nor an impostor may replace a working receiver. A receiver that its peer has not
 * greeted may be the answer to an offer that the peer sent before it started over, and nobody else
 * will use it.
 */
static bool is_replaceable(const struct unload_rx *rx)
{
	return rx->has_failed || rx->core.is_refused || !rx->is_greeted;
}

/*
 * A peer that offers again has lost its state, since QPs are reused. The peer gets no answer, and
 * offers again, until this end has started over, too. Return: true if the peer gets an answer.
 */
static bool answer_offer(const struct offer_match *m)
{
	struct tracked_qp *w = m->w;
	bool has_answer;

	pthread_mutex_lock(&w->device->lock);
	if (w->rx && w->rx->offer.nonce != m->offer->nonce && is_replaceable(w->rx)) {
		unload_rx_retire(w->rx);
		w->rx = NULL;
	}
	if (!w->rx && may_be_written(m) && device_open_channel(w->device))
		w->rx = unload_rx_open(w, &m->path, m->offer);
	has_answer = !w->rx || w->rx->offer.nonce == m->offer->nonce;
	pthread_mutex_unlock(&w->device->lock);
	return has_answer;
}

/* Does the offer come from the QP's peer? */
static bool is_proven(const struct tracked_qp *w, const struct qp_path *path, bool is_asker,
		      const struct wire_discovery_offer *offer, const struct offer_address *from)
{
	const struct wire_discovery_secret secret = secret_of(w, is_asker);
	struct peer_address peer = address_of(w, path);

	return is_from_peer(from, &peer) && proof_holds(offer, &secret);
}

static void answer_send(int fd, const struct offer_match *m, const struct offer_address *to)
{
	const struct wire_discovery_secret secret = secret_of(m->w, false);
	struct wire_discovery_offer answer = *m->offer;
	struct in6_addr own;

	if (m->w->rx)
		answer = m->w->rx->answer;
	else
		answer.type = WIRE_DISCOVERY_REFUSED;
	proof_seal(&answer, &secret);
	/* The offering end accepts the answer from the peer's GID only. */
	memcpy(&own, m->path.own.raw, sizeof(own));
	offer_socket_answer(fd, &answer, to, &own);
}

/* A peer that sends offers can answer an offer: send ours soon. */
static bool seek_soon(struct tracked_qp *w)
{
	if (w->seek != SEEK_OUT || w->seek_wait_ns <= SEEK_WAIT_GROWS * SEEK_WAIT_NS)
		return false;
	w->seek_at_ns = 0;
	w->seek_wait_ns = SEEK_WAIT_NS;
	return true;
}

static bool offer_received(int fd, const struct wire_discovery_offer *offer,
			   const struct offer_address *from)
{
	struct offer_match m = { .offer = offer };

	tracked_qp_for_each(match_offer, &m);
	if (!m.w || !is_proven(m.w, &m.path, false, offer, from))
		return false;
	if (answer_offer(&m))
		answer_send(fd, &m, from);
	return seek_soon(m.w);
}

static void answer_taken(struct tracked_qp *w, const struct wire_discovery_offer *answer)
{
	if (unload_tx_connect(w->tx_sought, w, answer)) {
		give_up(w, "the QP beside it cannot be connected");
		return;
	}
	w->seek = SEEK_GREETED;
	w->seek_at_ns = 0;
	w->seek_wait_ns = HEAR_WAIT_NS;
}

/* An answer, and the QP that it names. */
struct answer_match {
	const struct wire_discovery_offer *answer;
	const struct offer_address *from;
	bool is_for_us;
};

static void match_answer(struct tracked_qp *w, void *arg)
{
	struct answer_match *a = arg;
	struct qp_path path;

	if (w->seek != SEEK_OUT || w->qp->qp_num != a->answer->from_qpn ||
	    w->tx_sought->nonce != a->answer->nonce || qp_path_query(w->qp, &path) ||
	    !is_proven(w, &path, true, a->answer, a->from))
		return;
	a->is_for_us = true;
	if (a->answer->type == WIRE_DISCOVERY_ACCEPTED)
		answer_taken(w, a->answer);
	else
		give_up(w, "its peer unloads nothing on it");
}

bool discovery_receive(int fd)
{
	struct offer_address from;
	struct wire_discovery_offer offer;
	struct answer_match a = { .answer = &offer, .from = &from };

	if (offer_socket_receive(fd, &offer, &from))
		return false;
	if (offer.type == WIRE_DISCOVERY_OFFER)
		return offer_received(fd, &offer, &from);
	tracked_qp_for_each(match_answer, &a);
	return a.is_for_us;
}
