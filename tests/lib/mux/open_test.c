/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux open; devices: softnic; timeout: 120 */
/*
 * Many threads connect at once without success: the number of unanswered OPENs stays within the
 * limit.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define NOBODYS 6
#define ASKERS (WIRE_MUX_OPENS_MAX + 44)

struct asker {
	pthread_t thread;
	int rc;
};

struct mux_ask_pair {
	struct weir_mux_local *client, *server;
	struct weir_mux_listener *listener;
	struct weir_mux_conn *near, *far;
	struct asker open_waiters[ASKERS];
	char address[64];
};

static struct mux_ask_pair p;

static struct weir_mux_local *hub_open(const char *listen)
{
	const struct weir_mux_options options = { .listen = listen,
						  .key = fixture_key(),
						  .timeout_ns = 100 * WEIR_NS_PER_S };
	struct weir_error error = { "" };
	struct weir_mux_local *mux = NULL;

	if (weir_mux_local_open(&options, &mux, &error))
		fail_msg("%s", error.text);
	return mux;
}

static int pair_open(void **state)
{
	struct weir_mux_info info;
	char listen[64];

	(void)state;
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	p.client = hub_open(NULL);
	p.server = hub_open(listen);
	weir_mux_local_info(p.server, &info);
	snprintf(p.address, sizeof(p.address), "%s", info.address);
	assert_int_equal(weir_mux_listen(&p.server->mux, SERVICE, 1, &p.listener), 0);
	assert_int_equal(weir_mux_connect(&p.client->mux, p.address, SERVICE, NULL, &p.near, NULL),
			 0);
	assert_int_equal(weir_mux_listener_accept(p.listener, &p.far), 0);
	return 0;
}

static int pair_close(void **state)
{
	(void)state;
	weir_mux_conn_close(p.near);
	weir_mux_conn_close(p.far);
	weir_mux_listener_close(p.listener);
	weir_mux_close(&p.client->mux);
	weir_mux_close(&p.server->mux);
	return 0;
}

static struct weir_mux_remote *node_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app)->remote;
}

static void *ask_one(void *arg)
{
	struct asker *asker = arg;
	struct weir_mux_conn *conn = NULL;

	asker->rc = weir_mux_connect(&p.client->mux, p.address, NOBODYS, NULL, &conn, NULL);
	return NULL;
}

static void ask_all(void)
{
	unsigned int i;

	for (i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&p.open_waiters[i].thread, NULL, ask_one,
						&p.open_waiters[i]),
				 0);
}

static void all_end(int status)
{
	unsigned int i;

	for (i = 0; i < ASKERS; i++) {
		assert_int_equal(pthread_join(p.open_waiters[i].thread, NULL), 0);
		assert_int_equal(p.open_waiters[i].rc, status);
	}
}

static unsigned int length_of(const struct weir_list *list)
{
	const struct weir_list *at;
	unsigned int count = 0;

	for (at = list->next; at != list; at = at->next)
		count++;
	return count;
}

/* Waits until @count connects are unanswered or waiting. Return: the number with OPEN sent. */
static unsigned int wait_asked(unsigned int count)
{
	const struct weir_mux_remote *remote = node_of(p.near);
	unsigned int asking, waiting;

	do {
		sched_yield();
		pthread_mutex_lock(&p.client->lock);
		asking = remote->nr_opens;
		waiting = length_of(&remote->open_waiters);
		pthread_mutex_unlock(&p.client->lock);
	} while (asking + waiting != count);
	return asking;
}

/* Checks that only the first connection is left, and works. */
static void nothing_is_left(void)
{
	struct weir_mux_info info;
	char byte = 7;
	size_t length;

	wait_asked(0);
	do {
		sched_yield();
		weir_mux_local_info(p.client, &info);
	} while (info.connections > 1);
	assert_int_equal(weir_mux_conn_send(p.near, &byte, 1, 0), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, &byte, 1, &length, 0), 0);
}

/* The server cannot answer while the test holds its lock. */
static void unanswered_opens_are_limited_and_the_others_wait(void **state)
{
	(void)state;
	pthread_mutex_lock(&p.server->lock);
	ask_all();
	assert_int_equal(wait_asked(ASKERS), WIRE_MUX_OPENS_MAX);
	pthread_mutex_unlock(&p.server->lock);
	all_end(-ECONNREFUSED);
	nothing_is_left();
}

static void a_connect_given_up_before_its_open_leaves_nothing(void **state)
{
	uint64_t *timeout_ns = &p.client->options.timeout_ns, before = *timeout_ns;

	(void)state;
	*timeout_ns = 50 * WEIR_NS_PER_MS;
	pthread_mutex_lock(&p.server->lock);
	ask_all();
	all_end(-ETIMEDOUT);
	pthread_mutex_lock(&p.client->lock);
	assert_int_equal(node_of(p.near)->nr_opens, WIRE_MUX_OPENS_MAX);
	assert_int_equal(length_of(&node_of(p.near)->open_waiters), 0);
	pthread_mutex_unlock(&p.client->lock);
	pthread_mutex_unlock(&p.server->lock);
	*timeout_ns = before;
	nothing_is_left();
}

/* Refusals for one peer leave room for refusals to another. */
static void refusals_are_counted_per_remote(void **state)
{
	struct weir_mux_local *other = hub_open(NULL);
	struct weir_mux_remote *remote = node_of(p.far);
	struct weir_mux_conn *conn = NULL;

	(void)state;
	pthread_mutex_lock(&p.server->lock);
	remote->nr_refusals += WEIR_MUX_REFUSALS_MAX;
	pthread_mutex_unlock(&p.server->lock);
	assert_int_equal(weir_mux_connect(&other->mux, p.address, NOBODYS, NULL, &conn, NULL),
			 -ECONNREFUSED);
	pthread_mutex_lock(&p.server->lock);
	remote->nr_refusals -= WEIR_MUX_REFUSALS_MAX;
	pthread_mutex_unlock(&p.server->lock);
	weir_mux_close(&other->mux);
	nothing_is_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered_opens_are_limited_and_the_others_wait),
		cmocka_unit_test(a_connect_given_up_before_its_open_leaves_nothing),
		cmocka_unit_test(refusals_are_counted_per_remote),
	};

	return cmocka_run_group_tests(tests, pair_open, pair_close);
}
