/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "unload/clock.h"
#include "unload/connect.h"
#include "unload/datagram.h"
#include "unload/device.h"
#include "unload/meet.h"
#include "unload/next.h"
#include "unload/ring.h"
#include "unload/say.h"
#include "unload/side.h"
#include "unload/watch.h"

#define SEEK_WAIT_NS (5 * NS_PER_MS) /* for an answer to the first offer; then twice as long */
#define SEEK_WAIT_MAX_NS (200 * NS_PER_MS)
#define SEEK_NS (10 * NS_PER_S) /* in all: nobody who runs under weir needs as long */

int meet_open(void)
{
	return datagram_open();
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

/* Where the peer is: a GID is an address, but for those that no host routes; one of ours is here. */
struct place {
	struct in6_addr ip;
	bool is_here;
};

static int place_of(struct watched *w, const struct path *path, struct place *place)
{
	const struct ibv_ah_attr *ah = &path->attr.ah_attr;
	const union ibv_gid *gid = &ah->grh.dgid;
	static const uint8_t loopback[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };

	place->is_here = is_own(w->qp->context, ah->port_num, gid);
	memcpy(&place->ip, place->is_here ? loopback : gid->raw, sizeof(place->ip));
	return datagram_reaches(&place->ip) ? 0 : -EHOSTUNREACH;
}

static void give_up(struct watched *w, const char *why)
{
	struct side *side = w->side_sought;

	w->side_sought = NULL;
	side_free(side);
	w->seek = SEEK_OVER;
	watch_make_plain(w, why);
}

static int offer_send(int fd, struct watched *w)
{
	struct wire_offer offer = { .magic = WIRE_OFFER_MAGIC, .version = WIRE_OFFER_VERSION,
				    .type = WIRE_OFFER };
	const struct side *side = w->side_sought;
	struct in6_addr own;
	struct place to;
	struct path path;

	if (path_of(w->qp, &path))
		return -ENOTCONN;
	if (place_of(w, &path, &to))
		return -EHOSTUNREACH;
	offer.nonce = side->nonce;
	offer.addr = (uintptr_t)&side->memory->told;
	offer.from_qpn = w->qp->qp_num;
	offer.to_qpn = path.attr.dest_qp_num;
	offer.qpn = side->qp->qp_num;
	offer.psn = side->psn;
	offer.rkey = side->mr->rkey;
	memcpy(offer.from_gid, path.own.raw, sizeof(offer.from_gid));
	memcpy(&own, path.own.raw, sizeof(own));
	/* The peer takes it from this address only. */
	datagram_send_all(fd, &offer, &to.ip, to.is_here ? NULL : &own);
	return 0;
}

struct seeking {
	int fd;
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

static void seek_again(struct watched *w, int fd, uint64_t now_ns)
{
	if (now_ns >= w->seek_until_ns) {
		give_up(w, "nobody answers for its peer: does it run under weir, too?");
		return;
	}
	if (offer_send(fd, w) == -EHOSTUNREACH) {
		give_up(w, "its peer's GID is no address");
		return;
	}
	w->seek_at_ns = now_ns + w->seek_wait_ns;
	if (w->seek_wait_ns < SEEK_WAIT_MAX_NS)
		w->seek_wait_ns *= 2;
}

static void seek_one(struct watched *w, void *arg)
{
	struct seeking *s = arg;

	if (w->seek == SEEK_WANTED)
		seek_begin(w, s->now_ns);
	if (w->seek == SEEK_OUT && w->seek_at_ns <= s->now_ns)
		seek_again(w, s->fd, s->now_ns);
	if (w->seek == SEEK_OUT && w->seek_at_ns < s->next_ns)
		s->next_ns = w->seek_at_ns;
}

uint64_t meet_seek(int fd, uint64_t now_ns)
{
	struct seeking s = { .fd = fd, .now_ns = now_ns, .next_ns = UINT64_MAX };

	watch_each(seek_one, &s);
	return s.next_ns;
}

int meet_want(struct watched *w)
{
	if (w->seek != SEEK_NONE || watch_is_plain(w))
		return 0;
	w->seek = SEEK_WANTED;
	return 1;
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
	return ring->has_failed || ring->is_refused;
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
		ring_close(w->ring, clock_ns() + RING_LAST_NS);
		w->ring = NULL;
	}
	if (!w->ring && may_be_written(m) && device_open_channel(w->device))
		w->ring = ring_open(w, &m->path, m->offer);
	has_answer = !w->ring || w->ring->offer.nonce == m->offer->nonce;
	pthread_mutex_unlock(&w->device->lock);
	return has_answer;
}

static void offer_received(int fd, const struct wire_offer *offer,
			   const union datagram_address *from)
{
	struct meant m = { .offer = offer };
	struct wire_offer answer = *offer;
	struct place peer;

	watch_each(is_meant, &m);
	if (!m.w || place_of(m.w, &m.path, &peer) || !datagram_is_from(from, &peer.ip))
		return;
	if (!ring_offer(&m))
		return;
	answer.type = WIRE_OFFER_REFUSED;
	datagram_answer(fd, m.w->ring ? &m.w->ring->answer : &answer, from);
}

static void answer_taken(struct watched *w, const struct wire_offer *answer)
{
	struct side *side = w->side_sought;

	if (side_connect(side, w, answer)) {
		give_up(w, "the QP beside it cannot be connected");
		return;
	}
	w->seek = SEEK_OVER;
	w->side_sought = NULL;
	__atomic_store_n(&w->side, side, __ATOMIC_RELEASE);
}

static void is_answered(struct watched *w, void *arg)
{
	const struct wire_offer *answer = arg;

	if (w->seek != SEEK_OUT || w->qp->qp_num != answer->from_qpn ||
	    w->side_sought->nonce != answer->nonce)
		return;
	if (answer->type == WIRE_OFFER_TAKEN)
		answer_taken(w, answer);
	else
		give_up(w, "its peer unloads nothing on it");
}

void meet_receive(int fd)
{
	union datagram_address from;
	struct wire_offer offer;

	if (datagram_receive(fd, &offer, &from))
		return;
	if (offer.type == WIRE_OFFER)
		offer_received(fd, &offer, &from);
	else
		watch_each(is_answered, &offer);
}
