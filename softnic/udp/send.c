// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Packets lie back to back in one buffer. So a packet that continues a train only lengthens the
 * train's message. A train's packets have one size, but the last may be shorter.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "softnic/control/fault.h"
#include "softnic/roce/icrc.h"
#include "softnic/roce/qp.h"
#include "softnic/tap/capture.h"
#include "softnic/tap/delay.h"
#include "softnic/udp/send.h"
#include "softnic/udp/socket.h"
#include "softnic/qp_far/stage.h"

enum {
	BATCH_BYTES = 256 << 10,
	BATCH_MESSAGES = 64,
	TRAIN_BYTES_MAX = 65000, /* an IP packet has less than 64 KiB */
	TRAIN_PACKETS_MAX = 64, /* UDP_MAX_SEGMENTS of older kernels */
	WAIT_MS = 2, /* for room in the socket's buffer, before packets are dropped */
};

/* A message of the batch: a train of @packets, each of @each bytes but the last. */
struct train {
	struct udp_path path;
	struct sockaddr_in6 name;
	struct iovec iov;
	size_t each;
	uint32_t packets;
	bool is_ended;
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control;
};

static struct {
	uint8_t bytes[BATCH_BYTES];
	size_t used;
	struct train trains[BATCH_MESSAGES];
	struct mmsghdr messages[BATCH_MESSAGES];
	uint32_t count;
	bool lacks_segmentation; /* the kernel refused a train */
	uint64_t packets; /* that faults were drawn for */
} batch;

static size_t add_control(struct msghdr *m, size_t at, int level, int type, const void *data,
			  size_t size)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + at);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(c), data, size);
	return at + CMSG_SPACE(size);
}

static void prepare(struct train *t, struct mmsghdr *message)
{
	struct msghdr *m = &message->msg_hdr;
	struct in6_pktinfo from = { 0 };
	uint16_t each = (uint16_t)t->each;

	t->name = (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = htons(t->path.to.port),
	};
	memcpy(&t->name.sin6_addr, t->path.to.gid.raw, sizeof(t->name.sin6_addr));
	memcpy(&from.ipi6_addr, t->path.from.raw, sizeof(from.ipi6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&t->name.sin6_addr))
		t->name.sin6_scope_id = from.ipi6_ifindex = t->path.to.ifindex;
	*m = (struct msghdr){
		.msg_name = &t->name,
		.msg_namelen = sizeof(t->name),
		.msg_iov = &t->iov,
		.msg_iovlen = 1,
		.msg_control = t->control.bytes,
	};
	m->msg_controllen = add_control(m, 0, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
	if (t->packets > 1)
		m->msg_controllen = add_control(m, m->msg_controllen, SOL_UDP, UDP_SEGMENT, &each,
						sizeof(each));
}

/* Returns false if the message at the front must be dropped. */
static bool may_try_again(const struct train *t)
{
	struct pollfd out = { .fd = udp.own, .events = POLLOUT };

	if (errno == EINTR || errno == ECONNREFUSED) /* the latter tells of an earlier packet */
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return poll(&out, 1, WAIT_MS) > 0;
	if (t->packets > 1 && (errno == EIO || errno == EINVAL))
		batch.lacks_segmentation = true;
	return false;
}

static void flush(void)
{
	uint32_t done = 0, i;
	int n;

	for (i = 0; i < batch.count; i++)
		prepare(&batch.trains[i], &batch.messages[i]);
	while (done < batch.count && udp.own >= 0 && !fault_port_is_down()) {
		n = sendmmsg(udp.own, batch.messages + done, batch.count - done, MSG_DONTWAIT);
		if (n > 0)
			done += n;
		else if (!may_try_again(&batch.trains[done]))
			done++;
	}
	store_relaxed(&udp.bytes_sent, udp.bytes_sent + batch.used);
	batch.count = 0;
	batch.used = 0;
}

void send_begin(void)
{
	pthread_mutex_lock(&udp.lock);
	stage_forget();
	batch.count = 0;
	batch.used = 0;
}

void send_end(void)
{
	flush();
	pthread_mutex_unlock(&udp.lock);
}

uint8_t *send_room(void)
{
	if (batch.count == BATCH_MESSAGES || batch.used > TRAIN_BYTES_MAX - SEND_PACKET_MAX)
		flush();
	return batch.bytes + batch.used;
}

static bool is_same_path(const struct udp_path *a, const struct udp_path *b)
{
	return a->to.port == b->to.port && a->to.ifindex == b->to.ifindex &&
	       !memcmp(&a->to.gid, &b->to.gid, sizeof(a->to.gid)) &&
	       !memcmp(&a->from, &b->from, sizeof(a->from));
}

/*
 * The kernel counts up the IP ids of a train, so a foreign peer would find the ICRC wrong. A
 * softnic takes them for 0.
 */
static bool may_continue(const struct train *t, const struct udp_path *path, size_t size)
{
	return !batch.lacks_segmentation && !t->is_ended && path->to.port != UDP_ROCE_PORT &&
	       size <= t->each && t->packets < TRAIN_PACKETS_MAX &&
	       t->iov.iov_len + size <= TRAIN_BYTES_MAX && is_same_path(&t->path, path);
}

static void fill_flow(struct roce_flow *flow, const struct udp_path *path, uint16_t from_port)
{
	size_t at = socket_is_ipv4(&path->to.gid) ? 12 : 0;

	*flow = (struct roce_flow){
		.is_ipv6 = !at,
		.dont_fragment = true,
		.src_port = from_port,
		.dst_port = path->to.port,
	};
	memcpy(flow->src, path->from.raw + at, sizeof(flow->src) - at);
	memcpy(flow->dst, path->to.gid.raw + at, sizeof(flow->dst) - at);
}

/* Appends the packet in send_room(). */
static void append(const struct udp_path *path, size_t size)
{
	struct train *last = batch.count ? &batch.trains[batch.count - 1] : NULL;
	const struct udp_address from = { .gid = path->from, .port = udp.port };
	uint8_t *at = batch.bytes + batch.used;

	capture_packet(&from, &path->to, at, size);
	batch.used += size;
	if (last && may_continue(last, path, size)) {
		last->is_ended = size < last->each;
		last->packets++;
		last->iov.iov_len += size;
		return;
	}
	batch.trains[batch.count++] = (struct train){
		.path = *path,
		.iov = { at, size },
		.each = size,
		.packets = 1,
	};
}

void send_late(const struct udp_path *path, const uint8_t *bytes, size_t size)
{
	memcpy(send_room(), bytes, size);
	append(path, size);
}

/* The packet at @bytes may lie in send_room(), too. */
static void append_or_delay(const struct udp_path *path, const uint8_t *bytes, size_t size)
{
	uint64_t delay_ns = fault_packet_delay_ns();

	if (delay_ns)
		delay_packet(path, bytes, size, delay_ns);
	else if (bytes == batch.bytes + batch.used)
		append(path, size);
	else
		send_late(path, bytes, size);
}

static void append_with_faults(const struct udp_path *path, size_t size)
{
	uint32_t faults = fault_packet(batch.packets++);
	uint8_t *at = batch.bytes + batch.used;

	if (faults & FAULT_LOSES)
		return;
	if (faults & FAULT_SPOILS)
		at[batch.packets % size] ^= 1 << batch.packets % 8;
	if (faults & FAULT_DELAYS && delay_hold(path, at, size))
		return;
	append_or_delay(path, at, size);
	if (faults & FAULT_DOUBLES)
		append_or_delay(path, at, size);
	delay_release_held();
}

void send_sealed(const struct udp_path *path, size_t size)
{
	if (load_relaxed(&fault_any))
		append_with_faults(path, size);
	else
		append(path, size);
}

void send_packet(const struct udp_path *path, size_t size)
{
	struct roce_flow flow;

	fill_flow(&flow, path, udp.port);
	send_sealed(path, roce_icrc_append(&flow, batch.bytes + batch.used, size));
}

void send_from_roce_port(const struct udp_path *path, size_t size)
{
	struct train t = { .path = *path, .packets = 1 };
	uint8_t *at = batch.bytes + batch.used;
	struct mmsghdr message;
	struct roce_flow flow;

	fill_flow(&flow, path, UDP_ROCE_PORT);
	t.iov = (struct iovec){ at, roce_icrc_append(&flow, at, size) };
	prepare(&t, &message);
	if (udp.roce >= 0 && !fault_port_is_down())
		sendmsg(udp.roce, &message.msg_hdr, MSG_DONTWAIT);
}

void send_raw(const struct udp_address *to, const void *head, size_t head_size, const void *body,
	      size_t body_size)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = htons(to->port) };
	struct iovec iov[2] = { { (void *)head, head_size }, { (void *)body, body_size } };
	const struct msghdr m = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = iov,
		.msg_iovlen = 2,
	};

	memcpy(&name.sin6_addr, to->gid.raw, sizeof(name.sin6_addr));
	sendmsg(udp.own, &m, MSG_DONTWAIT);
}
