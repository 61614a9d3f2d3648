// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic seal */
/* Sealed packets, one end's to the other's, by each cipher that this host has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/roce/packet.h"
#include "softnic/seal/seal.h"

enum { QPN = 0x4123, TEXT = 100, PACKETS = 3 * SEAL_WINDOW };

struct sealed {
	uint8_t bytes[ROCE_PACKET_MAX + SEAL_EXTRA_BYTES];
	size_t size;
};

static struct seal a, b;
static uint8_t text[TEXT];

static void set_up(enum seal_cipher cipher)
{
	uint8_t to_b[SEAL_KEY_BYTES], to_a[SEAL_KEY_BYTES];
	int i;

	memset(to_b, 1, sizeof(to_b));
	memset(to_a, 2, sizeof(to_a));
	seal_init(&a, cipher, to_b, to_a);
	seal_init(&b, cipher, to_a, to_b);
	for (i = 0; i < TEXT; i++)
		text[i] = (uint8_t)(i * 7);
}

static void close_text(struct seal *s, struct sealed *p)
{
	memcpy(p->bytes + SEAL_HEADER_BYTES, text, TEXT);
	p->size = seal_close(s, QPN, p->bytes, TEXT);
	assert_int_equal(p->size, TEXT + SEAL_EXTRA_BYTES);
}

/* Opens a copy, so that the packet can come again. */
static bool opens(struct seal *s, const struct sealed *p)
{
	struct sealed copy = *p;
	size_t size;

	assert_true(seal_is_sealed(copy.bytes, copy.size));
	size = seal_open(s, copy.bytes, copy.size);
	if (!size)
		return false;
	assert_int_equal(size, TEXT);
	assert_memory_equal(copy.bytes + SEAL_HEADER_BYTES, text, TEXT);
	return true;
}

static void for_each_cipher(void (*check)(void))
{
	static const enum seal_cipher ciphers[] = { SEAL_AES_256_GCM, SEAL_CHACHA20_POLY1305 };
	size_t i;

	for (i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
		if (!(seal_ciphers() & ciphers[i]))
			continue;
		set_up(ciphers[i]);
		check();
	}
}

static void check_opens(void)
{
	struct sealed p;

	close_text(&a, &p);
	assert_int_equal(seal_dest_qpn(p.bytes), QPN);
	assert_null(memmem(p.bytes, p.size, text, 8));
	assert_true(opens(&b, &p));
	close_text(&b, &p);
	assert_true(opens(&a, &p));
	assert_int_equal(a.forged + b.forged + a.replayed + b.replayed, 0);
}

static void check_each_bit(void)
{
	struct sealed p;
	size_t i;

	close_text(&a, &p);
	for (i = 8; i < p.size * 8; i++) { /* the first byte is the opcode */
		p.bytes[i / 8] ^= 1 << i % 8;
		assert_false(opens(&b, &p));
		p.bytes[i / 8] ^= 1 << i % 8;
	}
	for (i = SEAL_EXTRA_BYTES + ROCE_BTH_BYTES; i < TEXT + SEAL_EXTRA_BYTES; i++) {
		p.size = i;
		assert_false(opens(&b, &p));
	}
	p.size = i;
	assert_true(opens(&b, &p));
	assert_false(opens(&a, &p)); /* a packet is not its sender's own */
}

static void check_repeated(void)
{
	struct sealed first, second;

	close_text(&a, &first);
	close_text(&a, &second);
	assert_memory_not_equal(first.bytes, second.bytes, first.size);
	assert_memory_not_equal(first.bytes + ROCE_BTH_BYTES, second.bytes + ROCE_BTH_BYTES,
				SEAL_HEADER_BYTES - ROCE_BTH_BYTES);
	assert_memory_not_equal(first.bytes + SEAL_HEADER_BYTES, second.bytes + SEAL_HEADER_BYTES,
				TEXT);
	assert_true(opens(&b, &second));
	assert_true(opens(&b, &first));
	assert_false(opens(&b, &first));
	assert_false(opens(&b, &second));
	assert_int_equal(b.replayed, 2);
}

/* Arrivals in disorder: each packet within the window opens once, each earlier packet never. */
static void check_window(void)
{
	static struct sealed sent[PACKETS];
	int i;

	for (i = 0; i < PACKETS; i++)
		close_text(&a, &sent[i]);
	for (i = 0; i < SEAL_WINDOW; i += 2)
		assert_true(opens(&b, &sent[i]));
	for (i = 0; i < SEAL_WINDOW; i++)
		assert_true(opens(&b, &sent[i]) == (i % 2 == 1));
	assert_true(opens(&b, &sent[2 * SEAL_WINDOW]));
	for (i = 0; i <= SEAL_WINDOW; i++)
		assert_false(opens(&b, &sent[i]));
	for (; i < 2 * SEAL_WINDOW; i++)
		assert_true(opens(&b, &sent[i]));
	for (i = 0; i <= 2 * SEAL_WINDOW; i++)
		assert_false(opens(&b, &sent[i]));
	for (; i < PACKETS; i++)
		assert_true(opens(&b, &sent[i]));
	assert_int_equal(b.forged, 0);
}

/* A counter that is skipped has the place of an old one in the window, and may still come. */
static void check_skipped(void)
{
	static struct sealed sent[SEAL_WINDOW + 10];
	int i;

	for (i = 0; i < SEAL_WINDOW + 10; i++) {
		close_text(&a, &sent[i]);
		if (i < SEAL_WINDOW)
			assert_true(opens(&b, &sent[i]));
	}
	assert_true(opens(&b, &sent[SEAL_WINDOW + 9]));
	assert_true(opens(&b, &sent[SEAL_WINDOW + 5]));
	assert_false(opens(&b, &sent[SEAL_WINDOW + 5]));
	assert_false(opens(&b, &sent[SEAL_WINDOW - 1]));
}

/* A forged counter far ahead must not move the window. */
static void check_forged_counter(void)
{
	struct sealed p, forged;

	close_text(&a, &p);
	forged = p;
	forged.bytes[SEAL_HEADER_BYTES - 3] = 200;
	assert_false(opens(&b, &forged));
	assert_int_equal(b.forged, 1);
	assert_true(opens(&b, &p));
}

/* As if all packets up to a counter had been sent and received. */
static void skip_to(uint64_t counter)
{
	a.sent = b.highest = counter;
	memset(b.seen, 0xff, sizeof(b.seen));
}

/* Both ends change keys between two packets, and forget old ones. Packets may cross the change. */
static void check_key_change(void)
{
	struct seal_key first = a.out, second;
	struct sealed sent[4], late;
	int i;

	skip_to(SEAL_KEY_PACKETS - 3);
	for (i = 0; i < 4; i++)
		close_text(&a, &sent[i]);
	second = a.out;
	assert_null(memmem(&a.out, sizeof(a.out), first.bytes, sizeof(first.bytes)));
	for (i = 3; i >= 0; i--)
		assert_true(opens(&b, &sent[i]));
	for (i = 0; i < 4; i++)
		assert_false(opens(&b, &sent[i]));
	assert_memory_equal(b.in[1].bytes, second.bytes, sizeof(second.bytes));
	skip_to(2 * SEAL_KEY_PACKETS - 2);
	close_text(&a, &late);
	close_text(&a, &sent[0]);
	close_text(&a, &sent[1]);
	assert_true(opens(&b, &sent[1]));
	assert_true(opens(&b, &late));
	assert_true(opens(&b, &sent[0]));
	assert_null(memmem(&b, sizeof(b), first.bytes, sizeof(first.bytes)));
	assert_memory_not_equal(a.out.bytes, second.bytes, sizeof(second.bytes));
	assert_int_equal(b.forged, 0);
}

static void set_counter(struct sealed *p, uint64_t counter)
{
	int i;

	for (i = 0; i < 8; i++)
		p->bytes[SEAL_HEADER_BYTES - 1 - i] = (uint8_t)(counter >> 8 * i);
}

/* A forged packet of the next key, or of one far ahead, does not disturb packets of this one. */
static void check_forged_key(void)
{
	static const uint64_t forged[] = { SEAL_KEY_PACKETS, 2 * SEAL_KEY_PACKETS, 1ull << 63 };
	struct sealed p;
	size_t i;

	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		close_text(&a, &p);
		set_counter(&p, forged[i]);
		assert_false(opens(&b, &p));
		close_text(&a, &p);
		assert_true(opens(&b, &p));
	}
	assert_int_equal(b.forged, i);
	skip_to(SEAL_KEY_PACKETS - 1);
	close_text(&a, &p);
	assert_true(opens(&b, &p));
}

/* The key before the current one stays for late packets, whatever comes for the next one. */
static void check_forged_next_key(void)
{
	struct sealed late, current, forged;

	skip_to(SEAL_KEY_PACKETS - 2);
	close_text(&a, &late);
	close_text(&a, &current);
	assert_true(opens(&b, &current));
	forged = current;
	set_counter(&forged, 2 * SEAL_KEY_PACKETS);
	assert_false(opens(&b, &forged));
	assert_int_equal(b.forged, 1);
	assert_true(opens(&b, &late));
}

static bool is_own(const struct seal *s, const struct sealed *p, size_t size)
{
	struct sealed copy = *p;

	return seal_is_own(s, copy.bytes, size);
}

/* A host quotes a packet that it refuses. */
static void check_own(void)
{
	struct sealed p, later;
	int i;

	close_text(&a, &p);
	assert_true(is_own(&a, &p, p.size));
	assert_false(is_own(&a, &p, p.size - 1));
	assert_false(is_own(&a, &p, SEAL_EXTRA_BYTES));
	assert_false(is_own(&b, &p, p.size));
	set_counter(&p, 2);
	assert_false(is_own(&a, &p, p.size));
	set_counter(&p, 1);
	for (i = 1; i < SEAL_WINDOW; i++)
		close_text(&a, &later);
	assert_true(is_own(&a, &p, p.size));
	close_text(&a, &later);
	assert_false(is_own(&a, &p, p.size));
	assert_true(is_own(&a, &later, later.size));
	close_text(&b, &p);
	assert_false(is_own(&a, &p, p.size));
}

#define FOR_EACH(name, check)                  \
	static void test_##name(void **state)  \
	{                                      \
		(void)state;                   \
		for_each_cipher(check);        \
	}

FOR_EACH(a_sealed_packet_opens_at_the_other_end, check_opens)
FOR_EACH(a_changed_packet_is_refused, check_each_bit)
FOR_EACH(no_nonce_is_used_twice_and_no_packet_taken_twice, check_repeated)
FOR_EACH(the_window_takes_each_packet_once, check_window)
FOR_EACH(a_skipped_counter_may_still_come, check_skipped)
FOR_EACH(a_forged_counter_changes_nothing, check_forged_counter)
FOR_EACH(an_end_knows_its_own_late_packets, check_own)
FOR_EACH(keys_change_and_are_forgotten, check_key_change)
FOR_EACH(a_packet_forged_for_a_later_key_changes_nothing, check_forged_key)
FOR_EACH(a_packet_forged_for_the_next_key_loses_no_late_packet, check_forged_next_key)

static void test_this_host_has_a_cipher(void **state)
{
	(void)state;
	assert_true(seal_ciphers() & SEAL_CHACHA20_POLY1305);
	assert_int_equal(seal_choose(0), SEAL_NONE);
	assert_int_equal(seal_choose(SEAL_CHACHA20_POLY1305), SEAL_CHACHA20_POLY1305);
	assert_int_equal(seal_choose(SEAL_CHACHA20_POLY1305 | SEAL_AES_256_GCM), SEAL_AES_256_GCM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_host_has_a_cipher),
		cmocka_unit_test(test_a_sealed_packet_opens_at_the_other_end),
		cmocka_unit_test(test_a_changed_packet_is_refused),
		cmocka_unit_test(test_no_nonce_is_used_twice_and_no_packet_taken_twice),
		cmocka_unit_test(test_the_window_takes_each_packet_once),
		cmocka_unit_test(test_a_skipped_counter_may_still_come),
		cmocka_unit_test(test_a_forged_counter_changes_nothing),
		cmocka_unit_test(test_an_end_knows_its_own_late_packets),
		cmocka_unit_test(test_keys_change_and_are_forgotten),
		cmocka_unit_test(test_a_packet_forged_for_a_later_key_changes_nothing),
		cmocka_unit_test(test_a_packet_forged_for_the_next_key_loses_no_late_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
