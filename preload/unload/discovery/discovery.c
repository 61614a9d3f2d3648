/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each end looks for the other when it is ready, so the later one is heard at once by an earlier
 * one, which need not ask often until then.
 */
#include <errno.h>
#include <string.h>

#include "preload/unload/clock.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/discovery/offer_socket.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/discovery/discovery.h"
#include "preload/unload/hooks/next.h"
#include "preload/unload/discovery/proof.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/tracked_qp.h"

#define SEEK_WAIT_NS (5 * NS_PER_MS) /* for an answer to the first offer; then */
#define SEEK_WAIT_GROWS 4 /* times as long: eight are sent in all */
#define SEEK_NS (30 * NS_PER_S) /* in all: busy or not, who runs under weir is heard by then */
#define HEAR_WAIT_NS (NS_PER_MS / 4) /* for the first return; then twice as long */

int meet_open(struct meet_sockets *sockets)
{
	proof_init();
	sockets->here = datagram_open_here();
	sockets->hosts = proof_has_key() ? datagram_open_hosts() : -1;
	return sockets->here < 0 && sockets->hosts < 0 ? -EADDRNOTAVAIL : 0;
}

static bool is_own(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	union ibv_gid own;
	int i;

	for (i = 0; !NEXT(ibv_query_gid)(context, port, i, &own); i++)
		if (!memcmp(&own, gid, sizeof(own)))
			return true;
	return false;
}

/*
 * Where the peer is: a GID is an address, but for those that no host routes. One of ours is here,
 * at whichever device.
 */
struct place {
	struct in6_addr ip;
	bool is_here;
};

static struct place place_of(const struct watched *w, const struct path *path)
{
	const struct ibv_ah_attr *ah = &path->attr.ah_attr;
	const union ibv_gid *gid = &ah->grh.dgid;
	struct place place;

	memcpy(&place.ip, gid->raw, sizeof(place.ip));
	place.is_here = is_own(w->qp->context, ah->port_num, gid) || datagram_is_own(&place.ip);
	return place;
}

/* Whether what came from there can be the peer's. */
static bool is_from(const struct datagram_address *from, const struct place *peer)
{
	return peer->is_here ? datagram_is_here(from) : datagram_is_from(from, &peer->ip);
}

static struct wire_offer_secret secret_of(const struct watched *w, bool is_asker)
{
	return (struct wire_offer_secret){ .psn = is_asker ? w->own_psn : w->peer_psn };
}

void meet_stop(struct watched *w)
{
	struct side *side = w->side_sought;

	w->side_sought = NULL;
	side_free(side);
	w->seek = SEEK_OVER;
}

static void give_up(struct watched *w, const char *why)
{
	meet_stop(w);
	watch_make_plain(w, why);
}

static struct wire_offer offer_of(const struct watched *w, const struct path *path)
{
	const struct side *side = w->side_sought;
	struct wire_offer offer = {
		.magic = WIRE_OFFER_MAGIC,
		.version = WIRE_OFFER_VERSION,
		.type = WIRE_OFFER,
		.nonce = side->nonce,
		.addr = (uintptr_t)&side->memory->told,
		.from_qpn = w->qp->qp_num,
		.to_qpn = path->attr.dest_qp_num,
		.qpn = side->qp->qp_num,
		.psn = side->psn,
		.rkey = side->mr->rkey,
	};
	const struct wire_offer_secret secret = secret_of(w, true);

	memcpy(offer.from_gid, path->own.raw, sizeof(offer.from_gid));
	proof_seal(&offer, &secret);
	return offer;
}

/* Return: why it cannot be; or NULL. */
static const char *offer_send(const struct meet_sockets *sockets, struct watched *w)
{
	struct wire_offer offer;
	struct in6_addr own;
	struct place to;
	struct path path;

	if (path_of(w->qp, &path))
		return NULL;
	to = place_of(w, &path);
	offer = offer_of(w, &path);
	if (to.is_here && sockets->here < 0)
		return "no name of a socket is free";
	if (to.is_here) {
		datagram_send_here(sockets->here, &offer);
		return NULL;
	}
	if (sockets->hosts < 0)
		return "its peer is on another host, and there is no --key, or no UDP port is free";
	if (!datagram_reaches(&to.ip))
		return "its peer's GID is no address";
	/* The peer takes it from this address only. */
	memcpy(&own, path.own.raw, sizeof(own));
	datagram_send_host(sockets->hosts, &offer, &to.ip, &own);
	return NULL;
}

struct seeking {
	const struct meet_sockets *sockets;
	uint64_t now_ns;
	uint64_t next_ns;
};

static void seek_begin(struct watched *w, uint64_t now_ns)
{
	w->side_sought = side_make(w);
	w->seek = SEEK_OUT;
	w->seek_at_ns = now_ns;
	w->seek_wait_ns = SEEK_WAIT_NS;
	w->seek_until_ns = now_ns + SEEK_NS;
	if (!w->side_sought)
		give_up(w, "the device gives no QP to go beside it");
}

static void come_again(struct watched *w, uint64_t now_ns, uint64_t grows)
{
	w->seek_at_ns = now_ns + w->seek_wait_ns;
	if (w->seek_at_ns > w->seek_until_ns)
		w->seek_at_ns = w->seek_until_ns;
	w->seek_wait_ns *= grows;
}

static void seek_again(struct watched *w, const struct meet_sockets *sockets, uint64_t now_ns)
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
		come_again(w, now_ns, SEEK_WAIT_GROWS);
}

/* Until the first return nothing of the program's is at stake. */
static void hear(struct watched *w, uint64_t now_ns)
{
	struct side *side = w->side_sought;
	int err = side_heard(side);

	if (!err) {
		w->seek = SEEK_OVER;
		w->side_sought = NULL;
		__atomic_store_n(&w->side, side, __ATOMIC_RELEASE);
	} else if (err != -EAGAIN || now_ns >= w->seek_until_ns) {
		give_up(w, "the connection beside it cannot be made");
	} else {
		come_again(w, now_ns, 2);
	}
}

static void seek_one(struct watched *w, void *arg)
{
	struct seeking *s = arg;

	if (w->seek == SEEK_WANTED)
		seek_begin(w, s->now_ns);
	if (w->seek == SEEK_OUT && w->seek_at_ns <= s->now_ns)
		seek_again(w, s->sockets, s->now_ns);
	if (w->seek == SEEK_GREETED && w->seek_at_ns <= s->now_ns)
		hear(w, s->now_ns);
	if ((w->seek == SEEK_OUT || w->seek == SEEK_GREETED) && w->seek_at_ns < s->next_ns)
		s->next_ns = w->seek_at_ns;
}

uint64_t meet_seek(const struct meet_sockets *sockets, uint64_t now_ns)
{
	struct seeking s = { .sockets = sockets, .now_ns = now_ns, .next_ns = UINT64_MAX };

	watch_each(seek_one, &s);
	return s.next_ns;
}

bool meet_want(struct watched *w)
{
	if (w->seek != SEEK_NONE || watch_is_plain(w))
		return false;
	w->seek = SEEK_WANTED;
	return true;
}

/* The program's QP that an offer means, if it is connected to the asker's. */
struct meant {
	const struct wire_offer *offer;
	struct watched *w;
	struct path path;
};

static void is_meant(struct watched *w, void *arg)
{
	struct meant *m = arg;
	struct path path;

	if (w->qp->qp_num != m->offer->to_qpn || path_of(w->qp, &path) ||
	    path.attr.dest_qp_num != m->offer->from_qpn ||
	    memcmp(path.attr.ah_attr.grh.dgid.raw, m->offer->from_gid, WIRE_OFFER_GID))
		return;
	m->w = w;
	m->path = path;
}

static bool may_be_written(const struct meant *m)
{
	return m->path.attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE;
}

/* Neither its peer nor who pretends to be it may take the place of one that works. */
static bool is_over(const struct ring *ring)
{
	return ring->has_failed || ring->copier.is_refused;
}

/*
 * A peer that asks anew has forgotten what it had: QPs are reused. Until ours has begun anew, too,
 * it gets no answer, and asks again. Return: whether it gets one.
 */
static bool ring_offer(const struct meant *m)
{
	struct watched *w = m->w;
	bool has_answer;

	pthread_mutex_lock(&w->device->lock);
	if (w->ring && w->ring->offer.nonce != m->offer->nonce && is_over(w->ring)) {
		ring_retire(w->ring);
		w->ring = NULL;
	}
	if (!w->ring && may_be_written(m) && device_open_channel(w->device))
		w->ring = ring_open(w, &m->path, m->offer);
	has_answer = !w->ring || w->ring->offer.nonce == m->offer->nonce;
	pthread_mutex_unlock(&w->device->lock);
	return has_answer;
}

/* Whether it is from the QP's peer. */
static bool is_proven(const struct watched *w, const struct path *path, bool is_asker,
		      const struct wire_offer *offer, const struct datagram_address *from)
{
	const struct wire_offer_secret secret = secret_of(w, is_asker);
	struct place peer = place_of(w, path);

	return is_from(from, &peer) && proof_holds(offer, &secret);
}

static void answer_send(int fd, const struct meant *m, const struct datagram_address *to)
{
	const struct wire_offer_secret secret = secret_of(m->w, false);
	struct wire_offer answer = *m->offer;
	struct in6_addr own;

	if (m->w->ring)
		answer = m->w->ring->answer;
	else
		answer.type = WIRE_OFFER_REFUSED;
	proof_seal(&answer, &secret);
	/* The asker takes it from the peer's GID only. */
	memcpy(&own, m->path.own.raw, sizeof(own));
	datagram_answer(fd, &answer, to, &own);
}

/* Who looks for us is there to be found. */
static bool seek_soon(struct watched *w)
{
	if (w->seek != SEEK_OUT || w->seek_wait_ns <= SEEK_WAIT_GROWS * SEEK_WAIT_NS)
		return false;
	w->seek_at_ns = 0;
	w->seek_wait_ns = SEEK_WAIT_NS;
	return true;
}

static bool offer_received(int fd, const struct wire_offer *offer,
			   const struct datagram_address *from)
{
	struct meant m = { .offer = offer };

	watch_each(is_meant, &m);
	if (!m.w || !is_proven(m.w, &m.path, false, offer, from))
		return false;
	if (ring_offer(&m))
		answer_send(fd, &m, from);
	return seek_soon(m.w);
}

static void answer_taken(struct watched *w, const struct wire_offer *answer)
{
	if (side_connect(w->side_sought, w, answer)) {
		give_up(w, "the QP beside it cannot be connected");
		return;
	}
	w->seek = SEEK_GREETED;
	w->seek_at_ns = 0;
	w->seek_wait_ns = HEAR_WAIT_NS;
}

/* What came, and the QP that it is for. */
struct answered {
	const struct wire_offer *answer;
	const struct datagram_address *from;
	bool is_for_us;
};

static void is_answered(struct watched *w, void *arg)
{
	struct answered *a = arg;
	struct path path;

	if (w->seek != SEEK_OUT || w->qp->qp_num != a->answer->from_qpn ||
	    w->side_sought->nonce != a->answer->nonce || path_of(w->qp, &path) ||
	    !is_proven(w, &path, true, a->answer, a->from))
		return;
	a->is_for_us = true;
	if (a->answer->type == WIRE_OFFER_TAKEN)
		answer_taken(w, a->answer);
	else
		give_up(w, "its peer unloads nothing on it");
}

bool meet_receive(int fd)
{
	struct datagram_address from;
	struct wire_offer offer;
	struct answered a = { .answer = &offer, .from = &from };

	if (datagram_receive(fd, &offer, &from))
		return false;
	if (offer.type == WIRE_OFFER)
		return offer_received(fd, &offer, &from);
	watch_each(is_answered, &a);
	return a.is_for_us;
}
