/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor places; suites: donor; devices: softnic rxe; timeout: 120 */
/*
 * Places for clients that have not proven their key, when strangers want all of them. A stranger's
 * address is worth nothing until it brings a cookie back.
 */
#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <weir/session.h>

#include "lib/conn/address.h"
#include "lib/donor/donor.h"
#include "tests/support/donor_fixture.h"

#define SOURCES (WEIR_COOKIE_PLACES / WEIR_NETWORK_PLACES + 1)

static bool has_sources, has_networks;
static struct raw_client strangers[WEIR_UNPROVEN_MAX];
static struct donor_fixture f;
static char address[WEIR_ADDRESS_MAX + 16];
static uint64_t start_ns;

/* Addresses for clients to come from. */
static const char *source(unsigned int i)
{
	static char text[16];

	snprintf(text, sizeof(text), "10.0.0.%u", i + 1);
	return text;
}

/* A network of the test's own, where a device on loopback has many addresses. */
static bool enter_own_network(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct sockaddr_in *address = (struct sockaddr_in *)&r.ifr_addr;
	unsigned int i;
	int fd;

	if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &r)) {
		close(fd); /* a namespace without capabilities */
		return false;
	}
	for (i = 0; i < SOURCES; i++) {
		snprintf(r.ifr_name, sizeof(r.ifr_name), "lo:%u", i);
		address->sin_family = AF_INET;
		assert_int_equal(inet_pton(AF_INET, source(i), &address->sin_addr), 1);
		assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	}
	close(fd);
	return true;
}

/* Addresses of IPv6: @host of a /64. */
static const char *source_of_network(unsigned int network, unsigned int host)
{
	static char text[32];

	snprintf(text, sizeof(text), "fd00:0:0:%x::%x", network, host);
	return text;
}

/* Return: false on a kernel without IPv6. */
static bool add_network_sources(void)
{
	struct in6_ifreq r = { .ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex("lo") };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), rc = 0;
	unsigned int i;

	for (i = 0; fd >= 0 && !rc && i <= SOURCES; i++) {
		inet_pton(AF_INET6, i < SOURCES ? source_of_network(1, i + 1) :
						  source_of_network(2, 1),
			  &r.ifr6_addr);
		rc = ioctl(fd, SIOCSIFADDR, &r);
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && !rc;
}

/* Takes all places that need no cookie. @listen: with the port 0; @host: reaches the donor. */
static void start_under_load_at(const char *listen, const char *host)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	unsigned int i;

	raw_source = NULL;
	donor_fixture_start(&f, &(struct weir_donor_options){ .listen = listen });
	snprintf(address, sizeof(address), "%s%s", host, strrchr(f.info.address, ':'));
	start_ns = weir_now_ns();
	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		assert_int_equal(raw_connect(&strangers[i], address, &connect,
					     sizeof(connect)),
				 0);
}

static void start_under_load(void)
{
	start_under_load_at("0.0.0.0:0", donor_host());
}

static void stop(void)
{
	unsigned int i;

	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		raw_close(&strangers[i]);
	raw_source = NULL;
	donor_fixture_stop(&f);
}

/* From then on a newcomer may replace the first stranger, and the test shows nothing. */
static bool is_too_slow(void)
{
	if (weir_now_ns() < start_ns + WEIR_UNPROVEN_NS)
		return false;
	print_message("too slow here to connect before the first stranger has had its time\n");
	return true;
}

static int connect_with(struct raw_client *raw, const uint8_t *cookie)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);

	memcpy(connect.cookie, cookie, sizeof(connect.cookie));
	return raw_connect(raw, address, &connect, sizeof(connect));
}

/* Gets a refusal, and with it the cookie of @source. Return: false if it is too late for that. */
static bool ask_for_cookie(const char *from, uint8_t *cookie)
{
	static const uint8_t none[WIRE_COOKIE];
	struct raw_client raw;
	bool is_refused;

	raw_source = from;
	is_refused = connect_with(&raw, none) == -ECONNREFUSED;
	assert_true(is_refused || is_too_slow());
	if (is_refused) {
		assert_int_equal(raw.refusal.status, EAGAIN);
		assert_true(wire_handshake_has_cookie(raw.cookie));
		memcpy(cookie, raw.cookie, WIRE_COOKIE);
	}
	raw_close(&raw);
	return is_refused;
}

static void a_client_gets_in_while_strangers_hold_all_open_places(void **state)
{
	struct weir_session_options options = { .size = sizeof(options),
						.key = &key_a };
	struct weir_session *session;
	struct weir_error error;
	int rc;

	(void)state;
	start_under_load();
	rc = weir_session_open(address, &options, &session, &error);
	if (rc)
		fail_msg("%s", error.text);
	if (!is_too_slow()) {
		/* A single rejection, with the cookie. No stranger had to go. */
		assert_int_equal(donor_fixture_info(&f)->rejects, 1);
	}
	weir_session_close(session);
	stop();
}

static void a_made_up_cookie_is_none(void **state)
{
	uint8_t cookie[WIRE_COOKIE];
	struct raw_client raw;
	int rc;

	(void)state;
	start_under_load();
	if (ask_for_cookie(NULL, cookie)) {
		cookie[3] ^= 1;
		rc = connect_with(&raw, cookie);
		assert_true(rc == -ECONNREFUSED || is_too_slow());
		raw_close(&raw);
	}
	stop();
}

/* As a stranger does that can receive at one address, on a device with several. */
static void one_address_takes_few_places_with_its_cookie(void **state)
{
	struct raw_client with[WEIR_NETWORK_PLACES + 1], other;
	uint8_t cookie[WIRE_COOKIE], cookie_of_other[WIRE_COOKIE];
	unsigned int i;
	int rc;

	(void)state;
	if (!has_sources)
		skip();
	start_under_load();
	if (!ask_for_cookie(source(1), cookie_of_other) || !ask_for_cookie(source(0), cookie))
		goto stop;
	for (i = 0; i < WEIR_NETWORK_PLACES; i++)
		assert_int_equal(connect_with(&with[i], cookie), 0);
	rc = connect_with(&with[i], cookie);
	assert_true(rc == -ECONNREFUSED || is_too_slow());
	/* Another's cookie is of no use to this address, but to its owner. */
	rc = connect_with(&other, cookie_of_other);
	assert_true(rc == -ECONNREFUSED || is_too_slow());
	raw_close(&other);
	raw_source = source(1);
	assert_int_equal(connect_with(&other, cookie_of_other), 0);
	assert_int_equal(raw_prove(&other, &key_a, 0, 0), 0);
	raw_close(&other);
	for (i = 0; i <= WEIR_NETWORK_PLACES; i++)
		raw_close(&with[i]);
stop:
	stop();
}

static void addresses_together_take_no_more_than_all_places(void **state)
{
	struct raw_client with[WEIR_COOKIE_PLACES + 1];
	uint8_t cookies[SOURCES][WIRE_COOKIE];
	unsigned int i, n = 0;
	int rc = 0;

	(void)state;
	if (!has_sources)
		skip();
	start_under_load();
	for (i = 0; i < SOURCES && ask_for_cookie(source(i), cookies[i]); i++)
		;
	for (; i == SOURCES && n <= WEIR_COOKIE_PLACES && !is_too_slow(); n++) {
		raw_source = source(n / WEIR_NETWORK_PLACES);
		rc = connect_with(&with[n], cookies[n / WEIR_NETWORK_PLACES]);
		if (n < WEIR_COOKIE_PLACES)
			assert_int_equal(rc, 0);
		else
			assert_true(rc == -ECONNREFUSED || is_too_slow());
	}
	while (n--)
		raw_close(&with[n]);
	stop();
}

/* The owner of a /64 has many addresses, and a cookie for each. */
static void addresses_of_one_network_count_as_one(void **state)
{
	struct raw_client with[WEIR_NETWORK_PLACES], more;
	uint8_t cookies[WEIR_NETWORK_PLACES + 1][WIRE_COOKIE], apart[WIRE_COOKIE];
	unsigned int i, n = 0;
	int rc;

	(void)state;
	if (!has_networks)
		skip();
	start_under_load_at("[::]:0", "[::1]");
	for (i = 0; i <= WEIR_NETWORK_PLACES; i++)
		if (!ask_for_cookie(source_of_network(1, i + 1), cookies[i]))
			goto stop;
	if (!ask_for_cookie(source_of_network(2, 1), apart))
		goto stop;
	for (; n < WEIR_NETWORK_PLACES; n++) {
		raw_source = source_of_network(1, n + 1);
		assert_int_equal(connect_with(&with[n], cookies[n]), 0);
	}
	raw_source = source_of_network(1, n + 1);
	rc = connect_with(&more, cookies[n]);
	assert_true(rc == -ECONNREFUSED || is_too_slow());
	raw_close(&more);
	raw_source = source_of_network(2, 1);
	assert_int_equal(connect_with(&more, apart), 0);
	assert_int_equal(raw_prove(&more, &key_a, 0, 0), 0);
	raw_close(&more);
stop:
	while (n--)
		raw_close(&with[n]);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_gets_in_while_strangers_hold_all_open_places),
		cmocka_unit_test(a_made_up_cookie_is_none),
		cmocka_unit_test(one_address_takes_few_places_with_its_cookie),
		cmocka_unit_test(addresses_together_take_no_more_than_all_places),
		cmocka_unit_test(addresses_of_one_network_count_as_one),
	};

	has_sources = donor_is_on_loopback() && enter_own_network();
	has_networks = has_sources && add_network_sources();
	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
