/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib exchange newcomer; devices: softnic; timeout: 120 */
/*
 * Newcomers at a listener: mute ones, others beside them, names with several addresses, and
 * waiters in accept.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/group.h>

#include "tests/support/libweir_fixture.h"
#include "tests/support/raw_client.h"
#include "lib/conn/identity.h"
#include "lib/conn/key.h"
#include "lib/conn/places.h"
#include "wire/exchange.h"

#define TIMEOUT_NS (60 * SECOND_NS)
#define MUTES 3

/* A newcomer that connects and stays silent. */
static void mute_connect(struct raw_client *mute, const char *address)
{
	const struct wire_exchange_connect hello = { WIRE_EXCHANGE_MAGIC, WIRE_EXCHANGE_VERSION, 0,
						     weir_key_id(fixture_key()) };

	assert_int_equal(raw_connect(mute, address, &hello, sizeof(hello)), 0);
}

static bool is_let_stay(const struct raw_client *mute)
{
	struct pollfd fd = { .fd = mute->events->fd, .events = POLLIN };

	return !poll(&fd, 1, 0);
}

struct acceptor {
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	uint64_t timeout_ns;
	int rc;
};

static void *accept_one(void *arg)
{
	struct acceptor *a = arg;

	a->rc = weir_exchange_accept(a->listener, a->timeout_ns, &a->x, NULL);
	return NULL;
}

static struct weir_exchange_listener *listen_here(void)
{
	struct weir_exchange_options options = { .size = sizeof(options), .key = fixture_key() };
	struct weir_exchange_listener *listener;
	char address[80];

	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	return listener;
}

/* Return: whether the mute newcomers were there all the time. */
static bool try_beside_mutes(void)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct acceptor a = { .listener = listen_here(), .timeout_ns = TIMEOUT_NS };
	struct raw_client mutes[MUTES];
	struct weir_exchange *x;
	bool all_stay = true;
	pthread_t thread;
	int i;

	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	for (i = 0; i < MUTES; i++)
		mute_connect(&mutes[i], weir_exchange_address(a.listener));
	assert_int_equal(
		weir_exchange_connect(weir_exchange_address(a.listener), &options, &x, NULL), 0);
	for (i = 0; i < MUTES; i++)
		all_stay &= is_let_stay(&mutes[i]);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, 0);
	weir_exchange_close(x);
	weir_exchange_close(a.x);
	weir_exchange_unlisten(a.listener);
	for (i = 0; i < MUTES; i++)
		raw_close(&mutes[i]);
	return all_stay;
}

/* Retried if a busy machine lets the mute newcomers expire first. */
static void a_mute_newcomer_delays_no_other(void **state)
{
	uint64_t began_ns;
	bool all_stay;

	(void)state;
	do {
		began_ns = now_ns();
		all_stay = try_beside_mutes();
	} while (!all_stay && now_ns() - began_ns >= WEIR_HANDSHAKE_NS);
	assert_true(all_stay);
}

/* A newcomer at a listener with much else to do. */
struct patient {
	struct acceptor a;
	struct weir_exchange *x;
	atomic_bool is_back;
	int rc;
};

static void *come(void *arg)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct patient *p = arg;

	p->rc = weir_exchange_connect(weir_exchange_address(p->a.listener), &options, &p->x, NULL);
	atomic_store(&p->is_back, true);
	return NULL;
}

/* Handles one message at a time. Return: the longest pause. */
static uint64_t serve_slowly(struct patient *p)
{
	uint64_t before_ns = now_ns(), away_ns = 0;

	for (;;) {
		accept_one(&p->a);
		if (now_ns() - before_ns > away_ns)
			away_ns = now_ns() - before_ns;
		before_ns = now_ns();
		if (p->a.x || atomic_load(&p->is_back))
			return away_ns;
		usleep(1700000);
	}
}

/* Return: whether the newcomer was accepted, or the machine was too slow to tell. */
static bool try_slowly(void)
{
	struct patient p = { .a.listener = listen_here() };
	uint64_t away_ns;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, come, &p), 0);
	away_ns = serve_slowly(&p);
	p.a.timeout_ns = TIMEOUT_NS;
	if (!p.a.x && !p.rc)
		accept_one(&p.a);
	pthread_join(thread, NULL);
	weir_exchange_close(p.x);
	weir_exchange_close(p.a.x);
	weir_exchange_unlisten(p.a.listener);
	return (!p.rc && !p.a.rc) || away_ns >= WEIR_HANDSHAKE_NS;
}

static void a_newcomer_served_slowly_is_accepted(void **state)
{
	(void)state;
	assert_true(try_slowly());
}

static void a_mute_newcomer_is_rejected_in_the_end(void **state)
{
	struct acceptor a = { .listener = listen_here(), .timeout_ns = TIMEOUT_NS };
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	struct raw_client mute;
	pthread_t thread;
	size_t length;

	(void)state;
	a.timeout_ns = WEIR_HANDSHAKE_NS + SECOND_NS;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	mute_connect(&mute, weir_exchange_address(a.listener));
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, -ETIMEDOUT);
	a.timeout_ns = 0;
	do {
		accept_one(&a);
		assert_int_equal(a.rc, -EAGAIN);
	} while (is_let_stay(&mute));
	assert_int_equal(raw_receive(&mute, message, &length, 10000), -ECONNRESET);
	weir_exchange_unlisten(a.listener);
	raw_close(&mute);
}

/* Strangers take all places for connections without a cookie. The peer brings a cookie. */
static void strangers_keep_no_peer_out(void **state)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct acceptor a = { .listener = listen_here(), .timeout_ns = TIMEOUT_NS };
	const struct wire_exchange_connect hello = { WIRE_EXCHANGE_MAGIC, WIRE_EXCHANGE_VERSION, 0,
						     weir_key_id(fixture_key()) };
	static struct raw_client mutes[WEIR_UNPROVEN_MAX];
	struct weir_exchange *x = NULL;
	struct raw_client more;
	uint64_t began_ns = now_ns();
	pthread_t thread;
	unsigned int i;
	int rc;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		mute_connect(&mutes[i], weir_exchange_address(a.listener));
	rc = raw_connect(&more, weir_exchange_address(a.listener), &hello, sizeof(hello));
	if (now_ns() - began_ns < WEIR_UNPROVEN_NS) { /* else the first stranger made room */
		assert_int_equal(rc, -ECONNREFUSED);
		assert_int_equal(more.refusal.status, EAGAIN);
		assert_true(wire_handshake_has_cookie(more.cookie));
	}
	assert_int_equal(
		weir_exchange_connect(weir_exchange_address(a.listener), &options, &x, NULL), 0);
	assert_true(now_ns() - began_ns < WEIR_HANDSHAKE_NS || !is_let_stay(&mutes[0]));
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, 0);
	weir_exchange_close(x);
	weir_exchange_close(a.x);
	weir_exchange_unlisten(a.listener);
	raw_close(&more);
	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		raw_close(&mutes[i]);
}

/* @pin, @key: of the connecting end. Return: of the connect. */
static int connect_pinned(const struct weir_identity *identity, const unsigned char *pin,
			  const struct weir_key *key, struct weir_error *error)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = key,
						 .timeout_ns = TIMEOUT_NS,
						 .identity = identity };
	struct acceptor a = { .timeout_ns = TIMEOUT_NS };
	struct weir_exchange *x = NULL;
	char address[80];
	pthread_t thread;
	int rc;

	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &a.listener, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	options.identity = NULL;
	options.peer_identity = pin;
	rc = weir_exchange_connect(weir_exchange_address(a.listener), &options, &x, error);
	if (rc)
		weir_exchange_unlisten(a.listener);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, rc ? -ECANCELED : 0);
	weir_exchange_close(x);
	weir_exchange_close(a.x);
	if (!rc)
		weir_exchange_unlisten(a.listener);
	return rc;
}

/* Each listener knows the key. */
static void a_peer_trusts_the_listener_that_it_names(void **state)
{
	struct weir_identity own = { .pair.secret = { 1, 2, 3 } };
	static struct weir_key key = { .length = 16, .bytes = "0123456789abcdef" };
	struct weir_error error = { "" };
	unsigned char public[32], other[32] = { 9 };

	(void)state;
	weir_noise_pair_init(&own.pair, &weir_handshake_crypto);
	weir_identity_public(&own, public);
	assert_int_equal(connect_pinned(&own, public, &key, &error), 0);
	assert_int_equal(connect_pinned(&own, NULL, &key, &error), 0);
	assert_int_equal(connect_pinned(&own, other, &key, &error), -EKEYREJECTED);
	assert_non_null(strstr(error.text, "another identity"));
	assert_int_equal(connect_pinned(NULL, public, &key, &error), -EKEYREJECTED);
	key.nr_donors = 1;
	memcpy(key.donors[0], public, sizeof(public));
	assert_int_equal(connect_pinned(&own, NULL, &key, &error), 0);
	assert_int_equal(connect_pinned(NULL, NULL, &key, &error), -EKEYREJECTED);
}

/* Accepts and returns the info of a newcomer. */
static struct weir_exchange_info meet(struct weir_exchange_listener *listener)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct acceptor a = { .listener = listener, .timeout_ns = TIMEOUT_NS };
	struct weir_exchange_info info;
	struct weir_exchange *x;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	assert_int_equal(weir_exchange_connect(weir_exchange_address(listener), &options, &x, NULL),
			 0);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, 0);
	weir_exchange_info(x, &info, sizeof(info));
	weir_exchange_close(x);
	weir_exchange_close(a.x);
	weir_exchange_unlisten(listener);
	return info;
}

static void a_listener_keeps_the_name_of_its_device(void **state)
{
	struct weir_exchange_info info = meet(listen_here());
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .device = info.device };
	struct weir_exchange_listener *listener;
	char address[80], longest[1000];

	(void)state;
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	memset(info.device, 'x', sizeof(info.device) - 1);
	meet(listener);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	options.device = longest;
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), -EINVAL);
}

#define ACCEPTORS 4

/* Each newcomer goes to one waiting thread. */
static void many_threads_may_accept_at_once(void **state)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct weir_exchange_listener *listener = listen_here();
	struct acceptor acceptors[ACCEPTORS];
	struct weir_exchange *xs[ACCEPTORS];
	pthread_t threads[ACCEPTORS];
	int i, j;

	(void)state;
	for (i = 0; i < ACCEPTORS; i++) {
		acceptors[i] = (struct acceptor){ .listener = listener, .timeout_ns = TIMEOUT_NS };
		assert_int_equal(pthread_create(&threads[i], NULL, accept_one, &acceptors[i]), 0);
	}
	for (i = 0; i < ACCEPTORS; i++)
		assert_int_equal(weir_exchange_connect(weir_exchange_address(listener), &options,
						       &xs[i], NULL),
				 0);
	for (i = 0; i < ACCEPTORS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(acceptors[i].rc, 0);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(acceptors[i].x, acceptors[j].x);
	}
	for (i = 0; i < ACCEPTORS; i++) {
		weir_exchange_close(xs[i]);
		weir_exchange_close(acceptors[i].x);
	}
	weir_exchange_unlisten(listener);
}

/* A waiter that has served a newcomer still waits. */
static void closing_the_listener_wakes_waiters(void **state)
{
	struct acceptor a = { .listener = listen_here(), .timeout_ns = WEIR_EXCHANGE_FOREVER };
	struct raw_client mute;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	mute_connect(&mute, weir_exchange_address(a.listener));
	weir_exchange_unlisten(a.listener);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, -ECANCELED);
	assert_null(a.x);
	raw_close(&mute);
}

static void *lead(void *arg)
{
	struct acceptor *a = arg;
	struct weir_group *group;

	a->rc = weir_group_lead(a->listener, 2, a->timeout_ns, &group, NULL);
	return NULL;
}

/*
 * The leader waits for a newcomer without a proof, or for one that has proven the key and sends
 * no hello.
 */
static void closing_the_listener_wakes_the_leader(void **state)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct weir_exchange *x = NULL;
	struct acceptor a;
	struct raw_client mute;
	pthread_t thread;
	bool is_mute;

	(void)state;
	for (is_mute = true; !x; is_mute = false) {
		a = (struct acceptor){ .listener = listen_here(), .timeout_ns = TIMEOUT_NS };
		assert_int_equal(pthread_create(&thread, NULL, lead, &a), 0);
		if (is_mute)
			mute_connect(&mute, weir_exchange_address(a.listener));
		else
			assert_int_equal(weir_exchange_connect(weir_exchange_address(a.listener),
							       &options, &x, NULL),
					 0);
		weir_exchange_unlisten(a.listener);
		pthread_join(thread, NULL);
		assert_int_equal(a.rc, -ECANCELED);
	}
	weir_exchange_close(x);
	raw_close(&mute);
}

#define TWO "two.example" /* two addresses; nobody listens at the first */

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	if (strcmp(host, TWO))
		return __real_getaddrinfo(host, port, hints, list);
	assert_int_equal(__real_getaddrinfo(fixture_address(), "1", hints, list), 0);
	assert_null((*list)->ai_next);
	return __real_getaddrinfo(fixture_address(), port, hints, &(*list)->ai_next);
}

static void all_addresses_of_a_name_are_tried(void **state)
{
	struct weir_exchange_options options = { .size = sizeof(options),
						 .key = fixture_key(),
						 .timeout_ns = TIMEOUT_NS };
	struct acceptor a = { .listener = listen_here(), .timeout_ns = TIMEOUT_NS };
	struct weir_exchange *x;
	struct weir_exchange_info info;
	char name[80];
	pthread_t thread;

	(void)state;
	snprintf(name, sizeof(name), "%s%s", TWO, strrchr(weir_exchange_address(a.listener), ':'));
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	assert_int_equal(weir_exchange_connect(name, &options, &x, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(a.rc, 0);
	weir_exchange_info(x, &info, sizeof(info));
	assert_string_equal(info.peer, weir_exchange_address(a.listener));
	weir_exchange_close(x);
	weir_exchange_close(a.x);
	weir_exchange_unlisten(a.listener);
	assert_int_equal(weir_exchange_connect(TWO ":1", &options, &x, NULL), -ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mute_newcomer_delays_no_other),
		cmocka_unit_test(a_mute_newcomer_is_rejected_in_the_end),
		cmocka_unit_test(a_newcomer_served_slowly_is_accepted),
		cmocka_unit_test(strangers_keep_no_peer_out),
		cmocka_unit_test(a_peer_trusts_the_listener_that_it_names),
		cmocka_unit_test(a_listener_keeps_the_name_of_its_device),
		cmocka_unit_test(many_threads_may_accept_at_once),
		cmocka_unit_test(closing_the_listener_wakes_waiters),
		cmocka_unit_test(closing_the_listener_wakes_the_leader),
		cmocka_unit_test(all_addresses_of_a_name_are_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
