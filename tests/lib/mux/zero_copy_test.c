/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux zero copy; devices: softnic rxe; timeout: 120 */
/* Large messages pass a mux without a copy: written into the ring, and taken from there. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mux/local/local.h"
#include "tests/support/mux_pair.h"

#define RING (256u << 10) /* the default */

#define REGION_BYTES (2u << 20) /* of the client */

static unsigned char byte_at(uint64_t position)
{
	return (unsigned char)(position * 2654435761u >> 11);
}

static unsigned char *memory_of(const struct mux_pair *p)
{
	return weir_mux_region_data(p->ours);
}

static void pair_open(struct mux_pair *p)
{
	size_t i;

	mux_pair_open(p, NULL);
	assert_int_equal(weir_mux_region_open(p->client, REGION_BYTES, &p->ours), 0);
	for (i = 0; i < REGION_BYTES; i++)
		memory_of(p)[i] = byte_at(i);
}

/* Sends a message from the region in a separate thread. */
struct mux_take_sending {
	pthread_t thread;
	const struct mux_pair *p;
	struct weir_mux_conn *conn;
	size_t length;
	int rc;
};

static void *send_one(void *arg)
{
	struct mux_take_sending *s = arg;

	s->rc = s->length ? weir_mux_conn_send_region(s->conn, s->p->ours, 0, s->length, 0) :
			    weir_mux_conn_send(s->conn, "", 0, 0);
	return NULL;
}

static void sending_begin(struct mux_take_sending *s, const struct mux_pair *p, size_t length)
{
	*s = (struct mux_take_sending){ .p = p, .conn = p->near, .length = length };
	assert_int_equal(pthread_create(&s->thread, NULL, send_one, s), 0);
}

static void sending_end(struct mux_take_sending *s)
{
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	assert_int_equal(s->rc, 0);
}

static void part_is_right(const struct weir_mux_conn_part *part, size_t at, size_t total)
{
	const unsigned char *data = part->data;
	size_t i;

	assert_int_equal(part->at, at);
	assert_int_equal(part->total, total);
	assert_true(part->length <= total - at);
	assert_true(part->length || !total);
	for (i = 0; i < part->length; i++)
		if (data[i] != byte_at(at + i))
			fail_msg("byte %zu of %zu is wrong", at + i, total);
}

/* Takes a whole message of the region's bytes. */
static void take_all(struct weir_mux_conn *conn, size_t total)
{
	struct weir_mux_conn_part part;
	size_t at = 0;

	do {
		assert_int_equal(weir_mux_conn_take(conn, &part, 0), 0);
		part_is_right(&part, at, total);
		at += part.length;
		weir_mux_conn_give(conn);
	} while (at < total);
}

static void parts_make_up_the_message_whatever_its_size(void **state)
{
	static const size_t sizes[] = { 1, 0, 100, 4088, 65536, RING - 8, RING, 1000003, 7 };
	struct mux_take_sending s;
	struct mux_pair p;
	size_t i;

	(void)state;
	pair_open(&p);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		sending_begin(&s, &p, sizes[i]);
		take_all(p.far, sizes[i]);
		sending_end(&s);
	}
	mux_pair_close(&p);
}

static void taking_and_receiving_alternate_by_messages(void **state)
{
	struct weir_mux_conn_part part;
	struct mux_pair p;
	char got[200];
	size_t length;
	int i;

	(void)state;
	pair_open(&p);
	for (i = 0; i < 3; i++)
		assert_int_equal(weir_mux_conn_send(p.near, memory_of(&p), 100, 0), 0);
	take_all(p.far, 100);
	assert_int_equal(weir_mux_conn_recv(p.far, got, sizeof(got), &length, 0), 0);
	assert_int_equal(length, 100);
	assert_int_equal(weir_mux_conn_take(p.far, &part, 0), 0);
	assert_int_equal(weir_mux_conn_take(p.far, &part, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_recv(p.far, got, sizeof(got), &length, 0), -EINVAL);
	weir_mux_conn_give(p.far);
	weir_mux_conn_give(p.far);
	assert_int_equal(weir_mux_conn_take(p.far, &part, WEIR_MUX_CONN_DONTWAIT), -EAGAIN);
	mux_pair_close(&p);
}

/* A message partly received cannot be taken, and vice versa. */
static void a_message_is_either_taken_or_received(void **state)
{
	const size_t total = 2 * RING;
	char *got = malloc(total);
	struct weir_mux_conn_part part;
	struct mux_take_sending s;
	struct mux_pair p;
	size_t length;

	(void)state;
	assert_non_null(got);
	pair_open(&p);
	sending_begin(&s, &p, total);
	while (weir_mux_conn_recv(p.far, got, total, &length, WEIR_MUX_CONN_DONTWAIT) == -EAGAIN &&
	       !p.far->is_in_message)
		wait_readable(weir_mux_conn_fd(p.far));
	assert_int_equal(weir_mux_conn_take(p.far, &part, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_recv(p.far, got, total, &length, 0), 0);
	assert_memory_equal(got, memory_of(&p), total);
	sending_end(&s);
	sending_begin(&s, &p, total);
	assert_int_equal(weir_mux_conn_take(p.far, &part, 0), 0);
	weir_mux_conn_give(p.far);
	assert_int_equal(weir_mux_conn_recv(p.far, got, total, &length, 0), -EINVAL);
	while (part.at + part.length < total) {
		assert_int_equal(weir_mux_conn_take(p.far, &part, 0), 0);
		weir_mux_conn_give(p.far);
	}
	sending_end(&s);
	mux_pair_close(&p);
	free(got);
}

/* At most a ring arrives, lent bytes do not change, and other connections go on. */
static void a_held_part_holds_back_only_its_own_connection(void **state)
{
	struct weir_mux_conn *near, *far;
	struct weir_mux_conn_part part;
	struct weir_mux_info info;
	struct mux_take_sending s;
	struct mux_pair p;
	char got[100];
	size_t length, i;

	(void)state;
	pair_open(&p);
	mux_pair_connect(&p, NULL, &near, &far);
	sending_begin(&s, &p, REGION_BYTES);
	assert_int_equal(weir_mux_conn_take(p.far, &part, 0), 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(weir_mux_conn_send(near, memory_of(&p), sizeof(got), 0), 0);
		assert_int_equal(weir_mux_conn_recv(far, got, sizeof(got), &length, 0), 0);
	}
	weir_mux_info(p.server, &info, sizeof(info));
	assert_true(info.bytes_received <= RING + 100 * (sizeof(got) + 8));
	part_is_right(&part, 0, REGION_BYTES);
	weir_mux_conn_give(p.far);
	while (part.at + part.length < REGION_BYTES) {
		i = part.at + part.length;
		assert_int_equal(weir_mux_conn_take(p.far, &part, 0), 0);
		part_is_right(&part, i, REGION_BYTES);
		weir_mux_conn_give(p.far);
	}
	sending_end(&s);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
}

static void the_descriptor_turns_readable_for_take(void **state)
{
	struct weir_mux_conn_part part;
	struct mux_take_sending s;
	struct mux_pair p;
	size_t at = 0;
	int rc;

	(void)state;
	pair_open(&p);
	sending_begin(&s, &p, REGION_BYTES);
	while (at < REGION_BYTES) {
		rc = weir_mux_conn_take(p.far, &part, WEIR_MUX_CONN_DONTWAIT);
		if (rc == -EAGAIN) {
			wait_readable(weir_mux_conn_fd(p.far));
			continue;
		}
		assert_int_equal(rc, 0);
		part_is_right(&part, at, REGION_BYTES);
		at += part.length;
		weir_mux_conn_give(p.far);
	}
	sending_end(&s);
	mux_pair_close(&p);
}

/* Arrived bytes can be taken after the peer's close. */
static void the_end_comes_after_all_data(void **state)
{
	struct weir_mux_conn *near, *far;
	struct weir_mux_conn_part part;
	struct mux_pair p;

	(void)state;
	pair_open(&p);
	mux_pair_connect(&p, NULL, &near, &far);
	assert_int_equal(weir_mux_conn_send(near, memory_of(&p), 1000, 0), 0);
	weir_mux_conn_close(near);
	take_all(far, 1000);
	assert_int_equal(weir_mux_conn_take(far, &part, 0), -ENOTCONN);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
}

static uint64_t written(const struct mux_pair *p)
{
	struct weir_mux_info info;

	weir_mux_info(p->server, &info, sizeof(info));
	return info.bytes_written;
}

/* Two segments, in a ring with room for both: all but the record is written. */
static void large_segments_are_written_and_small_segments_copied(void **state)
{
	struct mux_take_sending s;
	struct mux_pair p;
	int i;

	(void)state;
	pair_open(&p);
	for (i = 0; i < 20; i++) {
		assert_int_equal(weir_mux_conn_send(p.near, memory_of(&p), 1000, 0), 0);
		take_all(p.far, 1000);
	}
	assert_int_equal(written(&p), 0);
	sending_begin(&s, &p, 2 * WIRE_MUX_SEGMENT_MAX);
	take_all(p.far, 2 * WIRE_MUX_SEGMENT_MAX);
	sending_end(&s);
	assert_int_equal(written(&p), 2 * WIRE_MUX_SEGMENT_MAX);
	mux_pair_close(&p);
}

static struct weir_mux_vconn *circuit_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app);
}

/* A misbehaving mux, simulated by changing its memory. */
static void a_mux_that_writes_across_the_end_of_a_ring_is_cut_off(void **state)
{
	struct weir_mux_conn_part part;
	struct mux_take_sending s;
	struct mux_pair p;
	int rc;

	(void)state;
	pair_open(&p);
	/* With credit beyond the ring's end, a whole segment would cross the end. */
	sending_begin(&s, &p, 100000);
	take_all(p.far, 100000);
	sending_end(&s);
	while (__atomic_load_n(&circuit_of(p.near)->granted, __ATOMIC_ACQUIRE) <= RING)
		sched_yield();
	circuit_of(p.near)->peer_ring.size *= 2;
	sending_begin(&s, &p, 2 * RING);
	while (!(rc = weir_mux_conn_take(p.far, &part, 0)))
		weir_mux_conn_give(p.far);
	assert_int_equal(rc, -EPROTO);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_int_equal(s.rc, -ECONNRESET);
	mux_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_make_up_the_message_whatever_its_size),
		cmocka_unit_test(taking_and_receiving_alternate_by_messages),
		cmocka_unit_test(a_message_is_either_taken_or_received),
		cmocka_unit_test(a_held_part_holds_back_only_its_own_connection),
		cmocka_unit_test(the_descriptor_turns_readable_for_take),
		cmocka_unit_test(the_end_comes_after_all_data),
		cmocka_unit_test(large_segments_are_written_and_small_segments_copied),
		cmocka_unit_test(a_mux_that_writes_across_the_end_of_a_ring_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
