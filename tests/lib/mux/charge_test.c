/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whose a node counts as: who has begun it does not hold it for others. */
#include <errno.h>
#include <unistd.h>

#include "tests/lib/mux/ends.h"

static int owner_connect(struct weir_owner *owner, const struct end *to, struct weir_circuit **conn)
{
	return weir_circuit_connect(owner, to->address, SERVICE, NULL, weir_now_ns() + PATIENCE_NS, conn,
				    NULL);
}

static unsigned int nodes_charged(const struct weir_owner *owner)
{
	unsigned int count;

	pthread_mutex_lock(&owner->hub->lock);
	count = owner->party->nr_nodes;
	pthread_mutex_unlock(&owner->hub->lock);
	return count;
}

/* Both ends of one, and nothing is left of it at ours. */
static void owner_close(struct weir_owner *owner, struct weir_circuit *conn, struct weir_conn *far)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	unsigned int before, left;

	pthread_mutex_lock(&owner->hub->lock);
	before = left = owner->nr_conns;
	pthread_mutex_unlock(&owner->hub->lock);
	weir_conn_close(&conn->app);
	weir_conn_close(far);
	while (left == before) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
		pthread_mutex_lock(&owner->hub->lock);
		left = owner->nr_conns;
		pthread_mutex_unlock(&owner->hub->lock);
	}
}

static void who_has_gone_from_a_node_may_begin_another(void **state)
{
	struct weir_circuit *first, *second, *other, *none;
	struct weir_conn *far_first, *far_second, *far_other;
	struct weir_owner a, b;
	struct end from, to[3];
	int i;

	(void)state;
	end_open(&from, UINT64_MAX);
	for (i = 0; i < 3; i++)
		end_open(&to[i], UINT64_MAX);
	weir_owner_init(&a, from.hub);
	weir_owner_init(&b, from.hub);
	a.party->nr_nodes_max = b.party->nr_nodes_max = 1;

	assert_int_equal(owner_connect(&a, &to[0], &first), 0);
	far_first = accept_at(&to[0]);
	assert_int_equal(owner_connect(&b, &to[0], &other), 0);
	far_other = accept_at(&to[0]);
	assert_int_equal(nodes_charged(&a), 1);
	assert_int_equal(nodes_charged(&b), 0);
	assert_int_equal(owner_connect(&a, &to[1], &none), -EDQUOT);

	owner_close(&a, first, far_first);
	assert_int_equal(nodes_charged(&a), 0);
	assert_int_equal(nodes_charged(&b), 1);
	assert_int_equal(owner_connect(&b, &to[2], &none), -EDQUOT);
	assert_int_equal(owner_connect(&a, &to[1], &second), 0);
	far_second = accept_at(&to[1]);

	/* As long as nobody is there it stays whose it was; to what is there others may connect. */
	owner_close(&a, second, far_second);
	assert_int_equal(nodes_charged(&a), 1);
	assert_int_equal(owner_connect(&b, &to[1], &second), 0);
	far_second = accept_at(&to[1]);
	assert_int_equal(nodes_charged(&a), 0);
	assert_int_equal(nodes_charged(&b), 2);

	owner_close(&b, second, far_second);
	owner_close(&b, other, far_other);
	assert_int_equal(nodes_charged(&b), 2);
	weir_owner_fini(&a);
	weir_owner_fini(&b);
	end_close(&from);
	for (i = 0; i < 3; i++)
		end_close(&to[i]);
}

/* Nor does who was connected to pay for what another has begun. */
static void what_others_hold_by_connecting_to_us_is_nobodys(void **state)
{
	struct weir_circuit *first;
	struct weir_conn *far_first, *near, *far;
	struct weir_owner a;
	struct end from, to;

	(void)state;
	end_open(&from, UINT64_MAX);
	end_open(&to, UINT64_MAX);
	weir_owner_init(&a, from.hub);
	assert_int_equal(owner_connect(&a, &to, &first), 0);
	far_first = accept_at(&to);
	far = connect_to(&to, &from);
	near = accept_at(&from);
	assert_ptr_equal(node_of(near), first->node);
	assert_int_equal(nodes_charged(&a), 1);
	owner_close(&a, first, far_first);
	assert_int_equal(nodes_charged(&a), 0);
	assert_int_equal(nodes_charged(&from.hub->self), 0);
	weir_conn_close(near);
	weir_conn_close(far);
	weir_owner_fini(&a);
	end_close(&from);
	end_close(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_gone_from_a_node_may_begin_another),
		cmocka_unit_test(what_others_hold_by_connecting_to_us_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
