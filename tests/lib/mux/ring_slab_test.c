/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux ring slab; devices: softnic; timeout: 120 */
/*
 * Registration of rings happens outside the lock: while the device registers for one account, at
 * either end, others connect and send, and an account that ends leaves nothing. The linker wraps
 * ibv_reg_mr(), which waits or fails on demand, so nothing depends on thread scheduling.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/mux/local/local.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define OWNERS 3
#define RINGS                \
	(WEIR_MUX_RING_MIN * \
	 WEIR_MUX_RING_SLAB_CONNS) /* bytes per direction: nothing else has this length */

/* Accounts at both ends; each account of the server offers a service. */
struct mux_rings_side {
	struct weir_mux_local *mux;
	struct weir_mux_account owners[OWNERS];
	struct weir_mux_service *offers[OWNERS];
};

static struct mux_rings_side client, server;
static char address[64];
static uint32_t holds, is_held, fails; /* the next registration of rings */

struct ibv_mr *__real_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (length == RINGS && __atomic_exchange_n(&fails, 0, __ATOMIC_SEQ_CST)) {
		errno = ENOMEM;
		return NULL;
	}
	if (length == RINGS && __atomic_exchange_n(&holds, 0, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&is_held, __ATOMIC_SEQ_CST))
			sched_yield();
	}
	return __real_ibv_reg_mr(pd, addr, length, access);
}

static void wait_held(void)
{
	while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST))
		sched_yield();
}

static void let_go(void)
{
	__atomic_store_n(&is_held, 0, __ATOMIC_SEQ_CST);
}

static void hub_open(struct mux_rings_side *side, const char *listen)
{
	const struct weir_mux_options options = { .listen = listen,
						  .key = fixture_key(),
						  .ring_bytes = WEIR_MUX_RING_MIN,
						  .timeout_ns = 100 * SECOND_NS };
	struct weir_error error = { "" };
	unsigned int i;

	if (weir_mux_local_open(&options, &side->mux, &error))
		fail_msg("%s", error.text);
	for (i = 0; i < OWNERS; i++)
		weir_mux_account_init(&side->owners[i], side->mux);
}

static int both_open(void **state)
{
	struct weir_mux_info info;
	char listen[64];
	unsigned int i;

	(void)state;
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	hub_open(&client, NULL);
	hub_open(&server, listen);
	weir_mux_local_info(server.mux, &info);
	snprintf(address, sizeof(address), "%s", info.address);
	for (i = 0; i < OWNERS; i++)
		assert_int_equal(weir_mux_service_open(&server.owners[i], SERVICE + i, 64,
						       eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
						       &server.offers[i]),
				 0);
	return 0;
}

/* Waits until closed connections are gone at both ends. */
static void owner_end(struct mux_rings_side *side, unsigned int i)
{
	weir_mux_local_drain(side->mux, &side->owners[i]);
	pthread_mutex_lock(&side->mux->lock);
	assert_int_equal(side->owners[i].nr_conns, 0);
	pthread_mutex_unlock(&side->mux->lock);
	weir_mux_account_fini(&side->owners[i]);
	assert_int_equal(side->owners[i].bytes, 0);
}

static int both_close(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < OWNERS; i++) {
		owner_end(&client, i);
		owner_end(&server, i);
		if (server.offers[i])
			weir_mux_service_close(server.offers[i]);
	}
	weir_mux_close(&client.mux->mux);
	weir_mux_close(&server.mux->mux);
	return 0;
}

/* A connect, in a thread if need be. */
struct asking {
	pthread_t thread;
	struct weir_mux_account *account;
	uint32_t service;
	struct weir_mux_vconn *near, *far;
	int rc;
};

static void *ask(void *arg)
{
	struct asking *a = arg;

	a->rc = weir_mux_vconn_connect(a->account, address, a->service, NULL,
				       weir_mux_local_deadline_ns(client.mux), &a->near, NULL);
	return NULL;
}

static void ask_begin(struct asking *a, unsigned int account, unsigned int to)
{
	*a = (struct asking){ .account = &client.owners[account], .service = SERVICE + to };
	assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static void pass(struct weir_mux_vconn *from, struct weir_mux_vconn *to)
{
	char byte = 7, got = 0;
	size_t length;

	assert_int_equal(weir_mux_conn_send(&from->app, &byte, 1, 0), 0);
	assert_int_equal(weir_mux_conn_recv(&to->app, &got, 1, &length, 0), 0);
	assert_int_equal(got, 7);
}

/* Accepts; the connection works in both directions. */
static void ask_accept(struct asking *a)
{
	assert_int_equal(a->rc, 0);
	while (weir_mux_service_accept(server.offers[a->service - SERVICE], &a->far) == -EAGAIN)
		sched_yield();
	pass(a->near, a->far);
	pass(a->far, a->near);
}

static void ask_end(struct asking *a)
{
	assert_int_equal(pthread_join(a->thread, NULL), 0);
	ask_accept(a);
}

static void connect_one(struct asking *a, unsigned int account, unsigned int to)
{
	*a = (struct asking){ .account = &client.owners[account], .service = SERVICE + to };
	ask(a);
	ask_accept(a);
}

static void shut(struct asking *a)
{
	weir_mux_conn_close(&a->near->app);
	weir_mux_conn_close(&a->far->app);
}

static void registration_for_a_connect_delays_no_other(void **state)
{
	struct asking first, held, also, same, other;

	(void)state;
	connect_one(&first, 0, 0);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	ask_begin(&held, 1, 0);
	wait_held();
	ask_begin(&also, 1, 0); /* waits for the same rings */
	pass(first.near, first.far);
	pass(first.far, first.near);
	connect_one(&same, 0, 0);
	connect_one(&other, 2, 0);
	let_go();
	ask_end(&held);
	ask_end(&also);
	pthread_mutex_lock(&client.mux->lock);
	assert_int_equal(client.owners[1].nr_slabs, 1);
	pthread_mutex_unlock(&client.mux->lock);
	shut(&first);
	shut(&held);
	shut(&also);
	shut(&same);
	shut(&other);
}

static void registration_for_an_open_delays_no_other(void **state)
{
	struct asking first, held, also, same, other;

	(void)state;
	connect_one(&first, 0, 0);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	ask_begin(&held, 0, 1);
	wait_held();
	ask_begin(&also, 0, 1);
	pass(first.near, first.far);
	pass(first.far, first.near);
	connect_one(&same, 0, 0);
	connect_one(&other, 0, 2); /* also registers rings */
	let_go();
	ask_end(&held);
	ask_end(&also);
	pthread_mutex_lock(&server.mux->lock);
	assert_int_equal(server.owners[1].nr_slabs, 1);
	pthread_mutex_unlock(&server.mux->lock);
	shut(&first);
	shut(&held);
	shut(&also);
	shut(&same);
	shut(&other);
}

static void *end_second(void *arg)
{
	(void)arg;
	owner_end(&server, 1);
	return NULL;
}

static void an_account_ending_during_registration_leaves_nothing(void **state)
{
	struct asking first, held, other;
	pthread_t thread;

	(void)state;
	connect_one(&first, 0, 0);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	ask_begin(&held, 0, 1);
	wait_held();
	weir_mux_service_close(server.offers[1]);
	assert_int_equal(pthread_create(&thread, NULL, end_second, NULL), 0);
	connect_one(&other, 0, 0);
	let_go();
	assert_int_equal(pthread_join(held.thread, NULL), 0);
	assert_int_equal(held.rc, -ECONNREFUSED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	shut(&first);
	shut(&other);
	server.offers[1] = NULL;
	weir_mux_account_init(&server.owners[1], server.mux);
}

static void a_mux_that_is_closed_meanwhile_leaves_nothing(void **state)
{
	struct asking first, held;

	(void)state;
	connect_one(&first, 0, 0);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	ask_begin(&held, 0, 1);
	wait_held();
	weir_mux_local_stop(server.mux);
	assert_int_equal(pthread_join(held.thread, NULL), 0);
	assert_int_equal(held.rc, -ECONNRESET);
	let_go();
	shut(&first);
}

static void memory_that_cannot_be_registered_is_given_back(void **state)
{
	struct asking first, again = { .account = &client.owners[0], .service = SERVICE + 1 };

	(void)state;
	__atomic_store_n(&fails, 1, __ATOMIC_SEQ_CST);
	ask(&again);
	assert_int_equal(again.rc, -ENOMEM);
	assert_int_equal(client.owners[0].bytes, 0);
	connect_one(&first, 0, 0);
	__atomic_store_n(&fails, 1, __ATOMIC_SEQ_CST);
	ask(&again);
	assert_int_equal(again.rc, -ENOMEM);
	pthread_mutex_lock(&server.mux->lock);
	assert_int_equal(server.owners[1].bytes, 0);
	pthread_mutex_unlock(&server.mux->lock);
	ask(&again);
	ask_accept(&again);
	shut(&first);
	shut(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(registration_for_a_connect_delays_no_other,
						both_open, both_close),
		cmocka_unit_test_setup_teardown(registration_for_an_open_delays_no_other, both_open,
						both_close),
		cmocka_unit_test_setup_teardown(
			an_account_ending_during_registration_leaves_nothing, both_open,
			both_close),
		cmocka_unit_test_setup_teardown(a_mux_that_is_closed_meanwhile_leaves_nothing,
						both_open, both_close),
		cmocka_unit_test_setup_teardown(memory_that_cannot_be_registered_is_given_back,
						both_open, both_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
