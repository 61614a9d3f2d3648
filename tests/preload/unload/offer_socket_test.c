/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload offer socket; timeout: 180 */
/* The sockets for offers, between sockets of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/unload/discovery/offer_socket.h"
#include "tests/support/slow_socket.h"

#define PATIENCE_MS 60000
#define PROCESSES 100

static struct wire_discovery_offer offer_of(uint16_t type)
{
	return (struct wire_discovery_offer){ .magic = WIRE_DISCOVERY_MAGIC,
					      .version = WIRE_DISCOVERY_VERSION,
					      .type = type,
					      .nonce = (uint64_t)getpid() << 32 };
}

/* Waits for the next offer of this process with @type: other programs send here, too. */
static void await(int fd, uint16_t type, struct offer_address *from)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	const struct wire_discovery_offer expected = offer_of(type);
	struct wire_discovery_offer got;

	do {
		assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
	} while (offer_socket_receive(fd, &got, from) || memcmp(&got, &expected, sizeof(got)));
}

/* The kernel would choose neither address by itself. */
static void offers_and_answers_leave_from_the_address_that_is_expected(void **state)
{
	const struct wire_discovery_offer offer = offer_of(WIRE_DISCOVERY_OFFER),
					  answer = offer_of(WIRE_DISCOVERY_ACCEPTED);
	int asker = offer_socket_open_hosts(), peer = offer_socket_open_hosts();
	struct in6_addr asker_ip, peer_ip;
	struct offer_address from;

	(void)state;
	assert_true(asker >= 0 && peer >= 0);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.5", &asker_ip), 1);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.9", &peer_ip), 1);
	offer_socket_send_host(asker, &offer, &peer_ip, &asker_ip);
	await(peer, WIRE_DISCOVERY_OFFER, &from);
	assert_true(offer_socket_is_from(&from, &asker_ip));
	offer_socket_answer(peer, &answer, &from, &peer_ip);
	await(asker, WIRE_DISCOVERY_ACCEPTED, &from);
	assert_true(offer_socket_is_from(&from, &peer_ip));
	close(asker);
	close(peer);
}

static bool has_come(int fd, const struct wire_discovery_offer *offer)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	struct offer_address from;
	struct wire_discovery_offer got;
	bool has_come = false;

	while (poll(&readable, 1, 0) == 1)
		has_come |= !offer_socket_receive(fd, &got, &from) &&
			    !memcmp(&got, offer, sizeof(got));
	return has_come;
}

/* Where the kernel lets the descriptor pass, a thread closes it. */
static void a_slow_descriptor_delays_no_receiver(void **state)
{
	int fd = offer_socket_open_local(), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un at;
	socklen_t size = sizeof(at);
	struct wire_discovery_offer got;
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	long start_ms = slow_socket_now_ms();
	struct offer_address from;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(connect(sender, (struct sockaddr *)&at, size), 0);
	if (slow_socket_send(sender)) {
		assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
		assert_int_equal(offer_socket_receive(fd, &got, &from), -EPROTO);
	}
	close(sender);
	close(fd);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

/*
 * Other senders may leave no room for an offer; then the test sends again. Each round polls all
 * sockets, because unread datagrams use up the sender's buffer.
 */
static void as_many_processes_as_a_large_host_runs_are_found(void **state)
{
	const struct wire_discovery_offer offer = offer_of(WIRE_DISCOVERY_OFFER);
	int i, missed = PROCESSES, asker = offer_socket_open_local(), fds[PROCESSES];
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	bool is_found[PROCESSES] = { false };

	(void)state;
	assert_true(asker >= 0);
	for (i = 0; i < PROCESSES; i++) {
		fds[i] = offer_socket_open_local();
		assert_true(fds[i] >= 0);
	}
	while (missed) {
		assert_true(time(NULL) <= until);
		offer_socket_send_local(asker, &offer);
		has_come(asker, &offer);
		for (i = 0; i < PROCESSES; i++) {
			if (!has_come(fds[i], &offer) || is_found[i])
				continue;
			is_found[i] = true;
			missed--;
		}
	}
	for (i = 0; i < PROCESSES; i++)
		close(fds[i]);
	close(asker);
}

static void an_address_of_any_interface_is_of_this_host(void **state)
{
	static const struct {
		const char *ip;
		bool is_own;
	} cases[] = { { "::ffff:127.0.0.1", true },
		      { "::ffff:203.0.113.77", false },
		      { "2001:db8::77", false },
		      { "::", false } };
	struct in6_addr ip;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(inet_pton(AF_INET6, cases[i].ip, &ip), 1);
		assert_int_equal(offer_socket_is_own(&ip), cases[i].is_own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_descriptor_delays_no_receiver),
		cmocka_unit_test(offers_and_answers_leave_from_the_address_that_is_expected),
		cmocka_unit_test(as_many_processes_as_a_large_host_runs_are_found),
		cmocka_unit_test(an_address_of_any_interface_is_of_this_host),
	};

	return cmocka_run_group_tests_name("unload datagram", tests, NULL, NULL);
}
