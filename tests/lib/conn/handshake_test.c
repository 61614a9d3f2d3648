/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib handshake; suites: wire */
/*
 * The handshake with real keys and primitives, and its failures in words. What each message does is
 * tested in tests/core/link/handshake_test.c.
 */
#include <sodium.h>
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

	weir_handshake_secrets(&client, clients, true);
	weir_handshake_secrets(&donor, donors, false);
	weir_handshake_donor(&x->donor, &donor);
	weir_handshake_client(&x->client, &client, a, &length);
	x->donor_rc = weir_handshake_input(&x->donor, a, length, b, &length);
	x->client_rc = weir_handshake_input(&x->client, b, length, a, &length);
	if (x->donor_rc || x->client_rc)
		return;
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
		assert_int_equal(x.donor_rc, 0);
		assert_int_equal(x.client_rc, -EKEYREJECTED);
		assert_int_equal(weir_handshake_explain(&x.client, x.client_rc, "x:1", &error),
				 -EKEYREJECTED);
		assert_string_equal(error.text,
				    "x:1: the donor could not prove that it knows the key");
	}
}

static size_t from_hex(const char *digits, uint8_t *bytes)
{
	size_t length;

	assert_int_equal(sodium_hex2bin(bytes, 256, digits, strlen(digits), NULL, &length, NULL),
			 0);
	return length;
}

static void assert_hex(const uint8_t *bytes, const char *digits)
{
	uint8_t wanted[256];
	size_t length = from_hex(digits, wanted);

	assert_memory_equal(bytes, wanted, length);
}

/* Of cacophony's test vectors for Noise_NXpsk2_25519_ChaChaPoly_SHA256, in the public domain. */
static const char psk_hex[] = "54686973206973206d7920417573747269616e20706572737065637469766521";
static const char init_ephemeral[] =
	"893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
static const char resp_ephemeral[] =
	"bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
static const char resp_static[] =
	"4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893";
static const char *const payloads[] = { "Ludwig von Mises", "Murray Rothbard", "F. A. Hayek",
					"Carl Menger", "Jean-Baptiste Say",
					"Eugen B\xf6hm von Bawerk" };
static const char *const sealed[] = {
	"ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79449daccd40f021d183f55574b736"
	"4ad1ec21faac580e7a0e7f58830bda9a535e2b",
	"95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884367f70ca9c7b9f8932e5bea3c00"
	"45eb5e7c07f7df99d17398d999a7534f758eb2257fab4a67e1107a920c8e1db68848a65dca03dc1394c3d628ec"
	"d878f9f4587e4b42de41503920796c49e0f9a98746",
	"12ec11786c81de7c0ac89d0860ef3c88f6aca3627d812a999cee2e",
	"f28557a86f324038904815ceb3cbeeb2cb752f862dfe4449471b81",
	"e5fe9abd622e0339f7f41eb62478f2cd1989773bbef2199ecf7d5a0f4263a92b1d",
	"7f0118d55118991a6e04acfe0c1ac80ecef5b1701da4402d281e614fa2e850646323037afe",
};

static void noise_begin(struct weir_noise *n, const char *ephemeral)
{
	struct weir_noise_pair e;
	uint8_t psk[WEIR_NOISE_KEY];

	from_hex(psk_hex, psk);
	from_hex(ephemeral, e.secret);
	weir_noise_pair_init(&e, &weir_handshake_crypto);
	weir_noise_init(n, &weir_handshake_crypto, "John Galt", 9, psk, &e);
}

static void noise_is_that_of_the_published_vector(void **state)
{
	struct weir_noise client, donor;
	struct weir_noise_pair s;
	uint8_t out[256], in[256], rs[WEIR_NOISE_KEY];
	size_t i;

	(void)state;
	from_hex(resp_static, s.secret);
	weir_noise_pair_init(&s, &weir_handshake_crypto);
	noise_begin(&client, init_ephemeral);
	noise_begin(&donor, resp_ephemeral);
	weir_noise_write_first(&client, payloads[0], strlen(payloads[0]), out);
	assert_hex(out, sealed[0]);
	assert_true(weir_noise_read_first(&donor, out, in, strlen(payloads[0])));
	assert_memory_equal(in, payloads[0], strlen(payloads[0]));
	assert_true(weir_noise_write_second(&donor, &s, payloads[1], strlen(payloads[1]), out));
	assert_hex(out, sealed[1]);
	assert_true(weir_noise_read_second(&client, out, in, strlen(payloads[1]), rs));
	assert_memory_equal(in, payloads[1], strlen(payloads[1]));
	assert_memory_equal(rs, s.public, sizeof(rs));
	assert_hex(client.hash, "74e26875dcebc377c4b5c6c2b5a4373de697cc6741a1c80fed99d87734c0c963");
	for (i = 2; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct weir_noise *from = i % 2 ? &donor : &client;
		struct weir_noise *to = i % 2 ? &client : &donor;

		weir_noise_seal(from, NULL, 0, payloads[i], strlen(payloads[i]), out);
		assert_hex(out, sealed[i]);
		assert_true(weir_noise_open(to, NULL, 0, out, strlen(payloads[i]), in));
		assert_memory_equal(in, payloads[i], strlen(payloads[i]));
	}
}

/* A public key of small order gives no secret. */
static void a_key_of_small_order_is_refused(void **state)
{
	static const uint8_t zero[WEIR_NOISE_KEY], secret[WEIR_NOISE_KEY] = { 1, 2, 3 };
	uint8_t shared[WEIR_NOISE_KEY];

	(void)state;
	assert_false(weir_handshake_crypto.dh(secret, zero, shared));
}

static void a_refusal_of_another_version_names_both(void **state)
{
	struct wire_handshake_refusal refusal;
	struct weir_error error;
	char ours[32], theirs[32];

	(void)state;
	snprintf(ours, sizeof(ours), "version %d", WIRE_VERSION);
	snprintf(theirs, sizeof(theirs), "version %d", WIRE_VERSION + 1);
	weir_handshake_refusal_fill(&refusal, WIRE_VERSION, -EPROTONOSUPPORT, theirs);
	refusal.head.version = WIRE_VERSION + 1;
	assert_int_equal(weir_handshake_refusal_explain(&refusal, WIRE_VERSION, &error),
			 -EPROTONOSUPPORT);
	assert_non_null(strstr(error.text, ours));
	assert_non_null(strstr(error.text, theirs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_keys_are_proven_by_both),
		cmocka_unit_test(without_keys_both_prove_the_empty_one),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(noise_is_that_of_the_published_vector),
		cmocka_unit_test(a_key_of_small_order_is_refused),
		cmocka_unit_test(a_refusal_of_another_version_names_both),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
