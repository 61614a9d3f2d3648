/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload tx */
/*
 * An initiator with device, peer and clock played by this test: what counts as progress, and when
 * the initiator gives up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/interpose.h"
#include "preload/unload/diag.h"
#include "preload/unload/settings.h"
#include "preload/unload/unload_tx.h"

#define PATIENCE_NS (100 * WEIR_NS_PER_MS)
#define NUMBERS 65536u /* slots are numbered modulo this */
#define LENGTH 8u

struct diag_counters diag_counters; /* for ThreadSanitizer; see preload/unload/diag.h */

/* Needed only to make and connect an initiator, which no test does. */
void *next_function(const char *name)
{
	fail_msg("%s", name);
	return NULL;
}

struct ibv_mr *interpose_reg_own_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)pd, (void)addr, (void)length, (void)access;
	fail();
	return NULL;
}

int qp_path_query(struct ibv_qp *qp, struct qp_path *path)
{
	(void)qp, (void)path;
	fail();
	return -1;
}

struct ibv_qp *own_qp_create(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv,
			     struct ibv_qp_cap *cap)
{
	(void)pd, (void)send, (void)recv, (void)cap;
	fail();
	return NULL;
}

int own_qp_connect(struct ibv_qp *qp, const struct qp_path *path, uint32_t qpn, uint32_t own_psn,
		   uint32_t psn)
{
	(void)qp, (void)path, (void)qpn, (void)own_psn, (void)psn;
	fail();
	return -1;
}

struct ibv_pd *device_pd(struct unload_device *device)
{
	(void)device;
	fail();
	return NULL;
}

uint64_t settings_stall_timeout_ns(void)
{
	fail();
	return 0;
}

/* The mock device: signalled WRs complete in order, at once. */
static uint64_t completed[4 * WIRE_UNLOAD_SLOTS];
static uint32_t nr_completed, nr_polled, nr_taken_back;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)bad;
	if (wr->send_flags & IBV_SEND_SIGNALED)
		completed[nr_completed++ % (4 * WIRE_UNLOAD_SLOTS)] = wr->wr_id;
	nr_taken_back += wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	(void)cq, (void)room;
	if (nr_polled == nr_completed)
		return 0;
	*wc = (struct ibv_wc){ .wr_id = completed[nr_polled++ % (4 * WIRE_UNLOAD_SLOTS)] };
	return 1;
}

static void begin(struct unload_tx *tx)
{
	static struct unload_tx_memory memory;
	static struct unload_device device;
	static struct ibv_mr mr;

	nr_completed = nr_polled = nr_taken_back = 0;
	memory = (struct unload_tx_memory){ .last_return = 0 };
	device.ops.post_send = post_send;
	device.ops.poll_cq = poll_cq;
	*tx = (struct unload_tx){
		.device = &device, .memory = &memory, .mr = &mr, .stall_timeout_ns = PATIENCE_NS
	};
	weir_unload_slots_init(&tx->buffer.slots, WIRE_UNLOAD_SLOTS);
}

static void put(struct unload_tx *tx)
{
	static uint64_t data;
	const struct ibv_sge sge = { (uintptr_t)&data, LENGTH, 0 };
	const struct staged_write staged = { .length = LENGTH };

	assert_true(unload_tx_outstanding(tx) < WIRE_UNLOAD_SLOTS);
	assert_int_equal(unload_tx_put(tx, 0, &sge, 1, &staged), 0);
}

/* The peer has copied all writes except the last @open. */
static void set_open(struct unload_tx *tx, uint16_t open)
{
	const struct wire_unload_return r = { .done = (uint16_t)(tx->buffer.slots.next - open) };

	tx->memory->last_return = wire_unload_return_word(&r);
}

static void settle(struct unload_tx *tx)
{
	uint8_t pause_ms;

	set_open(tx, 0);
	assert_int_equal(unload_tx_wait(tx, 0, &pause_ms), 0);
	assert_int_equal(unload_tx_outstanding(tx), 0);
}

static bool tend(struct unload_tx *tx, uint64_t now_ns)
{
	uint8_t pause_ms;

	return unload_tx_poll(tx, now_ns, &pause_ms);
}

static void a_target_that_copies_nothing_for_long_is_given_up(void **state)
{
	const uint64_t begin_ns = 1000 * PATIENCE_NS;
	struct unload_tx tx;
	int i;

	(void)state;
	begin(&tx);
	for (i = 0; i < 3; i++)
		put(&tx);
	assert_true(tend(&tx, begin_ns));
	assert_true(tend(&tx, begin_ns + PATIENCE_NS - 1));
	set_open(&tx, 2);
	assert_true(tend(&tx, begin_ns + PATIENCE_NS));
	assert_true(tend(&tx, begin_ns + 2 * PATIENCE_NS - 1));
	assert_false(tx.has_failed);
	assert_false(tend(&tx, begin_ns + 2 * PATIENCE_NS));
	assert_true(tx.has_failed);
	assert_int_equal(nr_taken_back, 2);
}

/* The poster has taken the returns; much later the slot numbers have wrapped around to the same
 * values. */
static void a_target_that_has_copied_all_is_not_given_up(void **state)
{
	const uint64_t begin_ns = 1000 * PATIENCE_NS;
	struct unload_tx tx;
	uint32_t i;

	(void)state;
	begin(&tx);
	put(&tx);
	assert_true(tend(&tx, begin_ns));
	for (i = 1; i < NUMBERS; i++) {
		settle(&tx);
		put(&tx);
	}
	settle(&tx);
	put(&tx);
	assert_true(tend(&tx, begin_ns + 2 * PATIENCE_NS));
	assert_false(tx.has_failed);
	assert_int_equal(nr_taken_back, 0);
	settle(&tx);
}

/* Progress counts even if some writes were in flight all the time. */
static void a_target_that_has_copied_some_is_not_given_up(void **state)
{
	const uint64_t begin_ns = 1000 * PATIENCE_NS;
	struct unload_tx tx;
	uint8_t pause_ms;
	uint32_t i;

	(void)state;
	begin(&tx);
	put(&tx);
	assert_true(tend(&tx, begin_ns));
	for (i = 0; i < NUMBERS; i++) {
		put(&tx);
		set_open(&tx, 1);
		assert_int_equal(unload_tx_wait(&tx, 1, &pause_ms), 0);
	}
	assert_int_equal(unload_tx_outstanding(&tx), 1);
	assert_true(tend(&tx, begin_ns + 2 * PATIENCE_NS));
	assert_false(tx.has_failed);
	assert_int_equal(nr_taken_back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_that_copies_nothing_for_long_is_given_up),
		cmocka_unit_test(a_target_that_has_copied_all_is_not_given_up),
		cmocka_unit_test(a_target_that_has_copied_some_is_not_given_up),
	};

	return cmocka_run_group_tests_name("unload tx", tests, NULL, NULL);
}
