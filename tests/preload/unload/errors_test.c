/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload errors; devices: softnic rxe; timeout: 300 */
/*
 * Errors of a write or of its queue pair reach the program as if the device had written, and
 * nothing is written. Both QPs are in this process.
 */
#include "tests/preload/unload/drive.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "preload/unload/discovery/own_qp.h"

/* A write that the device refuses ends with the device's status, on either path. */
static void expect_refusal(struct loopback_pair *pair, struct ibv_send_wr *wr)
{
	char was[SMALL];
	const char *at = (const char *)(uintptr_t)wr->wr.rdma.remote_addr;
	struct ibv_wc wc;

	memcpy(was, at, SMALL);
	memset(pair->bytes, 0x77, SMALL);
	wr->wr_id = 4711;
	post(pair, wr);
	wc = next_wc(pair);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.wr_id, 4711);
	assert_memory_equal(was, at, SMALL);
	assert_no_completion(pair);
}

/* A pair that unloads, and a small write to a separate region at @at. */
struct beyond {
	struct loopback_pair pair;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void beyond_open(struct beyond *b, void *at, uint64_t iova, int rights)
{
	open_unloading(&b->pair);
	b->mr = iova == (uintptr_t)at ? ibv_reg_mr(b->pair.pd, at, SMALL, rights) :
					ibv_reg_mr_iova(b->pair.pd, at, SMALL, iova, rights);
	assert_non_null(b->mr);
	b->wr = small_write(&b->pair, &b->sge);
	b->wr.wr.rdma.remote_addr = iova;
	b->wr.wr.rdma.rkey = b->mr->rkey;
}

static void beyond_close(struct beyond *b)
{
	if (b->mr)
		assert_int_equal(ibv_dereg_mr(b->mr), 0);
	pair_close(&b->pair);
}

static void nothing_is_written_after_deregistration(void **state)
{
	static char other[SMALL];
	struct beyond b;

	(void)state;
	beyond_open(&b, other, (uintptr_t)other, RIGHTS);
	complete(&b.pair, &b.wr);
	assert_memory_equal(other, b.pair.bytes, SMALL);
	assert_int_equal(ibv_dereg_mr(b.mr), 0);
	b.mr = NULL;
	expect_refusal(&b.pair, &b.wr);
	beyond_close(&b);
}

static void one_byte_beyond_is_refused(void **state)
{
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + 2 * PAIR_BYTES - SMALL;
	complete(&pair, &wr);
	sge.length++;
	expect_refusal(&pair, &wr);
	pair_close(&pair);
}

/* The program hears of the refusal without another post. */
static void unsignalled_writes_report_a_refusal(void **state)
{
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + 2 * PAIR_BYTES - SMALL;
	sge.length++;
	wr.send_flags = 0;
	expect_refusal(&pair, &wr);
	pair_close(&pair);
}

/* The device writes memory that the CPU cannot reach at the same address. */
static void unsignalled_writes_arrive(void **state)
{
	static char other[SMALL];
	/* any other address, with the same offset in its page */
	const uint64_t known_as = (uintptr_t)other + (1ull << 20);
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct beyond b;

	(void)state;
	beyond_open(&b, other, known_as, RIGHTS);
	b.wr.send_flags = 0;
	memset(b.pair.bytes, 0x5a, SMALL);
	post(&b.pair, &b.wr);
	while (__atomic_load_n(&other[SMALL - 1], __ATOMIC_ACQUIRE) != 0x5a)
		assert_true(now_ns() < until);
	beyond_close(&b);
}

static void read_only_memory_is_not_written(void **state)
{
	static char other[SMALL];
	struct beyond b;

	(void)state;
	beyond_open(&b, other, (uintptr_t)other, IBV_ACCESS_REMOTE_READ);
	expect_refusal(&b.pair, &b.wr);
	beyond_close(&b);
}

/*
 * The device writes to its pinned pages, or reports an error; the process survives.
 * Return: status of the write.
 */
static enum ibv_wc_status write_by_the_device(struct beyond *b)
{
	uint64_t copied = said_now().copied;
	struct ibv_wc wc;

	b->wr.wr_id = 4711;
	memset(b->pair.bytes, 0x77, SMALL);
	post(&b->pair, &b->wr);
	wc = next_wc(&b->pair);
	assert_int_equal(wc.wr_id, 4711);
	assert_int_equal(said_now().copied, copied);
	assert_no_completion(&b->pair);
	return wc.status;
}

static void writes_to_memory_made_read_only_go_by_the_device(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	struct beyond b;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	beyond_open(&b, at, (uintptr_t)at, RIGHTS);
	complete(&b.pair, &b.wr);
	assert_int_equal(mprotect(at, (size_t)page, PROT_READ), 0);
	if (write_by_the_device(&b) == IBV_WC_SUCCESS)
		assert_memory_equal(at, b.pair.bytes, SMALL);
	beyond_close(&b);
	munmap(at, (size_t)page);
}

static void writes_beyond_a_truncated_file_go_by_the_device(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("shortened", MFD_CLOEXEC);
	struct beyond b;
	char *at;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, page), 0);
	at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	beyond_open(&b, at, (uintptr_t)at, RIGHTS);
	complete(&b.pair, &b.wr);
	assert_int_equal(ftruncate(fd, 0), 0);
	write_by_the_device(&b);
	beyond_close(&b);
	munmap(at, (size_t)page);
	close(fd);
}

static void writes_from_unreadable_memory_go_by_the_device(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	struct beyond b;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	beyond_open(&b, at, (uintptr_t)at, RIGHTS);
	b.sge = (struct ibv_sge){ (uintptr_t)at, SMALL, b.mr->lkey };
	b.wr.wr.rdma.remote_addr = (uintptr_t)b.pair.bytes;
	b.wr.wr.rdma.rkey = b.pair.mr->rkey;
	complete(&b.pair, &b.wr);
	assert_int_equal(mprotect(at, (size_t)page, PROT_NONE), 0);
	write_by_the_device(&b);
	beyond_close(&b);
	munmap(at, (size_t)page);
}

static void a_peer_that_is_gone_ends_in_an_error(void **state)
{
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_unloading(&pair);
	assert_int_equal(ibv_destroy_qp(pair.qp[1]), 0);
	pair.qp[1] = NULL;
	wr = small_write(&pair, &sge);
	memset(pair.bytes, 0x55, SMALL);
	memset(pair.bytes + PAIR_BYTES, 0, SMALL);
	post(&pair, &wr);
	assert_int_not_equal(next_wc(&pair).status, IBV_WC_SUCCESS);
	assert_int_equal(pair.bytes[PAIR_BYTES], 0);
	pair_close(&pair);
}

static void writes_that_a_device_refuses_are_not_unloaded(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_attr attr;
	struct ibv_sge sges[64];
	struct loopback_pair pair;
	uint64_t before;
	uint32_t i;

	(void)state;
	open_unloading(&pair);
	assert_int_equal(ibv_query_qp(pair.qp[0], &attr, IBV_QP_CAP, &init), 0);
	before = unloaded();
	memset(pair.bytes, 0x33, PAIR_BYTES);
	memset(pair.bytes + PAIR_BYTES, 0, PAIR_BYTES);
	assert_true(init.cap.max_send_sge < 64);
	for (i = 0; i <= init.cap.max_send_sge; i++)
		sges[i] = pair_sge(&pair, 1);
	wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, sges);
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	assert_int_not_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_INLINE;
	sges[0].length = init.cap.max_inline_data + 1;
	assert_int_not_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	assert_int_equal(pair.bytes[PAIR_BYTES], 0);
	assert_int_equal(unloaded(), before);
	assert_no_completion(&pair);
	wr = small_write(&pair, sges);
	complete(&pair, &wr);
	assert_int_equal(unloaded(), before + 1);
	pair_close(&pair);
}

/* Unsignalled writes beyond the capacity of the queue are not unloaded either. */
static void a_program_without_completions_soon_writes_by_the_device(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct loopback_pair pair;
	uint64_t before;
	int i, rc = 0;

	(void)state;
	open_unloading(&pair);
	assert_int_equal(ibv_query_qp(pair.qp[0], &attr, IBV_QP_CAP, &init), 0);
	before = unloaded();
	wr = small_write(&pair, &sge);
	wr.send_flags = 0;
	for (i = 0; !rc && i < 100; i++)
		rc = ibv_post_send(pair.qp[0], &wr, &bad);
	assert_in_range(unloaded() - before, 1, init.cap.max_send_wr);
	pair_close(&pair);
}

static void await_error(struct ibv_qp *qp)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct timespec asked_anew = { .tv_nsec = OWN_QP_ASK_NS };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	do {
		sched_yield();
		assert_true(now_ns() < until);
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	} while (attr.qp_state != IBV_QPS_ERR);
	nanosleep(&asked_anew, NULL);
}

/* A small write by the first queue pair fails, and changes nothing. */
static void expect_failure(struct loopback_pair *pair)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	wr = small_write(pair, &sge);
	wr.wr_id = 4711;
	memset(pair->bytes, 0x77, SMALL);
	memset(pair->bytes + PAIR_BYTES, 0, SMALL);
	post(pair, &wr);
	do {
		wc = next_wc(pair);
	} while (wc.qp_num != pair->qp[0]->qp_num || wc.wr_id != 4711);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(pair->bytes[PAIR_BYTES], 0);
}

static void a_queue_pair_that_has_failed_by_itself_writes_nothing(void **state)
{
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1, .num_sge = 1 };
	struct ibv_send_wr *bad, wr;
	struct ibv_sge small, large;
	struct loopback_pair pair;
	uint64_t before;

	(void)state;
	open_unloading(&pair);
	small = pair_sge(&pair, 1);
	recv.sg_list = &small;
	assert_int_equal(ibv_post_recv(pair.qp[0], &recv, &bad_recv), 0);
	large = pair_sge(&pair, SMALL);
	wr = pair_wr(&pair, IBV_WR_SEND, &large);
	assert_int_equal(ibv_post_send(pair.qp[1], &wr, &bad), 0);
	await_error(pair.qp[0]);
	before = unloaded();
	expect_failure(&pair);
	assert_int_equal(unloaded(), before);
	pair_close(&pair);
}

static void a_queue_pair_that_has_failed_by_itself_takes_nothing(void **state)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge nowhere;
	struct loopback_pair pair;

	(void)state;
	open_unloading(&pair);
	nowhere = pair_sge(&pair, SMALL);
	nowhere.lkey = ~nowhere.lkey;
	wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &nowhere);
	assert_int_equal(ibv_post_send(pair.qp[1], &wr, &bad), 0);
	await_error(pair.qp[1]);
	expect_failure(&pair);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_written_after_deregistration),
		cmocka_unit_test(one_byte_beyond_is_refused),
		cmocka_unit_test(unsignalled_writes_report_a_refusal),
		cmocka_unit_test(unsignalled_writes_arrive),
		cmocka_unit_test(read_only_memory_is_not_written),
		cmocka_unit_test(writes_to_memory_made_read_only_go_by_the_device),
		cmocka_unit_test(writes_beyond_a_truncated_file_go_by_the_device),
		cmocka_unit_test(writes_from_unreadable_memory_go_by_the_device),
		cmocka_unit_test(a_peer_that_is_gone_ends_in_an_error),
		cmocka_unit_test(writes_that_a_device_refuses_are_not_unloaded),
		cmocka_unit_test(a_program_without_completions_soon_writes_by_the_device),
		cmocka_unit_test(a_queue_pair_that_has_failed_by_itself_writes_nothing),
		cmocka_unit_test(a_queue_pair_that_has_failed_by_itself_takes_nothing),
	};

	return cmocka_run_group_tests_name("unload errors", tests, NULL, NULL);
}
