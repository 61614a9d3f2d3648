/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key. One program steps both ends, with a relay in between that can change,
 * cut, keep and replay messages.
 */
#include <stdio.h>

#include "lib/conn/handshake.h"
#include "tests/support/cmocka_all.h"

struct proof_message {
	uint8_t bytes[WIRE_HANDSHAKE_MAX];
	size_t length;
};

/* The messages on the wire, in order. */
enum { HELLO, CHALLENGE, PROOF, WELCOME, MESSAGES };

struct proof_exchange {
	struct weir_key client_key, donor_key;
	struct weir_handshake_setup client_setup, donor_setup;
	struct weir_handshake client, donor;
	struct proof_message said[MESSAGES];
	int client_ret, donor_ret;
	/* The relay. */
	int tampered; /* message to change; -1: none */
	size_t at; /* byte to change */
	size_t cut; /* bytes cut off the end */
};

static void key_set(struct weir_key *key, const char *text)
{
	key->length = strlen(text);
	memcpy(key->bytes, text, key->length);
}

static void exchange_init(struct proof_exchange *x)
{
	const struct weir_endpoint client = { "client's gid ...", 0x111 };
	const struct weir_endpoint donor = { "donor's gid ....", 0x222 };

	memset(x, 0, sizeof(*x));
	key_set(&x->client_key, "the quick brown fox");
	key_set(&x->donor_key, "the quick brown fox");
	x->client_setup = (struct weir_handshake_setup){
		.key = &x->client_key,
		.local = client,
		.remote = donor,
		.credits = 64,
		.mux = "the client's id",
		.ended = 0xe4ded,
	};
	x->donor_setup = (struct weir_handshake_setup){
		.key = &x->donor_key,
		.local = donor,
		.remote = client,
		.credits = 32,
	};
	memset(x->client_setup.nonce, 0xc1, WIRE_NONCE);
	memset(x->donor_setup.nonce, 0xd0, WIRE_NONCE);
	x->tampered = -1;
}

/* A message as it arrives. */
static struct proof_message pass(struct proof_exchange *x, int which)
{
	struct proof_message m = x->said[which];

	if (x->tampered == which) {
		if (!x->cut)
			m.bytes[x->at] ^= 1;
		m.length -= x->cut;
	}
	return m;
}

static void donor_step(struct proof_exchange *x, int in, int out)
{
	struct proof_message m = pass(x, in);

	x->donor_ret = weir_handshake_input(&x->donor, m.bytes, m.length, x->said[out].bytes,
					    &x->said[out].length);
}

static void client_step(struct proof_exchange *x, int in, int out)
{
	struct proof_message m = pass(x, in), unused,
			     *to = out < MESSAGES ? &x->said[out] : &unused;

	x->client_ret = weir_handshake_input(&x->client, m.bytes, m.length, to->bytes, &to->length);
}

static void run_exchange(struct proof_exchange *x)
{
	const struct wire_handshake_welcome welcome = {
		.session_id = 0x5e55,
		.incarnation = 0x1ca,
		.quota_bytes = 1 << 20,
		.message_max = 16024,
		.credits = 32,
		.is_known = 1,
		.mux = "the donor's id.",
	};

	weir_handshake_donor(&x->donor, &x->donor_setup);
	weir_handshake_client(&x->client, &x->client_setup, x->said[HELLO].bytes,
			      &x->said[HELLO].length);
	donor_step(x, HELLO, CHALLENGE);
	client_step(x, CHALLENGE, PROOF);
	if (x->client_ret)
		return;
	donor_step(x, PROOF, WELCOME);
	if (x->donor.state == WEIR_HANDSHAKE_PROVEN)
		weir_handshake_welcome(&x->donor, &welcome, x->said[WELCOME].bytes,
				       &x->said[WELCOME].length);
	client_step(x, WELCOME, MESSAGES);
}

static bool both_done(const struct proof_exchange *x)
{
	return x->client.state == WEIR_HANDSHAKE_DONE && x->donor.state == WEIR_HANDSHAKE_DONE;
}

static void the_right_key_is_proven_by_both(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	assert_true(both_done(&x));
	assert_int_equal(x.client_ret, 0);
	assert_int_equal(x.client.welcome.session_id, 0x5e55);
	assert_int_equal(x.client.welcome.quota_bytes, 1 << 20);
	assert_int_equal(x.client.welcome.credits, 32);
	assert_int_equal(x.donor.hello.credits, 64);
	/* The proof covers the ids of muxes too. */
	assert_string_equal((char *)x.donor.hello.mux, "the client's id");
	assert_int_equal(x.donor.hello.ended, 0xe4ded);
	assert_string_equal((char *)x.client.welcome.mux, "the donor's id.");
	assert_int_equal(x.client.welcome.is_known, 1);
}

static void without_keys_both_prove_the_empty_one(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.client_setup.key = x.donor_setup.key = NULL;
	run_exchange(&x);
	assert_true(both_done(&x));
}

static void a_wrong_key_is_refused(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	key_set(&x.client_key, "the quick brown fix");
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_non_null(strstr(x.client.error.text, "could not prove"));
}

static void no_key_against_a_key_is_refused(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.client_setup.key = NULL;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.donor_setup.key = NULL;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
}

/* An impostor listens at the donor's address and welcomes every client. */
static void a_donor_that_does_not_know_the_key_is_refused(void **state)
{
	struct proof_exchange x;
	const struct wire_handshake_welcome welcome = { .session_id = 1, .credits = 32 };

	(void)state;
	exchange_init(&x);
	key_set(&x.donor_key, "what could it be, though");
	run_exchange(&x); /* the donor refuses the proof; an impostor would not */
	exchange_init(&x);
	key_set(&x.donor_key, "what could it be, though");
	weir_handshake_donor(&x.donor, &x.donor_setup);
	weir_handshake_client(&x.client, &x.client_setup, x.said[HELLO].bytes,
			      &x.said[HELLO].length);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	weir_handshake_welcome(&x.donor, &welcome, x.said[WELCOME].bytes, &x.said[WELCOME].length);
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.client.state, WEIR_HANDSHAKE_FAILED);
}

/* Nonces, GIDs, QPNs, channel, session, credits, limits and MACs. */
static void no_byte_of_any_message_can_be_changed(void **state)
{
	struct proof_exchange x;
	size_t at, length;
	int which;

	(void)state;
	for (which = HELLO; which < MESSAGES; which++) {
		exchange_init(&x);
		run_exchange(&x);
		length = x.said[which].length;
		for (at = 0; at < length; at++) {
			exchange_init(&x);
			x.tampered = which;
			x.at = at;
			run_exchange(&x);
			assert_false(both_done(&x));
			assert_true(x.client_ret < 0);
		}
	}
}

static void no_message_can_be_cut(void **state)
{
	struct proof_exchange x;
	size_t cut, length;
	int which;

	(void)state;
	for (which = HELLO; which < MESSAGES; which++) {
		exchange_init(&x);
		run_exchange(&x);
		length = x.said[which].length;
		for (cut = 1; cut <= length; cut++) {
			exchange_init(&x);
			x.tampered = which;
			x.cut = cut;
			run_exchange(&x);
			assert_false(both_done(&x));
		}
	}
}

/* A relay owns two QPs, one to each end, and forwards every message unchanged. */
static void a_relay_between_two_qps_is_found_out(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.donor_setup.remote.qpn = 0x333;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.client_setup.remote.qpn = 0x333;
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.donor_setup.remote.gid[15] ^= 1;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.client_setup.remote.gid[0] ^= 1;
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

static void another_session_or_channel_than_asked_for_is_refused(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.client_setup.channel = 1;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EPROTO);
	exchange_init(&x);
	x.client_setup.session_id = 1;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EPROTO);
}

static void a_proof_played_back_is_worth_nothing(void **state)
{
	struct proof_exchange old, x;
	struct proof_message out;

	(void)state;
	exchange_init(&old);
	run_exchange(&old);
	exchange_init(&x);
	x.donor_setup.nonce[7]++; /* the donor's nonce is never the same twice */
	weir_handshake_donor(&x.donor, &x.donor_setup);
	assert_int_equal(weir_handshake_input(&x.donor, old.said[HELLO].bytes,
					      old.said[HELLO].length, out.bytes, &out.length),
			 0);
	assert_int_equal(weir_handshake_input(&x.donor, old.said[PROOF].bytes,
					      old.said[PROOF].length, out.bytes, &out.length),
			 -EKEYREJECTED);
}

static void a_welcome_played_back_is_worth_nothing(void **state)
{
	struct proof_exchange old, x;

	(void)state;
	exchange_init(&old);
	run_exchange(&old);
	exchange_init(&x);
	x.client_setup.nonce[7]++;
	weir_handshake_client(&x.client, &x.client_setup, x.said[HELLO].bytes,
			      &x.said[HELLO].length);
	x.said[CHALLENGE] = old.said[CHALLENGE];
	client_step(&x, CHALLENGE, PROOF);
	x.said[WELCOME] = old.said[WELCOME];
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

/* The client's own MAC is reflected as the donor's, and vice versa. */
static void the_roles_cannot_be_swapped(void **state)
{
	union wire_handshake_message m;
	struct proof_exchange x;
	struct proof_message out;

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	memcpy(&m.welcome, x.said[WELCOME].bytes, sizeof(m.welcome));
	memcpy(m.welcome.mac, x.said[PROOF].bytes + sizeof(m.head), WIRE_MAC);
	memcpy(x.said[WELCOME].bytes, &m, sizeof(m.welcome));
	weir_handshake_client(&x.client, &x.client_setup, out.bytes, &out.length);
	client_step(&x, CHALLENGE, PROOF);
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

/* Each message in each state: one out of turn ends the handshake. */
static void out_of_turn_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct proof_message out;
	int first, second;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (first = HELLO; first < MESSAGES; first++)
		for (second = HELLO; second < MESSAGES; second++) {
			exchange_init(&x);
			weir_handshake_donor(&x.donor, &x.donor_setup);
			weir_handshake_input(&x.donor, good.said[first].bytes,
					     good.said[first].length, out.bytes, &out.length);
			weir_handshake_input(&x.donor, good.said[second].bytes,
					     good.said[second].length, out.bytes, &out.length);
			if (first == HELLO && second == PROOF)
				assert_int_equal(x.donor.state, WEIR_HANDSHAKE_PROVEN);
			else
				assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
			weir_handshake_client(&x.client, &x.client_setup, out.bytes, &out.length);
			weir_handshake_input(&x.client, good.said[first].bytes,
					     good.said[first].length, out.bytes, &out.length);
			weir_handshake_input(&x.client, good.said[second].bytes,
					     good.said[second].length, out.bytes, &out.length);
			if (first == CHALLENGE && second == WELCOME)
				assert_int_equal(x.client.state, WEIR_HANDSHAKE_DONE);
			else
				assert_int_equal(x.client.state, WEIR_HANDSHAKE_FAILED);
		}
}

static void nothing_follows_the_end(void **state)
{
	struct proof_exchange x;
	struct proof_message out;

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	assert_int_equal(weir_handshake_input(&x.donor, x.said[PROOF].bytes, x.said[PROOF].length,
					      out.bytes, &out.length),
			 -EPROTO);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
}

static void random_bytes_are_refused(void **state)
{
	uint8_t bytes[WIRE_HANDSHAKE_MAX];
	struct proof_exchange x;
	struct proof_message out;
	uint32_t seed = 1;
	size_t i;
	int n;

	(void)state;
	exchange_init(&x);
	for (n = 0; n < 10000; n++) {
		for (i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = seed >> 24;
		}
		weir_handshake_donor(&x.donor, &x.donor_setup);
		assert_true(weir_handshake_input(&x.donor, bytes, seed % sizeof(bytes), out.bytes,
						 &out.length) < 0);
		assert_true(out.length == sizeof(struct wire_handshake_refusal));
		weir_handshake_client(&x.client, &x.client_setup, out.bytes, &out.length);
		assert_true(weir_handshake_input(&x.client, bytes, seed % sizeof(bytes), out.bytes,
						 &out.length) < 0);
		assert_int_equal(out.length, 0);
	}
}

static void a_future_version_is_said_so(void **state)
{
	struct wire_handshake_refusal refusal;
	struct weir_error error;
	struct proof_exchange x;
	struct proof_message out;
	char ours[32], theirs[32];

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	x.said[HELLO].bytes[offsetof(struct wire_handshake_head, version)]++;
	weir_handshake_donor(&x.donor, &x.donor_setup);
	assert_int_equal(weir_handshake_input(&x.donor, x.said[HELLO].bytes, x.said[HELLO].length,
					      out.bytes, &out.length),
			 -EPROTONOSUPPORT);
	snprintf(ours, sizeof(ours), "version %d", WIRE_VERSION);
	snprintf(theirs, sizeof(theirs), "version %d", WIRE_VERSION + 1);
	weir_handshake_refusal_fill(&refusal, -EPROTONOSUPPORT, theirs);
	refusal.head.version = WIRE_VERSION + 1;
	assert_int_equal(weir_handshake_refusal_explain(&refusal, &error), -EPROTONOSUPPORT);
	assert_non_null(strstr(error.text, ours));
	assert_non_null(strstr(error.text, theirs));
}

static void a_refusal_reaches_the_client_with_its_reason(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	weir_handshake_donor(&x.donor, &x.donor_setup);
	weir_handshake_client(&x.client, &x.client_setup, x.said[HELLO].bytes,
			      &x.said[HELLO].length);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	donor_step(&x, PROOF, WELCOME);
	weir_handshake_refuse(&x.donor, -EDQUOT, "the donor has 64 clients already",
			      x.said[WELCOME].bytes, &x.said[WELCOME].length);
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EDQUOT);
	assert_non_null(strstr(x.client.error.text, "64 clients"));
}

static void a_refusal_can_name_no_errno_of_its_own_making(void **state)
{
	struct wire_handshake_refusal refusal;
	uint32_t status;

	(void)state;
	weir_handshake_refusal_fill(&refusal, -EPROTO, "");
	for (status = 0; status < 300; status++) {
		refusal.status = status;
		assert_true(weir_handshake_refusal_explain(&refusal, NULL) < 0);
	}
	refusal.status = UINT32_MAX;
	assert_int_equal(weir_handshake_refusal_explain(&refusal, NULL), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_key_is_proven_by_both),
		cmocka_unit_test(without_keys_both_prove_the_empty_one),
		cmocka_unit_test(a_wrong_key_is_refused),
		cmocka_unit_test(no_key_against_a_key_is_refused),
		cmocka_unit_test(a_donor_that_does_not_know_the_key_is_refused),
		cmocka_unit_test(no_byte_of_any_message_can_be_changed),
		cmocka_unit_test(no_message_can_be_cut),
		cmocka_unit_test(a_relay_between_two_qps_is_found_out),
		cmocka_unit_test(another_session_or_channel_than_asked_for_is_refused),
		cmocka_unit_test(a_proof_played_back_is_worth_nothing),
		cmocka_unit_test(a_welcome_played_back_is_worth_nothing),
		cmocka_unit_test(the_roles_cannot_be_swapped),
		cmocka_unit_test(out_of_turn_is_refused),
		cmocka_unit_test(nothing_follows_the_end),
		cmocka_unit_test(random_bytes_are_refused),
		cmocka_unit_test(a_future_version_is_said_so),
		cmocka_unit_test(a_refusal_reaches_the_client_with_its_reason),
		cmocka_unit_test(a_refusal_can_name_no_errno_of_its_own_making),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
