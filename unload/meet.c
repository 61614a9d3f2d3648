/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unload/clock.h"
#include "unload/connect.h"
#include "unload/device.h"
#include "unload/meet.h"
#include "unload/next.h"
#include "unload/ring.h"
#include "unload/say.h"
#include "unload/side.h"
#include "unload/watch.h"
#include "wire/offer.h"

#define SEEK_WAIT_NS (5 * NS_PER_MS) /* for an answer to the first offer; then twice as long */
#define SEEK_WAIT_MAX_NS (200 * NS_PER_MS)
#define SEEK_NS (10 * NS_PER_S) /* in all: nobody who runs under weir needs as long */

static int bind_to(int fd, uint16_t port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

int meet_open(void)
{
	int port, zero = 0, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	for (port = WIRE_OFFER_PORT; port < WIRE_OFFER_PORT + WIRE_OFFER_PORTS; port++)
		if (!bind_to(fd, port))
			return fd;
	close(fd);
	return -1;
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

/* A GID is an address, but for those that no host routes; one of ours is here. */
static int address_of(struct watched *w, const struct path *path, struct sockaddr_in6 *address)
{
	const struct ibv_ah_attr *ah = &path->attr.ah_attr;
	const union ibv_gid *gid = &ah->grh.dgid;
	static const uint8_t loopback[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };
	bool own = is_own(w->qp->context, ah->port_num, gid);

	*address = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	memcpy(&address->sin6_addr, own ? loopback : gid->raw, sizeof(address->sin6_addr));
	return IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr) ? -EHOSTUNREACH : 0;
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
	struct sockaddr_in6 to;
	struct path path;
	int port;

	if (path_of(w->qp, &path))
		return -ENOTCONN;
	if (address_of(w, &path, &to))
		return -EHOSTUNREACH;
	offer.nonce = side->nonce;
	offer.addr = (uintptr_t)&side->memory->told;
	offer.from_qpn = w->qp->qp_num;
	offer.to_qpn = path.attr.dest_qp_num;
	offer.qpn = side->qp->qp_num;
	offer.psn = side->psn;
	offer.rkey = side->mr->rkey;
	memcpy(offer.from_gid, path.own.raw, sizeof(offer.from_gid));
	for (port = WIRE_OFFER_PORT; port < WIRE_OFFER_PORT + WIRE_OFFER_PORTS; port++) {
		to.sin6_port = htons(port);
		/* One that is lost is as one that nobody answers. */
		sendto(fd, &offer, sizeof(offer), 0, (struct sockaddr *)&to, sizeof(to));
	}
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

/* A peer that asks anew has forgotten what it had: QPs are reused. */
static void ring_offer(const struct meant *m)
{
	struct watched *w = m->w;

	pthread_mutex_lock(&w->device->lock);
	if (w->ring && w->ring->offer.nonce != m->offer->nonce) {
		ring_close(w->ring, clock_ns() + RING_LAST_NS);
		w->ring = NULL;
	}
	if (!w->ring && may_be_written(m) && device_open_channel(w->device))
		w->ring = ring_open(w, &m->path, m->offer);
	pthread_mutex_unlock(&w->device->lock);
}

static void offer_received(int fd, const struct wire_offer *offer, const struct sockaddr_in6 *from)
{
	struct meant m = { .offer = offer };
	struct wire_offer answer = *offer;

	watch_each(is_meant, &m);
	if (!m.w)
		return;
	ring_offer(&m);
	answer.type = WIRE_OFFER_REFUSED;
	sendto(fd, m.w->ring ? &m.w->ring->answer : &answer, sizeof(answer), 0,
	       (const struct sockaddr *)from, sizeof(*from));
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
	struct sockaddr_in6 from;
	socklen_t from_size = sizeof(from);
	struct wire_offer offer;
	uint8_t bytes[sizeof(offer) + 1];
	ssize_t n = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_size);

	if (n < 0 || wire_offer_decode(bytes, (size_t)n, &offer))
		return;
	if (offer.type == WIRE_OFFER)
		offer_received(fd, &offer, &from);
	else
		watch_each(is_answered, &offer);
}
