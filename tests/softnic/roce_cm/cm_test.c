// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce cm */
/*
 * Two connection managers, step by step in virtual time. A test chooses the fate of each message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/roce_cm/cm.h"

enum {
	CONNS = 4,
	TIMEOUT = 10, /* an exponent: 4.2 ms */
	WAIT = 12, /* 16.8 ms */
	RETRIES = 3,
	CLIENT_QPN = 0x11,
	SERVER_QPN = 0x22,
};

static const struct roce_cm_path paths[2] = { { .peer = { 1 } }, { .peer = { 2 } } };

struct side {
	struct roce_cm cm;
	struct roce_cm_conn conns[CONNS];
	struct roce_cm_conn *conn;
	uint32_t told; /* bits of events */
	struct roce_mad heard;
};

struct world {
	struct side client, server;
	uint64_t now_ns;
	uint32_t sent;
};

static const struct roce_mad req = { .kind = ROCE_MAD_REQ,
				     .qpn = CLIENT_QPN,
				     .service_id = 0x1064711,
				     .remote_timeout = TIMEOUT,
				     .local_timeout = TIMEOUT,
				     .ack_timeout = WAIT,
				     .max_cm_retries = RETRIES };
static const struct roce_mad rep = { .kind = ROCE_MAD_REP, .qpn = SERVER_QPN };

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	roce_cm_init(&w->client.cm, w->client.conns, CONNS, 0xc1, 1);
	roce_cm_init(&w->server.cm, w->server.conns, CONNS, 0x5e, 2);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void listen_to(struct side *side)
{
	struct roce_cm_event event;

	while (roce_cm_next_event(&side->cm, &event)) {
		side->conn = event.conn;
		side->told |= 1u << event.kind;
		if (event.mad)
			side->heard = *event.mad;
	}
}

/* The next message of @from, which crosses the wire as bytes. Return: false: none */
static bool take(struct world *w, struct side *from, struct roce_mad *m)
{
	struct roce_cm_path path;
	uint8_t bytes[ROCE_MAD_BYTES];

	if (!roce_cm_next_mad(&from->cm, m, &path))
		return false;
	assert_memory_equal(path.peer, paths[from == &w->client].peer, sizeof(path.peer));
	roce_mad_encode(m, bytes);
	assert_int_equal(roce_mad_decode(m, bytes, sizeof(bytes)), 0);
	w->sent++;
	return true;
}

static void give(struct world *w, struct side *to, const struct roce_mad *m)
{
	roce_cm_received(&to->cm, m, &paths[to == &w->client], w->now_ns);
	listen_to(to);
}

static void carry(struct world *w, struct side *from, uint16_t kind)
{
	struct roce_mad m;

	assert_true(take(w, from, &m));
	assert_int_equal(m.kind, kind);
	give(w, from == &w->client ? &w->server : &w->client, &m);
}

static void lose(struct world *w, struct side *from, uint16_t kind)
{
	struct roce_mad m;

	assert_true(take(w, from, &m));
	assert_int_equal(m.kind, kind);
}

static void assert_silent(struct world *w)
{
	struct roce_mad m;

	assert_false(take(w, &w->client, &m));
	assert_false(take(w, &w->server, &m));
}

/* Time passes until the next deadline of @side. */
static void pass(struct world *w, struct side *side)
{
	uint64_t at_ns = roce_cm_deadline_ns(&side->cm);

	assert_int_not_equal(at_ns, ROCE_CM_NEVER);
	roce_cm_expired(&side->cm, at_ns - 1);
	assert_int_equal(roce_cm_deadline_ns(&side->cm), at_ns);
	w->now_ns = at_ns;
	roce_cm_expired(&side->cm, at_ns);
	listen_to(side);
}

static void told(struct side *side, uint32_t kinds)
{
	assert_int_equal(side->told, kinds);
	side->told = 0;
}

static void connect_to_server(struct world *w)
{
	assert_int_equal(
		roce_cm_connect(&w->client.cm, &req, &paths[1], w->now_ns, &w->client.conn), 0);
}

static void reach_rep_sent(struct world *w)
{
	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	told(&w->server, 1 << ROCE_CM_REQUEST);
	assert_int_equal(roce_cm_accept(&w->server.cm, w->server.conn, &rep, w->now_ns), 0);
}

static void establish(struct world *w)
{
	reach_rep_sent(w);
	carry(w, &w->server, ROCE_MAD_REP);
	told(&w->client, 1 << ROCE_CM_REPLY);
	assert_int_equal(w->client.heard.qpn, SERVER_QPN);
	assert_int_equal(roce_cm_confirm(&w->client.cm, w->client.conn), 0);
	carry(w, &w->client, ROCE_MAD_RTU);
	told(&w->server, 1 << ROCE_CM_IS_ESTABLISHED);
	assert_silent(w);
}

static void assert_all_free(struct side *side)
{
	int i;

	for (i = 0; i < CONNS; i++)
		assert_int_equal(side->conns[i].state, ROCE_CM_FREE);
}

static void a_connection_is_made_and_ended(void **state)
{
	struct world *w = *state;

	establish(w);
	assert_int_equal(roce_cm_disconnect(&w->client.cm, w->client.conn, w->now_ns), 0);
	carry(w, &w->client, ROCE_MAD_DREQ);
	told(&w->server, 1 << ROCE_CM_DISCONNECTED);
	carry(w, &w->server, ROCE_MAD_DREP);
	told(&w->client, 1 << ROCE_CM_DISCONNECTED);
	pass(w, &w->client);
	told(&w->client, 1 << ROCE_CM_FINISHED);
	pass(w, &w->server);
	told(&w->server, 1 << ROCE_CM_FINISHED);
	roce_cm_release(&w->client.cm, w->client.conn, w->now_ns);
	roce_cm_release(&w->server.cm, w->server.conn, w->now_ns);
	assert_all_free(&w->client);
	assert_all_free(&w->server);
}

static void a_lost_req_is_repeated_until_the_peer_is_unreachable(void **state)
{
	struct world *w = *state;
	int i;

	connect_to_server(w);
	for (i = 0; i < RETRIES; i++) {
		lose(w, &w->client, ROCE_MAD_REQ);
		pass(w, &w->client);
		told(&w->client, 0);
	}
	lose(w, &w->client, ROCE_MAD_REQ);
	pass(w, &w->client);
	told(&w->client, 1 << ROCE_CM_UNREACHABLE);
	lose(w, &w->client, ROCE_MAD_REJ);
	assert_int_equal(roce_cm_deadline_ns(&w->client.cm), ROCE_CM_NEVER);
}

static void a_req_repeated_early_uses_up_no_time(void **state)
{
	struct world *w = *state;
	uint64_t deadline_ns;
	int i;

	connect_to_server(w);
	deadline_ns = roce_cm_deadline_ns(&w->client.cm);
	for (i = 0; i < 2 * RETRIES; i++) {
		lose(w, &w->client, ROCE_MAD_REQ);
		assert_true(roce_cm_repeat(&w->client.cm, w->client.conn, w->now_ns));
	}
	assert_int_equal(roce_cm_deadline_ns(&w->client.cm), deadline_ns);
	for (i = 0; i < RETRIES; i++) {
		pass(w, &w->client);
		told(&w->client, 0);
		lose(w, &w->client, ROCE_MAD_REQ);
	}
	pass(w, &w->client);
	told(&w->client, 1 << ROCE_CM_UNREACHABLE);
}

static void no_req_is_repeated_early_once_the_peer_has_heard_of_it(void **state)
{
	struct world *w = *state;

	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	assert_int_equal(roce_cm_wait(&w->server.cm, w->server.conn, TIMEOUT + 4), 0);
	carry(w, &w->server, ROCE_MAD_MRA);
	assert_false(roce_cm_repeat(&w->client.cm, w->client.conn, w->now_ns));
	assert_silent(w);
	assert_int_equal(roce_cm_accept(&w->server.cm, w->server.conn, &rep, w->now_ns), 0);
	carry(w, &w->server, ROCE_MAD_REP);
	assert_false(roce_cm_repeat(&w->client.cm, w->client.conn, w->now_ns));
	assert_silent(w);
}

static void a_repeated_req_gets_the_same_rep_and_one_event(void **state)
{
	struct world *w = *state;

	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	told(&w->server, 1 << ROCE_CM_REQUEST);
	pass(w, &w->client);
	carry(w, &w->client, ROCE_MAD_REQ);
	told(&w->server, 0);
	assert_silent(w);
	assert_int_equal(roce_cm_accept(&w->server.cm, w->server.conn, &rep, w->now_ns), 0);
	lose(w, &w->server, ROCE_MAD_REP);
	pass(w, &w->client);
	carry(w, &w->client, ROCE_MAD_REQ);
	carry(w, &w->server, ROCE_MAD_REP);
	told(&w->client, 1 << ROCE_CM_REPLY);
}

static void a_repeated_rep_gets_the_rtu_again(void **state)
{
	struct world *w = *state;

	reach_rep_sent(w);
	carry(w, &w->server, ROCE_MAD_REP);
	assert_int_equal(roce_cm_confirm(&w->client.cm, w->client.conn), 0);
	lose(w, &w->client, ROCE_MAD_RTU);
	pass(w, &w->server);
	carry(w, &w->server, ROCE_MAD_REP);
	told(&w->client, 1 << ROCE_CM_REPLY);
	carry(w, &w->client, ROCE_MAD_RTU);
	told(&w->server, 1 << ROCE_CM_IS_ESTABLISHED);
}

static void a_packet_stands_for_a_lost_rtu(void **state)
{
	struct world *w = *state;

	reach_rep_sent(w);
	carry(w, &w->server, ROCE_MAD_REP);
	assert_int_equal(roce_cm_confirm(&w->client.cm, w->client.conn), 0);
	lose(w, &w->client, ROCE_MAD_RTU);
	roce_cm_heard_packet(&w->server.cm, w->server.conn);
	listen_to(&w->server);
	told(&w->server, 1 << ROCE_CM_IS_ESTABLISHED);
	assert_int_equal(roce_cm_deadline_ns(&w->server.cm), ROCE_CM_NEVER);
}

static void an_mra_postpones_the_repetition(void **state)
{
	struct world *w = *state;
	uint64_t before_ns;

	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	before_ns = roce_cm_deadline_ns(&w->client.cm);
	assert_int_equal(roce_cm_wait(&w->server.cm, w->server.conn, TIMEOUT + 4), 0);
	carry(w, &w->server, ROCE_MAD_MRA);
	assert_int_equal(roce_cm_deadline_ns(&w->client.cm),
			 before_ns + roce_mad_timeout_ns(TIMEOUT + 4));
	pass(w, &w->client);
	carry(w, &w->client, ROCE_MAD_REQ);
	carry(w, &w->server, ROCE_MAD_MRA); /* again */
}

static void a_rejection_reaches_the_client_with_its_data(void **state)
{
	struct world *w = *state;

	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	assert_int_equal(roce_cm_reject(&w->server.cm, w->server.conn, ROCE_MAD_CONSUMER,
					(const uint8_t *)"no", 2),
			 0);
	carry(w, &w->server, ROCE_MAD_REJ);
	told(&w->client, 1 << ROCE_CM_REJECTED);
	assert_int_equal(w->client.heard.reason, ROCE_MAD_CONSUMER);
	assert_memory_equal(w->client.heard.private_data, "no", 3);
	roce_cm_release(&w->client.cm, w->client.conn, w->now_ns);
	roce_cm_release(&w->server.cm, w->server.conn, w->now_ns);
	assert_all_free(&w->client);
	assert_all_free(&w->server);
}

static void both_sides_may_disconnect_at_once(void **state)
{
	struct world *w = *state;
	struct roce_mad ours, theirs;

	establish(w);
	roce_cm_disconnect(&w->client.cm, w->client.conn, w->now_ns);
	roce_cm_disconnect(&w->server.cm, w->server.conn, w->now_ns);
	assert_true(take(w, &w->client, &ours));
	assert_true(take(w, &w->server, &theirs));
	give(w, &w->server, &ours);
	give(w, &w->client, &theirs);
	told(&w->client, 1 << ROCE_CM_DISCONNECTED);
	told(&w->server, 1 << ROCE_CM_DISCONNECTED);
	carry(w, &w->client, ROCE_MAD_DREP);
	carry(w, &w->server, ROCE_MAD_DREP);
	told(&w->client, 0);
	told(&w->server, 0);
}

static void a_repeated_dreq_is_answered_even_after_the_end(void **state)
{
	struct world *w = *state;
	struct roce_mad dreq;

	establish(w);
	roce_cm_disconnect(&w->client.cm, w->client.conn, w->now_ns);
	assert_true(take(w, &w->client, &dreq));
	give(w, &w->server, &dreq);
	lose(w, &w->server, ROCE_MAD_DREP);
	give(w, &w->server, &dreq);
	lose(w, &w->server, ROCE_MAD_DREP);
	pass(w, &w->server);
	give(w, &w->server, &dreq);
	carry(w, &w->server, ROCE_MAD_DREP);
	told(&w->client, 1 << ROCE_CM_DISCONNECTED);
}

static void a_dreq_for_another_queue_pair_is_ignored(void **state)
{
	struct world *w = *state;
	struct roce_mad dreq;

	establish(w);
	roce_cm_disconnect(&w->client.cm, w->client.conn, w->now_ns);
	assert_true(take(w, &w->client, &dreq));
	dreq.qpn++;
	give(w, &w->server, &dreq);
	told(&w->server, 0);
	assert_silent(w);
}

static void a_queue_pair_in_a_new_req_makes_the_old_connection_stale(void **state)
{
	struct world *w = *state;
	struct roce_cm_conn *old;

	establish(w);
	old = w->server.conn;
	w->client.conn->state = ROCE_CM_FREE; /* the client has lost its memory */
	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	told(&w->server, 0);
	carry(w, &w->server, ROCE_MAD_REJ);
	told(&w->client, 1 << ROCE_CM_REJECTED);
	assert_int_equal(w->client.heard.reason, ROCE_MAD_STALE);
	carry(w, &w->server, ROCE_MAD_DREQ);
	carry(w, &w->client, ROCE_MAD_DREP);
	told(&w->server, 1 << ROCE_CM_DISCONNECTED);
	assert_int_equal(old->state, ROCE_CM_TIMEWAIT);
}

static void a_stranger_is_not_heard(void **state)
{
	static const struct roce_cm_path stranger = { .peer = { 3 } };
	struct world *w = *state;
	struct roce_mad m;

	establish(w);
	roce_cm_disconnect(&w->client.cm, w->client.conn, w->now_ns);
	assert_true(take(w, &w->client, &m));
	roce_cm_received(&w->server.cm, &m, &stranger, w->now_ns);
	listen_to(&w->server);
	told(&w->server, 0);
	assert_int_equal(w->server.conn->state, ROCE_CM_ESTABLISHED);
}

static void an_answer_without_the_transaction_id_is_not_heard(void **state)
{
	struct world *w = *state;
	struct roce_mad m;

	reach_rep_sent(w);
	assert_true(take(w, &w->server, &m));
	m.tid++;
	give(w, &w->client, &m);
	told(&w->client, 0);
	carry(w, &w->client, ROCE_MAD_REJ); /* a stranger's REP is refused */
	m.tid--;
	give(w, &w->client, &m);
	told(&w->client, 1 << ROCE_CM_REPLY);
}

static void ids_have_the_prefix_and_the_rest_varies(void **state)
{
	struct world *w = *state;
	struct roce_cm_conn *conn;
	uint32_t ids[2], i;

	roce_cm_set_prefix(&w->client.cm, 0x1a5, 9);
	for (i = 0; i < 2; i++) {
		assert_int_equal(roce_cm_connect(&w->client.cm, &req, &paths[1], 0, &conn), 0);
		ids[i] = conn->local_id;
		assert_int_equal(ids[i] >> 23, 0x1a5);
		roce_cm_release(&w->client.cm, conn, 0);
	}
	assert_int_not_equal(ids[0], ids[1]);
}

static void strangers_fill_no_more_than_the_table(void **state)
{
	struct world *w = *state;
	struct roce_mad m = req;
	int i, refused = 0;

	for (i = 0; i < 100; i++) {
		m.local_id = 1000 + i;
		m.qpn = 1000 + i;
		give(w, &w->server, &m);
	}
	while (take(w, &w->server, &m)) {
		assert_int_equal(m.reason, ROCE_MAD_NO_RESOURCES);
		refused++;
	}
	assert_int_equal(refused, ROCE_CM_REFUSALS);
	connect_to_server(w);
	assert_int_equal(roce_cm_connect(&w->server.cm, &req, &paths[0], 0, &w->server.conn), 0);
}

static void a_client_that_gave_up_is_gone_from_the_server(void **state)
{
	struct world *w = *state;

	connect_to_server(w);
	carry(w, &w->client, ROCE_MAD_REQ);
	told(&w->server, 1 << ROCE_CM_REQUEST);
	roce_cm_release(&w->client.cm, w->client.conn, w->now_ns);
	assert_all_free(&w->client);
	carry(w, &w->client, ROCE_MAD_REJ);
	told(&w->server, 1 << ROCE_CM_REJECTED);
	assert_int_equal(roce_cm_accept(&w->server.cm, w->server.conn, &rep, w->now_ns), -EINVAL);
}

static void a_service_names_its_queue_pair_twice_if_asked_twice(void **state)
{
	static const struct roce_mad sidr = { .kind = ROCE_MAD_SIDR_REQ,
					      .remote_timeout = TIMEOUT,
					      .local_timeout = TIMEOUT,
					      .max_cm_retries = RETRIES };
	static const struct roce_mad answer = { .kind = ROCE_MAD_SIDR_REP, .qpn = SERVER_QPN };
	struct world *w = *state;

	assert_int_equal(roce_cm_connect(&w->client.cm, &sidr, &paths[1], 0, &w->client.conn), 0);
	carry(w, &w->client, ROCE_MAD_SIDR_REQ);
	told(&w->server, 1 << ROCE_CM_REQUEST);
	assert_int_equal(roce_cm_accept(&w->server.cm, w->server.conn, &answer, 0), 0);
	lose(w, &w->server, ROCE_MAD_SIDR_REP);
	pass(w, &w->client);
	carry(w, &w->client, ROCE_MAD_SIDR_REQ);
	carry(w, &w->server, ROCE_MAD_SIDR_REP);
	told(&w->server, 0);
	told(&w->client, 1 << ROCE_CM_REPLY);
	assert_int_equal(w->client.heard.qpn, SERVER_QPN);
	roce_cm_release(&w->client.cm, w->client.conn, w->now_ns);
	roce_cm_release(&w->server.cm, w->server.conn, w->now_ns);
	pass(w, &w->server);
	assert_all_free(&w->client);
	assert_all_free(&w->server);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_connection_is_made_and_ended),
		CASE(a_lost_req_is_repeated_until_the_peer_is_unreachable),
		CASE(a_req_repeated_early_uses_up_no_time),
		CASE(no_req_is_repeated_early_once_the_peer_has_heard_of_it),
		CASE(a_repeated_req_gets_the_same_rep_and_one_event),
		CASE(a_repeated_rep_gets_the_rtu_again),
		CASE(a_packet_stands_for_a_lost_rtu),
		CASE(an_mra_postpones_the_repetition),
		CASE(a_rejection_reaches_the_client_with_its_data),
		CASE(both_sides_may_disconnect_at_once),
		CASE(a_repeated_dreq_is_answered_even_after_the_end),
		CASE(a_dreq_for_another_queue_pair_is_ignored),
		CASE(a_queue_pair_in_a_new_req_makes_the_old_connection_stale),
		CASE(a_stranger_is_not_heard),
		CASE(an_answer_without_the_transaction_id_is_not_heard),
		CASE(ids_have_the_prefix_and_the_rest_varies),
		CASE(strangers_fill_no_more_than_the_table),
		CASE(a_client_that_gave_up_is_gone_from_the_server),
		CASE(a_service_names_its_queue_pair_twice_if_asked_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
