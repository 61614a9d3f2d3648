/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key. One program steps both ends, with a relay in between that can change,
 * cut, keep and replay messages. The MAC is a simple hash with a key: the libraries' own MACs have
 * tests of their own.
 */
#include "core/link/handshake.h"

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

static uint64_t hash(uint64_t h, const uint8_t *bytes, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		h = (h ^ bytes[i]) * 0x100000001b3; /* FNV-1a */
	return h;
}

static void test_mac(const char *key, const uint8_t *bytes, size_t length, uint8_t *mac)
{
	uint64_t h = hash(0xcbf29ce484222325, (const uint8_t *)key, strlen(key));
	int i;

	for (i = 0; i < WIRE_MAC / 8; i++) {
		h = hash(h, bytes, length);
		memcpy(mac + 8 * i, &h, 8);
	}
}

/* Gives the end the MAC that it wants, if any. */
static int answer_mac(struct weir_handshake *h, const char *key, struct proof_message *out)
{
	uint8_t bytes[WEIR_HANDSHAKE_TRANSCRIPT_MAX], mac[WIRE_MAC];
	size_t length = weir_handshake_transcript(h, bytes);

	assert_int_equal(!!length, !!h->wanted_mac);
	if (!length)
		return 0;
	test_mac(key, bytes, length, mac);
	if (h->wanted_mac == WEIR_HANDSHAKE_MAC_VERIFY)
		return weir_handshake_verify_mac(h, mac, out->bytes, &out->length);
	return weir_handshake_write_mac(h, mac, out->bytes, &out->length);
}

static int input(struct weir_handshake *h, const char *key, const struct proof_message *in,
		 struct proof_message *out)
{
	int rc = weir_handshake_received(h, in->bytes, in->length, out->bytes, &out->length);

	return rc ? rc : answer_mac(h, key, out);
}

static int client_input(struct proof_exchange *x, const struct proof_message *in,
			struct proof_message *out)
{
	return input(&x->client, x->client_key, in, out);
}

static int donor_input(struct proof_exchange *x, const struct proof_message *in,
		       struct proof_message *out)
{
	return input(&x->donor, x->donor_key, in, out);
}

static void begin_client(struct proof_exchange *x)
{
	weir_handshake_client(&x->client, &x->client_setup, x->said[HELLO].bytes,
			      &x->said[HELLO].length);
}

static void begin_both(struct proof_exchange *x)
{
	weir_handshake_donor(&x->donor, &x->donor_setup);
	begin_client(x);
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
	};
	x->donor_setup = (struct weir_handshake_setup){
		.service = service,
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
	if (x->donor.state == WEIR_HANDSHAKE_PROVEN) {
		weir_handshake_admit(&x->donor, &welcome);
		assert_int_equal(answer_mac(&x->donor, x->donor_key, &x->said[WELCOME]), 0);
	}
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
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
	assert_non_null(strstr(x.donor.why, "could not prove"));
	assert_non_null(strstr(x.client.refusal.text, "could not prove"));
}

/* An impostor listens at the donor's address and welcomes every client. */
static void a_donor_that_does_not_know_the_key_is_refused(void **state)
{
	struct proof_exchange x;
	const struct wire_handshake_welcome welcome = { .session_id = 1, .credits = 32 };

	(void)state;
	exchange_init(&x);
	x.donor_key = "what could it be, though";
	run_exchange(&x); /* the donor refuses the proof; an impostor would not */
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	exchange_init(&x);
	x.donor_key = "what could it be, though";
	begin_both(&x);
	donor_step(&x, HELLO, CHALLENGE);
	client_step(&x, CHALLENGE, PROOF);
	x.donor.state = WEIR_HANDSHAKE_PROVEN;
	weir_handshake_admit(&x.donor, &welcome);
	answer_mac(&x.donor, x.donor_key, &x.said[WELCOME]);
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
	x.at = offsetof(struct wire_handshake_challenge, flags);
	run_exchange(&x);
	assert_int_equal(x.donor_ret, -EKEYREJECTED);
	assert_int_equal(x.donor.state, WEIR_HANDSHAKE_FAILED);
	assert_true(x.client_ret < 0);
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
	weir_handshake_admit(&x.donor, &welcome);
	assert_int_equal(answer_mac(&x.donor, x.donor_key, &x.said[WELCOME]), 0);
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
	x.donor_setup.nonce[7]++; /* the donor's nonce is never the same twice */
	weir_handshake_donor(&x.donor, &x.donor_setup);
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
	x.client_setup.nonce[7]++;
	begin_client(&x);
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

	(void)state;
	exchange_init(&x);
	run_exchange(&x);
	memcpy(&m.welcome, x.said[WELCOME].bytes, sizeof(m.welcome));
	memcpy(m.welcome.mac, x.said[PROOF].bytes + sizeof(m.head), WIRE_MAC);
	memcpy(x.said[WELCOME].bytes, &m, sizeof(m.welcome));
	begin_client(&x);
	client_step(&x, CHALLENGE, PROOF);
	client_step(&x, WELCOME, MESSAGES);
	assert_int_equal(x.client_ret, -EKEYREJECTED);
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

/* One byte less or more, another version, another magic; and a wrong MAC, where there is one. */
static void a_message_of_another_form_is_refused(void **state)
{
	struct proof_exchange good, x, changed;
	int i, status[] = { -EPROTO, -EPROTO, -EPROTONOSUPPORT, -EPROTO };
	size_t form;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 0; i < HANDLERS; i++)
		for (form = 0; form < sizeof(status) / sizeof(status[0]); form++) {
			struct proof_message *m = &changed.said[handlers[i].message];

			changed = good;
			m->length += form == 0 ? -1 : form == 1;
			m->bytes[offsetof(struct wire_handshake_head, version)] += form == 2;
			m->bytes[offsetof(struct wire_handshake_head, magic)] += form == 3;
			assert_int_equal(before(&x, &good, i)->state != WEIR_HANDSHAKE_FAILED, 1);
			assert_int_equal(handle(&x, &changed, i, handlers[i].message),
					 status[form]);
		}
}

static void a_mac_with_a_wrong_bit_is_refused(void **state)
{
	struct proof_exchange good, x, changed;
	int i, bit;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 2; i < HANDLERS; i++) /* PROOF and WELCOME end with theirs */
		for (bit = 0; bit < 8 * WIRE_MAC; bit++) {
			struct proof_message *m = &changed.said[handlers[i].message];

			changed = good;
			m->bytes[m->length - 1 - bit / 8] ^= 1 << bit % 8;
			before(&x, &good, i);
			assert_int_equal(handle(&x, &changed, i, handlers[i].message),
					 -EKEYREJECTED);
		}
}

/* The host has taken a message and not yet computed its MAC. */
static void no_message_overtakes_a_mac(void **state)
{
	struct proof_exchange good, x;
	struct weir_handshake *h;
	struct proof_message out;
	int i, m;

	(void)state;
	exchange_init(&good);
	run_exchange(&good);
	for (i = 1; i < HANDLERS; i++)
		for (m = HELLO; m < MESSAGES; m++) {
			h = before(&x, &good, i);
			assert_int_equal(
				weir_handshake_received(h, good.said[handlers[i].message].bytes,
							good.said[handlers[i].message].length,
							out.bytes, &out.length),
				0);
			assert_int_not_equal(h->wanted_mac, WEIR_HANDSHAKE_MAC_NONE);
			assert_int_equal(weir_handshake_received(h, good.said[m].bytes,
								 good.said[m].length, out.bytes,
								 &out.length),
					 -EPROTO);
			assert_int_equal(h->wanted_mac, WEIR_HANDSHAKE_MAC_NONE);
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
	weir_handshake_refusal_fill(&refusal, -EPROTONOSUPPORT, "another version");
	refusal.head.version = WIRE_VERSION + 1;
	assert_int_equal(weir_handshake_refusal_status(&refusal), -EPROTONOSUPPORT);
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
	weir_handshake_refusal_fill(&refusal, -EPROTO, "");
	for (status = 0; status < 300; status++) {
		refusal.status = status;
		assert_true(weir_handshake_refusal_status(&refusal) < 0);
	}
	refusal.status = UINT32_MAX;
	assert_int_equal(weir_handshake_refusal_status(&refusal), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_key_is_proven_by_both),
		cmocka_unit_test(a_wrong_key_is_refused),
		cmocka_unit_test(a_donor_that_does_not_know_the_key_is_refused),
		cmocka_unit_test(no_byte_of_any_message_can_be_changed),
		cmocka_unit_test(no_message_can_be_cut),
		cmocka_unit_test(a_proof_to_one_service_is_none_to_another),
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
		cmocka_unit_test(a_mac_with_a_wrong_bit_is_refused),
		cmocka_unit_test(no_message_overtakes_a_mac),
		cmocka_unit_test(nothing_follows_the_end),
		cmocka_unit_test(random_bytes_are_refused),
		cmocka_unit_test(a_future_version_is_said_so),
		cmocka_unit_test(a_refusal_reaches_the_client_with_its_reason),
		cmocka_unit_test(a_refusal_can_name_no_errno_of_its_own_making),
	};

	return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}
