/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux identity; devices: softnic; timeout: 120 */
/* Impostors with the key and without the identity, and strangers at the door. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/conn/identity.h"
#include "tests/lib/mux/ends.h"
#include "tests/support/raw_client.h"

static struct weir_key key = { .length = 16, .bytes = "0123456789abcdef" };
static struct weir_identity own = { .pair.secret = { 1, 2, 3 } };
static unsigned char own_public[32], other_public[32] = { 9 };

static int make_identity(void **state)
{
	(void)state;
	weir_noise_pair_init(&own.pair, &weir_handshake_crypto);
	weir_identity_public(&own, own_public);
	return 0;
}

static void open_known(struct mux_end *end, const struct weir_identity *identity,
		       const unsigned char *pin, const struct weir_key *key)
{
	struct weir_mux_options options = { .key = key,
					    .ring_bytes = 16384,
					    .timeout_ns = PATIENCE_NS,
					    .identity = identity,
					    .peer_identity = pin };
	struct weir_error error = { "" };
	struct weir_mux_info info;
	char listen[64];

	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	options.listen = listen;
	if (weir_mux_local_open(&options, &end->mux, &error))
		fail_msg("%s", error.text);
	weir_mux_local_info(end->mux, &info);
	snprintf(end->address, sizeof(end->address), "%s", info.address);
	assert_int_equal(weir_mux_listen(&end->mux->mux, SERVICE, 64, &end->listener), 0);
}

static int try_connect(const struct mux_end *from, const struct mux_end *to)
{
	struct weir_mux_conn *conn;
	int rc = weir_mux_connect(&from->mux->mux, to->address, SERVICE, NULL, &conn, NULL);

	if (!rc) {
		weir_mux_conn_close(accept_at(to));
		weir_mux_conn_close(conn);
	}
	return rc;
}

/* Both servers know the key; one has the identity. */
static void a_mux_trusts_the_peer_that_it_names(void **state)
{
	static struct weir_key named;
	struct mux_end known, unknown, client[4];
	unsigned int i;

	(void)state;
	named = key;
	named.nr_donors = 1;
	memcpy(named.donors[0], own_public, sizeof(own_public));
	open_known(&known, &own, NULL, &key);
	open_known(&unknown, NULL, NULL, &key);
	open_known(&client[0], NULL, own_public, &key);
	open_known(&client[1], NULL, NULL, &named);
	open_known(&client[2], NULL, other_public, &named);
	open_known(&client[3], NULL, NULL, &key);
	for (i = 0; i < 4; i++) {
		assert_int_equal(try_connect(&client[i], &known), i == 2 ? -EKEYREJECTED : 0);
		assert_int_equal(try_connect(&client[i], &unknown), i == 3 ? 0 : -EKEYREJECTED);
	}
	for (i = 0; i < 4; i++)
		end_close(&client[i]);
	end_close(&known);
	end_close(&unknown);
}

/*
 * The impostor knows the key and the server's id, connects to the client in the server's name, and
 * then asks for a further QP of the client's session: with a lower id, and with a higher id.
 */
static void try_impostor(bool has_lower_id)
{
	struct mux_end client, server, impostor;
	struct weir_mux_conn *false_conn, *near, *far, *normal, *there;

	open_known(&client, NULL, own_public, &key);
	open_known(&server, &own, NULL, &key);
	open_known(&impostor, NULL, NULL, &key);
	memset(server.mux->id, has_lower_id ? 0x00 : 0xff, 1);
	memcpy(impostor.mux->id, server.mux->id, sizeof(server.mux->id));
	false_conn = connect_at(&impostor, client.address, WEIR_MUX_CLASS_URGENT);
	weir_mux_conn_close(accept_at(&client));

	near = connect_at(&client, server.address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(&server);
	pass(near, far);
	assert_true(node_of(near)->is_ours);
	assert_memory_equal(node_of(near)->identity, own_public, sizeof(own_public));

	/* Only the client dials a further QP of the remote. */
	node_of(false_conn)->session_id = node_of(near)->session_id;
	assert_int_equal(weir_mux_connect(&impostor.mux->mux, client.address, SERVICE,
					  &(struct weir_mux_conn_options){
						  .size = sizeof(struct weir_mux_conn_options),
						  .class_nr = WEIR_MUX_CLASS_NORMAL },
					  &normal, NULL),
			 -ESTALE);
	normal = connect_to(&client, &server);
	there = accept_at(&server);
	pass(normal, there);
	assert_ptr_equal(node_of(normal), node_of(near));
	weir_mux_conn_close(normal);
	weir_mux_conn_close(there);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_conn_close(false_conn);
	end_close(&impostor);
	end_close(&client);
	end_close(&server);
}

static void no_impostor_gets_the_traffic_for_a_pinned_mux(void **state)
{
	(void)state;
	try_impostor(true);
	try_impostor(false);
}

/* Each mux has a remote of its own dialling, and a remote of the other. */
static void two_muxes_that_pin_each_other_connect_both_ways(void **state)
{
	struct mux_end a, b;
	struct weir_mux_conn *near, *far, *back, *there;

	(void)state;
	open_known(&a, &own, own_public, &key);
	open_known(&b, &own, own_public, &key);
	near = connect_to(&a, &b);
	far = accept_at(&b);
	back = connect_to(&b, &a);
	there = accept_at(&a);
	pass(near, far);
	pass(back, there);
	assert_int_equal(nodes_of(a.mux), 2);
	assert_int_equal(nodes_of(b.mux), 2);
	assert_ptr_not_equal(node_of(near), node_of(there));
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_conn_close(back);
	weir_mux_conn_close(there);
	end_close(&a);
	end_close(&b);
}

/* Strangers take all places for connections without a cookie. The client brings a cookie. */
static void strangers_keep_no_mux_out(void **state)
{
	static struct raw_client strangers[2 * WEIR_UNPROVEN_MAX];
	struct wire_handshake_connect connect = raw_request(&key, 0, 0);
	uint64_t began_ns = weir_now_ns();
	struct mux_end server, client;
	unsigned int nr = 0;
	bool is_full = false;
	int rc;

	(void)state;
	open_known(&server, NULL, NULL, &key);
	open_known(&client, NULL, NULL, &key);
	while (!is_full && nr < 2 * WEIR_UNPROVEN_MAX) {
		rc = raw_connect(&strangers[nr++], server.address, &connect, sizeof(connect));
		is_full = rc == -ECONNREFUSED;
	}
	if (weir_now_ns() - began_ns < WEIR_UNPROVEN_NS) { /* else the first stranger made room */
		assert_int_equal(nr, WEIR_UNPROVEN_MAX + 1);
		assert_int_equal(strangers[nr - 1].refusal.status, EAGAIN);
		assert_true(wire_handshake_has_cookie(strangers[nr - 1].cookie));
	}
	assert_int_equal(try_connect(&client, &server), 0);
	while (nr)
		raw_close(&strangers[--nr]);
	end_close(&client);
	end_close(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mux_trusts_the_peer_that_it_names),
		cmocka_unit_test(no_impostor_gets_the_traffic_for_a_pinned_mux),
		cmocka_unit_test(two_muxes_that_pin_each_other_connect_both_ways),
		cmocka_unit_test(strangers_keep_no_mux_out),
	};

	return cmocka_run_group_tests(tests, make_identity, NULL);
}
