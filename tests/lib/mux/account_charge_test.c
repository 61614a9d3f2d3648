/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux account charge; devices: softnic; timeout: 180 */
/* Charging of remotes to account groups: a group does not pay for others' use. */
#include <errno.h>
#include <unistd.h>

#include "tests/lib/mux/ends.h"

static int owner_connect(struct weir_mux_account *account, const struct mux_end *to,
			 struct weir_mux_vconn **conn)
{
	return weir_mux_vconn_connect(account, to->address, SERVICE, NULL,
				      weir_now_ns() + PATIENCE_NS, conn, NULL);
}

static unsigned int nodes_charged(const struct weir_mux_account *account)
{
	unsigned int count;

	pthread_mutex_lock(&account->mux->lock);
	count = account->group->nr_remotes;
	pthread_mutex_unlock(&account->mux->lock);
	return count;
}

/* Closes both ends and waits until our end is free. */
static void owner_close(struct weir_mux_account *account, struct weir_mux_vconn *conn,
			struct weir_mux_conn *far)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	unsigned int before, left;

	pthread_mutex_lock(&account->mux->lock);
	before = left = account->nr_conns;
	pthread_mutex_unlock(&account->mux->lock);
	weir_mux_conn_close(&conn->app);
	weir_mux_conn_close(far);
	while (left == before) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
		pthread_mutex_lock(&account->mux->lock);
		left = account->nr_conns;
		pthread_mutex_unlock(&account->mux->lock);
	}
}

static void a_group_gone_from_a_remote_may_create_another(void **state)
{
	struct weir_mux_vconn *first, *second, *other, *none;
	struct weir_mux_conn *far_first, *far_second, *far_other;
	struct weir_mux_account a, b;
	struct mux_end from, to[3];
	int i;

	(void)state;
	end_open(&from, UINT64_MAX);
	for (i = 0; i < 3; i++)
		end_open(&to[i], UINT64_MAX);
	weir_mux_account_init(&a, from.mux);
	weir_mux_account_init(&b, from.mux);
	a.group->nr_remotes_max = b.group->nr_remotes_max = 1;

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

	/* An unused remote keeps its charge; others may connect to an existing remote. */
	owner_close(&a, second, far_second);
	assert_int_equal(nodes_charged(&a), 1);
	assert_int_equal(owner_connect(&b, &to[1], &second), 0);
	far_second = accept_at(&to[1]);
	assert_int_equal(nodes_charged(&a), 0);
	assert_int_equal(nodes_charged(&b), 2);

	owner_close(&b, second, far_second);
	owner_close(&b, other, far_other);
	assert_int_equal(nodes_charged(&b), 2);
	weir_mux_account_fini(&a);
	weir_mux_account_fini(&b);
	end_close(&from);
	for (i = 0; i < 3; i++)
		end_close(&to[i]);
}

/* The accepting end does not pay for a remote created by the peer. */
static void a_remote_with_incoming_connections_only_is_not_charged(void **state)
{
	struct weir_mux_vconn *first;
	struct weir_mux_conn *far_first, *near, *far;
	struct weir_mux_account a;
	struct mux_end from, to;

	(void)state;
	end_open(&from, UINT64_MAX);
	end_open(&to, UINT64_MAX);
	weir_mux_account_init(&a, from.mux);
	assert_int_equal(owner_connect(&a, &to, &first), 0);
	far_first = accept_at(&to);
	far = connect_to(&to, &from);
	near = accept_at(&from);
	assert_ptr_equal(node_of(near), first->remote);
	assert_int_equal(nodes_charged(&a), 1);
	owner_close(&a, first, far_first);
	assert_int_equal(nodes_charged(&a), 0);
	assert_int_equal(nodes_charged(&from.mux->self), 0);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_account_fini(&a);
	end_close(&from);
	end_close(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_gone_from_a_remote_may_create_another),
		cmocka_unit_test(a_remote_with_incoming_connections_only_is_not_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
