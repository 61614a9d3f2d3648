// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic seal agree */
/* Two ends agree on keys, message by message; also with losses, strangers and an attacker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/seal/agree.h"

enum { QPN_A = 0x4001, QPN_B = 0x8002, PSN_A = 77, PSN_B = 99, TEXT = 64 };

#define MS 1000000ull

static struct agree a, b, m;
static struct agree_message said;
static uint64_t now_ns;

static void init(struct agree *end, uint32_t qpn, uint32_t dest_qpn, uint32_t receive_psn,
		 uint8_t ciphers, int random)
{
	const struct agree_config config = { qpn, dest_qpn, receive_psn };
	uint8_t secret[SEAL_KEY_BYTES];

	memset(secret, random, sizeof(secret));
	agree_init(end, &config);
	agree_arm(end, ciphers, secret);
}

static int set_up(void **state)
{
	(void)state;
	now_ns = 1000 * MS;
	init(&a, QPN_A, QPN_B, PSN_B, seal_ciphers(), 1);
	init(&b, QPN_B, QPN_A, PSN_A, seal_ciphers(), 2);
	return 0;
}

static void start(struct agree *end)
{
	agree_ask(end, now_ns);
	agree_start(end, end == &a ? PSN_A : PSN_B, now_ns);
}

static void expect(struct agree *end, enum agree_kind kind)
{
	uint8_t bytes[AGREE_MESSAGE_BYTES + ROCE_ICRC_BYTES];
	struct agree_message sent;

	assert_true(agree_output(end, &sent, now_ns));
	assert_int_equal(sent.kind, kind);
	agree_encode(&sent, bytes);
	memset(&said, 0xff, sizeof(said));
	assert_true(agree_decode(&said, bytes, sizeof(bytes)));
	assert_memory_equal(&said, &sent, sizeof(said));
}

static void expect_silence(struct agree *end)
{
	struct agree_message none;

	assert_false(agree_output(end, &none, now_ns));
}

static void deliver(struct agree *to)
{
	agree_input(to, &said, now_ns);
}

static bool passes(struct agree *from, struct agree *to)
{
	uint8_t bytes[TEXT + SEAL_EXTRA_BYTES] = { 0 };

	assert_int_equal(from->state, AGREE_SEALED);
	seal_close(&from->seal, to->config.qpn, bytes, TEXT);
	return agree_open(to, bytes, sizeof(bytes));
}

static void agree_both(void)
{
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	deliver(&a);
	assert_int_equal(a.state, AGREE_SEALED);
	assert_true(passes(&a, &b));
	assert_int_equal(b.state, AGREE_SEALED);
	assert_true(passes(&b, &a));
	assert_memory_equal(a.session, b.session, sizeof(a.session));
}

static void test_one_offer_and_its_answer_agree(void **state)
{
	static const uint8_t wiped[SEAL_KEY_BYTES];

	(void)state;
	assert_false(agree_must_wait(&a));
	start(&a);
	assert_true(agree_must_wait(&a));
	agree_both();
	assert_false(agree_must_wait(&a) || agree_must_wait(&b));
	assert_false(agree_takes_clear(&a) || agree_takes_clear(&b));
	assert_memory_equal(a.secret, wiped, sizeof(wiped));
	assert_memory_equal(b.secret, wiped, sizeof(wiped));
	expect_silence(&a);
	expect_silence(&b);
}

static void test_both_ends_may_offer_at_once(void **state)
{
	struct agree_message of_a, of_b;

	(void)state;
	start(&a);
	start(&b);
	expect(&a, AGREE_OFFER);
	of_a = said;
	expect(&b, AGREE_OFFER);
	of_b = said;
	agree_input(&a, &of_b, now_ns);
	agree_input(&b, &of_a, now_ns);
	expect(&a, AGREE_ANSWER);
	deliver(&b);
	assert_true(passes(&b, &a));
	assert_true(passes(&a, &b));
}

static void test_lost_messages_are_repeated(void **state)
{
	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	expect_silence(&a);
	now_ns = agree_deadline_ns(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_ANSWER); /* lost, too */
	assert_true(agree_must_wait(&b)); /* the peer encrypts from now on */
	now_ns = agree_deadline_ns(&a);
	agree_both();
}

/* The answer got lost, and the peer, which knows the keys already, has sealed nothing yet. */
static void test_an_offer_is_answered_after_the_agreement_too(void **state)
{
	(void)state;
	start(&a);
	start(&b);
	expect(&b, AGREE_OFFER);
	deliver(&a);
	expect(&a, AGREE_ANSWER);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	deliver(&a);
	assert_int_equal(a.state, AGREE_SEALED);
	now_ns = agree_deadline_ns(&b);
	expect(&b, AGREE_OFFER);
	deliver(&a);
	expect(&a, AGREE_ANSWER);
	deliver(&b);
	assert_int_equal(b.state, AGREE_SEALED);
}

static void test_a_silent_peer_is_no_softnic(void **state)
{
	uint64_t began_ns = now_ns;

	(void)state;
	start(&a);
	while (agree_must_wait(&a)) {
		assert_int_not_equal(agree_deadline_ns(&a), AGREE_NEVER);
		now_ns = agree_deadline_ns(&a);
		agree_output(&a, &said, now_ns);
	}
	assert_int_equal(a.state, AGREE_CLEAR);
	/* A transport that we keep waiting gives up after two seconds. */
	assert_in_range(now_ns - began_ns, 1500 * MS, 2000 * MS);
	assert_int_equal(agree_deadline_ns(&a), AGREE_NEVER);
	start(&b);
	expect(&b, AGREE_OFFER);
	deliver(&a);
	expect(&a, AGREE_PLAIN);
	deliver(&b);
	assert_int_equal(b.state, AGREE_CLEAR);
}

static void test_a_peer_that_offers_but_hears_nothing_is_given_up(void **state)
{
	uint64_t began_ns = now_ns;

	(void)state;
	start(&a);
	start(&b);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	while (b.state == AGREE_OPEN) {
		assert_true(agree_must_wait(&b));
		agree_output(&b, &said, now_ns);
		if (agree_deadline_ns(&b) != AGREE_NEVER)
			now_ns = agree_deadline_ns(&b);
	}
	assert_int_equal(b.state, AGREE_CLEAR);
	assert_in_range(now_ns - began_ns, 4000 * MS, 8000 * MS);
}

static void test_a_peer_without_encryption_says_so(void **state)
{
	(void)state;
	init(&b, QPN_B, QPN_A, PSN_A, 0, 2);
	start(&b);
	assert_false(agree_must_wait(&b));
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_PLAIN);
	deliver(&a);
	assert_int_equal(a.state, AGREE_CLEAR);
	assert_false(agree_must_wait(&a));
	expect_silence(&a);
}

static void test_the_cipher_is_one_of_both(void **state)
{
	(void)state;
	init(&b, QPN_B, QPN_A, PSN_A, SEAL_CHACHA20_POLY1305, 2);
	agree_both();
	assert_int_equal(a.seal.cipher, SEAL_CHACHA20_POLY1305);
	assert_int_equal(b.seal.cipher, SEAL_CHACHA20_POLY1305);
}

static void test_an_accepted_packet_in_clear_text_decides(void **state)
{
	(void)state;
	agree_heard_clear(&b, true);
	assert_int_equal(b.state, AGREE_CLEAR);
}

/* Lets @end offer until it gives up. */
static uint64_t offer_for_ns(struct agree *end)
{
	uint64_t began_ns = now_ns;

	while (end->state == AGREE_OPEN) {
		now_ns = agree_deadline_ns(end);
		agree_output(end, &said, now_ns);
	}
	assert_int_equal(end->state, AGREE_CLEAR);
	return now_ns - began_ns;
}

/* The packet may be a stranger's, so the peer has the time for an answer. */
static void test_clear_text_decides_no_offer_under_way(void **state)
{
	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	agree_heard_clear(&a, true);
	agree_heard_clear(&a, false);
	assert_int_equal(a.state, AGREE_OPEN);
	assert_true(agree_must_wait(&a));
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	deliver(&a);
	assert_int_equal(a.state, AGREE_SEALED);
	assert_true(passes(&a, &b));
}

static void test_clear_text_of_another_device_shortens_the_wait(void **state)
{
	(void)state;
	start(&a);
	agree_heard_clear(&a, true); /* a softnic's: it hears our offers */
	assert_in_range(offer_for_ns(&a), 1500 * MS, 2000 * MS);
	start(&b);
	agree_heard_clear(&b, false);
	assert_in_range(offer_for_ns(&b), 100 * MS, 300 * MS);
}

static void test_a_peer_that_offers_and_then_sends_clear_text_has_given_up(void **state)
{
	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	assert_true(agree_must_wait(&b));
	agree_heard_clear(&b, true); /* this end has not begun to send: no offer is under way */
	assert_int_equal(b.state, AGREE_CLEAR);
	set_up(NULL);
	start(&a);
	expect(&a, AGREE_OFFER);
	start(&b);
	deliver(&b);
	agree_heard_clear(&b, true);
	assert_in_range(offer_for_ns(&b), 100 * MS, 300 * MS);
}

static void test_plain_counts_only_with_the_offer_that_it_answers(void **state)
{
	struct agree_message plain;

	(void)state;
	init(&b, QPN_B, QPN_A, PSN_A, 0, 2);
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_PLAIN);
	plain = said;
	memset(said.public, 0, sizeof(said.public));
	deliver(&a);
	said = plain;
	said.public[31] ^= 1;
	deliver(&a);
	assert_int_equal(a.state, AGREE_OPEN);
	said = plain;
	deliver(&a);
	assert_int_equal(a.state, AGREE_CLEAR);
}

static void expect_wiped(const void *memory, size_t size)
{
	const uint8_t *bytes = memory;
	size_t i;

	for (i = 0; i < size; i++)
		assert_int_equal(bytes[i], 0);
}

static void test_an_end_leaves_no_key_in_memory(void **state)
{
	(void)state;
	agree_both();
	agree_fini(&a);
	expect_wiped(&a, sizeof(a));
	set_up(NULL);
	start(&a);
	start(&b);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	agree_heard_clear(&b, true);
	offer_for_ns(&b);
	expect_wiped(&b.seal, sizeof(b.seal));
	expect_wiped(b.secret, sizeof(b.secret));
}

static void test_a_stranger_who_guesses_agrees_on_nothing(void **state)
{
	int i;

	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	for (i = 0; i < 1000; i++) {
		said.kind = i % 3 + 1;
		said.dest_qpn = i % 5 ? QPN_A : QPN_A + 1;
		said.psn = i % 7 ? (uint32_t)i + 1000 : PSN_A; /* the guess of an answer is right */
		memset(said.public, i, sizeof(said.public));
		deliver(&a);
	}
	expect_silence(&a);
	assert_int_equal(a.state, AGREE_OPEN);
	now_ns = agree_deadline_ns(&a);
	agree_both();
}

static void test_no_message_changes_an_agreement(void **state)
{
	struct agree_message offer, answer;
	struct seal before;
	int kind;

	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	offer = said;
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	answer = said;
	deliver(&a);
	assert_true(passes(&a, &b) && passes(&b, &a));
	before = b.seal;
	agree_input(&b, &offer, now_ns); /* replayed: answered again, by the same keys */
	agree_input(&a, &answer, now_ns);
	expect(&b, AGREE_ANSWER);
	for (kind = AGREE_OFFER; kind <= AGREE_PLAIN; kind++) {
		offer.kind = (uint8_t)kind;
		offer.public[0] ^= 1;
		agree_input(&b, &offer, now_ns);
		answer.kind = (uint8_t)kind;
		agree_input(&a, &answer, now_ns);
	}
	expect_silence(&b);
	assert_memory_equal(&b.seal, &before, sizeof(before));
	assert_true(passes(&a, &b) && passes(&b, &a));
}

static void test_a_changed_answer_is_refused(void **state)
{
	struct agree_message right;

	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	right = said;
	said.proof[31] ^= 1;
	deliver(&a);
	assert_int_equal(a.state, AGREE_OPEN);
	said = right;
	said.ciphers = SEAL_CHACHA20_POLY1305;
	deliver(&a);
	assert_true(a.state == AGREE_OPEN || right.ciphers == SEAL_CHACHA20_POLY1305);
	said = right;
	memset(said.public, 0, sizeof(said.public)); /* of small order */
	deliver(&a);
	assert_true(a.state == AGREE_OPEN || right.ciphers == SEAL_CHACHA20_POLY1305);
	said = right;
	deliver(&a);
	assert_int_equal(a.state, AGREE_SEALED);
}

static void test_an_offer_of_small_order_is_ignored(void **state)
{
	(void)state;
	start(&a);
	expect(&a, AGREE_OFFER);
	memset(said.public, 0, sizeof(said.public));
	deliver(&b);
	expect_silence(&b);
	assert_false(agree_must_wait(&b));
}

/* softnic has no secret to notice that; the sessions differ, which weir's handshake compares. */
static void test_a_man_in_the_middle_makes_two_sessions(void **state)
{
	(void)state;
	init(&m, QPN_B, QPN_A, PSN_A, seal_ciphers(), 3);
	start(&a);
	expect(&a, AGREE_OFFER);
	deliver(&m);
	expect(&m, AGREE_ANSWER);
	deliver(&a);
	init(&m, QPN_A, QPN_B, PSN_B, seal_ciphers(), 4);
	agree_ask(&m, now_ns);
	agree_start(&m, PSN_A, now_ns);
	expect(&m, AGREE_OFFER);
	deliver(&b);
	expect(&b, AGREE_ANSWER);
	deliver(&m);
	assert_true(passes(&m, &b));
	assert_int_equal(a.state, AGREE_SEALED);
	assert_int_equal(b.state, AGREE_SEALED);
	assert_memory_not_equal(a.session, b.session, sizeof(a.session));
	assert_false(passes(&a, &b));
}

static void test_an_end_that_cannot_send_yet_answers(void **state)
{
	(void)state;
	agree_ask(&b, now_ns);
	assert_false(agree_must_wait(&b));
	expect_silence(&b);
	agree_both();
}

#define TEST(name) cmocka_unit_test_setup(test_##name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_offer_and_its_answer_agree),
		TEST(both_ends_may_offer_at_once),
		TEST(lost_messages_are_repeated),
		TEST(an_offer_is_answered_after_the_agreement_too),
		TEST(a_silent_peer_is_no_softnic),
		TEST(a_peer_that_offers_but_hears_nothing_is_given_up),
		TEST(a_peer_without_encryption_says_so),
		TEST(the_cipher_is_one_of_both),
		TEST(an_accepted_packet_in_clear_text_decides),
		TEST(clear_text_decides_no_offer_under_way),
		TEST(clear_text_of_another_device_shortens_the_wait),
		TEST(a_peer_that_offers_and_then_sends_clear_text_has_given_up),
		TEST(plain_counts_only_with_the_offer_that_it_answers),
		TEST(an_end_leaves_no_key_in_memory),
		TEST(a_stranger_who_guesses_agrees_on_nothing),
		TEST(no_message_changes_an_agreement),
		TEST(a_changed_answer_is_refused),
		TEST(an_offer_of_small_order_is_ignored),
		TEST(a_man_in_the_middle_makes_two_sessions),
		TEST(an_end_that_cannot_send_yet_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
