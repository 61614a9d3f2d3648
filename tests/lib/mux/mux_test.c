/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux; devices: softnic rxe; timeout: 120 */
/* Two muxes in one process. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/mux/local/local.h"
#include "tests/support/mux_pair.h"

#define CLASS_SIZE .size = sizeof(struct weir_mux_class)

static void fill(unsigned char *data, size_t length, uint64_t seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		data[i] = (unsigned char)((seed + i) * 2654435761u >> 11);
}

struct mux_sending {
	pthread_t thread;
	struct weir_mux_conn *conn;
	const void *data;
	size_t length;
	int rc;
};

static void *send_one(void *arg)
{
	struct mux_sending *s = arg;

	s->rc = weir_mux_conn_send(s->conn, s->data, s->length, 0);
	return NULL;
}

/* Sends from a separate thread, since the message may be larger than the rings. */
static void pass(struct weir_mux_conn *from, struct weir_mux_conn *to, size_t length)
{
	struct mux_sending s = { .conn = from, .length = length };
	unsigned char *data = malloc(length + 1), *got = calloc(1, length + 1);
	size_t received = 0;

	assert_true(data && got);
	fill(data, length, length);
	s.data = data;
	assert_int_equal(pthread_create(&s.thread, NULL, send_one, &s), 0);
	assert_int_equal(weir_mux_conn_recv(to, got, length, &received, 0), 0);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_int_equal(s.rc, 0);
	assert_int_equal(received, length);
	assert_memory_equal(got, data, length);
	free(data);
	free(got);
}

static _Thread_local unsigned int served; /* remotes, by this thread */

void __real_weir_mux_remote_combine(struct weir_mux_remote *remote);
void __wrap_weir_mux_remote_combine(struct weir_mux_remote *remote);

void __wrap_weir_mux_remote_combine(struct weir_mux_remote *remote)
{
	served++;
	__real_weir_mux_remote_combine(remote);
}

static void wait_unread(const struct weir_mux_conn *conn)
{
	while (__atomic_load_n(&conn->in.ring->tail, __ATOMIC_ACQUIRE) == conn->in.position)
		sched_yield();
}

/* How often this thread combined while it sent a message alone. */
static unsigned int served_with(struct weir_mux_conn *conn, const void *data, size_t length)
{
	struct weir_mux_remote *remote = container_of(conn, struct weir_mux_vconn, app)->remote;
	unsigned int times;

	while (!weir_mux_remote_claim(remote))
		sched_yield();
	served = 0;
	assert_int_equal(weir_mux_conn_send(conn, data, length, 0), 0);
	times = served;
	weir_mux_remote_release(remote);
	weir_mux_remote_combine(remote);
	return times;
}

/*
 * A lone message is posted at once; but when an answer is expected anyway, the worker is quick
 * enough.
 */
static void a_reader_with_more_to_read_leaves_sending_to_the_worker(void **state)
{
	static char data[WIRE_MUX_SEGMENT_MAX];
	struct mux_pair p;
	size_t length;

	(void)state;
	mux_pair_open(&p, NULL);
	assert_int_equal(weir_mux_conn_send(p.far, data, 8, 0), 0);
	wait_unread(p.near);
	assert_int_equal(served_with(p.near, data, 8), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, data, sizeof(data), &length, 0), 0);
	assert_int_equal(served_with(p.near, data, sizeof(data)), 1); /* too large to wait */
	assert_int_equal(weir_mux_conn_recv(p.far, data, sizeof(data), &length, 0), 0);
	assert_int_equal(weir_mux_conn_recv(p.near, data, sizeof(data), &length, 0), 0);
	assert_int_equal(served_with(p.near, data, 8), 1);
	assert_int_equal(weir_mux_conn_recv(p.far, data, sizeof(data), &length, 0), 0);
	mux_pair_close(&p);
}

static void messages_of_any_size_arrive_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 8, 4088, 65527, 65528, 65529, 262136, 1000003 };
	struct mux_pair p;
	size_t i;

	(void)state;
	mux_pair_open(&p, NULL);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pass(p.near, p.far, sizes[i]);
		pass(p.far, p.near, sizes[i]);
	}
	pass(p.near, p.far, fixture_scaled(16 * MIB));
	mux_pair_close(&p);
}

static void messages_arrive_in_order(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	int i, got, n = fixture_rounds(5000), sent = 0;
	struct mux_pair p;
	size_t length;

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < n; i++) {
		while (sent < n &&
		       !weir_mux_conn_send(p.near, &sent, sizeof(sent), WEIR_MUX_CONN_DONTWAIT))
			sent++;
		if (sent == i) { /* or there would be nothing to receive */
			assert_int_equal(weir_mux_conn_send(p.near, &sent, sizeof(sent), 0), 0);
			sent++;
		}
		assert_int_equal(weir_mux_conn_recv(p.far, &got, sizeof(got), &length, 0), 0);
		assert_int_equal(length, sizeof(got));
		assert_int_equal(got, i);
	}
	mux_pair_close(&p);
}

static void a_message_too_long_reports_its_length_and_stays(void **state)
{
	char data[100], got[100] = { 0 };
	struct mux_pair p;
	size_t length = 0;

	(void)state;
	mux_pair_open(&p, NULL);
	memset(data, 'x', sizeof(data));
	assert_int_equal(weir_mux_conn_send(p.near, data, sizeof(data), 0), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, got, 99, &length, 0), -EMSGSIZE);
	assert_int_equal(length, 100);
	assert_int_equal(weir_mux_conn_recv(p.far, got, 100, &length, 0), 0);
	assert_memory_equal(got, data, 100);
	assert_int_equal(weir_mux_conn_send(p.near, data, (size_t)WEIR_MUX_MESSAGE_MAX + 1, 0),
			 -EMSGSIZE);
	mux_pair_close(&p);
}

#define MANY 200

static void many_connections_share_one_queue_pair(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	struct weir_mux_conn *near[MANY], *far[MANY];
	int i, got, n = fixture_rounds(MANY);
	struct weir_mux_info info;
	struct mux_pair p;
	size_t length;

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < n; i++)
		mux_pair_connect(&p, NULL, &near[i], &far[i]);
	weir_mux_info(p.client, &info, sizeof(info));
	assert_int_equal(info.connections, n + 1);
	assert_int_equal(info.queue_pairs, 2); /* class 0 for setup, class 1 for data */
	for (i = 0; i < n; i++)
		assert_int_equal(weir_mux_conn_send(near[i], &i, sizeof(i), 0), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(weir_mux_conn_recv(far[i], &got, sizeof(got), &length, 0), 0);
		assert_int_equal(got, i);
	}
	for (i = 0; i < n; i++) {
		weir_mux_conn_close(near[i]);
		weir_mux_conn_close(far[i]);
	}
	mux_pair_close(&p);
}

/* An IPv4 address in IPv6 notation finds the same remote. */
static void an_address_matches_in_any_notation(void **state)
{
	struct weir_error error = { "" };
	struct weir_mux_conn *near, *far;
	struct weir_mux_info info;
	struct mux_pair p;
	char name[96];
	const char *port;

	(void)state;
	mux_pair_open(&p, NULL);
	port = strrchr(p.address, ':');
	snprintf(name, sizeof(name), "[::ffff:%.*s]%s", (int)(port - p.address), p.address, port);
	if (weir_mux_connect(p.client, name, SERVICE, NULL, &near, &error))
		fail_msg("%s", error.text);
	far = accept_from(p.listener);
	weir_mux_info(p.client, &info, sizeof(info));
	assert_int_equal(info.connections, 2);
	assert_int_equal(info.queue_pairs, 2);
	pass(near, far, 100);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
}

/* Without a reader the rings at both ends fill up; only this sender gets -EAGAIN. */
static void a_slow_reader_holds_back_only_its_own_connection(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 65536, .buffers = 8 };
	char *data = calloc(1, 30000), got[30000];
	struct weir_mux_conn *near, *far;
	int i, sent = 0, rounds = fixture_rounds(50);
	struct mux_pair p;
	size_t length;

	(void)state;
	assert_non_null(data);
	mux_pair_open(&p, &options);
	mux_pair_connect(&p, NULL, &near, &far);
	for (i = 0; i < 2 + rounds; i++) {
		int rc = weir_mux_conn_send(near, data, 30000, WEIR_MUX_CONN_DONTWAIT);

		assert_true(!rc || rc == -EAGAIN);
		sent += !rc;
		pass(p.near, p.far, 30000);
	}
	assert_in_range(sent, 2, 5);
	/* Complete messages arrive; the same call completes the partial message. */
	for (i = 0; i < sent; i++)
		assert_int_equal(weir_mux_conn_recv(far, got, sizeof(got), &length, 0), 0);
	assert_int_equal(weir_mux_conn_send(near, data, 30000, 0), 0);
	assert_int_equal(weir_mux_conn_recv(far, got, sizeof(got), &length, 0), 0);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
	free(data);
}

/* Sends while there is room, receives while there are bytes, then polls both descriptors. */
static void descriptors_turn_readable_when_a_call_can_succeed(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	int sent = 0, received = 0, n = fixture_rounds(300);
	char data[1000] = "", got[1000];
	struct pollfd fds[2];
	struct mux_pair p;
	size_t length;

	(void)state;
	mux_pair_open(&p, &options);
	fds[0] = (struct pollfd){ .fd = weir_mux_conn_fd(p.far), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = weir_mux_conn_room_fd(p.near), .events = POLLIN };
	while (received < n) {
		while (sent < n &&
		       !weir_mux_conn_send(p.near, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
			sent++;
		while (!weir_mux_conn_recv(p.far, got, sizeof(got), &length,
					   WEIR_MUX_CONN_DONTWAIT))
			received++;
		if (received < n)
			assert_true(poll(fds, sent < n ? 2 : 1, PATIENCE_MS) > 0);
	}
	assert_int_equal(received, n);
	mux_pair_close(&p);
}

static void bytes_sent_before_the_close_arrive(void **state)
{
	unsigned char *data = malloc(200000), *got = malloc(200000);
	struct mux_pair p;
	size_t length;

	(void)state;
	assert_true(data && got);
	fill(data, 200000, 3);
	mux_pair_open(&p, NULL);
	assert_int_equal(weir_mux_conn_send(p.near, data, 200000, 0), 0);
	weir_mux_conn_close(p.near);
	p.near = NULL;
	assert_int_equal(weir_mux_conn_recv(p.far, got, 200000, &length, 0), 0);
	assert_memory_equal(got, data, 200000);
	assert_int_equal(weir_mux_conn_recv(p.far, got, 200000, &length, 0), -ENOTCONN);
	assert_int_equal(weir_mux_conn_send(p.far, got, 1, 0), -ENOTCONN);
	mux_pair_close(&p);
	free(data);
	free(got);
}

/* Both ends close with full rings that nobody will read. */
static void both_ends_may_close_with_unread_bytes(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	char data[1000] = "";
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, &options);
	while (!weir_mux_conn_send(p.near, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
		;
	while (!weir_mux_conn_send(p.far, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
		;
	mux_pair_close(&p);
}

static void slots_are_reused(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096, .connections_max = 4 };
	struct weir_mux_conn *near, *far;
	struct weir_mux_info info;
	struct mux_pair p;
	int i, n = fixture_rounds(100);

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < n; i++) {
		int rc;

		do {
			rc = weir_mux_connect(p.client, p.address, SERVICE, NULL, &near, NULL);
		} while (rc == -EDQUOT); /* the last one is still closing */
		assert_int_equal(rc, 0);
		far = accept_from(p.listener);
		pass(near, far, 5000);
		weir_mux_conn_close(far);
		weir_mux_conn_close(near);
	}
	do {
		weir_mux_info(p.client, &info, sizeof(info));
	} while (info.connections > 1);
	mux_pair_close(&p);
}

static void refusals_say_why(void **state)
{
	const struct weir_mux_conn_options no_class = { .size = sizeof(no_class), .class_nr = 2 };
	const struct weir_mux_conn_options heavy = { .size = sizeof(heavy), .weight = 1025 };
	struct weir_mux_conn *conn = NULL;
	struct weir_mux_listener *listener;
	struct weir_error error;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, NULL);
	assert_int_equal(weir_mux_connect(p.client, p.address, 6, NULL, &conn, &error),
			 -ECONNREFUSED);
	assert_non_null(strstr(error.text, "no program offers service 6"));
	assert_int_equal(weir_mux_connect(p.client, p.address, SERVICE, &no_class, &conn, &error),
			 -EINVAL);
	assert_int_equal(weir_mux_connect(p.client, p.address, SERVICE, &heavy, &conn, &error),
			 -EINVAL);
	assert_int_equal(weir_mux_connect(p.client, "host:99999", SERVICE, NULL, &conn, &error),
			 -EINVAL);
	assert_int_equal(weir_mux_listen(p.server, SERVICE, 1, &listener), -EADDRINUSE);
	assert_null(conn);
	mux_pair_close(&p);
}

static void more_connections_than_allowed_are_refused(void **state)
{
	struct weir_mux_options options = { .connections_max = 2 };
	struct weir_mux_conn *conn = NULL, *other, *far;
	struct weir_error error;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, &options);
	mux_pair_connect(&p, NULL, &other, &far);
	assert_int_equal(weir_mux_connect(p.client, p.address, SERVICE, NULL, &conn, &error),
			 -EDQUOT);
	assert_null(conn);
	weir_mux_conn_close(other);
	weir_mux_conn_close(far);
	mux_pair_close(&p);
}

static void a_full_backlog_refuses_for_now(void **state)
{
	struct weir_mux_conn *first, *second = NULL;
	struct weir_mux_listener *listener;
	struct weir_error error;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, NULL);
	assert_int_equal(weir_mux_listen(p.server, 9, 1, &listener), 0);
	assert_int_equal(weir_mux_connect(p.client, p.address, 9, NULL, &first, &error), 0);
	assert_int_equal(weir_mux_connect(p.client, p.address, 9, NULL, &second, &error), -EAGAIN);
	/* Connections waiting to be accepted end with the service. */
	weir_mux_listener_close(listener);
	assert_int_equal(weir_mux_conn_recv(first, &error, sizeof(error), &(size_t){ 0 }, 0),
			 -ENOTCONN);
	weir_mux_conn_close(first);
	mux_pair_close(&p);
}

static void another_key_is_refused(void **state)
{
	struct weir_mux_options options = { .size = sizeof(options), .timeout_ns = 60 * SECOND_NS };
	char path[] = "/tmp/weir-mux-key-XXXXXX";
	struct weir_mux_conn *conn = NULL;
	struct weir_error error;
	struct weir_mux *stranger;
	struct weir_key *key;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, NULL);
	assert_non_null(mkdtemp(path));
	strcat(strcpy(error.text, path), "/key");
	assert_int_equal(weir_key_create(error.text, NULL), 0);
	assert_int_equal(weir_key_load(error.text, &key, NULL), 0);
	unlink(error.text);
	rmdir(path);
	options.key = key;
	stranger = mux_open(&options);
	assert_int_equal(weir_mux_connect(stranger, p.address, SERVICE, NULL, &conn, &error),
			 -EKEYREJECTED);
	weir_mux_close(stranger);
	weir_key_free(key);
	pass(p.near, p.far, 1000);
	mux_pair_close(&p);
}

/* A mux closes with open connections: the peer gets all data, and then learns of the end. */
static void a_mux_that_closes_closes_its_connections(void **state)
{
	struct mux_pair p;
	char got[10];
	size_t length;

	(void)state;
	mux_pair_open(&p, NULL);
	pass(p.near, p.far, 100000);
	assert_int_equal(weir_mux_conn_send(p.far, "last", 4, 0), 0);
	weir_mux_listener_close(p.listener);
	weir_mux_close(p.server);
	assert_int_equal(weir_mux_conn_recv(p.near, got, sizeof(got), &length, 0), 0);
	assert_int_equal(length, 4);
	assert_int_equal(weir_mux_conn_recv(p.near, got, sizeof(got), &length, 0), -ENOTCONN);
	assert_int_equal(weir_mux_conn_send(p.near, got, sizeof(got), 0), -ENOTCONN);
	weir_mux_conn_close(p.near);
	weir_mux_close(p.client);
}

static struct weir_mux_local *local_of(struct weir_mux *mux)
{
	return container_of(mux, struct weir_mux_local, mux);
}

/* A mux dies with open connections. */
static void a_mux_that_dies_resets_its_connections(void **state)
{
	struct mux_pair p;
	char got[10];
	size_t length;

	(void)state;
	mux_pair_open(&p, NULL);
	pass(p.near, p.far, 100000);
	weir_mux_local_stop(local_of(p.server));
	assert_int_equal(weir_mux_conn_recv(p.near, got, sizeof(got), &length, 0), -ECONNRESET);
	assert_int_equal(weir_mux_conn_send(p.near, got, sizeof(got), 0), -ECONNRESET);
	weir_mux_conn_close(p.near);
	weir_mux_listener_close(p.listener);
	weir_mux_close(p.server);
	weir_mux_close(p.client);
}

/* One end has closed, and the peer dies before it could send FIN. */
static void connections_of_a_lost_mux_free_their_slots(void **state)
{
	struct weir_mux_options options = { .size = sizeof(options), .key = fixture_key() };
	int i, n = fixture_rounds(30);
	struct weir_mux_info info;
	struct weir_mux_conn *near;
	struct weir_error error;
	struct weir_mux *other;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, NULL);
	for (i = 0; i < n; i++) {
		other = mux_open(&options);
		assert_int_equal(weir_mux_connect(other, p.address, SERVICE, NULL, &near, &error),
				 0);
		weir_mux_conn_close(accept_from(p.listener));
		weir_mux_local_stop(local_of(other));
		weir_mux_close(other);
		do {
			usleep(1000);
			weir_mux_info(p.server, &info, sizeof(info));
		} while (info.connections > 1);
	}
	pass(p.near, p.far, 1000);
	mux_pair_close(&p);
}

static void classes_have_queue_pairs_of_their_own(void **state)
{
	static const struct weir_mux_class classes[] = {
		{ CLASS_SIZE, .level = 0, .weight = 1 },
		{ CLASS_SIZE, .level = 1, .weight = 3, .policy = WEIR_MUX_POLICY_ROUND_ROBIN },
		{ CLASS_SIZE, .level = 1, .segment_bytes = 4096 },
	};
	struct weir_mux_options options = { .classes = classes, .nr_classes = 3 };
	struct weir_mux_conn *near, *far;
	struct weir_mux_info info;
	struct mux_pair p;
	unsigned int i;

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < 3; i++) {
		const struct weir_mux_conn_options conn = { .size = sizeof(conn),
							    .class_nr = i,
							    .weight = 7 };

		mux_pair_connect(&p, &conn, &near, &far);
		pass(near, far, 300000);
		pass(far, near, 300000);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
	}
	weir_mux_info(p.client, &info, sizeof(info));
	assert_int_equal(info.queue_pairs, 3);
	mux_pair_close(&p);
}

/* Nobody reads until both rings on the way are full to the byte. */
static void fill_rings(struct weir_mux_conn *from, struct weir_mux_conn *to, size_t ring_bytes)
{
	const size_t length = 2 * ring_bytes - sizeof(struct wire_mux_record);
	unsigned char *data = malloc(length), *got = calloc(1, length);
	size_t received = 0;

	assert_true(data && got);
	fill(data, length, length);
	assert_int_equal(weir_mux_conn_send(from, data, length, 0), 0);
	assert_int_equal(weir_mux_conn_send(from, data, 0, WEIR_MUX_CONN_DONTWAIT), -EAGAIN);
	assert_int_equal(weir_mux_conn_recv(to, got, length, &received, 0), 0);
	assert_int_equal(received, length);
	assert_memory_equal(got, data, length);
	free(data);
	free(got);
}

static void rings_are_as_long_as_requested(void **state)
{
	static const struct {
		uint32_t asked;
		size_t given;
	} cases[] = {
		{ 0, 4096 }, { 1, 4096 }, { 4097, 8192 }, { 16384, 16384 }, { UINT32_MAX, 65536 },
	};
	struct weir_mux_options options = { .ring_bytes = 4096 };
	struct weir_mux_conn *near, *far;
	struct mux_pair p;
	size_t i;

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct weir_mux_conn_options conn = { .size = sizeof(conn),
							    .class_nr = WEIR_MUX_CLASS_NORMAL,
							    .ring_bytes = cases[i].asked };

		mux_pair_connect(&p, &conn, &near, &far);
		fill_rings(near, far, cases[i].given);
		fill_rings(far, near, cases[i].given);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
	}
	mux_pair_close(&p);
}

static void a_message_begun_must_be_completed(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	char *data = calloc(1, MIB), *got = calloc(1, MIB);
	struct mux_sending rest = { .data = data, .length = MIB };
	struct mux_pair p;
	size_t length;

	(void)state;
	assert_true(data && got);
	mux_pair_open(&p, &options);
	assert_int_equal(weir_mux_conn_send(p.near, data, MIB, WEIR_MUX_CONN_DONTWAIT), -EAGAIN);
	assert_int_equal(weir_mux_conn_send(p.near, data, 100, 0), -EINVAL);
	rest.conn = p.near;
	assert_int_equal(pthread_create(&rest.thread, NULL, send_one, &rest), 0);
	assert_int_equal(weir_mux_conn_recv(p.far, got, MIB, &length, 0), 0);
	assert_int_equal(length, MIB);
	assert_int_equal(pthread_join(rest.thread, NULL), 0);
	assert_int_equal(rest.rc, 0);
	mux_pair_close(&p);
	free(data);
	free(got);
}

/* Reads the type of service of a mux's QPs by class. */
static void expect_tos(const struct weir_mux *mux, const struct weir_mux_class *classes)
{
	struct weir_mux_local *local = container_of(mux, struct weir_mux_local, mux);
	struct ibv_qp_init_attr init;
	struct weir_list *at;
	struct ibv_qp_attr attr;

	pthread_mutex_lock(&local->lock);
	for (at = local->qps.next; at != &local->qps; at = at->next) {
		const struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		assert_int_equal(ibv_query_qp(qp->id->qp, &attr, IBV_QP_AV, &init), 0);
		assert_int_equal(attr.ah_attr.grh.traffic_class, classes[qp->class].tos);
	}
	pthread_mutex_unlock(&local->lock);
}

static void classes_have_types_of_service_of_their_own(void **state)
{
	static const struct weir_mux_class classes[] = { { CLASS_SIZE, .tos = 104 },
							 { CLASS_SIZE, .level = 1, .tos = 32 } };
	struct weir_mux_options options = { .classes = classes, .nr_classes = 2 };
	struct weir_mux_info info;
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, &options);
	weir_mux_info(p.client, &info, sizeof(info));
	assert_int_equal(info.queue_pairs, 2);
	expect_tos(p.client, classes);
	expect_tos(p.server, classes);
	mux_pair_close(&p);
}

static void expect_rnr_timer(const struct weir_mux *mux)
{
	struct weir_mux_local *local = container_of(mux, struct weir_mux_local, mux);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct weir_list *at;

	pthread_mutex_lock(&local->lock);
	assert_false(weir_list_is_empty(&local->qps));
	for (at = local->qps.next; at != &local->qps; at = at->next) {
		const struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		assert_int_equal(ibv_query_qp(qp->id->qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
		assert_int_equal(attr.min_rnr_timer, WEIR_MUX_QP_RNR_TIMER);
	}
	pthread_mutex_unlock(&local->lock);
}

static void a_receiver_not_ready_is_retried_soon(void **state)
{
	struct mux_pair p;

	(void)state;
	mux_pair_open(&p, NULL);
	expect_rnr_timer(p.client);
	expect_rnr_timer(p.server);
	mux_pair_close(&p);
}

static void options_out_of_range_are_refused(void **state)
{
	static const struct weir_mux_class falling[] = { { CLASS_SIZE, .level = 1 },
							 { CLASS_SIZE, .level = 0 } };
	static const struct weir_mux_class heavy = { CLASS_SIZE, .weight = 1025 };
	static const struct weir_mux_class tos = { CLASS_SIZE, .tos = 256 };
	static const struct weir_mux_class long_segment = { CLASS_SIZE, .segment_bytes = 65537 };
	struct weir_mux_options wrong[] = {
		{ .ring_bytes = 5000 },
		{ .ring_bytes = 2048 },
		{ .buffers = 7 },
		{ .connections_max = 65536 },
		{ .classes = falling, .nr_classes = 2 },
		{ .classes = falling, .nr_classes = 9 },
		{ .classes = &heavy, .nr_classes = 1 },
		{ .classes = &long_segment, .nr_classes = 1 },
		{ .classes = &tos, .nr_classes = 1 },
		{ .listen = "127.0.0.1:99999" },
		{ .encryption = WEIR_ENCRYPTION_REQUIRED }, /* without a key */
	};
	struct weir_mux *mux = NULL;
	struct weir_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		error.text[0] = '\0';
		wrong[i].size = sizeof(wrong[i]);
		assert_int_equal(weir_mux_open(&wrong[i], &mux, &error), -EINVAL);
		assert_true(error.text[0] != '\0');
	}
	assert_null(mux);
}

/* Idle threads sleep: the counters stand still. */
static void idle_threads_sleep(void **state)
{
	struct weir_mux_info before, after;
	struct mux_pair p;
	int quiet = 0;

	(void)state;
	mux_pair_open(&p, NULL);
	pass(p.near, p.far, 100000);
	weir_mux_info(p.client, &before, sizeof(before));
	while (quiet < 20) { /* consecutive reads without a change */
		usleep(10000);
		weir_mux_info(p.client, &after, sizeof(after));
		quiet = after.sleeps == before.sleeps ? quiet + 1 : 0;
		before = after;
	}
	pass(p.near, p.far, 100000); /* the threads wake up, and sleep again */
	do {
		weir_mux_info(p.client, &after, sizeof(after));
	} while (after.sleeps == before.sleeps);
	mux_pair_close(&p);
}

/* Corruptions of the shared words by an application. */
struct lie {
	const char *of;
	bool out, tail; /* which ring, which position */
	uint64_t by;
};

static const struct lie lies[] = {
	{ "more written than there is room for", true, true, 65537 },
	{ "less written than was sent", true, true, (uint64_t)-1 },
	{ "half the numbers written", true, true, 1ull << 63 },
	{ "more read than has arrived", false, false, 1 },
	{ "everything read", false, false, 1ull << 63 },
};

/* The mux's side of an application's connection. */
static struct weir_mux_vconn *circuit_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app);
}

static void tell_lie(struct weir_mux_conn *conn, const struct lie *lie)
{
	struct weir_mux_ring *ring = lie->out ? &conn->shm->out : &conn->shm->in;

	__atomic_fetch_add(lie->tail ? &ring->tail : &ring->head, lie->by, __ATOMIC_RELEASE);
	conn->host->news(conn);
}

static void a_corrupt_ring_position_ends_only_its_connection(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 65536 };
	struct weir_mux_conn *near, *far;
	struct mux_pair p;
	char got[100];
	size_t i, length;

	(void)state;
	mux_pair_open(&p, &options);
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		mux_pair_connect(&p, NULL, &near, &far);
		pass(near, far, 100);
		pass(far, near, 100);
		tell_lie(near, &lies[i]);
		assert_int_equal(weir_mux_conn_recv(far, got, sizeof(got), &length, 0),
				 -ECONNRESET);
		while (!weir_mux_conn_send(near, got, sizeof(got), 0))
			;
		assert_int_equal(weir_mux_conn_send(near, got, sizeof(got), 0), -EPROTO);
		pass(p.near, p.far, 100000);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
	}
	mux_pair_close(&p);
}

/* A misbehaving mux, simulated by changing its memory. */
static void a_mux_that_sends_beyond_its_credit_is_cut_off(void **state)
{
	struct weir_mux_options options = { .ring_bytes = 4096 };
	char data[1000] = "", got[1000];
	struct mux_pair p;
	size_t length;
	int rc;

	(void)state;
	mux_pair_open(&p, &options);
	__atomic_store_n(&circuit_of(p.near)->granted, 1 << 30, __ATOMIC_RELEASE);
	while (!(rc = weir_mux_conn_send(p.near, data, sizeof(data), 0)))
		;
	assert_int_equal(rc, -ECONNRESET);
	while (!(rc = weir_mux_conn_recv(p.far, got, sizeof(got), &length, 0)))
		;
	assert_int_equal(rc, -EPROTO);
	mux_pair_close(&p);
}

static void a_mux_that_names_a_foreign_connection_is_cut_off(void **state)
{
	struct weir_mux_conn *near, *far;
	struct weir_mux_info info;
	struct weir_mux *other;
	struct weir_mux_options options = { .size = sizeof(options), .key = fixture_key() };
	struct weir_error error;
	struct mux_pair p;
	char got[10];
	size_t length;

	(void)state;
	mux_pair_open(&p, NULL);
	weir_mux_info(p.server, &info, sizeof(info));
	other = mux_open(&options);
	assert_int_equal(weir_mux_connect(other, info.address, SERVICE, NULL, &near, &error), 0);
	far = accept_from(p.listener);
	__atomic_store_n(&circuit_of(near)->remote_id, weir_mux_vconn_remote_id(circuit_of(p.near)),
			 __ATOMIC_RELAXED);
	assert_int_equal(weir_mux_conn_send(near, "mine", 4, 0), 0);
	assert_int_equal(weir_mux_conn_recv(near, got, sizeof(got), &length, 0), -ECONNRESET);
	pass(p.near, p.far, 1000);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_close(other);
	mux_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_any_size_arrive_whole),
		cmocka_unit_test(a_reader_with_more_to_read_leaves_sending_to_the_worker),
		cmocka_unit_test(messages_arrive_in_order),
		cmocka_unit_test(rings_are_as_long_as_requested),
		cmocka_unit_test(a_message_begun_must_be_completed),
		cmocka_unit_test(a_message_too_long_reports_its_length_and_stays),
		cmocka_unit_test(many_connections_share_one_queue_pair),
		cmocka_unit_test(an_address_matches_in_any_notation),
		cmocka_unit_test(a_slow_reader_holds_back_only_its_own_connection),
		cmocka_unit_test(descriptors_turn_readable_when_a_call_can_succeed),
		cmocka_unit_test(bytes_sent_before_the_close_arrive),
		cmocka_unit_test(both_ends_may_close_with_unread_bytes),
		cmocka_unit_test(slots_are_reused),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(more_connections_than_allowed_are_refused),
		cmocka_unit_test(a_full_backlog_refuses_for_now),
		cmocka_unit_test(another_key_is_refused),
		cmocka_unit_test(a_mux_that_closes_closes_its_connections),
		cmocka_unit_test(a_mux_that_dies_resets_its_connections),
		cmocka_unit_test(connections_of_a_lost_mux_free_their_slots),
		cmocka_unit_test(classes_have_queue_pairs_of_their_own),
		cmocka_unit_test(classes_have_types_of_service_of_their_own),
		cmocka_unit_test(a_receiver_not_ready_is_retried_soon),
		cmocka_unit_test(options_out_of_range_are_refused),
		cmocka_unit_test(idle_threads_sleep),
		cmocka_unit_test(a_corrupt_ring_position_ends_only_its_connection),
		cmocka_unit_test(a_mux_that_sends_beyond_its_credit_is_cut_off),
		cmocka_unit_test(a_mux_that_names_a_foreign_connection_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
