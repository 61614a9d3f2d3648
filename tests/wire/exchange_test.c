/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The decoders of the exchange accept exactly the valid messages. */
#include "tests/support/cmocka_all.h"
#include "wire/exchange.h"

static struct wire_exchange_offer good_offer(void)
{
	struct wire_exchange_offer offer = { .slots = 256,
					     .slot_bytes = 4096,
					     .is_imm = 1,
					     .head_stride = 16,
					     .heads = { 7, 8, 0 },
					     .mirror = { 1, 2, 0 },
					     .doorbell = { 3, 4, 0 },
					     .bits = { 5, 6, 0 } };

	wire_exchange_offer_encode(&offer);
	return offer;
}

static void an_offer_comes_back_as_it_was(void **state)
{
	const struct wire_exchange_offer offer = good_offer();
	struct wire_exchange_offer out;

	(void)state;
	assert_int_equal(wire_exchange_offer_decode(&offer, sizeof(offer), &out), 0);
	assert_memory_equal(&out, &offer, sizeof(offer));
}

static void an_offer_of_another_length_is_refused(void **state)
{
	uint8_t longer[sizeof(struct wire_exchange_offer) + 1] = { 0 };
	const struct wire_exchange_offer offer = good_offer();
	struct wire_exchange_offer out;
	size_t length;

	(void)state;
	memcpy(longer, &offer, sizeof(offer));
	for (length = 0; length <= sizeof(longer); length++)
		if (length != sizeof(offer))
			assert_int_equal(wire_exchange_offer_decode(longer, length, &out), -EPROTO);
}

#define REFUSES(field, value, error)                                                          \
	do {                                                                                  \
		struct wire_exchange_offer bad = good_offer(), out;                           \
                                                                                              \
		bad.field = value;                                                            \
		assert_int_equal(wire_exchange_offer_decode(&bad, sizeof(bad), &out), error); \
	} while (0)

static void an_offer_out_of_range_is_refused(void **state)
{
	(void)state;
	REFUSES(slots, 0, -EPROTO);
	REFUSES(slots, WIRE_EXCHANGE_SLOTS_MAX + 1, -EPROTO);
	REFUSES(slot_bytes, 0, -EPROTO);
	REFUSES(slot_bytes, WIRE_EXCHANGE_SLOT_BYTES_MAX + 1, -EPROTO);
	REFUSES(is_imm, 2, -EPROTO);
	REFUSES(is_unordered, 2, -EPROTO);
	REFUSES(zero[1], 1, -EPROTO);
	REFUSES(head.magic, WIRE_MAGIC, -EPROTO);
	REFUSES(head.type, WIRE_HELLO, -EPROTO);
	REFUSES(head.length, 72, -EPROTO);
	REFUSES(head.version, WIRE_EXCHANGE_VERSION + 1, -EPROTONOSUPPORT);
}

static void a_request_for_another_service_is_refused(void **state)
{
	const struct wire_exchange_connect good = { WIRE_EXCHANGE_MAGIC, WIRE_EXCHANGE_VERSION, 0,
						    9 };
	struct wire_handshake_connect session = { WIRE_MAGIC, WIRE_VERSION, 0, 0, 9 };
	struct wire_exchange_connect out, bad = good;
	struct wire_handshake_connect session_out;
	uint8_t padded[56] = { 0 };
	size_t length;

	(void)state;
	memcpy(padded, &good, sizeof(good));
	assert_int_equal(wire_exchange_connect_decode(padded, sizeof(padded), &out), 0);
	assert_memory_equal(&out, &good, sizeof(good));
	/* An earlier build ends before the cookie. */
	length = offsetof(struct wire_exchange_connect, cookie);
	assert_int_equal(wire_exchange_connect_decode(&good, length, &out), 0);
	assert_memory_equal(&out, &good, sizeof(good));
	while (length--)
		assert_int_equal(wire_exchange_connect_decode(&good, length, &out), -EPROTO);
	assert_int_equal(wire_exchange_connect_decode(&session, sizeof(session), &out), -EPROTO);
	assert_int_equal(wire_handshake_connect_decode(padded, sizeof(padded), &session_out),
			 -EPROTO);
	bad.version++;
	assert_int_equal(wire_exchange_connect_decode(&bad, sizeof(bad), &out), -EPROTONOSUPPORT);
	bad = good;
	bad.zero = 1;
	assert_int_equal(wire_exchange_connect_decode(&bad, sizeof(bad), &out), -EPROTO);
}

static void slots_given_back_are_as_many_as_are_said(void **state)
{
	struct wire_exchange_freed gives = { .count = 2, .slots = { 7, 8 } }, out;
	size_t length;

	(void)state;
	assert_int_equal(wire_exchange_freed_decode(&gives, 16, &out), 0);
	assert_int_equal(out.count, 2);
	assert_int_equal(out.slots[1], 8);
	for (length = 0; length <= sizeof(gives); length++)
		if (length != 16)
			assert_int_equal(wire_exchange_freed_decode(&gives, length, &out), -EPROTO);
	gives.count = 0;
	assert_int_equal(wire_exchange_freed_decode(&gives, 8, &out), -EPROTO);
	gives.count = WIRE_EXCHANGE_FREED_MAX + 1;
	assert_int_equal(wire_exchange_freed_decode(&gives, sizeof(gives), &out), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offer_comes_back_as_it_was),
		cmocka_unit_test(an_offer_of_another_length_is_refused),
		cmocka_unit_test(an_offer_out_of_range_is_refused),
		cmocka_unit_test(a_request_for_another_service_is_refused),
		cmocka_unit_test(slots_given_back_are_as_many_as_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
