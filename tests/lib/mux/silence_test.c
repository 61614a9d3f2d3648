/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux silence; devices: softnic; timeout: 180 */
/*
 * A peer that is silent for a while: a waiting tenant may go without harm to others. A QP that
 * is not yet known to both ends also fails alone if a handshake message is lost.
 */
#include <errno.h>
#include <unistd.h>

#include "softnic/control/control.h"
#include "tests/lib/mux/tenants.h"
#include "tests/support/test_device.h"

/* Others' connections to the peer survive, and so does the QP dialled by the dead tenant. */
static void a_tenant_killed_while_connecting_breaks_no_other(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	struct weir_mux_conn *near, *far, *other, *there;
	struct mux_tenant tenant;

	near = connect_at(a, b->address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(b);
	tenant_dials(&tenant, a, b, WEIR_MUX_CLASS_NORMAL);
	tenant_is_gone(&tenant);
	gate_open();
	wait_queue_pairs(a, 2);
	wait_queue_pairs(b, 2);
	pass(near, far);
	pass(far, near);
	other = connect_to(a, b);
	there = accept_at(b);
	assert_ptr_equal(node_of(other), node_of(near));
	pass(other, there);
	wait_queue_pairs(b, 2);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_conn_close(other);
	weir_mux_conn_close(there);
}

/* The peer may use the QP as soon as WELCOME is sent to the dead tenant's end. */
static void the_first_qp_of_a_killed_tenant_serves_others(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	struct weir_mux_conn *near, *far;
	struct mux_tenant tenant;

	tenant_dials(&tenant, a, b, WEIR_MUX_CLASS_URGENT);
	tenant_is_gone(&tenant);
	gate_open();
	near = connect_at(a, b->address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(b);
	pass(near, far);
	assert_int_equal(nodes_of(a->mux), 1);
	wait_queue_pairs(a, 1);
	wait_queue_pairs(b, 1);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
}

/* Closing the mux does not wait for an unproven QP. */
static void a_mux_closes_while_a_qp_is_unproven(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	struct mux_tenant tenant;

	tenant_dials(&tenant, a, b, WEIR_MUX_CLASS_URGENT);
	tenant_is_gone(&tenant);
	assert_int_equal(nodes_of(a->mux), 1);
	end_close(a);
	gate_open();
}

/* Makes the next operation of each QP fail as without a response, or ends that. */
static void nobody_answers(bool is_so)
{
	struct softnic_options faults;

	option_defaults(&faults);
	faults.given = 1u << OPTION_ERROR_AFTER;
	faults.value[OPTION_ERROR_AFTER] = is_so ? 0 : OPTION_NEVER;
	assert_int_equal(softnic_control_set_faults(getpid(), &faults), 0);
}

/* The existing QPs work, and another can be made. */
static void all_is_as_before(const struct mux_ends_pair *pair, struct weir_mux_conn *near,
			     struct weir_mux_conn *far)
{
	struct weir_mux_conn *other, *there;

	pass(near, far);
	pass(far, near);
	other = connect_to(&pair->a, &pair->b);
	there = accept_at(&pair->b);
	assert_ptr_equal(node_of(other), node_of(near));
	assert_ptr_equal(node_of(there), node_of(far));
	pass(other, there);
	pass(there, other);
	wait_queue_pairs(&pair->a, 2);
	wait_queue_pairs(&pair->b, 2);
	weir_mux_conn_close(other);
	weir_mux_conn_close(there);
}

/* The connecting thread gets the error; connections on other QPs go on. */
static void a_qp_whose_hello_is_lost_fails_alone(void **state)
{
	struct weir_mux_conn *near, *far, *none = NULL;
	struct mux_ends_pair *pair = *state;

	if (over_wire())
		skip(); /* there a process has faults of packets, not of operations */
	near = connect_at(&pair->a, pair->b.address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(&pair->b);
	nobody_answers(true);
	assert_int_equal(weir_mux_connect(&pair->a.mux->mux, pair->b.address, SERVICE, NULL, &none,
					  NULL),
			 -ECONNRESET);
	nobody_answers(false);
	all_is_as_before(pair, near, far);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
}

/* The donor end has accepted the proof, and gets no other sign of the QP. */
static void a_qp_whose_welcome_is_lost_fails_alone(void **state)
{
	struct mux_ends_pair *pair = *state;
	struct weir_mux_conn *near, *far;
	struct mux_tenant tenant;

	if (over_wire())
		skip(); /* as above */
	near = connect_at(&pair->a, pair->b.address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(&pair->b);
	tenant_dials(&tenant, &pair->a, &pair->b, WEIR_MUX_CLASS_NORMAL);
	nobody_answers(true);
	gate_open();
	tenant_gets_no_lane(&tenant);
	nobody_answers(false);
	all_is_as_before(pair, near, far);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
}

static void wait_deserted(const struct mux_end *end)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	bool is_deserted = false;

	while (!is_deserted) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
		pthread_mutex_lock(&end->mux->lock);
		is_deserted = weir_list_entry(end->mux->remotes.next, struct weir_mux_remote, link)
				      ->refs == 1;
		pthread_mutex_unlock(&end->mux->lock);
	}
}

static int open_for_ever(void **state)
{
	return pair_open_with(state, UINT64_MAX);
}

/* The peer is stopped or broken, but its NIC still acknowledges. */
static void a_silent_peer_is_left_after_a_timeout(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;

	weir_mux_conn_close(connect_to(a, b));
	weir_mux_conn_close(accept_at(b));
	wait_deserted(a);
	wait_deserted(b);
	pthread_mutex_lock(&b->mux->lock);
	weir_mux_local_set_idle(a->mux, 1);
	wait_nodes(a, 0);
	pthread_mutex_unlock(&b->mux->lock);
	wait_nodes(b, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		pair_test(a_tenant_killed_while_connecting_breaks_no_other),
		pair_test(the_first_qp_of_a_killed_tenant_serves_others),
		pair_test(a_mux_closes_while_a_qp_is_unproven),
		pair_test(a_qp_whose_hello_is_lost_fails_alone),
		pair_test(a_qp_whose_welcome_is_lost_fails_alone),
		cmocka_unit_test_setup_teardown(a_silent_peer_is_left_after_a_timeout,
						open_for_ever, pair_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
