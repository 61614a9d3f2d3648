/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key. One program steps both ends, with a relay in between that can change,
 * cut, keep and replay messages. The primitives are toys: the libraries' own have tests of their
 * own.
 */
#include "core/link/handshake.h"
#include "core/link/toy_noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct proof_message {
	uint8_t bytes[WIRE_HANDSHAKE_MAX];
	size_t length;
};

/* The messages on the wire, in order. */
enum { HELLO, CHALLENGE, PROOF, WELCOME, MESSAGES };

struct proof_exchange {
	const char *client_key, *donor_key;
	struct weir_handshake_setup client_setup, donor_setup;
	struct weir_handshake client, donor;
	struct proof_message said[MESSAGES];
	int client_ret, donor_ret;
	/* The relay. */
	int tampered; /* message to change; -1: none */
	size_t at; /* byte to change */
	size_t cut; /* bytes cut off the end */
};

static int client_input(struct proof_exchange *x, const struct proof_message *in,
			struct proof_message *out)
{
	return weir_handshake_received(&x->client, in->bytes, in->length, out->bytes, &out->length);
}

static int donor_input(struct proof_exchange *x, const struct proof_message *in,
		       struct proof_message *out)
{
	return weir_handshake_received(&x->donor, in->bytes, in->length, out->bytes, &out->length);
}

static void add_psk(struct weir_handshake_setup *setup, const char *key)
{
	toy_sha256((const uint8_t *)key, strlen(key), setup->psk);
}

static void begin_client(struct proof_exchange *x)
{
	struct weir_handshake_setup setup = x->client_setup;

	add_psk(&setup, x->client_key);
	weir_handshake_client(&x->client, &setup, x->said[HELLO].bytes, &x->said[HELLO].length);
}

static void begin_donor(struct proof_exchange *x)
{
	struct weir_handshake_setup setup = x->donor_setup;

	add_psk(&setup, x->donor_key);
	weir_handshake_donor(&x->donor, &setup);
}

static void begin_both(struct proof_exchange *x)
{
	begin_donor(x);
	begin_client(x);
}

/* A donor's static pair. */
static struct weir_noise_pair identity_of(uint8_t secret)
{
	struct weir_noise_pair pair = { { 0x1d, secret } };

	weir_noise_pair_init(&pair, &toy_noise);
	return pair;
}

static void exchange_init(struct proof_exchange *x)
{
	const struct weir_endpoint client = { "client's gid ...", 0x111 };
	const struct weir_endpoint donor = { "donor's gid ....", 0x222 };
	const struct wire_handshake_service service = { WIRE_MAGIC, 7471 };

	memset(x, 0, sizeof(*x));
	x->client_key = x->donor_key = "the quick brown fox";
	x->client_setup = (struct weir_handshake_setup){
		.service = service,
		.local = client,
		.remote = donor,
		.credits = 64,
		.mux = "the client's id",
		.ended = 0xe4ded,
		.crypto = &toy_noise,
	};
	x->donor_setup = (struct weir_handshake_setup){
		.service = service,
		.local = donor,
		.remote = client,
		.credits = 32,
		.crypto = &toy_noise,
		.identity = identity_of(7),
	};
	memset(x->client_setup.ephemeral.secret, 0xc1, WEIR_NOISE_KEY);
	memset(x->donor_setup.ephemeral.secret, 0xd0, WEIR_NOISE_KEY);
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

	x->donor_ret = donor_input(x, &m, &x->said[out]);
}

static void client_step(struct proof_exchange *x, int in, int out)
{
	struct proof_message m = pass(x, in), unused;

	x->client_ret = client_input(x, &m, out < MESSAGES ? &x->said[out] : &unused);
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

	begin_both(x);
	donor_step(x, HELLO, CHALLENGE);
	client_step(x, CHALLENGE, PROOF);
	if (x->client_ret)
		return;
	donor_step(x, PROOF, WELCOME);
	if (x->donor.state == WEIR_HANDSHAKE_PROVEN)
		weir_handshake_admit(&x->donor, &welcome, x->said[WELCOME].bytes,
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

static void a_wrong_key_is_refused(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.client_key = "the quick brown fix";
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_non_null(strstr(x.client.why, "could not prove"));
	assert_int_equal(x.said[PROOF].length, 0);
	/* An end that does not care goes on, with keys of its own. */
	exchange_init(&x);
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	begin_donor(&x);
	x.donor.noise.psk[3]++;
	donor_step(&x, HELLO, CHALLENGE);
	donor_step(&x, PROOF, WELCOME);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
	assert_non_null(strstr(x.donor.why, "could not prove"));
}

/* An impostor listens at the donor's address: it makes up a CHALLENGE. */
static void a_donor_that_does_not_know_the_key_is_refused(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.donor_key = "what could it be, though";
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.said[PROOF].length, 0);
	assert_int_equal(x.client.state, WEIR_HANDSHAKE_FAILED);
	assert_non_null(strstr(x.client.why, "the donor could not prove"));
}

/* Another client of the same key answers in the donor's place. */
static void a_client_of_the_key_cannot_pose_as_the_donor(void **state)
{
	const struct weir_noise_pair donors[] = { identity_of(9), identity_of(7) };
	struct proof_exchange x;
	uint8_t pins[2][WIRE_KEY];

	(void)state;
	memcpy(pins[0], donors[0].public, WIRE_KEY);
	memcpy(pins[1], donors[1].public, WIRE_KEY);
	exchange_init(&x);
	x.client_setup.pins = pins;
	x.client_setup.nr_pins = 2;
	run_exchange(&x);
	assert_true(both_done(&x));
	assert_memory_equal(x.client.identity, donors[1].public, WIRE_KEY);
	exchange_init(&x);
	x.client_setup.pins = pins;
	x.client_setup.nr_pins = 1;
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.said[PROOF].length, 0);
	assert_non_null(strstr(x.client.why, "another identity"));
	/* It knows the donor's public key, and not the secret. */
	exchange_init(&x);
	x.client_setup.pins = pins;
	x.client_setup.nr_pins = 1;
	memcpy(x.donor_setup.identity.public, pins[0], WIRE_KEY);
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_non_null(strstr(x.client.why, "could not prove"));
}

/* A thief of the key and the identity has neither ephemeral secret: other keys follow. */
static void keys_of_messages_need_an_ephemeral_secret(void **state)
{
	struct proof_exchange x, other;

	(void)state;
	exchange_init(&x);
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	exchange_init(&other);
	begin_both(&other);
	other.donor.noise.e.secret[1]++; /* as a guess; the public key is the recorded one */
	assert_int_equal(donor_input(&other, &x.said[HELLO], &other.said[CHALLENGE]), 0);
	assert_true(memcmp(x.donor.noise.send, other.donor.noise.send, WEIR_NOISE_KEY));
	assert_true(memcmp(x.donor.noise.receive, other.donor.noise.receive, WEIR_NOISE_KEY));
	exchange_init(&other);
	begin_both(&other);
	other.client.noise.e.secret[1]++;
	assert_int_equal(client_input(&other, &x.said[CHALLENGE], &other.said[PROOF]),
			 -EKEYREJECTED);
}

static void is_wiped(const void *secrets, size_t length)
{
	const uint8_t *byte = secrets;

	while (length--)
		assert_int_equal(byte[length], 0);
}

static void secrets_are_wiped_when_they_are_not_needed(void **state)
{
	struct weir_handshake_setup setup;
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	setup = x.donor_setup;
	add_psk(&setup, x.donor_key);
	weir_handshake_donor(&x.donor, &setup);
	is_wiped(setup.psk, sizeof(setup.psk));
	is_wiped(&setup.ephemeral, sizeof(setup.ephemeral));
	is_wiped(&setup.identity, sizeof(setup.identity));
	is_wiped(x.donor.setup.psk, sizeof(setup.psk));
	begin_client(&x);
	donor_step(&x, HELLO, CHALLENGE);
	is_wiped(&x.donor.noise.e, sizeof(x.donor.noise.e));
	is_wiped(&x.donor.setup.identity, sizeof(x.donor.setup.identity));
	is_wiped(x.donor.noise.chaining_key, WEIR_NOISE_KEY);
	run_exchange(&x);
	assert_true(both_done(&x));
	is_wiped(&x.donor.noise, sizeof(x.donor.noise));
	is_wiped(&x.client.noise, sizeof(x.client.noise));
	exchange_init(&x);
	x.client_key = "another";
	run_exchange(&x);
	is_wiped(&x.client.noise, sizeof(x.client.noise));
	weir_handshake_refuse(&x.donor, -EAGAIN, "later", x.said[WELCOME].bytes,
			      &x.said[WELCOME].length);
	is_wiped(&x.donor.noise, sizeof(x.donor.noise));
}

/* Public keys, GIDs, QPNs, channel, session, credits, limits and tags. */
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

/* An attacker redirects a client to another program that has the same key. */
static void a_proof_to_one_service_is_none_to_another(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	x.donor_setup.service.port++;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.client_setup.service.magic = 0x78696577;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

/* A relay owns two QPs, one to each end, and forwards every message unchanged. */
/* Anybody can seal a HELLO's payload: only the CHALLENGE shows that the donor had another one. */
static void a_hello_that_is_sealed_anew_is_found_out(void **state)
{
	struct weir_noise_pair e = { 0 };
	struct wire_handshake_hello hello;
	struct proof_exchange x;
	struct weir_noise noise;
	struct wire_handshake_prologue prologue = { .magic = WIRE_MAGIC, .version = WIRE_VERSION };
	uint8_t *ephemeral;

	(void)state;
	exchange_init(&x);
	begin_both(&x);
	prologue.service = x.client_setup.service;
	ephemeral = x.said[HELLO].bytes + offsetof(struct wire_handshake_sealed_hello, ephemeral);
	memcpy(e.public, ephemeral, WIRE_KEY);
	weir_noise_init(&noise, &toy_noise, &prologue, sizeof(prologue), e.public, &e);
	assert_true(weir_noise_read_first(&noise, ephemeral, &hello, sizeof(hello)));
	hello.ended ^= 1;
	weir_noise_init(&noise, &toy_noise, &prologue, sizeof(prologue), e.public, &e);
	weir_noise_write_first(&noise, &hello, sizeof(hello), ephemeral);
	donor_step(&x, HELLO, CHALLENGE);
	assert_int_equal(x.donor_ret, 0);
	assert_int_equal(x.donor.hello.ended, 0xe4ded ^ 1);
	client_step(&x, CHALLENGE, PROOF);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

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

static void encrypt(struct proof_exchange *x, uint8_t clients, uint8_t donors)
{
	exchange_init(x);
	x->client_setup.encrypts = x->donor_setup.encrypts = true;
	x->client_setup.is_encrypted = clients;
	x->donor_setup.is_encrypted = donors;
	memset(x->client_setup.session, clients, WIRE_SESSION);
	memset(x->donor_setup.session, donors, WIRE_SESSION);
}

static void expect_downgraded(const struct proof_exchange *x)
{
	assert_int_equal(x->client_ret, -ETIMEDOUT); /* a later attempt may succeed */
	assert_int_equal(x->client.state, WEIR_HANDSHAKE_FAILED);
	assert_non_null(strstr(x->client.why, "suppresses encryption"));
	assert_non_null(strstr(x->client.why, "paused"));
}

static void a_man_in_the_middle_of_an_encrypted_connection_is_found_out(void **state)
{
	struct proof_exchange x;

	(void)state;
	encrypt(&x, 1, 1);
	run_exchange(&x);
	assert_true(both_done(&x));
	encrypt(&x, 1, 2);
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	encrypt(&x, 1, 0);
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	encrypt(&x, 0, 1);
	run_exchange(&x);
	expect_downgraded(&x);
}

/* Each device believes that the other does not encrypt. The donor must not admit the client. */
static void suppressed_encryption_is_found_out(void **state)
{
	struct proof_exchange x;

	(void)state;
	encrypt(&x, 0, 0);
	run_exchange(&x);
	expect_downgraded(&x);
	assert_int_equal(x.said[PROOF].length, 0);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_PROOF);
	encrypt(&x, 0, 0);
	x.client_setup.takes_clear = x.donor_setup.takes_clear = true;
	x.tampered = CHALLENGE;
	x.at = offsetof(struct wire_handshake_sealed_challenge, payload) +
	       offsetof(struct wire_handshake_challenge, flags);
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.said[PROOF].length, 0);
}

/* One device does not encrypt. The other end decides; for the client, before it proves anything. */
static void an_end_that_encrypts_decides_whether_it_takes_clear_text(void **state)
{
	struct proof_exchange x;

	(void)state;
	encrypt(&x, 0, 0);
	x.client_setup.encrypts = false;
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
	assert_non_null(strstr(x.client.refusal.text, "--encrypt=auto"));
	encrypt(&x, 0, 0);
	x.donor_setup.encrypts = false;
	run_exchange(&x);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_int_equal(x.said[PROOF].length, 0);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_PROOF);
	assert_non_null(strstr(x.client.why, "--encrypt=auto"));
	encrypt(&x, 0, 0);
	x.client_setup.encrypts = false;
	x.donor_setup.takes_clear = true;
	run_exchange(&x);
	assert_true(both_done(&x));
	encrypt(&x, 0, 0);
	x.donor_setup.encrypts = false;
	x.client_setup.takes_clear = true;
	run_exchange(&x);
	assert_true(both_done(&x));
	encrypt(&x, 0, 0);
	x.donor_setup.takes_clear = x.client_setup.takes_clear = true;
	run_exchange(&x);
	expect_downgraded(&x);
}

static void encryption_that_ends_before_the_welcome_is_found_out(void **state)
{
	const struct wire_handshake_welcome welcome = { .session_id = 1, .credits = 32 };
	struct proof_exchange x;

	(void)state;
	encrypt(&x, 1, 1);
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	donor_step(&x, PROOF, WELCOME);
	x.client.setup.is_encrypted = x.donor.setup.is_encrypted = false;
	weir_handshake_admit(&x.donor, &welcome, x.said[WELCOME].bytes, &x.said[WELCOME].length);
	client_step(&x, WELCOME, MESSAGES);
	expect_downgraded(&x);
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
	x.donor_setup.ephemeral.secret[1]++; /* never the same twice */
	begin_donor(&x);
	assert_int_equal(donor_input(&x, &old.said[HELLO], &out), 0);
	assert_int_equal(donor_input(&x, &old.said[PROOF], &out), -EKEYREJECTED);
}

static void a_welcome_played_back_is_worth_nothing(void **state)
{
	struct proof_exchange old, x;

	(void)state;
	exchange_init(&old);
	run_exchange(&old);
	exchange_init(&x);
	x.client_setup.ephemeral.secret[1]++;
	begin_client(&x);
	x.said[CHALLENGE] = old.said[CHALLENGE];
	client_step(&x, CHALLENGE, PROOF);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.donor_setup.ephemeral.secret[1]++;
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	x.said[WELCOME] = old.said[WELCOME];
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
}

/* Each direction has a key of its own: the client cannot open its own messages. */
static void the_roles_cannot_be_swapped(void **state)
{
	struct proof_exchange x;
	uint8_t text[WIRE_KEY];

	(void)state;
	exchange_init(&x);
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	assert_false(weir_noise_open(&x.client.noise, NULL, 0,
				     x.said[PROOF].bytes + sizeof(struct wire_handshake_head), 0,
				     text));
	assert_memory_equal(x.client.noise.send, x.donor.noise.receive, WEIR_NOISE_KEY);
	assert_true(memcmp(x.client.noise.send, x.client.noise.receive, WEIR_NOISE_KEY));
}

/* Each message in each state: only the right pair leads to the end. */
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
			begin_both(&x);
			donor_input(&x, &good.said[first], &out);
			donor_input(&x, &good.said[second], &out);
			assert_int_equal(x.donor.state, first == HELLO && second == PROOF ?
								WEIR_HANDSHAKE_PROVEN :
								WEIR_HANDSHAKE_FAILED);
			client_input(&x, &good.said[first], &out);
			client_input(&x, &good.said[second], &out);
			assert_int_equal(x.client.state, first == CHALLENGE && second == WELCOME ?
								 WEIR_HANDSHAKE_DONE :
								 WEIR_HANDSHAKE_FAILED);
		}
}

/* Each message with its end's message before and after; MESSAGES: there is none. */
static const struct {
	int message;
	bool is_donors; /* the donor receives it */
	int past, future;
	enum weir_handshake_state state; /* after it */
} handlers[] = {
	{ HELLO, true, MESSAGES, PROOF, WEIR_HANDSHAKE_PROOF },
	{ CHALLENGE, false, MESSAGES, WELCOME, WEIR_HANDSHAKE_WELCOME },
	{ PROOF, true, HELLO, MESSAGES, WEIR_HANDSHAKE_PROVEN },
	{ WELCOME, false, CHALLENGE, MESSAGES, WEIR_HANDSHAKE_DONE },
};

#define HANDLERS (int)(sizeof(handlers) / sizeof(handlers[0]))

static int handle(struct proof_exchange *x, const struct proof_exchange *good, int handler,
		  int message)
{
	struct proof_message out;

	if (message == MESSAGES)
		return 0;
	return handlers[handler].is_donors ? donor_input(x, &good->said[message], &out) :
					     client_input(x, &good->said[message], &out);
}

/* The end that handler @handler belongs to, as it is just before its message. */
static struct weir_handshake *before(struct proof_exchange *x, const struct proof_exchange *good,
				     int handler)
{
	exchange_init(x);
	begin_both(x);
	assert_int_equal(handle(x, good, handler, handlers[handler].past), 0);
	return handlers[handler].is_donors ? &x->donor : &x->client;
}

static void a_message_in_order_is_taken(void **state)
{
	struct proof_exchange good, x;
	struct weir_handshake *h;
	int i;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++) {
		h = before(&x, &good, i);
		assert_int_equal(handle(&x, &good, i, handlers[i].message), 0);
		assert_int_equal(h->state, handlers[i].state);
	}
}

static void a_duplicate_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct weir_handshake *h;
	int i;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++) {
		h = before(&x, &good, i);
		assert_int_equal(handle(&x, &good, i, handlers[i].message), 0);
		assert_int_equal(handle(&x, &good, i, handlers[i].message), -EPROTO);
		assert_int_equal(h->state, WEIR_HANDSHAKE_FAILED);
	}
}

static void a_message_of_the_past_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct weir_handshake *h;
	int i;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++) {
		if (handlers[i].past == MESSAGES)
			continue; /* it is the end's first */
		h = before(&x, &good, i);
		assert_int_equal(handle(&x, &good, i, handlers[i].past), -EPROTO);
		assert_int_equal(h->state, WEIR_HANDSHAKE_FAILED);
	}
}

static void a_message_of_the_future_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct weir_handshake *h;
	int i;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++) {
		if (handlers[i].future == MESSAGES)
			continue; /* it is the end's last */
		h = before(&x, &good, i);
		assert_int_equal(handle(&x, &good, i, handlers[i].future), -EPROTO);
		assert_int_equal(h->state, WEIR_HANDSHAKE_FAILED);
		assert_int_equal(handle(&x, &good, i, handlers[i].message), -EPROTO);
	}
}

/* One byte less or more, another version, another magic. */
static void a_message_of_another_form_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct proof_message whole;
	int i, status[] = { -EPROTO, -EPROTO, -EPROTONOSUPPORT, -EPROTO };
	size_t form;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++)
		for (form = 0; form < sizeof(status) / sizeof(status[0]); form++) {
			struct proof_message *m = &good.said[handlers[i].message];

			whole = *m;
			m->length += form == 0 ? -1 : form == 1;
			m->bytes[offsetof(struct wire_handshake_head, version)] += form == 2;
			m->bytes[offsetof(struct wire_handshake_head, magic)] += form == 3;
			assert_int_equal(before(&x, &good, i)->state != WEIR_HANDSHAKE_FAILED, 1);
			assert_int_equal(handle(&x, &good, i, handlers[i].message), status[form]);
			*m = whole;
		}
}

static void a_tag_with_a_wrong_bit_is_refused(void **state)
{
	struct proof_exchange good, x;
	struct proof_message whole;
	int i, bit;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++) /* each message ends with its tag */
		for (bit = 0; bit < 8 * WIRE_TAG; bit++) {
			struct proof_message *m = &good.said[handlers[i].message];

			whole = *m;
			m->bytes[m->length - 1 - bit / 8] ^= 1 << bit % 8;
			before(&x, &good, i);
			assert_int_equal(handle(&x, &good, i, handlers[i].message), -EKEYREJECTED);
			*m = whole;
		}
}

static void nothing_follows_the_end(void **state)
{
	struct proof_exchange x;
	struct proof_message out;

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	assert_int_equal(donor_input(&x, &x.said[PROOF], &out), -EPROTO);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
}

static void random_bytes_are_refused(void **state)
{
	struct proof_exchange x;
	struct proof_message in, out;
	uint32_t seed = 1;
	size_t i;
	int n;

	(void)state;
	exchange_init(&x);
	for (n = 0; n < 10000; n++) {
		for (i = 0; i < sizeof(in.bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			in.bytes[i] = seed >> 24;
		}
		in.length = seed % sizeof(in.bytes);
		begin_both(&x);
		assert_true(donor_input(&x, &in, &out) < 0);
		assert_true(out.length == sizeof(struct wire_handshake_refusal));
		assert_true(client_input(&x, &in, &out) < 0);
		assert_int_equal(out.length, 0);
	}
}

static void a_future_version_is_said_so(void **state)
{
	struct wire_handshake_refusal refusal;
	struct proof_exchange x;
	struct proof_message out;

	(void)state;
	exchange_init(&x);
	begin_both(&x);
	x.said[HELLO].bytes[offsetof(struct wire_handshake_head, version)]++;
	assert_int_equal(donor_input(&x, &x.said[HELLO], &out), -EPROTONOSUPPORT);
	assert_non_null(strstr(x.donor.why, "version"));
	weir_handshake_refusal_fill(&refusal, WIRE_VERSION, -EPROTONOSUPPORT, "another version");
	refusal.head.version = WIRE_VERSION + 1;
	assert_int_equal(weir_handshake_refusal_status(&refusal, WIRE_VERSION), -EPROTONOSUPPORT);
}

#define NEXT (WIRE_VERSION + 1) /* a future version */

/* @client, @donor: the newest versions of both ends, which speak @used. */
static void speak(struct proof_exchange *x, uint16_t client, uint16_t donor, uint16_t used)
{
	exchange_init(x);
	x->client_setup.version = x->donor_setup.version = used;
	x->client_setup.version_max = client;
	x->donor_setup.version_max = donor;
	run_exchange(x);
}

static void the_newest_version_of_both_ends_is_spoken(void **state)
{
	static const struct {
		uint16_t client, donor, used;
	} cases[] = {
		{ NEXT, NEXT, NEXT },
		{ NEXT, WIRE_VERSION, WIRE_VERSION },
		{ WIRE_VERSION, NEXT, WIRE_VERSION },
		{ WIRE_VERSION, WIRE_VERSION, WIRE_VERSION },
		{ 0, 0, 0 },
	};
	struct wire_handshake_head head;
	struct proof_exchange x;
	size_t i, m;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		speak(&x, cases[i].client, cases[i].donor, cases[i].used);
		assert_true(both_done(&x));
		for (m = HELLO; m < MESSAGES; m++) {
			memcpy(&head, x.said[m].bytes, sizeof(head));
			assert_int_equal(head.version,
					 cases[i].used ? cases[i].used : WIRE_VERSION);
		}
	}
}

/* The relay has rejected the newest version in the donor's name. */
static void a_forged_rejection_of_a_version_is_found_out(void **state)
{
	struct proof_exchange x;

	(void)state;
	speak(&x, NEXT, NEXT, WIRE_VERSION);
	assert_int_equal(x.client_ret, -ETIMEDOUT);
	assert_int_equal(x.said[PROOF].length, 0);
	assert_non_null(strstr(x.client.why, "newer version"));
}

/* The relay changes the version in the REQ, or also in the head of the HELLO. */
static void a_version_that_was_changed_on_the_way_is_found_out(void **state)
{
	struct proof_exchange x;
	uint16_t version = WIRE_VERSION;

	(void)state;
	exchange_init(&x);
	x.client_setup.version = x.client_setup.version_max = NEXT;
	x.donor_setup.version_max = NEXT;
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	assert_int_equal(x.donor_ret, -EPROTONOSUPPORT);
	begin_donor(&x);
	memcpy(x.said[HELLO].bytes + offsetof(struct wire_handshake_head, version), &version,
	       sizeof(version));
	donor_step(&x, HELLO, CHALLENGE);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
}

static void a_refusal_reaches_the_client_with_its_reason(void **state)
{
	struct proof_exchange x;

	(void)state;
	exchange_init(&x);
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	donor_step(&x, PROOF, WELCOME);
	weir_handshake_refuse(&x.donor, -EDQUOT, "the donor has 64 clients already",
			      x.said[WELCOME].bytes, &x.said[WELCOME].length);
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EDQUOT);
	assert_non_null(strstr(x.client.refusal.text, "64 clients"));
}

static void a_refusal_can_name_no_errno_of_its_own_making(void **state)
{
	struct wire_handshake_refusal refusal;
	uint32_t status;

	(void)state;
	weir_handshake_refusal_fill(&refusal, WIRE_VERSION, -EPROTO, "");
	for (status = 0; status < 300; status++) {
		refusal.status = status;
		assert_true(weir_handshake_refusal_status(&refusal, WIRE_VERSION) < 0);
	}
	refusal.status = UINT32_MAX;
	assert_int_equal(weir_handshake_refusal_status(&refusal, WIRE_VERSION), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_key_is_proven_by_both),
		cmocka_unit_test(the_newest_version_of_both_ends_is_spoken),
		cmocka_unit_test(a_forged_rejection_of_a_version_is_found_out),
		cmocka_unit_test(a_version_that_was_changed_on_the_way_is_found_out),
		cmocka_unit_test(a_wrong_key_is_refused),
		cmocka_unit_test(a_donor_that_does_not_know_the_key_is_refused),
		cmocka_unit_test(a_client_of_the_key_cannot_pose_as_the_donor),
		cmocka_unit_test(keys_of_messages_need_an_ephemeral_secret),
		cmocka_unit_test(secrets_are_wiped_when_they_are_not_needed),
		cmocka_unit_test(no_byte_of_any_message_can_be_changed),
		cmocka_unit_test(no_message_can_be_cut),
		cmocka_unit_test(a_proof_to_one_service_is_none_to_another),
		cmocka_unit_test(a_hello_that_is_sealed_anew_is_found_out),
		cmocka_unit_test(a_relay_between_two_qps_is_found_out),
		cmocka_unit_test(a_man_in_the_middle_of_an_encrypted_connection_is_found_out),
		cmocka_unit_test(suppressed_encryption_is_found_out),
		cmocka_unit_test(an_end_that_encrypts_decides_whether_it_takes_clear_text),
		cmocka_unit_test(encryption_that_ends_before_the_welcome_is_found_out),
		cmocka_unit_test(another_session_or_channel_than_asked_for_is_refused),
		cmocka_unit_test(a_proof_played_back_is_worth_nothing),
		cmocka_unit_test(a_welcome_played_back_is_worth_nothing),
		cmocka_unit_test(the_roles_cannot_be_swapped),
		cmocka_unit_test(out_of_turn_is_refused),
		cmocka_unit_test(a_message_in_order_is_taken),
		cmocka_unit_test(a_duplicate_is_refused),
		cmocka_unit_test(a_message_of_the_past_is_refused),
		cmocka_unit_test(a_message_of_the_future_is_refused),
		cmocka_unit_test(a_message_of_another_form_is_refused),
		cmocka_unit_test(a_tag_with_a_wrong_bit_is_refused),
		cmocka_unit_test(nothing_follows_the_end),
		cmocka_unit_test(random_bytes_are_refused),
		cmocka_unit_test(a_future_version_is_said_so),
		cmocka_unit_test(a_refusal_reaches_the_client_with_its_reason),
		cmocka_unit_test(a_refusal_can_name_no_errno_of_its_own_making),
	};

	return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}
