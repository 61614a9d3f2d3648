/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux rdma op; devices: softnic rxe; timeout: 120 */
/*
 * Regions: RDMA reads and writes by handles, and zero-copy sends, between two muxes in one
 * process.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mux/local/local.h"
#include "tests/support/mux_pair.h"

#define LENGTH (2u << 20)

/* The near end has a region; the far end grants a region. */
static void pair_open(struct mux_pair *p)
{
	mux_pair_open(p, NULL);
	assert_int_equal(weir_mux_region_open(p->client, LENGTH, &p->ours), 0);
	assert_int_equal(weir_mux_region_open(p->server, LENGTH, &p->theirs), 0);
}

/* Grants at the far end; the message tells the near end. */
static uint32_t grant(struct mux_pair *p, uint64_t at, uint64_t length, unsigned int rights)
{
	uint32_t handle = 0, got = 0;
	size_t size;

	assert_int_equal(weir_mux_conn_grant(p->far, p->theirs, at, length, rights, &handle), 0);
	assert_int_equal(weir_mux_conn_send(p->far, &handle, sizeof(handle), 0), 0);
	assert_int_equal(weir_mux_conn_recv(p->near, &got, sizeof(got), &size, 0), 0);
	return got;
}

static void fill(unsigned char *data, size_t length, uint32_t seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		data[i] = (unsigned char)((seed + i) * 2654435761u >> 11);
}

static void written_bytes_can_be_read_and_no_others_change(void **state)
{
	static const size_t lengths[] = { 1, 4096, 65536, 65537, 1000003 };
	unsigned char *ours, *theirs, *copy = malloc(LENGTH);
	struct mux_pair p;
	uint32_t handle;
	size_t i;

	(void)state;
	assert_non_null(copy);
	pair_open(&p);
	ours = weir_mux_region_data(p.ours);
	theirs = weir_mux_region_data(p.theirs);
	handle = grant(&p, 4096, LENGTH - 4096, WEIR_MUX_MAY_READ | WEIR_MUX_MAY_WRITE);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t length = lengths[i];

		fill(ours, length, (uint32_t)length);
		memcpy(copy, theirs, LENGTH);
		memcpy(copy + 4096 + 7, ours, length);
		assert_int_equal(weir_mux_conn_write(p.near, handle, 7, p.ours, 0, length), 0);
		assert_memory_equal(theirs, copy, LENGTH);
		assert_int_equal(
			weir_mux_conn_read(p.near, handle, 7, p.ours, LENGTH - length, length), 0);
		assert_memory_equal(ours + LENGTH - length, theirs + 4096 + 7, length);
	}
	assert_int_equal(weir_mux_conn_withdraw(p.far, handle), 0);
	mux_pair_close(&p);
	free(copy);
}

static void access_outside_a_grant_is_refused_and_the_connection_goes_on(void **state)
{
	struct weir_mux_conn *near, *far;
	uint32_t reads, writes, gone, got;
	struct mux_pair p;
	size_t size;

	(void)state;
	pair_open(&p);
	mux_pair_connect(&p, NULL, &near, &far);
	reads = grant(&p, 0, 4096, WEIR_MUX_MAY_READ);
	writes = grant(&p, 4096, 4096, WEIR_MUX_MAY_WRITE);
	gone = grant(&p, 0, 4096, WEIR_MUX_MAY_WRITE);
	assert_int_equal(weir_mux_conn_withdraw(p.far, gone), 0);
	assert_int_equal(weir_mux_conn_withdraw(p.far, gone), -EINVAL);
	assert_int_equal(weir_mux_conn_write(p.near, reads, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_read(p.near, writes, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, gone, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, 0, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, 77, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(near, writes, 0, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 4096, p.ours, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 1, p.ours, 0, 4096), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, writes, UINT64_MAX, p.ours, 0, 2), -EACCES);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 0, p.ours, LENGTH, 1), -EINVAL);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 0, p.ours, UINT64_MAX, 2), -EINVAL);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 0, p.ours, 0, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_grant(p.far, p.theirs, LENGTH, 1, 1, &got), -EINVAL);
	assert_int_equal(weir_mux_conn_grant(p.far, p.theirs, 0, LENGTH + 1, 1, &got), -EINVAL);
	assert_int_equal(weir_mux_conn_grant(p.far, p.theirs, 0, 1, 0, &got), -EINVAL);
	assert_int_equal(weir_mux_conn_grant(p.far, p.theirs, 0, 1, 4, &got), -EINVAL);
	assert_int_equal(weir_mux_region_close(p.theirs), -EBUSY);
	assert_int_equal(weir_mux_conn_write(p.near, writes, 0, p.ours, 0, 4096), 0);
	assert_int_equal(weir_mux_conn_send(p.near, &reads, sizeof(reads), 0), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, &got, sizeof(got), &size, 0), 0);
	assert_int_equal(got, reads);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
}

static void the_number_of_grants_is_limited(void **state)
{
	uint32_t handles[WEIR_MUX_GRANTS_MAX], one;
	unsigned int i;
	struct mux_pair p;

	(void)state;
	pair_open(&p);
	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		handles[i] = grant(&p, i, 1, WEIR_MUX_MAY_WRITE);
	assert_int_equal(weir_mux_conn_grant(p.far, p.theirs, 0, 1, WEIR_MUX_MAY_READ, &one),
			 -EDQUOT);
	for (i = 0; i < WEIR_MUX_GRANTS_MAX; i++)
		assert_int_equal(weir_mux_conn_withdraw(p.far, handles[i]), 0);
	one = grant(&p, 0, 1, WEIR_MUX_MAY_WRITE);
	assert_int_equal(weir_mux_conn_write(p.near, one, 0, p.ours, 0, 1), 0);
	mux_pair_close(&p);
}

/* Writes until refused. */
struct mux_onesided_writer {
	pthread_t thread;
	struct weir_mux_conn *conn;
	struct weir_mux_region *from;
	uint32_t handle, count;
	int rc;
};

static void *write_on(void *arg)
{
	struct mux_onesided_writer *w = arg;

	while (!(w->rc = weir_mux_conn_write(w->conn, w->handle, 0, w->from, 0, 300000)))
		__atomic_fetch_add(&w->count, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void writer_start(struct mux_onesided_writer *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, write_on, w), 0);
	while (__atomic_load_n(&w->count, __ATOMIC_RELAXED) < 3)
		sched_yield();
}

static void a_withdrawn_range_is_not_written_any_more(void **state)
{
	unsigned char *theirs;
	struct mux_pair p;
	int i;

	(void)state;
	pair_open(&p);
	theirs = weir_mux_region_data(p.theirs);
	memset(weir_mux_region_data(p.ours), 'x', LENGTH);
	for (i = 0; i < 5; i++) {
		struct mux_onesided_writer w = { .conn = p.near,
						 .from = p.ours,
						 .handle =
							 grant(&p, 0, LENGTH, WEIR_MUX_MAY_WRITE) };

		writer_start(&w);
		assert_int_equal(weir_mux_conn_withdraw(p.far, w.handle), 0);
		memset(theirs, 0, LENGTH);
		assert_int_equal(pthread_join(w.thread, NULL), 0);
		assert_int_equal(w.rc, -EACCES);
		assert_int_equal(theirs[0] + theirs[299999], 0);
	}
	mux_pair_close(&p);
}

static void the_peers_close_is_reported_to_the_writer(void **state)
{
	struct mux_onesided_writer w;
	struct mux_pair p;

	(void)state;
	pair_open(&p);
	w = (struct mux_onesided_writer){ .conn = p.near,
					  .from = p.ours,
					  .handle = grant(&p, 0, LENGTH, WEIR_MUX_MAY_WRITE) };
	writer_start(&w);
	weir_mux_conn_close(p.far);
	p.far = NULL;
	assert_int_equal(weir_mux_region_close(p.theirs), 0); /* after the last write */
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_int_equal(w.rc, -ENOTCONN);
	assert_int_equal(weir_mux_region_open(p.server, LENGTH, &p.theirs), 0);
	mux_pair_close(&p);
}

static void the_end_of_the_other_mux_is_reported_to_the_writer(void **state)
{
	struct mux_onesided_writer w;
	struct mux_pair p;

	(void)state;
	pair_open(&p);
	w = (struct mux_onesided_writer){ .conn = p.near,
					  .from = p.ours,
					  .handle = grant(&p, 0, LENGTH, WEIR_MUX_MAY_WRITE) };
	writer_start(&w);
	weir_mux_listener_close(p.listener);
	weir_mux_conn_close(p.far);
	assert_int_equal(weir_mux_region_close(p.theirs), 0);
	weir_mux_close(p.server);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_true(w.rc == -ENOTCONN || w.rc == -ECONNRESET);
	weir_mux_conn_close(p.near);
	assert_int_equal(weir_mux_region_close(p.ours), 0);
	weir_mux_close(p.client);
}

/* Receives a message with the bytes of the near end's region. */
static void receive_lent(struct mux_pair *p, uint64_t at, size_t length)
{
	unsigned char *got = malloc(length), *ours = weir_mux_region_data(p->ours);
	size_t size = 0;

	assert_non_null(got);
	assert_int_equal(weir_mux_conn_recv(p->far, got, length, &size, 0), 0);
	assert_int_equal(size, length);
	assert_memory_equal(got, ours + at, length);
	free(got);
}

struct lending {
	pthread_t thread;
	struct mux_pair *p;
	uint64_t at, length;
	int rc;
};

static void *lend_one(void *arg)
{
	struct lending *l = arg;

	l->rc = weir_mux_conn_send_region(l->p->near, l->p->ours, l->at, l->length, 0);
	return NULL;
}

static void a_zero_copy_send_arrives_in_order_with_only_its_record_in_the_ring(void **state)
{
	static const size_t lengths[] = { 1, 8, 4096, 65535, 65536, 65537, 1000003 };
	struct lending l;
	struct mux_pair p;
	uint64_t before;
	size_t i, size;
	uint32_t got;

	(void)state;
	pair_open(&p);
	l = (struct lending){ .p = &p };
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		l.at = i;
		l.length = lengths[i];
		fill((unsigned char *)weir_mux_region_data(p.ours) + i, lengths[i], (uint32_t)i);
		before = p.near->out.position;
		assert_int_equal(weir_mux_conn_send(p.near, &i, sizeof(got), 0), 0);
		assert_int_equal(pthread_create(&l.thread, NULL, lend_one, &l), 0);
		assert_int_equal(weir_mux_conn_recv(p.far, &got, sizeof(got), &size, 0), 0);
		assert_int_equal(got, i);
		receive_lent(&p, i, lengths[i]);
		assert_int_equal(pthread_join(l.thread, NULL), 0);
		assert_int_equal(l.rc, 0);
		assert_int_equal(p.near->out.position - before, 8 + sizeof(got) + 8);
	}
	mux_pair_close(&p);
}

static void a_zero_copy_buffer_is_the_muxs_until_completion(void **state)
{
	struct pollfd room = { .events = POLLIN };
	struct mux_pair p;
	char byte = 0;
	int rc;

	(void)state;
	pair_open(&p);
	room.fd = weir_mux_conn_room_fd(p.near);
	fill(weir_mux_region_data(p.ours), LENGTH, 5);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 0, LENGTH,
						   WEIR_MUX_CONN_DONTWAIT),
			 -EAGAIN);
	assert_int_equal(weir_mux_conn_send(p.near, &byte, 1, WEIR_MUX_CONN_DONTWAIT), -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 1, 1, WEIR_MUX_CONN_DONTWAIT),
			 -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 0, LENGTH,
						   WEIR_MUX_CONN_DONTWAIT),
			 -EAGAIN);
	receive_lent(&p, 0, LENGTH);
	while ((rc = weir_mux_conn_send_region(p.near, p.ours, 0, LENGTH,
					       WEIR_MUX_CONN_DONTWAIT)) == -EAGAIN)
		assert_int_equal(poll(&room, 1, 60000), 1);
	assert_int_equal(rc, 0);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 7, 1, 0), 0);
	receive_lent(&p, 7, 1);
	mux_pair_close(&p);
}

static void a_bad_zero_copy_send_is_refused_and_the_connection_goes_on(void **state)
{
	struct mux_pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 0, 0, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, LENGTH, 1, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, UINT64_MAX, 2, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 1, LENGTH, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 0, UINT64_MAX, 0), -EMSGSIZE);
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, LENGTH - 1, 1, 0), 0);
	receive_lent(&p, LENGTH - 1, 1);
	mux_pair_close(&p);
}

/* Requests that mux.h forbids: the mux checks again. */
static void a_zero_copy_send_from_a_foreign_region_ends_only_its_connection(void **state)
{
	static const struct weir_mux_rdma_op_desc wrong[] = {
		{ .region = 1, .at = LENGTH, .length = 1 },
		{ .region = 1, .at = UINT64_MAX, .length = 2 },
		{ .region = 1, .at = 0, .length = UINT64_MAX },
		{ .region = 1, .at = 0, .length = 0 },
		{ .region = 99, .at = 0, .length = 1 },
	};
	struct weir_mux_conn *near, *far;
	struct mux_pair p;
	size_t i, size;
	char byte;

	(void)state;
	pair_open(&p);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct weir_mux_rdma_op_desc *zc_send;

		mux_pair_connect(&p, NULL, &near, &far);
		zc_send = &near->shm->zc_send;
		zc_send->region = wrong[i].region;
		zc_send->at = wrong[i].at;
		zc_send->length = wrong[i].length;
		__atomic_store_n(&zc_send->state, WEIR_MUX_RDMA_OP_SUBMITTED, __ATOMIC_SEQ_CST);
		near->host->news(near);
		assert_int_equal(weir_mux_conn_recv(far, &byte, 1, &size, 0), -ECONNRESET);
		assert_int_equal(weir_mux_rdma_op_desc_wait(near, zc_send), -EPROTO);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
	}
	assert_int_equal(weir_mux_conn_send_region(p.near, p.ours, 0, 1, 0), 0);
	receive_lent(&p, 0, 1);
	mux_pair_close(&p);
}

static void the_peers_close_is_reported_to_the_zero_copy_sender(void **state)
{
	struct lending l;
	struct mux_pair p;
	char byte;
	size_t size;

	(void)state;
	pair_open(&p);
	l = (struct lending){ .p = &p, .length = LENGTH };
	assert_int_equal(pthread_create(&l.thread, NULL, lend_one, &l), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, &byte, 1, &size, 0),
			 -EMSGSIZE); /* receiving has begun */
	weir_mux_conn_close(p.far);
	p.far = NULL;
	assert_int_equal(pthread_join(l.thread, NULL), 0);
	assert_int_equal(l.rc, -ENOTCONN);
	mux_pair_close(&p); /* the region is not read any more */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_bytes_can_be_read_and_no_others_change),
		cmocka_unit_test(access_outside_a_grant_is_refused_and_the_connection_goes_on),
		cmocka_unit_test(the_number_of_grants_is_limited),
		cmocka_unit_test(a_withdrawn_range_is_not_written_any_more),
		cmocka_unit_test(the_peers_close_is_reported_to_the_writer),
		cmocka_unit_test(the_end_of_the_other_mux_is_reported_to_the_writer),
		cmocka_unit_test(
			a_zero_copy_send_arrives_in_order_with_only_its_record_in_the_ring),
		cmocka_unit_test(a_zero_copy_buffer_is_the_muxs_until_completion),
		cmocka_unit_test(a_bad_zero_copy_send_is_refused_and_the_connection_goes_on),
		cmocka_unit_test(a_zero_copy_send_from_a_foreign_region_ends_only_its_connection),
		cmocka_unit_test(the_peers_close_is_reported_to_the_zero_copy_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
