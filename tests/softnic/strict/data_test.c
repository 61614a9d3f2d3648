// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic strict data; devices: softnic; timeout: 120 */
/* Strict mode on the data path: access, send queues, buffers, order, and posting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "strict_case.h"

#define POISON 0xa5

/* Posts a WR of @length bytes, @shift bytes from the usual place, and returns its completion. */
static struct ibv_wc do_shifted(struct loopback_pair *pair, enum ibv_wr_opcode op, uint32_t length,
				uint64_t shift, uint32_t lkey)
{
	struct ibv_sge sge = pair_sge(pair, length);
	struct ibv_send_wr wr = pair_wr(pair, op, &sge);

	sge.lkey = lkey;
	wr.wr_id = 17;
	wr.wr.rdma.remote_addr += shift;
	must(!strict_post(pair, &wr));
	return strict_wait(pair->cq);
}

static void write_past_the_end(struct loopback_pair *pair)
{
	struct ibv_wc wc = do_shifted(pair, IBV_WR_RDMA_WRITE, 8, PAIR_BYTES - 7, pair->mr->lkey);

	must(wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 17);
}

static void write_to_the_end(struct loopback_pair *pair)
{
	struct ibv_wc wc = do_shifted(pair, IBV_WR_RDMA_WRITE, 8, PAIR_BYTES - 8, pair->mr->lkey);

	must(wc.status == IBV_WC_SUCCESS && wc.wr_id == 17);
}

static void write_by_a_wrong_key(struct loopback_pair *pair)
{
	must(do_shifted(pair, IBV_WR_RDMA_WRITE, 8, 0, pair->mr->lkey ^ 1).status ==
	     IBV_WC_LOC_PROT_ERR);
}

static void read_into(struct loopback_pair *pair, int access, enum ibv_wc_status status)
{
	struct ibv_mr *mr = ibv_reg_mr(pair->pd, pair->bytes, 64, access);

	must(mr && do_shifted(pair, IBV_WR_RDMA_READ, 8, 0, mr->lkey).status == status);
	must(!ibv_dereg_mr(mr));
}

static void read_into_what_cannot_be_written(struct loopback_pair *pair)
{
	read_into(pair, IBV_ACCESS_REMOTE_READ, IBV_WC_LOC_PROT_ERR);
}

static void read_into_what_can_be_written(struct loopback_pair *pair)
{
	read_into(pair, IBV_ACCESS_LOCAL_WRITE, IBV_WC_SUCCESS);
}

static void send_too_much(struct loopback_pair *pair)
{
	pair_post_recv(pair, 15);
	must(do_shifted(pair, IBV_WR_SEND, 16, 0, pair->mr->lkey).status != IBV_WC_SUCCESS);
	must(strict_wait(pair->cq).status != IBV_WC_SUCCESS);
}

static void send_as_much(struct loopback_pair *pair)
{
	pair_post_recv(pair, 16);
	must(do_shifted(pair, IBV_WR_SEND, 16, 0, pair->mr->lkey).status == IBV_WC_SUCCESS);
	must(strict_wait(pair->cq).status == IBV_WC_SUCCESS);
}

/* Writes more often than the send queue is deep; every @often-th is signaled. */
static void write_unsignaled(struct loopback_pair *pair, uint32_t often, int expected)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc;
	uint32_t i;
	int rc = 0;

	for (i = 1; i <= 3 * PAIR_DEPTH && !rc; i++) {
		wr.send_flags = i % often ? 0 : IBV_SEND_SIGNALED;
		wr.wr_id = i;
		rc = strict_post(pair, &wr);
		if (!rc && wr.send_flags)
			must(strict_wait(pair->cq).wr_id == i);
		else
			must(!ibv_poll_cq(pair->cq, 1, &wc));
	}
	must(rc == expected && i == (rc ? PAIR_DEPTH + 2 : 3 * PAIR_DEPTH + 1));
}

static void never_signal(struct loopback_pair *pair)
{
	write_unsignaled(pair, 1000, ENOMEM);
}

static void signal_at_times(struct loopback_pair *pair)
{
	write_unsignaled(pair, PAIR_DEPTH, 0);
}

/* Change a byte that the device may be copying: the mistake of these programs, and not for TSan. */
__attribute__((noinline, no_sanitize("thread")))
static void trespass(char *at, char value)
{
	*(volatile char *)at = value;
}

static void change_what_is_sent(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 4096);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	must(!strict_post(pair, &wr));
	trespass(pair->bytes + 4095, 1);
	must(strict_wait(pair->cq).status == IBV_WC_SUCCESS);
}

static void change_it_afterwards(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 4096), inlined = pair_sge(pair, 64);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	must(!strict_post(pair, &wr));
	strict_wait(pair->cq);
	pair->bytes[4095]++;
	wr.sg_list = &inlined;
	wr.send_flags |= IBV_SEND_INLINE;
	must(!strict_post(pair, &wr));
	pair->bytes[0]++; /* inline data are copied by the post */
	strict_wait(pair->cq);
}

static void write_to_a_posted_receive(struct loopback_pair *pair)
{
	char *received = pair->bytes + PAIR_BYTES;
	struct ibv_sge sge = pair_sge(pair, 64);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);

	pair_post_recv(pair, 64);
	received[3] = 1;
	must(!strict_post(pair, &wr));
	strict_wait(pair->cq);
	strict_wait(pair->cq);
}

static bool is_all(const char *bytes, size_t size, uint8_t value)
{
	while (size && (uint8_t)bytes[size - 1] == value)
		size--;
	return !size;
}

/* Also: until then the data cannot be seen, and bytes behind the message stay as they were. */
static void wait_for_the_receive(struct loopback_pair *pair)
{
	char *received = pair->bytes + PAIR_BYTES;
	struct ibv_sge sge = pair_sge(pair, 64);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);

	memset(pair->bytes, 0x11, 64);
	memset(received, 0x22, 128);
	pair_post_recv(pair, 128);
	must(is_all(received, 128, POISON));
	must(!strict_post(pair, &wr));
	must(is_all(received, 128, POISON));
	strict_wait(pair->cq);
	strict_wait(pair->cq);
	must(is_all(received, 64, 0x11) && is_all(received + 64, 64, 0x22));
	received[3] = 1;
}

static void look_too_early(struct loopback_pair *pair, bool waits)
{
	struct ibv_sge sge = pair_sge(pair, 64);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_READ, &sge);

	memset(pair->bytes + PAIR_BYTES, 0x33, 64);
	must(!strict_post(pair, &wr));
	if (waits)
		strict_wait(pair->cq);
	if (is_all(pair->bytes, 64, POISON)) {
		trespass(pair->bytes, 0x33); /* it takes the bytes for its own */
		strict_wait(pair->cq);
	}
	must(is_all(pair->bytes, 64, 0x33));
}

static void use_a_read_before_its_end(struct loopback_pair *pair)
{
	look_too_early(pair, false);
}

static void use_a_read_after_its_end(struct loopback_pair *pair)
{
	look_too_early(pair, true);
}

static void send_from_a_posted_receive(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 64);
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	memset(pair->bytes, 0x44, 64);
	must(!ibv_post_recv(pair->qp[0], &recv, &bad));
	must(!strict_post(pair, &wr));
	strict_wait(pair->cq);
	must(is_all(pair->bytes + PAIR_BYTES, 64, 0x44)); /* nothing but the message comes of it */
}

static void send_from_elsewhere(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 64), other = sge;
	struct ibv_recv_wr recv = { .sg_list = &other, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	other.addr += 64;
	must(!ibv_post_recv(pair->qp[0], &recv, &bad));
	must(!strict_post(pair, &wr));
	strict_wait(pair->cq);
}

/* Reads, and writes what was read to another place, before the read is polled. */
static void read_and_write(struct loopback_pair *pair, unsigned int flags)
{
	struct ibv_sge sge = pair_sge(pair, 64), half = pair_sge(pair, 32);
	struct ibv_send_wr read = pair_wr(pair, IBV_WR_RDMA_READ, &sge);
	struct ibv_send_wr write = pair_wr(pair, IBV_WR_RDMA_WRITE, &half);

	half.addr += 16;
	memset(pair->bytes + PAIR_BYTES, 0x55, 64);
	write.wr.rdma.remote_addr += 4096;
	write.send_flags |= flags;
	must(!strict_post(pair, &read) && !strict_post(pair, &write));
	must(strict_wait(pair->cq).status == IBV_WC_SUCCESS);
	must(strict_wait(pair->cq).status == IBV_WC_SUCCESS);
	must(!flags || is_all(pair->bytes + PAIR_BYTES + 4096, 32, 0x55));
}

static void write_what_is_being_read(struct loopback_pair *pair)
{
	read_and_write(pair, 0);
}

static void fence_it(struct loopback_pair *pair)
{
	read_and_write(pair, IBV_SEND_FENCE);
}

/* Reads, and overwrites the same place at the peer. */
static void read_and_overwrite(struct loopback_pair *pair, unsigned int flags)
{
	struct ibv_sge sge = pair_sge(pair, 64), other = pair_sge(pair, 64);
	struct ibv_send_wr read = pair_wr(pair, IBV_WR_RDMA_READ, &sge);
	struct ibv_send_wr write = pair_wr(pair, IBV_WR_RDMA_WRITE, &other);

	other.addr += 64;
	write.send_flags |= flags;
	must(!strict_post(pair, &read) && !strict_post(pair, &write));
	strict_wait(pair->cq);
	strict_wait(pair->cq);
}

static void overtake_a_read(struct loopback_pair *pair)
{
	read_and_overwrite(pair, 0);
}

static void follow_a_read(struct loopback_pair *pair)
{
	read_and_overwrite(pair, IBV_SEND_FENCE);
}

static void add_to(struct loopback_pair *pair, uint64_t shift, bool succeeds)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);

	wr.wr.atomic.remote_addr += shift;
	must(!strict_post(pair, &wr));
	must((strict_wait(pair->cq).status == IBV_WC_SUCCESS) == succeeds);
}

static void add_to_an_odd_address(struct loopback_pair *pair)
{
	add_to(pair, 4, false);
}

static void add_to_an_even_address(struct loopback_pair *pair)
{
	add_to(pair, 8, true);
}

static void post_pieces(struct loopback_pair *pair, int num, int expected)
{
	struct ibv_sge sges[3] = { pair_sge(pair, 8), pair_sge(pair, 8), pair_sge(pair, 8) };
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, sges);

	wr.num_sge = num;
	must(strict_post(pair, &wr) == expected);
	if (!expected)
		strict_wait(pair->cq);
}

static void post_too_many_pieces(struct loopback_pair *pair)
{
	post_pieces(pair, 3, EINVAL);
}

static void post_as_many_pieces(struct loopback_pair *pair)
{
	post_pieces(pair, 2, 0);
}

static void post_inline(struct loopback_pair *pair, uint32_t length, int expected)
{
	struct ibv_sge sge = pair_sge(pair, length);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	wr.send_flags |= IBV_SEND_INLINE;
	must(strict_post(pair, &wr) == expected);
	if (!expected)
		strict_wait(pair->cq);
}

static void post_too_much_inline(struct loopback_pair *pair)
{
	post_inline(pair, PAIR_BYTES / 2, EINVAL);
}

static void post_as_much_inline(struct loopback_pair *pair)
{
	post_inline(pair, 64, 0);
}

static const struct strict_case cases[] = {
	{ "a write ends one byte past a region",
	  write_past_the_end,
	  { "remote-access", "wr_id 17", "ends 1 bytes past the region" },
	  write_to_the_end },
	{ "a wrong lkey",
	  write_by_a_wrong_key,
	  { "local-access", "wr_id 17", "no region has the key" },
	  write_to_the_end },
	{ "a missing right",
	  read_into_what_cannot_be_written,
	  { "local-access", "lacks IBV_ACCESS_LOCAL_WRITE" },
	  read_into_what_can_be_written },
	{ "a message longer than the receive",
	  send_too_much,
	  { "length", "ibv_post_recv()", "the buffers have 15 bytes" },
	  send_as_much },
	{ "a send queue without signaled work requests",
	  never_signal,
	  { "send-queue", "wr_id 17", "10.8.6" },
	  signal_at_times },
	{ "a send buffer is changed",
	  change_what_is_sent,
	  { "send-buffer", "was changed before" },
	  change_it_afterwards },
	{ "a receive buffer is written",
	  write_to_a_posted_receive,
	  { "receive-buffer", "was written before" },
	  wait_for_the_receive },
	{ "a read is used before its completion",
	  use_a_read_before_its_end,
	  { "receive-buffer", "ibv_post_send()" },
	  use_a_read_after_its_end },
	{ "a posted receive is sent from",
	  send_from_a_posted_receive,
	  { "overlap", "is sent" },
	  send_from_elsewhere },
	{ "data of a read are sent without a fence",
	  write_what_is_being_read,
	  { "fence", "IBV_SEND_FENCE", "10.8.3.3" },
	  fence_it },
	{ "a write may overtake a read",
	  overtake_a_read,
	  { "fence", "may overtake" },
	  follow_a_read },
	{ "an atomic is not aligned",
	  add_to_an_odd_address,
	  { "atomic", "not a multiple of 8" },
	  add_to_an_even_address },
	{ "too many pieces",
	  post_too_many_pieces,
	  { "post", "max_send_sge" },
	  post_as_many_pieces },
	{ "too much inline",
	  post_too_much_inline,
	  { "post", "max_inline_data" },
	  post_as_much_inline },
};

static void test_a_wrong_program_is_told_and_a_right_one_is_not(void **state)
{
	(void)state;
	strict_case_run(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_without_strict_mode_nothing_is_told(void **state)
{
	char text[4096];

	(void)state;
	assert_int_equal(strict_case_output(send_from_a_posted_receive, "", text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_program_is_told_and_a_right_one_is_not),
		cmocka_unit_test(test_without_strict_mode_nothing_is_told),
	};

	return cmocka_run_group_tests_name("softnic strict data", tests, NULL, NULL);
}
