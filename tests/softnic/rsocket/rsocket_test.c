// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic rsocket; devices: softnic */
/*
 * Sockets over RDMA: each call of rsocket.h, between two ends of one process. Whole programs
 * between processes are in programs/cm_programs.py.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "softnic/control/stat.h"
#include "softnic/verbs/device.h"

enum { PATIENCE_MS = 60000, LONG_BYTES = 1 << 20 };

struct rsocket_ends {
	int listener;
	int a, b;
};

static struct sockaddr_in loopback(in_port_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = port,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void await(int s, short events)
{
	struct pollfd fd = { .fd = s, .events = events };

	assert_int_equal(rpoll(&fd, 1, PATIENCE_MS), 1);
	assert_int_equal(fd.revents & events, events);
}

static int open_connection(void **state)
{
	static struct rsocket_ends e;
	struct sockaddr_in to = loopback(0);
	socklen_t length = sizeof(to);

	e.listener = rsocket(AF_INET, SOCK_STREAM, 0);
	e.a = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_true(e.listener >= 0 && e.a >= 0);
	assert_int_equal(rbind(e.listener, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(rlisten(e.listener, 1), 0);
	assert_int_equal(rgetsockname(e.listener, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(rconnect(e.a, (struct sockaddr *)&to, sizeof(to)), 0);
	await(e.listener, POLLIN);
	e.b = raccept(e.listener, NULL, NULL);
	assert_true(e.b >= 0);
	*state = &e;
	return 0;
}

static int close_connection(void **state)
{
	const struct rsocket_ends *e = *state;

	assert_int_equal(rclose(e->a), 0);
	assert_int_equal(rclose(e->b), 0);
	assert_int_equal(rclose(e->listener), 0);
	return 0;
}

static void each_way_to_send_and_receive_carries_the_bytes(void **state)
{
	const struct rsocket_ends *e = *state;
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	char got[8] = { 0 };
	struct iovec out = { "iov", 4 }, in = { got, 4 };
	struct msghdr send = { .msg_iov = &out, .msg_iovlen = 1 };
	struct msghdr receive = { .msg_iov = &in, .msg_iovlen = 1 };

	assert_int_equal(rsend(e->a, "one", 4, 0), 4);
	assert_int_equal(rrecv(e->b, got, 4, MSG_WAITALL), 4);
	assert_string_equal(got, "one");
	assert_int_equal(rwrite(e->b, "two", 4), 4);
	assert_int_equal(rread(e->a, got, 4), 4);
	assert_string_equal(got, "two");
	assert_int_equal(rwritev(e->a, &out, 1), 4);
	assert_int_equal(rreadv(e->b, &in, 1), 4);
	assert_string_equal(got, "iov");
	memset(got, 0, sizeof(got));
	assert_int_equal(rsendmsg(e->a, &send, 0), 4);
	assert_int_equal(rrecvmsg(e->b, &receive, 0), 4);
	assert_string_equal(got, "iov");
	assert_int_equal(rsendto(e->b, "to", 3, 0, NULL, 0), 3);
	assert_int_equal(rrecvfrom(e->a, got, 3, 0, (struct sockaddr *)&from, &length), 3);
	assert_string_equal(got, "to");
}

static void both_ends_know_the_addresses(void **state)
{
	const struct rsocket_ends *e = *state;
	struct sockaddr_in own, peer;
	socklen_t length = sizeof(own);

	assert_int_equal(rgetsockname(e->a, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(rgetpeername(e->b, (struct sockaddr *)&peer, &length), 0);
	assert_int_equal(own.sin_port, peer.sin_port);
	assert_int_equal(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

static void an_empty_nonblocking_socket_has_nothing_to_read(void **state)
{
	const struct rsocket_ends *e = *state;
	struct timeval none = { 0 };
	fd_set readable;
	char byte;

	assert_int_equal(rfcntl(e->b, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rrecv(e->b, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	FD_ZERO(&readable);
	FD_SET(e->b, &readable);
	assert_int_equal(rselect(e->b + 1, &readable, NULL, NULL, &none), 0);
	assert_int_equal(rsend(e->a, "x", 1, 0), 1);
	await(e->b, POLLIN);
	assert_int_equal(rrecv(e->b, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
}

static void options_are_kept(void **state)
{
	const struct rsocket_ends *e = *state;
	int value = 1;
	socklen_t length = sizeof(value);

	assert_int_equal(rsetsockopt(e->a, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)), 0);
	value = 0;
	assert_int_equal(rgetsockopt(e->a, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
	assert_int_equal(value, 1);
}

/* Whole rings follow an odd start, so the ends of the rings fall into every place. */
static void *send_all(void *arg)
{
	const struct rsocket_ends *e = arg;
	static uint8_t bytes[LONG_BYTES];
	size_t sent = 0;
	ssize_t n = 1;

	for (size_t i = 0; i < LONG_BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	while (n > 0 && sent < LONG_BYTES) {
		n = rsend(e->a, bytes + sent, sent ? LONG_BYTES - sent : 37, 0);
		sent += n > 0 ? (size_t)n : 0;
	}
	return (void *)sent;
}

static void a_stream_longer_than_all_buffers_arrives_in_order(void **state)
{
	struct rsocket_ends *e = *state;
	uint8_t part[4096];
	pthread_t sender;
	size_t got = 0;
	void *sent;
	ssize_t n;

	assert_int_equal(pthread_create(&sender, NULL, send_all, e), 0);
	while (got < LONG_BYTES) {
		n = rrecv(e->b, part, sizeof(part), 0);
		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++, got++)
			assert_int_equal(part[i], (uint8_t)(got * 7 + (got >> 8)));
	}
	pthread_join(sender, &sent);
	assert_int_equal((size_t)sent, LONG_BYTES);
}

static uint64_t writes_of_this_process(void)
{
	struct softnic_process *all = calloc(SOFTNIC_SLOTS, sizeof(*all));
	uint64_t writes = 0;
	size_t count;

	assert_int_equal(softnic_stat(all, SOFTNIC_SLOTS, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (all[i].pid == getpid())
			writes = all[i].counters.writes;
	free(all);
	return writes;
}

/* An odd start must not cut the stream into pieces of the odd length, ring after ring. */
static void a_long_stream_goes_in_large_messages(void **state)
{
	uint64_t before = writes_of_this_process();

	a_stream_longer_than_all_buffers_arrives_in_order(state);
	assert_in_range(writes_of_this_process() - before, 1, LONG_BYTES / 2048);
}

static void a_mapped_buffer_is_written_from_afar(void **state)
{
	int maps = 4, size = sizeof(maps);
	struct sockaddr_in to = loopback(0);
	socklen_t length = sizeof(to);
	char target[16] = { 0 }, byte;
	int a = rsocket(AF_INET, SOCK_STREAM, 0), b;
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &maps, size), 0);
	assert_int_equal(rsetsockopt(a, SOL_RDMA, RDMA_IOMAPSIZE, &maps, size), 0);
	assert_int_equal(rbind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(rlisten(listener, 1), 0);
	assert_int_equal(rgetsockname(listener, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(rconnect(a, (struct sockaddr *)&to, sizeof(to)), 0);
	b = raccept(listener, NULL, NULL);
	assert_true(b >= 0);
	assert_int_equal(riomap(b, target, sizeof(target), PROT_WRITE, 0, 4096), 4096);
	assert_int_equal(rsend(b, "m", 1, 0), 1); /* the map goes with the next message */
	assert_int_equal(rrecv(a, &byte, 1, 0), 1);
	assert_int_equal(riowrite(a, "direct", 7, 4096, 0), 7);
	assert_int_equal(rsend(a, "w", 1, 0), 1);
	assert_int_equal(rrecv(b, &byte, 1, 0), 1);
	assert_string_equal(target, "direct");
	assert_int_equal(riounmap(b, target, sizeof(target)), 0);
	assert_int_equal(rclose(a), 0);
	assert_int_equal(rclose(b), 0);
	assert_int_equal(rclose(listener), 0);
}

static void the_end_of_a_stream_is_read_as_no_bytes(void **state)
{
	const struct rsocket_ends *e = *state;
	char byte;

	assert_int_equal(rshutdown(e->a, SHUT_WR), 0);
	assert_int_equal(rrecv(e->b, &byte, 1, 0), 0);
}

static void a_connection_without_a_listener_is_refused(void **state)
{
	struct sockaddr_in to = loopback(0);
	socklen_t length = sizeof(to);
	int s = rsocket(AF_INET, SOCK_STREAM, 0), gone = rsocket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(rbind(gone, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(rgetsockname(gone, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(rclose(gone), 0);
	assert_int_equal(rconnect(s, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(rclose(s), 0);
}

static void datagrams_are_refused(void **state)
{
	(void)state;
	assert_int_equal(rsocket(AF_INET, SOCK_DGRAM, 0), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	assert_int_equal(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

static void a_number_without_a_socket_is_refused(void **state)
{
	char byte;

	(void)state;
	assert_int_equal(rrecv(12345, &byte, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(rclose(-1), -1);
	assert_int_equal(errno, EBADF);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_connection, close_connection)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_way_to_send_and_receive_carries_the_bytes),
		TEST(both_ends_know_the_addresses),
		TEST(an_empty_nonblocking_socket_has_nothing_to_read),
		TEST(options_are_kept),
		TEST(a_stream_longer_than_all_buffers_arrives_in_order),
		TEST(a_long_stream_goes_in_large_messages),
		TEST(the_end_of_a_stream_is_read_as_no_bytes),
		cmocka_unit_test(a_mapped_buffer_is_written_from_afar),
		cmocka_unit_test(a_connection_without_a_listener_is_refused),
		cmocka_unit_test(datagrams_are_refused),
		cmocka_unit_test(a_number_without_a_socket_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
