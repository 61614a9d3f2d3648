// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce reliable */
/* RC, packet by packet. The hunt of sim/hunt/fuzz_roce.c looks for the rest. */
#include "roce_fixture.h"

static struct roce_sent sent, other;

static int setup(void **state)
{
	(void)state;
	roce_setup(ROCE_RC);
	b.receives = 4;
	return 0;
}

static void test_each_operation_takes_effect(void **state)
{
	uint64_t before, after, got;
	int i;

	(void)state;
	roce_post(&a, ROCE_OP_SEND_IMM, 700);
	roce_settle();
	assert_memory_equal(b.receive, a.local, 700);
	assert_true(b.arrivals[0].has_imm && !b.arrivals[0].is_write);
	assert_int_equal(b.arrivals[0].bytes, 700);
	roce_post(&a, ROCE_OP_SEND_INV, 0);
	roce_settle();
	assert_true(b.arrivals[1].has_inv);
	assert_int_equal(b.invalidated, FIXTURE_RKEY);
	roce_post(&a, ROCE_OP_WRITE_IMM, 512);
	roce_settle();
	assert_true(b.arrivals[2].is_write);
	assert_memory_equal(b.memory, a.local, 512);
	roce_post(&b, ROCE_OP_READ, 1000);
	roce_settle();
	assert_memory_equal(b.local, a.memory, 1000);
	memcpy(&before, b.memory, sizeof(before));
	roce_post(&a, ROCE_OP_FETCH_ADD, 8);
	roce_settle();
	memcpy(&after, b.memory, sizeof(after));
	memcpy(&got, a.local, sizeof(got));
	assert_int_equal(after, before + 3);
	assert_int_equal(got, before);
	for (i = 0; i < 4; i++)
		roce_expect_completion(&a, ROCE_SUCCESS);
	roce_expect_no_completion(&a);
	roce_expect_completion(&b, ROCE_SUCCESS);
}

static void test_a_message_is_cut_to_the_mtu(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 2 * FIXTURE_MTU + 5);
	roce_expect(&a, ROCE_WRITE_FIRST, &sent);
	assert_int_equal(sent.p.dma_bytes, 2 * FIXTURE_MTU + 5);
	assert_int_equal(sent.p.psn, 0xfffffe);
	assert_false(sent.p.wants_ack);
	roce_expect(&a, ROCE_WRITE_MIDDLE, &sent);
	assert_int_equal(sent.p.payload_bytes, FIXTURE_MTU);
	roce_expect(&a, ROCE_WRITE_LAST, &sent);
	assert_int_equal(sent.p.payload_bytes, 5);
	assert_int_equal(sent.p.psn, 0);
	assert_true(sent.p.wants_ack);
	roce_expect_silence(&a);
}

static void test_acknowledgements_are_coalesced(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	assert_false(sent.p.wants_ack);
	roce_deliver(&b, &sent);
	roce_expect_silence(&b);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &sent);
	assert_int_equal(sent.p.msn, 2);
	roce_expect_silence(&b);
	roce_deliver(&a, &sent);
	roce_expect_completion(&a, ROCE_SUCCESS);
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_a_gap_gets_one_nak_and_the_requester_goes_back(void **state)
{
	uint32_t lost;

	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 4 * FIXTURE_MTU);
	roce_expect(&a, ROCE_WRITE_FIRST, &sent);
	lost = sent.p.psn;
	roce_expect(&a, ROCE_WRITE_MIDDLE, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&a, ROCE_WRITE_MIDDLE, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &sent);
	assert_int_equal(sent.p.syndrome, ROCE_NAK_SEQUENCE);
	assert_int_equal(sent.p.psn, lost);
	roce_expect_silence(&b);
	roce_deliver(&a, &sent);
	roce_deliver(&a, &sent); /* repeated by the network */
	roce_expect(&a, ROCE_WRITE_FIRST, &other);
	assert_int_equal(other.p.psn, lost);
	roce_deliver(&b, &other);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_memory_equal(b.memory, a.local, 4 * FIXTURE_MTU);
	assert_int_equal(b.writes, 4);
	assert_int_equal(a.qp.counters.naks_in, 2);
}

static void test_a_duplicate_is_acknowledged_not_executed(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &other); /* lost */
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &other);
	assert_int_equal(b.writes, 1);
	roce_deliver(&a, &other);
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_a_read_restarts_in_the_middle(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_READ, 3 * FIXTURE_MTU);
	roce_expect(&a, ROCE_READ_REQUEST, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_READ_FIRST, &sent);
	roce_deliver(&a, &sent);
	roce_expect(&b, ROCE_READ_MIDDLE, &sent); /* lost */
	roce_expect(&b, ROCE_READ_LAST, &sent);
	roce_deliver(&a, &sent);
	roce_expect(&a, ROCE_READ_REQUEST, &sent);
	assert_int_equal(sent.p.psn, 0xffffff);
	assert_int_equal(sent.p.addr, FIXTURE_MTU);
	assert_int_equal(sent.p.dma_bytes, 2 * FIXTURE_MTU);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_READ_FIRST, &sent);
	roce_deliver(&a, &sent);
	roce_expect(&b, ROCE_READ_LAST, &sent);
	roce_deliver(&a, &sent);
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_memory_equal(a.local, b.memory, 3 * FIXTURE_MTU);
}

/* The window covers the responses; a message that follows is numbered as the responder counts. */
static void test_a_long_read_is_requested_in_pieces(void **state)
{
	(void)state;
	roce_rate_init(&a.qp.req.rate, 5);
	b.receives = 1;
	roce_post(&a, ROCE_OP_READ, 6 * FIXTURE_MTU);
	roce_post(&a, ROCE_OP_SEND, FIXTURE_MTU);
	roce_expect(&a, ROCE_READ_REQUEST, &sent);
	assert_int_equal(sent.p.dma_bytes, FIXTURE_READ_PACKETS * FIXTURE_MTU);
	roce_expect_silence(&a);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_READ_FIRST, &sent);
	roce_deliver(&a, &sent);
	roce_expect(&a, ROCE_READ_REQUEST, &sent);
	assert_int_equal(sent.p.addr, FIXTURE_READ_PACKETS * FIXTURE_MTU);
	assert_int_equal(sent.p.dma_bytes, 2 * FIXTURE_MTU);
	roce_deliver(&b, &sent);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_memory_equal(a.local, b.memory, 6 * FIXTURE_MTU);
	assert_int_equal(a.qp.req.reads_out, 0);
	assert_int_equal(a.qp.req.number, b.qp.resp.msn);
}

static void test_an_atomic_is_executed_once(void **state)
{
	uint64_t before, after;

	(void)state;
	memcpy(&before, b.memory, sizeof(before));
	roce_post(&a, ROCE_OP_FETCH_ADD, 8);
	roce_expect(&a, ROCE_FETCH_ADD, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ATOMIC_ACK, &other); /* lost */
	roce_wait(&a, FIXTURE_TIMEOUT_NS);
	roce_expect(&a, ROCE_FETCH_ADD, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ATOMIC_ACK, &other);
	assert_int_equal(other.p.original, before);
	roce_deliver(&a, &other);
	roce_expect_completion(&a, ROCE_SUCCESS);
	memcpy(&after, b.memory, sizeof(after));
	assert_int_equal(after, before + 3);
}

/* A second time would undo what was written since. */
static void test_an_atomic_write_is_executed_once(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_ATOMIC_WRITE, 8);
	roce_expect(&a, ROCE_ATOMIC_WRITE, &sent);
	assert_int_equal(sent.p.payload_bytes, 8);
	assert_int_equal(sent.p.dma_bytes, 8);
	roce_deliver(&b, &sent);
	assert_memory_equal(b.memory, a.local, 8);
	roce_expect(&b, ROCE_READ_ONLY, &other); /* lost */
	memset(b.memory, 0x55, 8);
	roce_wait(&a, FIXTURE_TIMEOUT_NS);
	roce_expect(&a, ROCE_ATOMIC_WRITE, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_READ_ONLY, &other);
	assert_int_equal(other.p.payload_bytes, 0);
	roce_deliver(&a, &other);
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_int_equal(b.memory[0], 0x55);
	assert_int_equal(b.writes, 1);
}

static void test_depth_and_fence_hold_back(void **state)
{
	struct roce_wqe fenced = { .op = ROCE_OP_WRITE, .rkey = FIXTURE_RKEY, .is_fenced = true };
	int i;

	(void)state;
	for (i = 0; i <= FIXTURE_DEPTH; i++)
		roce_post(&a, ROCE_OP_READ, 1);
	assert_int_equal(roce_qp_post(&a.qp, &fenced), 0);
	for (i = 0; i < FIXTURE_DEPTH; i++) {
		roce_expect(&a, ROCE_READ_REQUEST, &sent);
		roce_deliver(&b, &sent);
	}
	roce_expect_silence(&a);
	roce_expect(&b, ROCE_READ_ONLY, &sent);
	roce_deliver(&a, &sent);
	roce_expect(&a, ROCE_READ_REQUEST, &other);
	roce_deliver(&b, &other);
	roce_expect_silence(&a);
	for (i = 0; i < FIXTURE_DEPTH; i++) {
		roce_expect(&b, ROCE_READ_ONLY, &sent);
		roce_deliver(&a, &sent);
	}
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
}

static void test_silence_exhausts_the_retries(void **state)
{
	int i;

	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_post(&a, ROCE_OP_WRITE, 1);
	for (i = 0; i < 3; i++) { /* the first attempt and two retries */
		roce_expect(&a, ROCE_WRITE_ONLY, &sent);
		if (!i) /* later, the congestion window has one packet */
			roce_expect(&a, ROCE_WRITE_ONLY, &other);
		roce_expect_silence(&a);
		assert_int_equal(sent.p.psn, FIXTURE_PSN);
		assert_int_equal(roce_qp_deadline_ns(&a.qp), a.now_ns + FIXTURE_TIMEOUT_NS);
		roce_wait(&a, FIXTURE_TIMEOUT_NS - 1);
		roce_expect_silence(&a);
		roce_expect_no_completion(&a);
		roce_wait(&a, 1);
	}
	roce_expect_silence(&a);
	roce_expect_completion(&a, ROCE_RETRY_EXC);
	roce_expect_completion(&a, ROCE_FLUSHED);
	assert_int_equal(roce_qp_deadline_ns(&a.qp), ROCE_NEVER);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect_completion(&a, ROCE_FLUSHED);
}

static void test_rnr_waits_for_the_responders_timer(void **state)
{
	(void)state;
	b.receives = 0;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_settle();
	assert_int_equal(a.qp.counters.rnr_in, 1);
	roce_wait(&a, FIXTURE_RNR_NS - 1);
	roce_expect_silence(&a);
	b.receives = 1;
	roce_wait(&a, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_int_equal(b.num_arrivals, 1);
}

static void test_rnr_retries_end(void **state)
{
	(void)state;
	b.receives = 0;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_settle();
	roce_wait(&a, FIXTURE_RNR_NS);
	roce_settle();
	roce_expect_completion(&a, ROCE_RNR_RETRY_EXC);
}

static void test_rights_are_checked_for_each_packet(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 3 * FIXTURE_MTU);
	roce_expect(&a, ROCE_WRITE_FIRST, &sent);
	roce_deliver(&b, &sent);
	b.revoked = true;
	roce_settle();
	assert_int_equal(b.writes, 1);
	assert_int_equal(b.qp.error, ROCE_REM_ACCESS);
	roce_expect_completion(&a, ROCE_REM_ACCESS);
}

static void test_a_read_that_loses_its_rights_fails(void **state)
{
	(void)state;
	roce_post(&a, ROCE_OP_READ, 2 * FIXTURE_MTU);
	roce_expect(&a, ROCE_READ_REQUEST, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_READ_FIRST, &sent);
	roce_deliver(&a, &sent);
	b.revoked = true;
	roce_settle();
	roce_expect_completion(&a, ROCE_REM_ACCESS);
}

static void test_each_right_allows_its_own_operation_only(void **state)
{
	static const enum roce_op ops[] = {
		[ROCE_RIGHT_WRITE] = ROCE_OP_WRITE,
		[ROCE_RIGHT_READ] = ROCE_OP_READ,
		[ROCE_RIGHT_ATOMIC] = ROCE_OP_CMP_SWAP,
	};
	int right, op;

	(void)state;
	for (right = 0; right < 3; right++)
		for (op = 0; op < 3; op++) {
			roce_setup(ROCE_RC);
			b.rights = 1 << right;
			roce_post(&a, ops[op], 8);
			roce_settle();
			roce_expect_completion(&a, op == right ? ROCE_SUCCESS : ROCE_REM_ACCESS);
		}
}

/* Of an empty range any key is right, but the queue pair must allow the operation. */
static void test_an_empty_request_needs_its_right_and_no_key(void **state)
{
	static const enum roce_op ops[] = { ROCE_OP_WRITE, ROCE_OP_READ };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct roce_wqe wqe = { .op = ops[i], .rkey = FIXTURE_RKEY + 1 };

		roce_setup(ROCE_RC);
		assert_int_equal(roce_qp_post(&a.qp, &wqe), 0);
		roce_settle();
		roce_expect_completion(&a, ROCE_SUCCESS);
		b.rights = 0;
		assert_int_equal(roce_qp_post(&a.qp, &wqe), 0);
		roce_settle();
		roce_expect_completion(&a, ROCE_REM_ACCESS);
	}
}

static void test_a_receive_whose_memory_is_gone_ends_both(void **state)
{
	(void)state;
	b.unmapped = true;
	roce_post(&a, ROCE_OP_SEND, 8);
	roce_settle();
	roce_expect_completion(&a, ROCE_REM_OP);
	assert_int_equal(b.arrivals[0].status, ROCE_LOC_PROT);
	assert_int_equal(b.qp.error, ROCE_REM_OP);
}

static void test_a_key_that_must_not_be_invalidated_is_refused(void **state)
{
	struct roce_wqe wqe = { .op = ROCE_OP_SEND_INV, .imm = FIXTURE_RKEY + 1 };

	(void)state;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), 0);
	roce_settle();
	roce_expect_completion(&a, ROCE_REM_ACCESS);
	assert_int_equal(b.num_arrivals, 0);
	assert_int_equal(b.given_back, 1);
}

static void test_a_send_longer_than_the_receive_is_refused(void **state)
{
	(void)state;
	b.room = FIXTURE_MTU;
	roce_post(&a, ROCE_OP_SEND, FIXTURE_MTU + 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_REM_INV_REQ);
	assert_int_equal(b.arrivals[0].status, ROCE_LOC_LEN);
}

/* A requester that breaks the rules, in each of the ways that the responder must notice. */
static void refused(struct roce_packet p, uint32_t payload_bytes)
{
	static uint8_t payload[ROCE_PAYLOAD_MAX];

	roce_setup(ROCE_RC);
	b.receives = 1;
	p.pkey = ROCE_PKEY_DEFAULT;
	p.dest_qpn = 20;
	p.psn = FIXTURE_PSN;
	p.rkey = FIXTURE_RKEY;
	p.payload = payload;
	p.payload_bytes = payload_bytes;
	roce_qp_input(&b.qp, &p, NULL, 1);
	roce_expect(&b, ROCE_ACK, &sent);
	assert_int_equal(sent.p.syndrome, ROCE_NAK_INVALID);
	assert_int_equal(b.qp.error, ROCE_REM_INV_REQ);
	assert_int_equal(b.writes, 0);
	assert_false(b.is_taken);
}

static void test_invalid_requests_are_refused(void **state)
{
	(void)state;
	refused((struct roce_packet){ .opcode = ROCE_SEND_MIDDLE }, FIXTURE_MTU);
	refused((struct roce_packet){ .opcode = ROCE_SEND_LAST }, 1);
	refused((struct roce_packet){ .opcode = ROCE_SEND_FIRST }, FIXTURE_MTU - 1);
	refused((struct roce_packet){ .opcode = ROCE_SEND_ONLY }, FIXTURE_MTU + 1);
	refused((struct roce_packet){ .opcode = ROCE_WRITE_ONLY, .dma_bytes = 8 }, 4);
	refused((struct roce_packet){ .opcode = ROCE_WRITE_ONLY, .dma_bytes = 4 }, 8);
	refused((struct roce_packet){ .opcode = ROCE_WRITE_ONLY, .dma_bytes = UINT32_MAX }, 8);
	refused((struct roce_packet){ .opcode = ROCE_READ_REQUEST, .dma_bytes = UINT32_MAX }, 0);
	refused((struct roce_packet){ .opcode = ROCE_FETCH_ADD, .addr = 4 }, 0);
	refused((struct roce_packet){ .opcode = ROCE_ATOMIC_WRITE, .addr = 4, .dma_bytes = 8 }, 8);
	refused((struct roce_packet){ .opcode = ROCE_ATOMIC_WRITE, .dma_bytes = 8 }, 4);
	refused((struct roce_packet){ .opcode = ROCE_ATOMIC_WRITE, .dma_bytes = 16 }, 8);
}

static void test_packets_for_others_are_dropped_and_counted(void **state)
{
	struct roce_packet p = { .opcode = ROCE_WRITE_ONLY, .dest_qpn = 20, .psn = FIXTURE_PSN };

	(void)state;
	roce_qp_input(&b.qp, &p, NULL, 1);
	p.pkey = ROCE_PKEY_DEFAULT;
	p.dest_qpn = 21;
	roce_qp_input(&b.qp, &p, NULL, 1);
	p.dest_qpn = 20;
	p.opcode |= ROCE_UC;
	roce_qp_input(&b.qp, &p, NULL, 1);
	assert_int_equal(b.qp.counters.refused[ROCE_REFUSED_PKEY], 1);
	assert_int_equal(b.qp.counters.refused[ROCE_REFUSED_QPN], 1);
	assert_int_equal(b.qp.counters.refused[ROCE_REFUSED_TRANSPORT], 1);
	assert_int_equal(b.qp.resp.expected, roce_psn_first(FIXTURE_PSN));
}

static void test_own_memory_that_is_gone_fails_behind_the_earlier(void **state)
{
	struct roce_wqe bad = { .id = UINT64_MAX, .op = ROCE_OP_WRITE, .length = 1 };

	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 1);
	assert_int_equal(roce_qp_post(&a.qp, &bad), 0);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	roce_expect_completion(&a, ROCE_LOC_PROT);
	roce_expect_completion(&a, ROCE_FLUSHED);
	assert_int_equal(b.writes, 1);
}

static void test_without_credits_one_packet_goes(void **state)
{
	int i;

	(void)state;
	b.hides_receives = false;
	b.receives = 2;
	roce_post(&a, ROCE_OP_SEND, 1);
	roce_settle(); /* the acknowledgement grants one more */
	for (i = 0; i < 3; i++)
		roce_post(&a, ROCE_OP_SEND, 2 * FIXTURE_MTU);
	for (i = 0; i < 2; i++)
		roce_expect(&a, i ? ROCE_SEND_LAST : ROCE_SEND_FIRST, &sent);
	roce_expect(&a, ROCE_SEND_FIRST, &sent);
	assert_true(sent.p.wants_ack);
	roce_expect_silence(&a);
}

static void test_the_window_bounds_packets_in_flight(void **state)
{
	int i, asked = 0;

	(void)state;
	roce_rate_init(&a.qp.req.rate, 3);
	roce_post(&a, ROCE_OP_WRITE, 8 * FIXTURE_MTU);
	for (i = 0; i < 3; i++) {
		assert_true(roce_sent(&a, &sent));
		asked += sent.p.wants_ack;
		roce_deliver(&b, &sent);
	}
	assert_int_equal(asked, 1);
	roce_expect_silence(&a);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_operations_that_the_transport_lacks_are_refused(void **state)
{
	struct roce_wqe wqe = { .op = ROCE_OP_READ, .length = ROCE_MESSAGE_MAX };
	int i;

	(void)state;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), 0);
	wqe.length++;
	assert_int_equal(roce_qp_post(&a.qp, &wqe), -22);
	wqe = (struct roce_wqe){ .op = ROCE_OP_FETCH_ADD, .length = 4 };
	assert_int_equal(roce_qp_post(&a.qp, &wqe), -22);
	for (i = 1; i < FIXTURE_WQES; i++)
		roce_post(&a, ROCE_OP_SEND, 0);
	wqe = (struct roce_wqe){ .op = ROCE_OP_SEND };
	assert_int_equal(roce_qp_post(&a.qp, &wqe), -12);
}

static void test_a_silent_peer_is_asked_and_answers(void **state)
{
	(void)state;
	a.qp.config.idle_ns = 1000;
	roce_wait(&a, 5000);
	roce_expect_silence(&a); /* the peer may not be ready before it was heard */
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	roce_wait(&a, 999);
	roce_expect_silence(&a);
	roce_wait(&a, 1);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	assert_int_equal(sent.p.dma_bytes, 0);
	roce_expect_silence(&a);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &other);
	assert_int_equal(other.p.syndrome & ROCE_SYNDROME_MASK, ROCE_SYNDROME_ACK);
	assert_int_equal(b.qp.counters.duplicates, 0);
	assert_int_equal(b.writes, 1);
	roce_deliver(&a, &other);
	roce_wait(&a, 999);
	roce_expect_silence(&a);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_a_peer_that_answers_no_question_is_lost(void **state)
{
	int i;

	(void)state;
	a.qp.config.idle_ns = 1000;
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	for (i = 0; i < ROCE_ASKS; i++) {
		roce_wait(&a, 1000);
		roce_expect(&a, ROCE_WRITE_ONLY, &sent);
		assert_false(a.qp.is_lost);
	}
	roce_wait(&a, 1000);
	assert_true(a.qp.is_lost);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect_silence(&a);
}

/* A hint may be forged: it makes a packet now and then, and no connection fail. */
static void test_a_hint_makes_one_question(void **state)
{
	enum { HINTS = 1000, HINT_NS = 100000000 };
	int i;

	(void)state;
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
	for (i = 0; i < HINTS; i++) {
		roce_qp_ask(&a.qp, a.now_ns);
		if (i % 2 == 0)
			roce_expect(&a, ROCE_WRITE_ONLY, &sent);
		roce_expect_silence(&a);
		roce_wait(&a, HINT_NS / 2);
	}
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &other);
	roce_deliver(&a, &other);
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each_operation_takes_effect, setup),
		cmocka_unit_test_setup(test_a_message_is_cut_to_the_mtu, setup),
		cmocka_unit_test_setup(test_acknowledgements_are_coalesced, setup),
		cmocka_unit_test_setup(test_a_gap_gets_one_nak_and_the_requester_goes_back, setup),
		cmocka_unit_test_setup(test_a_duplicate_is_acknowledged_not_executed, setup),
		cmocka_unit_test_setup(test_a_read_restarts_in_the_middle, setup),
		cmocka_unit_test_setup(test_a_long_read_is_requested_in_pieces, setup),
		cmocka_unit_test_setup(test_an_atomic_is_executed_once, setup),
		cmocka_unit_test_setup(test_an_atomic_write_is_executed_once, setup),
		cmocka_unit_test_setup(test_depth_and_fence_hold_back, setup),
		cmocka_unit_test_setup(test_silence_exhausts_the_retries, setup),
		cmocka_unit_test_setup(test_rnr_waits_for_the_responders_timer, setup),
		cmocka_unit_test_setup(test_rnr_retries_end, setup),
		cmocka_unit_test_setup(test_rights_are_checked_for_each_packet, setup),
		cmocka_unit_test_setup(test_a_hint_makes_one_question, setup),
		cmocka_unit_test_setup(test_an_empty_request_needs_its_right_and_no_key, setup),
		cmocka_unit_test_setup(test_a_read_that_loses_its_rights_fails, setup),
		cmocka_unit_test_setup(test_each_right_allows_its_own_operation_only, setup),
		cmocka_unit_test_setup(test_a_receive_whose_memory_is_gone_ends_both, setup),
		cmocka_unit_test_setup(test_a_key_that_must_not_be_invalidated_is_refused, setup),
		cmocka_unit_test_setup(test_a_send_longer_than_the_receive_is_refused, setup),
		cmocka_unit_test_setup(test_invalid_requests_are_refused, setup),
		cmocka_unit_test_setup(test_packets_for_others_are_dropped_and_counted, setup),
		cmocka_unit_test_setup(test_own_memory_that_is_gone_fails_behind_the_earlier,
				       setup),
		cmocka_unit_test_setup(test_without_credits_one_packet_goes, setup),
		cmocka_unit_test_setup(test_a_silent_peer_is_asked_and_answers, setup),
		cmocka_unit_test_setup(test_a_peer_that_answers_no_question_is_lost, setup),
		cmocka_unit_test_setup(test_the_window_bounds_packets_in_flight, setup),
		cmocka_unit_test_setup(test_operations_that_the_transport_lacks_are_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
