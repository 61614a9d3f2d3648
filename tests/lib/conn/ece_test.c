/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib ece; devices: softnic; timeout: 120 */
/*
 * Both ends of a connection negotiate the options of their NICs' vendor (ECE), although weir
 * connects its own QPs. Suite "lib", on softnic: its connection manager carries the options, and
 * this test stands for the NIC that has them.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>

#include <weir/exchange.h>
#include "tests/support/libweir_fixture.h"

#define VENDOR 0x15b3
#define TIMEOUT_NS (60 * SECOND_NS)

/*
 * The NIC of one end. @supports: its options, 0: the device knows none; @has_set: options set,
 * 0: none; @refuses: it takes no options
 */
struct nic {
	uint32_t supports, has_set;
	bool refuses;
};

static struct nic connecting, listening;
static pthread_t acceptor;

int __wrap_ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int __wrap_ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);

static struct nic *nic_of_thread(void)
{
	return pthread_equal(pthread_self(), acceptor) ? &listening : &connecting;
}

int __wrap_ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	const struct nic *nic = nic_of_thread();

	(void)qp;
	if (!nic->supports)
		return EOPNOTSUPP;
	*ece = (struct ibv_ece){ .vendor_id = VENDOR,
				 .options = nic->has_set ? nic->has_set & nic->supports :
							   nic->supports };
	return 0;
}

/* A NIC keeps the options of a QP before the QP is connected. */
int __wrap_ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct nic *nic = nic_of_thread();

	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(ece->vendor_id, VENDOR);
	if (nic->refuses)
		return EINVAL;
	nic->has_set = ece->options;
	return 0;
}

static void *connect_run(void *address)
{
	const struct weir_exchange_options options = { .size = sizeof(options),
						       .key = fixture_key(),
						       .timeout_ns = TIMEOUT_NS };
	static struct weir_exchange *x;

	return weir_exchange_connect(address, &options, &x, NULL) ? NULL : x;
}

/* Return: once both ends have proven the key. */
static void connect_ends(struct nic c, struct nic l)
{
	const struct weir_exchange_options options = { .size = sizeof(options),
						       .key = fixture_key() };
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	char address[64];
	pthread_t thread;
	void *other;

	connecting = c;
	listening = l;
	acceptor = pthread_self();
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	snprintf(address, sizeof(address), "%s", weir_exchange_address(listener));
	assert_int_equal(pthread_create(&thread, NULL, connect_run, address), 0);
	assert_int_equal(weir_exchange_accept(listener, TIMEOUT_NS, &x, NULL), 0);
	assert_int_equal(pthread_join(thread, &other), 0);
	assert_non_null(other);
	weir_exchange_close(other);
	weir_exchange_close(x);
	weir_exchange_unlisten(listener);
}

static void both_ends_use_the_options_that_both_support(void **state)
{
	(void)state;
	connect_ends((struct nic){ .supports = 7 }, (struct nic){ .supports = 13 });
	assert_int_equal(listening.has_set, 7);
	assert_int_equal(connecting.has_set, 5);
}

static void an_end_without_options_connects_to_an_end_with_options(void **state)
{
	(void)state;
	connect_ends((struct nic){ 0 }, (struct nic){ .supports = 13 });
	assert_int_equal(listening.has_set, 0);
	assert_int_equal(connecting.has_set, 0);
}

static void an_end_that_refuses_the_options_connects_without_options(void **state)
{
	(void)state;
	connect_ends((struct nic){ .supports = 7 },
		     (struct nic){ .supports = 13, .refuses = true });
	assert_int_equal(listening.has_set, 0);
	assert_int_equal(connecting.has_set, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_use_the_options_that_both_support),
		cmocka_unit_test(an_end_without_options_connects_to_an_end_with_options),
		cmocka_unit_test(an_end_that_refuses_the_options_connects_without_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
