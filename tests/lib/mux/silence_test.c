/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another mux that says nothing for a while: who waits for it may go, and takes nothing along. Nor
 * does a lane of which not both ends know yet, if what it is to begin with is lost.
 */
#include <errno.h>
#include <unistd.h>

#include "softnic/control/control.h"
#include "tests/lib/mux/tenants.h"

/* What others have with that mux stays, and so does the queue pair that he has begun. */
static void a_tenant_who_dies_as_he_connects_breaks_nobody(void **state)
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

/* The other end can use it as soon as it has welcomed who is gone. */
static void the_first_lane_of_who_dies_is_there_for_others(void **state)
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

/* Nobody waits for a mux that is to be closed: a lane in proof does not hold it up. */
static void a_mux_ends_while_a_lane_is_left_in_proof(void **state)
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

/* The next operation of each queue pair fails as if nobody answered; or no more. */
static void nobody_answers(bool is_so)
{
	struct softnic_options faults;

	option_defaults(&faults);
	faults.given = 1u << OPTION_ERROR_AFTER;
	faults.value[OPTION_ERROR_AFTER] = is_so ? 0 : OPTION_NEVER;
	assert_int_equal(softnic_fault(getpid(), &faults), 0);
}

/* By the lanes that there were; and another one can be had. */
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

/* Who connects hears of it; who has connections by another lane does not. */
static void a_lane_whose_hello_is_lost_fails_alone(void **state)
{
	struct weir_mux_conn *near, *far, *none = NULL;
	struct mux_ends_pair *pair = *state;

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

/* Who was connected to holds the key for proven, and has no other word that the lane is there. */
static void a_lane_whose_welcome_is_lost_fails_alone(void **state)
{
	struct mux_ends_pair *pair = *state;
	struct weir_mux_conn *near, *far;
	struct mux_tenant tenant;

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

/* It is stopped, or has lost its way; its NIC takes all in. */
static void who_does_not_answer_is_left_all_the_same(void **state)
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
		pair_test(a_tenant_who_dies_as_he_connects_breaks_nobody),
		pair_test(the_first_lane_of_who_dies_is_there_for_others),
		pair_test(a_mux_ends_while_a_lane_is_left_in_proof),
		pair_test(a_lane_whose_hello_is_lost_fails_alone),
		pair_test(a_lane_whose_welcome_is_lost_fails_alone),
		cmocka_unit_test_setup_teardown(who_does_not_answer_is_left_all_the_same,
						open_for_ever, pair_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
