// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce unreliable */
/* UC and UD, packet by packet. */
#include "roce_fixture.h"

static struct roce_sent sent, first, middle, last;

static int setup_uc(void **state)
{
	(void)state;
	roce_setup(ROCE_UC);
	b.receives = 4;
	return 0;
}

static int setup_ud(void **state)
{
	(void)state;
	roce_setup(ROCE_UD);
	b.receives = 4;
	return 0;
}

/* The three packets of a message of UC. */
static void post_three(enum roce_op op, uint8_t first_opcode, uint8_t last_opcode)
{
	roce_post(&a, op, 3 * FIXTURE_MTU);
	roce_expect(&a, ROCE_UC | first_opcode, &first);
	roce_expect(&a, ROCE_UC | (first_opcode + 1), &middle);
	roce_expect(&a, ROCE_UC | last_opcode, &last);
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_uc_delivers_without_acknowledgement(void **state)
{
	(void)state;
	post_three(ROCE_OP_SEND_IMM, ROCE_SEND_FIRST, ROCE_SEND_LAST_IMM);
	roce_deliver(&b, &first);
	roce_deliver(&b, &middle);
	roce_deliver(&b, &last);
	assert_int_equal(b.num_arrivals, 1);
	assert_int_equal(b.arrivals[0].bytes, 3 * FIXTURE_MTU);
	assert_memory_equal(b.receive, a.local, 3 * FIXTURE_MTU);
	roce_expect_silence(&b);
	assert_int_equal(roce_qp_deadline_ns(&a.qp), ROCE_NEVER);
}

static void test_uc_drops_a_message_with_a_gap(void **state)
{
	(void)state;
	post_three(ROCE_OP_SEND, ROCE_SEND_FIRST, ROCE_SEND_LAST);
	roce_deliver(&b, &first);
	roce_deliver(&b, &last);
	assert_int_equal(b.num_arrivals, 0);
	assert_int_equal(b.given_back, 1);
	assert_int_equal(b.receives, 4);
	roce_post(&a, ROCE_OP_SEND, 7);
	roce_settle();
	assert_int_equal(b.num_arrivals, 1);
	assert_int_equal(b.arrivals[0].bytes, 7);
}

static void test_uc_resumes_with_the_next_message_after_a_lost_end(void **state)
{
	(void)state;
	post_three(ROCE_OP_WRITE_IMM, ROCE_WRITE_FIRST, ROCE_WRITE_LAST_IMM);
	roce_deliver(&b, &first);
	roce_deliver(&b, &middle);
	post_three(ROCE_OP_WRITE_IMM, ROCE_WRITE_FIRST, ROCE_WRITE_LAST_IMM);
	roce_deliver(&b, &first);
	roce_deliver(&b, &middle);
	roce_deliver(&b, &last);
	assert_int_equal(b.num_arrivals, 1);
	assert_memory_equal(b.memory, a.local, 3 * FIXTURE_MTU);
}

static void test_uc_delivers_no_message_twice(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_expect(&a, ROCE_UC | ROCE_SEND_ONLY, &first);
	roce_post(&a, ROCE_OP_SEND, 2);
	roce_expect(&a, ROCE_UC | ROCE_SEND_ONLY, &last);
	roce_deliver(&b, &last);
	roce_deliver(&b, &first);
	roce_deliver(&b, &last);
	assert_int_equal(b.num_arrivals, 1);
	assert_int_equal(b.arrivals[0].bytes, 2);
	assert_int_equal(b.qp.counters.duplicates, 2);
}

static void test_uc_recovers_from_a_forged_psn(void **state)
{
	struct roce_packet forged;

	(void)state;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_expect(&a, ROCE_UC | ROCE_SEND_ONLY, &sent);
	forged = sent.p;
	forged.psn = (FIXTURE_PSN + 0x700000) & ROCE_PSN_MASK;
	roce_qp_input(&b.qp, &forged, NULL, 1);
	roce_deliver(&b, &sent);
	assert_int_equal(b.num_arrivals, 2);
}

static void test_uc_drops_a_forbidden_access(void **state)
{
	(void)state;
	b.revoked = true;
	roce_post(&a, ROCE_OP_WRITE, 8);
	roce_settle();
	assert_int_equal(b.writes, 0);
	b.revoked = false;
	b.receives = 0;
	roce_post(&a, ROCE_OP_SEND, 8);
	roce_post(&a, ROCE_OP_WRITE, 8);
	roce_settle();
	assert_int_equal(b.num_arrivals, 0);
	assert_int_equal(b.writes, 1);
	assert_int_equal(b.qp.error, ROCE_SUCCESS);
}

static void test_ud_delivers_behind_the_grh(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_SEND_IMM, FIXTURE_MTU);
	roce_expect(&a, ROCE_UD | ROCE_SEND_ONLY_IMM, &sent);
	assert_int_equal(sent.p.qkey, 0x1ee7);
	roce_expect_completion(&a, ROCE_SUCCESS);
	roce_deliver(&b, &sent);
	assert_int_equal(b.num_arrivals, 1);
	assert_int_equal(b.arrivals[0].src_qpn, 10);
	assert_int_equal(b.arrivals[0].bytes, ROCE_GRH_BYTES + FIXTURE_MTU);
	assert_int_equal(b.receive[ROCE_GRH_BYTES - 1], 0xfe);
	assert_memory_equal(b.receive + ROCE_GRH_BYTES, a.local, FIXTURE_MTU);
}

static void test_ud_sends_the_queue_pairs_qkey_for_a_controlled_one(void **state)
{
	struct roce_wqe wqe = { .op = ROCE_OP_SEND, .dest_qpn = 20, .qkey = 0x80000000 };

	(void)state;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), 0);
	roce_expect(&a, ROCE_UD | ROCE_SEND_ONLY, &sent);
	assert_int_equal(sent.p.qkey, 0x1ee7);
}

static void test_ud_drops_a_datagram_that_does_not_fit(void **state)
{
	struct roce_wqe wqe = { .op = ROCE_OP_SEND, .length = FIXTURE_MTU + 1 };

	(void)state;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), -22);
	wqe.op = ROCE_OP_WRITE;
	wqe.length = 1;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), -22);
	roce_post(&a, ROCE_OP_SEND, 9);
	roce_expect(&a, ROCE_UD | ROCE_SEND_ONLY, &sent);
	sent.p.qkey++;
	roce_deliver(&b, &sent);
	assert_int_equal(b.qp.counters.refused[ROCE_REFUSED_QKEY], 1);
	sent.p.qkey--;
	b.room = ROCE_GRH_BYTES + 8;
	roce_deliver(&b, &sent);
	assert_int_equal(b.given_back, 1);
	b.receives = 0;
	roce_deliver(&b, &sent);
	assert_int_equal(b.num_arrivals, 0);
	b.receives = 1;
	b.room++;
	roce_deliver(&b, &sent);
	assert_int_equal(b.num_arrivals, 1);
}

static void test_ud_takes_multicast(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_expect(&a, ROCE_UD | ROCE_SEND_ONLY, &sent);
	sent.p.dest_qpn = 0xffffff;
	roce_deliver(&b, &sent);
	assert_int_equal(b.num_arrivals, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_uc_delivers_without_acknowledgement, setup_uc),
		cmocka_unit_test_setup(test_uc_drops_a_message_with_a_gap, setup_uc),
		cmocka_unit_test_setup(test_uc_resumes_with_the_next_message_after_a_lost_end,
				       setup_uc),
		cmocka_unit_test_setup(test_uc_delivers_no_message_twice, setup_uc),
		cmocka_unit_test_setup(test_uc_recovers_from_a_forged_psn, setup_uc),
		cmocka_unit_test_setup(test_uc_drops_a_forbidden_access, setup_uc),
		cmocka_unit_test_setup(test_ud_delivers_behind_the_grh, setup_ud),
		cmocka_unit_test_setup(test_ud_sends_the_queue_pairs_qkey_for_a_controlled_one,
				       setup_ud),
		cmocka_unit_test_setup(test_ud_drops_a_datagram_that_does_not_fit, setup_ud),
		cmocka_unit_test_setup(test_ud_takes_multicast, setup_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
