// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * datagrams PORT: answer the datagrams of one client, then end.
 * datagrams HOST PORT lat|poll|bw: microseconds one way of 8 bytes between sleeping or spinning
 * ends, the median; or MB/s that arrive with the offloads that softnic uses.
 *
 * Bare UDP, as the mark for softnic between hosts: nothing is lost, checked or acknowledged.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "apps/common/number.h"
#include "lib/base/clock.h"

enum {
	ROUNDS = 20000,
	PING_BYTES = 8,
	SEGMENT_BYTES = 1044, /* of softnic, at an MTU of 1500 */
	TRAIN_BYTES = 57 * SEGMENT_BYTES,
	MESSAGE_BYTES = 1 << 16,
	BUFFER_BYTES = 4 << 20,
	ENDS = 100, /* one of them arrives */
	PATIENCE_S = 30,
};

#define STREAM_NS 2000000000ull

/* The first byte of a datagram. */
enum { SLEEP = 'l', SPIN = 'p', STREAM = 'b', END = 'e' };

static uint8_t bytes[MESSAGE_BYTES];

static int open_socket(uint16_t port)
{
	const struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	const int size = BUFFER_BYTES, yes = 1;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		err(1, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_UDP, UDP_GRO, &yes, sizeof(yes)))
		err(1, "setsockopt");
	return fd;
}

static size_t receive_from(int fd, bool spins, struct sockaddr_in6 *from)
{
	socklen_t size = sizeof(*from);
	ssize_t n;

	do
		n = recvfrom(fd, bytes, sizeof(bytes), spins ? MSG_DONTWAIT : 0,
			     (struct sockaddr *)from, &size);
	while (n < 0 && spins);
	if (n < 0)
		err(1, "recvfrom");
	return (size_t)n;
}

static void answer(int fd, size_t size, const struct sockaddr_in6 *to)
{
	if (sendto(fd, bytes, size, 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
		err(1, "sendto");
}

static void serve_client(int fd)
{
	struct sockaddr_in6 from;
	uint64_t sum = 0;
	bool spins = false;
	size_t n;

	while ((n = receive_from(fd, spins, &from)) && bytes[0] != END) {
		spins = bytes[0] == SPIN;
		if (bytes[0] == STREAM)
			sum += n;
		else
			answer(fd, n, &from);
	}
	memcpy(bytes, &sum, sizeof(sum));
	answer(fd, sizeof(sum), &from);
}

static uint64_t end(int fd, const struct sockaddr_in6 *to)
{
	struct sockaddr_in6 from;
	uint64_t sum;
	int i;

	bytes[0] = END;
	for (i = 0; i < ENDS; i++)
		answer(fd, 1, to);
	while (receive_from(fd, false, &from) != sizeof(sum))
		;
	memcpy(&sum, bytes, sizeof(sum));
	return sum;
}

static void ping(int fd, const struct sockaddr_in6 *to, char kind)
{
	static uint64_t times_ns[ROUNDS];
	struct sockaddr_in6 from;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		times_ns[i] = weir_now_ns();
		bytes[0] = (uint8_t)kind;
		answer(fd, PING_BYTES, to);
		receive_from(fd, kind == SPIN, &from);
		times_ns[i] = weir_now_ns() - times_ns[i];
	}
	qsort(times_ns, ROUNDS, sizeof(times_ns[0]), number_compare);
	printf("%.2f\n", times_ns[number_quantile(ROUNDS, 50)] / 2e3);
	end(fd, to);
}

static void stream(int fd, const struct sockaddr_in6 *to)
{
	const int each = SEGMENT_BYTES;
	uint64_t begin_ns, ns;

	bytes[0] = STREAM;
	if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &each, sizeof(each)))
		err(1, "UDP_SEGMENT");
	begin_ns = weir_now_ns();
	while ((ns = weir_now_ns() - begin_ns) < STREAM_NS)
		answer(fd, TRAIN_BYTES, to);
	printf("%.0f\n", end(fd, to) * 1e3 / ns);
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
	char host[INET6_ADDRSTRLEN + sizeof("::ffff:")];
	uint64_t port;

	if (argc < 2 || !number_parse(argv[argc < 4 ? 1 : 2], 1, UINT16_MAX, &port))
		errx(2, "usage: datagrams PORT | HOST PORT lat|poll|bw");
	if (argc < 4) {
		serve_client(open_socket((uint16_t)port));
		return 0;
	}
	snprintf(host, sizeof(host), "%s%s", strchr(argv[1], ':') ? "" : "::ffff:", argv[1]);
	if (inet_pton(AF_INET6, host, &to.sin6_addr) != 1)
		errx(2, "%s is no address", argv[1]);
	to.sin6_port = htons((uint16_t)port);
	if (argv[3][0] == STREAM)
		stream(open_socket(0), &to);
	else
		ping(open_socket(0), &to, argv[3][0]);
	return 0;
}
