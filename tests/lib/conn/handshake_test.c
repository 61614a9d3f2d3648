/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib handshake; suites: wire */
/*
 * The handshake with real keys and MACs, and its failures in words. What each message does is
 * tested in tests/core/link/handshake_test.c.
 */
#include <stdio.h>

#include "lib/conn/handshake.h"
#include "tests/support/cmocka_all.h"

static const struct weir_key key = { 19, "the quick brown fox" };
static const struct weir_key near = { 19, "the quick brown fix" };

struct proof_run {
	struct weir_handshake client, donor;
	int client_rc, donor_rc;
};

/* Runs a handshake between an end with each key. */
static void run(struct proof_run *x, const struct weir_key *clients, const struct weir_key *donors)
{
	struct weir_handshake_setup client = { .key = clients, .local.qpn = 1, .remote.qpn = 2 };
	struct weir_handshake_setup donor = { .key = donors, .local.qpn = 2, .remote.qpn = 1 };
	const struct wire_handshake_welcome welcome = { .session_id = 0x5e55 };
	uint8_t a[WIRE_HANDSHAKE_MAX], b[WIRE_HANDSHAKE_MAX];
	size_t length;

	weir_handshake_nonce(client.nonce);
	weir_handshake_nonce(donor.nonce);
	weir_handshake_donor(&x->donor, &donor);
	weir_handshake_client(&x->client, &client, a, &length);
	x->donor_rc = weir_handshake_input(&x->donor, a, length, b, &length);
	assert_int_equal(x->donor_rc, 0);
	x->client_rc = weir_handshake_input(&x->client, b, length, a, &length);
	assert_int_equal(x->client_rc, 0);
	x->donor_rc = weir_handshake_input(&x->donor, a, length, b, &length);
	if (!x->donor_rc)
		weir_handshake_welcome(&x->donor, &welcome, b, &length);
	x->client_rc = weir_handshake_input(&x->client, b, length, a, &length);
}

static void equal_keys_are_proven_by_both(void **state)
{
	struct proof_run x;

	(void)state;
	run(&x, &key, &key);
	assert_int_equal(x.client.state, WEIR_HANDSHAKE_DONE);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_DONE);
	assert_int_equal(x.client.welcome.session_id, 0x5e55);
}

static void without_keys_both_prove_the_empty_one(void **state)
{
	struct proof_run x;

	(void)state;
	run(&x, NULL, NULL);
	assert_int_equal(x.client.state, WEIR_HANDSHAKE_DONE);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_DONE);
}

static void other_keys_are_refused(void **state)
{
	const struct weir_key *pairs[][2] = { { &near, &key }, { NULL, &key }, { &key, NULL } };
	struct weir_error error;
	struct proof_run x;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		run(&x, pairs[i][0], pairs[i][1]);
		assert_int_equal(x.donor_rc, -EKEYREJECTED);
		assert_int_equal(x.client_rc, -EKEYREJECTED);
		assert_int_equal(weir_handshake_explain(&x.client, x.client_rc, "x:1", &error),
				 -EKEYREJECTED);
		assert_non_null(strstr(error.text, "x:1: the other end refused"));
		assert_non_null(strstr(error.text, "could not prove"));
	}
}

static void a_refusal_of_another_version_names_both(void **state)
{
	struct wire_handshake_refusal refusal;
	struct weir_error error;
	char ours[32], theirs[32];

	(void)state;
	snprintf(ours, sizeof(ours), "version %d", WIRE_VERSION);
	snprintf(theirs, sizeof(theirs), "version %d", WIRE_VERSION + 1);
	weir_handshake_refusal_fill(&refusal, -EPROTONOSUPPORT, theirs);
	refusal.head.version = WIRE_VERSION + 1;
	assert_int_equal(weir_handshake_refusal_explain(&refusal, &error), -EPROTONOSUPPORT);
	assert_non_null(strstr(error.text, ours));
	assert_non_null(strstr(error.text, theirs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_keys_are_proven_by_both),
		cmocka_unit_test(without_keys_both_prove_the_empty_one),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(a_refusal_of_another_version_names_both),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
