// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <linux/errqueue.h> /* after time.h */
#include <unistd.h>

#include "softnic/udp/probe.h"
#include "softnic/udp/packet_size.h"
#include "softnic/roce/icrc.h"

enum {
	BUFFER_BYTES = 1 << 20,
	PACKET_BYTES_MAX = ROCE_PACKET_MAX + SEAL_EXTRA_BYTES,
	FIRST_WAIT_MS = 50,
	SIZE_TRIES = 3,
	FIND_ROUNDS = 3,
	FIND_WAIT_MS = 600, /* in all long enough for the kernel to find that no host is there */
	FIND_BURST = 32,
	STREAM_GAP_US = 500,
	STREAM_LAST_WAIT_MS = 2000,
};

#define NS_PER_MS 1000000ull

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

/* For poll(2), rounded up. */
static int left_ms(uint64_t deadline_ns)
{
	uint64_t now = now_ns();

	return now < deadline_ns ? (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* An answer, or a refusal of a question. */
struct probe_event {
	uint16_t port;
	uint64_t nonce;
	int error; /* of a refusal */
};

static void map_address(struct sockaddr_in6 *to, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;

	*to = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	if (from->sa_family == AF_INET6) {
		*to = *(const struct sockaddr_in6 *)from;
	} else {
		to->sin6_addr.s6_addr[10] = to->sin6_addr.s6_addr[11] = 0xff;
		memcpy(to->sin6_addr.s6_addr + 12, &v4->sin_addr, sizeof(v4->sin_addr));
	}
	to->sin6_port = 0;
}

static void set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* The options of softnic's sockets: whole packets only, and refusals are heard. */
static int open_socket(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	if (fd < 0)
		return -errno;
	set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	set(fd, IPPROTO_IP, IP_RECVERR, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	return fd;
}

bool probe_is_of_one_host(const struct sockaddr *host)
{
	struct sockaddr_in6 at;
	const uint8_t *bytes = at.sin6_addr.s6_addr;

	map_address(&at, host);
	if (IN6_IS_ADDR_V4MAPPED(&at.sin6_addr))
		return bytes[12] && bytes[12] < 224;
	return !IN6_IS_ADDR_MULTICAST(&at.sin6_addr) && !IN6_IS_ADDR_UNSPECIFIED(&at.sin6_addr);
}

bool probe_is_here(const struct sockaddr *host)
{
	struct sockaddr_in6 at;
	bool is_here;
	int fd = open_socket();

	map_address(&at, host);
	is_here = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));
	if (fd >= 0)
		close(fd);
	return is_here;
}

/* A socket that connects sends nothing, but the kernel looks up its route. */
static int look_up_route(struct probe *p)
{
	struct sockaddr_in6 to = p->to;
	socklen_t size = sizeof(p->from), mtu_size = sizeof(p->link_mtu);
	int fd = open_socket(), rc = 0;

	if (fd < 0)
		return fd;
	to.sin6_port = htons(PROBE_ROCE_PORT);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockname(fd, (struct sockaddr *)&p->from, &size) ||
	    getsockopt(fd, p->is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, p->is_ipv4 ? IP_MTU : IPV6_MTU,
		       &p->link_mtu, &mtu_size))
		rc = -errno;
	close(fd);
	return rc;
}

static int bind_port(struct probe *p)
{
	const int ports = PROBE_PORT_MAX - PROBE_PORT_MIN + 1;
	struct sockaddr_in6 at = p->from;

	for (int i = 0; i < ports; i++) {
		p->port = (uint16_t)(PROBE_PORT_MIN + (p->nonce + (unsigned int)i) % ports);
		at.sin6_port = htons(p->port);
		if (!bind(p->fd, (struct sockaddr *)&at, sizeof(at)))
			return 0;
	}
	return -errno;
}

int probe_open(struct probe *p, const struct sockaddr *host)
{
	int rc;

	*p = (struct probe){ .fd = -1 };
	map_address(&p->to, host);
	p->is_ipv4 = IN6_IS_ADDR_V4MAPPED(&p->to.sin6_addr);
	if (getrandom(&p->nonce, sizeof(p->nonce), 0) != sizeof(p->nonce))
		return -errno;
	rc = look_up_route(p);
	if (rc)
		return rc;
	p->fd = open_socket();
	rc = p->fd < 0 ? p->fd : bind_port(p);
	if (rc)
		probe_close(p);
	return rc;
}

void probe_close(struct probe *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint32_t probe_payload(const struct probe *p)
{
	return udp_payload(p->link_mtu, p->is_ipv4, true);
}

size_t probe_largest(const struct probe *p, uint32_t payload)
{
	return payload + ROCE_HEADERS_MAX + SEAL_EXTRA_BYTES +
	       (size_t)udp_header_bytes(p->is_ipv4);
}

static void fill_flow(struct roce_flow *flow, const struct probe *p, uint16_t to)
{
	size_t at = p->is_ipv4 ? 12 : 0;

	*flow = (struct roce_flow){
		.is_ipv6 = !p->is_ipv4,
		.dont_fragment = true,
		.src_port = p->port,
		.dst_port = to,
	};
	memcpy(flow->src, p->from.sin6_addr.s6_addr + at, sizeof(flow->src) - at);
	memcpy(flow->dst, p->to.sin6_addr.s6_addr + at, sizeof(flow->dst) - at);
}

/* A failure that the kernel reports here may be that of an earlier question. */
static void send_question(struct probe *p, uint16_t port, enum question_kind kind, size_t bytes,
			  uint64_t nonce)
{
	const struct question q = { kind, 0, nonce };
	struct sockaddr_in6 to = p->to;
	uint8_t message[PACKET_BYTES_MAX];
	struct roce_flow flow;

	if (bytes < PROBE_QUESTION_BYTES || bytes > sizeof(message))
		return;
	to.sin6_port = htons(port);
	question_encode(&q, message, bytes - ROCE_ICRC_BYTES);
	fill_flow(&flow, p, port);
	roce_icrc_append(&flow, message, bytes - ROCE_ICRC_BYTES);
	for (int tries = 0; tries < 2; tries++)
		if (sendto(p->fd, message, bytes, 0, (struct sockaddr *)&to, sizeof(to)) >= 0 ||
		    errno == EMSGSIZE)
			return;
}

/* Returns whether the kernel had a refusal; a report of this host's own is none. */
static bool take_refusal(struct probe *p, struct probe_event *e)
{
	char control[512], bytes[64];
	struct sockaddr_in6 to = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct question q = { 0 };
	struct sock_extended_err err;
	ssize_t length = recvmsg(p->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (length < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if ((c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) &&
		    (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR))
			continue;
		memcpy(&err, CMSG_DATA(c), sizeof(err));
		e->error = (int)err.ee_errno;
	}
	if (length >= QUESTION_BYTES_MIN)
		question_decode(&q, (uint8_t *)bytes);
	e->port = ntohs(to.sin6_port);
	e->nonce = q.nonce;
	return e->error && e->error != EMSGSIZE;
}

static bool take_answer(struct probe *p, struct probe_event *e)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	struct sockaddr_in6 from;
	socklen_t size = sizeof(from);
	struct question q;
	ssize_t length = recvfrom(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT,
				  (struct sockaddr *)&from, &size);

	if (length < 0 || !question_is_message(bytes, (size_t)length) ||
	    !question_decode(&q, bytes) || q.kind != ANSWER ||
	    memcmp(&from.sin6_addr, &p->to.sin6_addr, sizeof(from.sin6_addr)))
		return false;
	e->port = ntohs(from.sin6_port);
	e->nonce = q.nonce;
	return true;
}

/* Waits for an event until a deadline. Returns false at the deadline. */
static bool next_event(struct probe *p, uint64_t deadline_ns, struct probe_event *e)
{
	for (;;) {
		struct pollfd fd = { .fd = p->fd, .events = POLLIN };
		int n = poll(&fd, 1, left_ms(deadline_ns));

		*e = (struct probe_event){ 0 };
		if (n > 0 && fd.revents & POLLERR && take_refusal(p, e))
			return true;
		if (n > 0 && take_answer(p, e))
			return true;
		if (now_ns() >= deadline_ns)
			return false;
	}
}

struct probe_answer probe_ask(struct probe *p, uint16_t port, enum question_kind kind, size_t bytes,
			      unsigned int tries)
{
	uint64_t nonce = ++p->nonce;
	struct probe_event e;

	for (unsigned int i = 0; i < tries; i++) {
		uint64_t deadline_ns = now_ns() + (uint64_t)(FIRST_WAIT_MS << i) * NS_PER_MS;

		send_question(p, port, kind, bytes, nonce);
		while (next_event(p, deadline_ns, &e)) {
			if (!e.error && e.nonce == nonce)
				return (struct probe_answer){ PROBE_ANSWERED, e.port, 0 };
			if (e.error && e.port == port)
				return (struct probe_answer){ PROBE_REFUSED, 0, e.error };
		}
	}
	return (struct probe_answer){ .outcome = PROBE_SILENT };
}

/* Ports without a process refuse, so only answers count, and that there is no host. */
static bool hear_any(struct probe *p, uint64_t nonce, uint64_t wait_ns, struct probe_answer *answer)
{
	uint64_t deadline_ns = now_ns() + wait_ns;
	struct probe_event e;

	while (next_event(p, deadline_ns, &e)) {
		if (e.error && e.error != ECONNREFUSED)
			*answer = (struct probe_answer){ PROBE_REFUSED, 0, e.error };
		else if (!e.error && e.nonce == nonce)
			*answer = (struct probe_answer){ PROBE_ANSWERED, e.port, 0 };
		if (answer->outcome != PROBE_SILENT)
			return true;
	}
	return false;
}

struct probe_answer probe_find(struct probe *p)
{
	struct probe_answer answer = { .outcome = PROBE_SILENT };
	uint64_t nonce = ++p->nonce;

	for (int round = 0; round < FIND_ROUNDS; round++) {
		for (unsigned int port = PROBE_PORT_MIN; port <= PROBE_PORT_MAX; port++) {
			send_question(p, (uint16_t)port, QUESTION,
				      PROBE_QUESTION_BYTES, nonce);
			if (port % FIND_BURST == 0 && hear_any(p, nonce, NS_PER_MS, &answer))
				return answer;
		}
		if (hear_any(p, nonce, FIND_WAIT_MS * NS_PER_MS, &answer))
			return answer;
	}
	return answer;
}

/* @sent_ns: of each question; 0 once its answer has come. */
struct question_stream {
	struct probe_flow *flow;
	uint64_t first; /* nonce */
	uint64_t *sent_ns;
	unsigned int next; /* behind the latest question that was answered */
};

static void hear_stream(struct question_stream *s, const struct probe_event *e)
{
	uint64_t i = e->nonce - s->first;
	struct probe_flow *flow = s->flow;

	if (e->error || i >= flow->sent)
		return;
	if (!s->sent_ns[i]) {
		flow->repeated++;
		return;
	}
	flow->rtt_ns[flow->answered++] = now_ns() - s->sent_ns[i];
	s->sent_ns[i] = 0;
	if (i + 1 < s->next)
		flow->overtaken++;
	else
		s->next = (unsigned int)i + 1;
}

static void hear_until(struct probe *p, struct question_stream *s, uint64_t deadline_ns,
		       unsigned int enough)
{
	struct probe_event e;

	while (s->flow->answered < enough && next_event(p, deadline_ns, &e))
		hear_stream(s, &e);
}

int probe_stream(struct probe *p, uint16_t port, unsigned int count, struct probe_flow *flow)
{
	struct question_stream s = { .flow = flow, .first = p->nonce + 1 };
	uint64_t begin_ns = now_ns();

	*flow = (struct probe_flow){ .rtt_ns = calloc(count, sizeof(*flow->rtt_ns)) };
	s.sent_ns = calloc(count, sizeof(*s.sent_ns));
	if (!flow->rtt_ns || !s.sent_ns) {
		free(flow->rtt_ns);
		free(s.sent_ns);
		return -ENOMEM;
	}
	while (flow->sent < count) {
		s.sent_ns[flow->sent++] = now_ns();
		send_question(p, port, QUESTION, PROBE_QUESTION_BYTES, ++p->nonce);
		hear_until(p, &s, begin_ns + flow->sent * STREAM_GAP_US * 1000ull, UINT32_MAX);
	}
	hear_until(p, &s, now_ns() + STREAM_LAST_WAIT_MS * NS_PER_MS, count);
	free(s.sent_ns);
	qsort(flow->rtt_ns, flow->answered, sizeof(*flow->rtt_ns), compare);
	return 0;
}

bool probe_passes(struct probe *p, uint16_t port, size_t packet_bytes, unsigned int tries)
{
	size_t bytes = packet_bytes - (size_t)udp_header_bytes(p->is_ipv4);

	return probe_ask(p, port, QUESTION, bytes, tries).outcome == PROBE_ANSWERED;
}

size_t probe_packet_bytes(struct probe *p, uint16_t port, size_t refused)
{
	size_t low = PROBE_QUESTION_BYTES + (size_t)udp_header_bytes(p->is_ipv4);
	size_t high = refused;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (probe_passes(p, port, middle, SIZE_TRIES))
			low = middle;
		else
			high = middle;
	}
	return low;
}
