// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * recvmmsg() takes up to 16 messages. With UDP_GRO one message may hold many packets. The queue
 * pair answers after half of a window, so that the sender goes on while the rest is dealt with,
 * and after the last message. So one acknowledgement covers many packets.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "softnic/control/fault.h"
#include "softnic/roce/icrc.h"
#include "softnic/roce/packet.h"
#include "softnic/seal/agree.h"
#include "softnic/verbs/nic.h"
#include "softnic/tap/capture.h"
#include "softnic/qp_far/far_input.h"
#include "softnic/udp/mad.h"
#include "softnic/udp/passed.h"
#include "softnic/udp/receive.h"
#include "softnic/udp/neighbor.h"
#include "softnic/qp_far/refused.h"
#include "softnic/udp/question.h"
#include "softnic/udp/send.h"
#include "softnic/udp/socket.h"

enum {
	MESSAGES = 16, /* per call */
	MESSAGE_BYTES = 1 << 16,
	ANSWER_BYTES = 128 << 10, /* half of a window, which are worth an acknowledgement */
	UDP_HEADER_BYTES = 8,
	ROUNDS_MAX = 4, /* then other descriptors have their turn */
	LEAVE_ROUNDS_MAX = 1000,
};

struct message {
	struct sockaddr_in6 name;
	struct iovec iov;
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
};

static bool is_leaving;

/* Under receive_lock. */
static struct {
	uint8_t *bytes; /* MESSAGES * MESSAGE_BYTES */
	struct message messages[MESSAGES];
	struct mmsghdr headers[MESSAGES];
} buffer;

static bool prepare(void)
{
	int i;

	if (!buffer.bytes)
		buffer.bytes = malloc((size_t)MESSAGES * MESSAGE_BYTES);
	if (!buffer.bytes)
		return false;
	for (i = 0; i < MESSAGES; i++) {
		struct message *m = &buffer.messages[i];

		m->iov = (struct iovec){ buffer.bytes + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES };
		buffer.headers[i].msg_hdr = (struct msghdr){
			.msg_name = &m->name,
			.msg_namelen = sizeof(m->name),
			.msg_iov = &m->iov,
			.msg_iovlen = 1,
			.msg_control = m->control.bytes,
			.msg_controllen = sizeof(m->control.bytes),
		};
	}
	return true;
}

/* Sets @each to the size of a train's packets. Returns false without a destination address. */
static bool read_control(struct msghdr *m, struct udp_packet *p, size_t *each)
{
	struct in6_pktinfo to;
	struct cmsghdr *c;
	bool found = false;
	int size;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&to, CMSG_DATA(c), sizeof(to));
			memcpy(p->to.gid.raw, &to.ipi6_addr, sizeof(p->to.gid.raw));
			p->from.ifindex = to.ipi6_ifindex;
			found = true;
		} else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			if (size > 0)
				*each = (size_t)size;
		}
	}
	return found;
}

static const union ibv_gid loopback = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

/* Only the loopback interface delivers packets from 127.0.0.1, and only they are passed on. */
static void unwrap(struct udp_packet *p)
{
	if (p->to.port == UDP_ROCE_PORT || memcmp(&p->from.gid, &loopback, sizeof(loopback)) ||
	    !udp_port_is_softnic(p->from.port) ||
	    !passed_decode(p->bytes, p->size, &p->from, &p->to))
		return;
	p->was_passed_on = true;
	p->bytes += PASSED_HEADER_BYTES;
	p->size -= PASSED_HEADER_BYTES;
}

void receive_pass_on(const struct udp_packet *packet, uint32_t slot)
{
	const struct udp_address to = {
		.gid = loopback,
		.port = udp_port(slot),
	};
	uint8_t header[PASSED_HEADER_BYTES];

	if (packet->was_passed_on || !slot || slot >= SOFTNIC_SLOTS || slot == nic.slot)
		return;
	passed_encode(header, &packet->from, &packet->to);
	send_raw(&to, header, sizeof(header), packet->bytes, packet->size);
}

/* The IP id of an IPv4 packet is known only of a softnic's, which takes it for 0. */
static bool knows_icrc(const struct udp_packet *p)
{
	return !socket_is_ipv4(&p->from.gid) || udp_port_is_softnic(p->from.port);
}

static bool is_intact(const struct udp_packet *p)
{
	size_t at = socket_is_ipv4(&p->from.gid) ? 12 : 0;
	struct roce_flow flow = {
		.is_ipv6 = !at,
		.dont_fragment = true,
		.src_port = p->from.port,
		.dst_port = p->to.port,
	};

	if (!knows_icrc(p))
		return true;
	memcpy(flow.src, p->from.gid.raw + at, sizeof(flow.src) - at);
	memcpy(flow.dst, p->to.gid.raw + at, sizeof(flow.dst) - at);
	return roce_icrc_is_right(&flow, p->bytes, p->size);
}

/*
 * What only a softnic sends, to a softnic's own port; questions also to port 4791. A sealed
 * packet's tag covers more than the ICRC. Returns whether the packet is dealt with.
 */
static bool take_of_softnic(const struct udp_packet *p)
{
	bool at_own_port = p->to.port != UDP_ROCE_PORT;

	if (question_is_message(p->bytes, p->size) && is_intact(p))
		neighbor_take(p);
	else if (at_own_port && seal_is_sealed(p->bytes, p->size))
		far_input_sealed(p);
	else if (at_own_port && agree_is_message(p->bytes, p->size) && is_intact(p))
		far_input_message(p);
	else
		return false;
	capture_packet(&p->from, &p->to, p->bytes, p->size);
	return true;
}

static bool is_intact_or_refused(const struct udp_packet *p)
{
	bool is = is_intact(p);

	count(refused, !is);
	return is;
}

/* Returns false for a packet of another process. */
static bool take_packet(struct udp_packet *p)
{
	struct roce_packet decoded;
	uint32_t slot;

	unwrap(p);
	if (!is_leaving && take_of_softnic(p))
		return true;
	if (roce_packet_decode(&decoded, p->bytes, p->size) != ROCE_ACCEPTED) {
		count(refused, 1);
		return true;
	}
	slot = decoded.dest_qpn >> SOFTNIC_QP_INDEX_BITS;
	if (is_leaving || (slot != nic.slot && decoded.dest_qpn != MAD_QPN)) {
		receive_pass_on(p, slot);
		return false;
	}
	if (slot == nic.slot)
		capture_packet(&p->from, &p->to, p->bytes, p->size);
	if (decoded.dest_qpn == MAD_QPN) {
		far_input_end();
		if (is_intact_or_refused(p))
			mad_take(p, &decoded);
	} else if (is_intact_or_refused(p)) {
		far_input(p, &decoded);
	}
	return true;
}

/* Returns the bytes for this process, with UDP's headers. */
static size_t take_message(struct mmsghdr *h, uint16_t port)
{
	const struct message *m = &buffer.messages[h - buffer.headers];
	size_t left = h->msg_len, each = left, bytes = 0;
	const uint8_t *at = m->iov.iov_base;
	struct udp_packet of_all = { .to.port = port };

	memcpy(of_all.from.gid.raw, &m->name.sin6_addr, sizeof(of_all.from.gid.raw));
	of_all.from.port = ntohs(m->name.sin6_port);
	if (!read_control(&h->msg_hdr, &of_all, &each) || h->msg_hdr.msg_flags & MSG_TRUNC)
		return 0;
	for (; left; at += each, left -= each) {
		struct udp_packet p = of_all;

		each = each < left ? each : left;
		p.bytes = at;
		p.size = each;
		if (take_packet(&p))
			bytes += UDP_HEADER_BYTES + p.size;
	}
	return bytes;
}

/*
 * The kernel gives no flow to a connected socket of the group, except that of its peer. The port of
 * this process may hold packets that other processes have passed on: they are its own.
 */
void receive_leave(void)
{
	const struct sockaddr_in6 nobody = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = htons(UDP_ROCE_PORT),
	};
	uint32_t rounds = LEAVE_ROUNDS_MAX;
	size_t bytes;

	if (udp_socket(UDP_ROCE_PORT) < 0 ||
	    connect(udp.roce, (const struct sockaddr *)&nobody, sizeof(nobody)) < 0)
		return;
	is_leaving = true;
	while (receive_batch(UDP_ROCE_PORT, &bytes) && --rounds)
		;
	is_leaving = false;
}

bool receive_batch(uint16_t port, size_t *bytes)
{
	int fd = udp_socket(port), rounds, n, i;
	size_t answered = 0;
	bool any = false;

	*bytes = 0;
	for (rounds = 0, n = MESSAGES; rounds < ROUNDS_MAX && n == MESSAGES; rounds++) {
		if (fd < 0 || !prepare())
			return false;
		n = recvmmsg(fd, buffer.headers, MESSAGES, MSG_DONTWAIT, NULL);
		if (n < 0 && errno != EAGAIN)
			refused_take(fd);
		for (i = 0; i < n && !fault_port_is_down(); i++) {
			any = true;
			*bytes += take_message(&buffer.headers[i], port);
			if (*bytes - answered >= ANSWER_BYTES) {
				far_input_end();
				answered = *bytes;
			}
		}
		far_input_end();
		answered = *bytes;
	}
	return any;
}
