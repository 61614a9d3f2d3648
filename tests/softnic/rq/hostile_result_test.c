// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic hostile result; devices: softnic; timeout: 60 */
/*
 * A sender writes any outcome it likes into a receive that it took: any length, and that the
 * message is in a tray. The owner moves no byte but into the receive's buffers, and none that lie
 * beyond the tray. The test plays the sender.
 */
#include "tests/support/datagram_pair.h"
#include "tests/support/redirect.h"
#include "softnic/rq/tray.h"

enum { UNTOUCHED = 0xee, FROM_TRAY = 0x77, BIG = 2 * TRAY_BYTES, TAKER = 5 };

struct told_outcome {
	const char *name;
	enum ibv_qp_type type;
	uint32_t room;
	bool is_redirected;
	struct rq_result says;
	enum ibv_wc_status status;
	uint32_t byte_len; /* of the completion, if successful */
	uint32_t moved; /* bytes in the buffer */
};

static const struct told_outcome outcomes[] = {
	{ "a datagram", IBV_QPT_UD, 64, false, { .flags = RECV_IN_TRAY, .byte_len = 48 },
	  IBV_WC_SUCCESS, 48, 48 },
	{ "a datagram whose receive names other memory", IBV_QPT_UD, 64, true,
	  { .flags = RECV_IN_TRAY, .byte_len = 48 }, IBV_WC_SUCCESS, 48, 48 },
	{ "longer than the buffer", IBV_QPT_UD, 64, false,
	  { .flags = RECV_IN_TRAY, .byte_len = UINT32_MAX }, IBV_WC_SUCCESS, 64, 64 },
	{ "as long as the tray", IBV_QPT_UD, BIG, false,
	  { .flags = RECV_IN_TRAY, .byte_len = TRAY_BYTES }, IBV_WC_SUCCESS, TRAY_BYTES,
	  TRAY_BYTES },
	{ "longer than the tray", IBV_QPT_UD, BIG, false,
	  { .flags = RECV_IN_TRAY, .byte_len = TRAY_BYTES + 1 }, IBV_WC_LOC_PROT_ERR },
	{ "longer than both", IBV_QPT_UD, BIG, false,
	  { .flags = RECV_IN_TRAY, .byte_len = UINT32_MAX }, IBV_WC_LOC_PROT_ERR },
	{ "as if of a write, longer than the buffer", IBV_QPT_UD, 64, false,
	  { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .flags = RECV_IN_TRAY, .byte_len = 65 },
	  IBV_WC_LOC_PROT_ERR },
	{ "as if of a write, longer than both", IBV_QPT_UD, 64, false,
	  { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .flags = RECV_IN_TRAY, .byte_len = UINT32_MAX },
	  IBV_WC_LOC_PROT_ERR },
	{ "in the tray of a queue pair without trays", IBV_QPT_RC, 64, false,
	  { .flags = RECV_IN_TRAY, .byte_len = 8 }, IBV_WC_LOC_PROT_ERR },
	{ "of a connection, longer than the buffer", IBV_QPT_RC, 64, false,
	  { .byte_len = UINT32_MAX }, IBV_WC_SUCCESS, 64, 0 },
};

static void open_receiver(struct endpoint *base, struct endpoint *e, const struct told_outcome *o)
{
	struct endpoint_name name;

	end_open(base, ALL_ACCESS);
	if (o->type == IBV_QPT_UD) {
		endpoint_open_unreliable(e, base, IBV_QPT_UD, 0);
		to_init(e);
		to_ready(e, 0);
		return;
	}
	name = end_name(base);
	end_open_sharing(e, base);
	end_connect(e, &name, &plain);
}

/* As a sender does, but for what it says. */
static void finish_receive(struct endpoint *e, const struct told_outcome *o)
{
	struct qp *qp = to_qp(e->qp);
	struct trays *trays = &qp->segment.trays;
	struct rq_result says = o->says;
	struct rq_receive r;

	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, TAKER));
	if (trays->at)
		memset(trays->at, FROM_TRAY, trays_bytes(trays->num));
	says.opcode = says.opcode ? says.opcode : IBV_WC_RECV;
	says.dest_qp = e->qp->qp_num;
	assert_true(rq_finish(&qp->rq->ring, &r, TAKER, &says, &qp->arrivals.ring));
	cq_ring_own(to_cq(e->cq), e->qp->qp_num, 1, true);
}

static uint32_t moved(const uint8_t *at)
{
	uint32_t i, n = 0;

	for (i = 0; i < 2 * BIG; i++)
		n += at[i] == FROM_TRAY;
	for (i = n; i < 2 * BIG; i++)
		assert_int_equal(at[i], UNTOUCHED);
	return n;
}

static bool is_as_expected(const struct told_outcome *o)
{
	struct endpoint base, e;
	static uint8_t own[4096];
	struct ibv_wc wc;
	struct ibv_mr *mr;
	bool is;

	open_receiver(&base, &e, o);
	mr = ibv_reg_mr(e.pd, own, sizeof(own), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	memset(e.buf, UNTOUCHED, 2 * BIG);
	assert_int_equal(post_recv(&e, 1, 0, o->room), 0);
	if (o->is_redirected)
		assert_int_equal(redirect(&e, 0, mr), 1);
	finish_receive(&e, o);
	wc = wait_wc(&e);
	is = wc.wr_id == 1 && wc.status == o->status && moved(e.buf) == o->moved && !own[0] &&
	     (wc.status || wc.byte_len == o->byte_len);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	end_close(&e);
	end_close(&base);
	return is;
}

static void a_result_moves_only_what_is_received(void **state)
{
	int failed = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		if (!is_as_expected(&outcomes[i]))
			failed++, print_error("%s\n", outcomes[i].name);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_moves_only_what_is_received),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
