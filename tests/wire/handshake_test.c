/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The decoders of the handshake accept exactly the valid messages. */
#include "tests/support/cmocka_all.h"
#include "wire/handshake.h"

static const struct wire_handshake_connect good = {
	.magic = WIRE_MAGIC,
	.version = WIRE_VERSION,
	.channel = 3,
	.session_id = 7,
	.key_id = 9,
};

static void a_request_comes_back_as_it_was(void **state)
{
	uint8_t padded[56] = { 0 };
	struct wire_handshake_connect out;

	(void)state;
	memcpy(padded, &good, sizeof(good));
	assert_int_equal(wire_handshake_connect_decode(padded, sizeof(padded), &out), 0);
	assert_memory_equal(&out, &good, sizeof(good));
}

static void a_request_cut_short_is_refused_at_every_length(void **state)
{
	struct wire_handshake_connect out;
	size_t length;

	(void)state;
	for (length = 0; length < offsetof(struct wire_handshake_connect, cookie); length++)
		assert_int_equal(wire_handshake_connect_decode(&good, length, &out), -EPROTO);
	assert_int_equal(wire_handshake_connect_decode(NULL, 0, &out), -EPROTO);
}

/* A request without a cookie, as older clients send it, may end anywhere in the place of one. */
static void a_cookie_goes_there_and_back(void **state)
{
	struct wire_handshake_reject in = { .refusal.status = EAGAIN }, out;
	struct wire_handshake_connect request = good, arrived;
	uint8_t padded[148] = { 0 };
	size_t length;

	(void)state;
	assert_false(wire_handshake_has_cookie(request.cookie));
	memset(in.cookie, 0xc0, sizeof(in.cookie));
	in.cookie[WIRE_COOKIE - 1] = 1;
	wire_handshake_encode((union wire_handshake_message *)&in.refusal, WIRE_REFUSAL);
	memcpy(padded, &in, sizeof(in));
	assert_int_equal(wire_handshake_reject_decode(padded, sizeof(padded), &out), 0);
	assert_memory_equal(out.cookie, in.cookie, sizeof(in.cookie));
	assert_int_equal(wire_handshake_reject_decode(&in, sizeof(in.refusal), &out), 0);
	assert_false(wire_handshake_has_cookie(out.cookie));
	memcpy(request.cookie, in.cookie, sizeof(in.cookie));
	for (length = 24; length <= sizeof(request); length++) {
		assert_int_equal(wire_handshake_connect_decode(&request, length, &arrived), 0);
		assert_memory_equal(&arrived, &request, length);
		assert_int_equal(wire_handshake_has_cookie(arrived.cookie), length > 24);
	}
}

static void a_request_out_of_range_is_refused(void **state)
{
	struct wire_handshake_connect bad = good, out;

	(void)state;
	bad.magic++;
	assert_int_equal(wire_handshake_connect_decode(&bad, sizeof(bad), &out), -EPROTO);
	bad = good;
	bad.channel = WIRE_CHANNEL_UNLOAD + 1;
	assert_int_equal(wire_handshake_connect_decode(&bad, sizeof(bad), &out), -EPROTO);
	bad = good;
	bad.session_id = 0; /* a new session on a further channel */
	assert_int_equal(wire_handshake_connect_decode(&bad, sizeof(bad), &out), -EPROTO);
}

static void a_session_may_come_back_on_its_first_channel(void **state)
{
	struct wire_handshake_connect again = good, out;

	(void)state;
	again.channel = 0;
	assert_int_equal(wire_handshake_connect_decode(&again, sizeof(again), &out), 0);
	assert_int_equal(out.session_id, good.session_id);
}

static void a_future_version_is_named_even_if_it_is_shorter(void **state)
{
	struct wire_handshake_connect future = good, out;

	(void)state;
	future.version = WIRE_VERSION + 1;
	assert_int_equal(wire_handshake_connect_decode(&future, sizeof(future), &out),
			 -EPROTONOSUPPORT);
	assert_int_equal(wire_handshake_connect_decode(&future, 6, &out), -EPROTONOSUPPORT);
}

/* Old and new donors, and each answer for a client of versions 4 and 5. */
static void ends_find_the_newest_version_of_both(void **state)
{
	const struct wire_handshake_versions old = { 4, 4 }, both = { 4, 5 }, new = { 5, 5 };
	struct wire_handshake_connect asks = good, out;

	(void)state;
	asks.version = 5;
	assert_int_equal(wire_handshake_connect_decode_as(&asks, sizeof(asks), &both, &out), 0);
	assert_int_equal(out.version, 5);
	assert_int_equal(wire_handshake_connect_decode_as(&asks, sizeof(asks), &old, &out),
			 -EPROTONOSUPPORT);
	assert_int_equal(wire_handshake_reject_version(&old, 5), 4);
	assert_int_equal(wire_handshake_next_version(&both, 5, 4), 4);
	asks.version = 4;
	assert_int_equal(wire_handshake_connect_decode_as(&asks, sizeof(asks), &both, &out), 0);
	assert_int_equal(wire_handshake_connect_decode_as(&asks, sizeof(asks), &new, &out),
			 -EPROTONOSUPPORT);
	assert_int_equal(wire_handshake_reject_version(&new, 4), 5);
	assert_int_equal(wire_handshake_reject_version(&both, 4), 4);
	/* No donor can lead a client to a version of others, or round in circles. */
	assert_int_equal(wire_handshake_next_version(&both, 4, 5), 0);
	assert_int_equal(wire_handshake_next_version(&both, 4, 4), 0);
	assert_int_equal(wire_handshake_next_version(&both, 5, 3), 0);
	assert_int_equal(wire_handshake_next_version(&new, 5, 4), 0);
	asks.version = 3;
	assert_int_equal(wire_handshake_connect_decode(&asks, sizeof(asks), &out),
			 -EPROTONOSUPPORT);
}

static void each_message_is_accepted_at_its_own_length_only(void **state)
{
	union wire_handshake_message in, out;
	size_t length, exact;
	int type;

	(void)state;
	for (type = WIRE_HELLO; type <= WIRE_REFUSAL; type++) {
		memset(&in, 0, sizeof(in));
		exact = wire_handshake_encode(&in, type);
		for (length = 0; length <= sizeof(in); length++)
			assert_int_equal(wire_handshake_decode(&in, length, &out),
					 length == exact ? 0 : -EPROTO);
		assert_int_equal(wire_handshake_decode(&in, exact, &out), 0);
		assert_int_equal(out.head.type, type);
	}
}

static void unknown_types_magic_and_versions_are_refused(void **state)
{
	union wire_handshake_message in = { 0 }, out;
	size_t length = wire_handshake_encode(&in, WIRE_PROOF);

	(void)state;
	in.head.type = 0;
	assert_int_equal(wire_handshake_decode(&in, length, &out), -EPROTO);
	in.head.type = WIRE_REFUSAL + 1;
	assert_int_equal(wire_handshake_decode(&in, length, &out), -EPROTO);
	wire_handshake_encode(&in, WIRE_PROOF);
	in.head.magic ^= 1;
	assert_int_equal(wire_handshake_decode(&in, length, &out), -EPROTO);
	wire_handshake_encode(&in, WIRE_PROOF);
	in.head.version = WIRE_VERSION + 1;
	assert_int_equal(wire_handshake_decode(&in, length, &out), -EPROTONOSUPPORT);
}

static void a_refusal_cannot_write_to_the_terminal(void **state)
{
	union wire_handshake_message in = { .refusal = { .status = EDQUOT } };
	struct wire_handshake_reject out;

	(void)state;
	memset(in.refusal.text, 'x', sizeof(in.refusal.text)); /* no NUL */
	memcpy(in.refusal.text, "a\033[2J\n", 6);
	wire_handshake_encode(&in, WIRE_REFUSAL);
	assert_int_equal(wire_handshake_reject_decode(&in, sizeof(in.refusal), &out), 0);
	assert_memory_equal(out.refusal.text, "a?[2J?", 6);
	assert_int_equal(strlen(out.refusal.text), WIRE_TEXT - 1);
	assert_int_equal(wire_handshake_reject_decode(&in, sizeof(in.refusal) - 1, &out), -EPROTO);
	assert_int_equal(wire_handshake_reject_decode(NULL, 0, &out), -EPROTO);
}

static void a_refusal_of_another_version_can_be_read(void **state)
{
	union wire_handshake_message in = { .refusal = { .status = EPROTONOSUPPORT } };
	struct wire_handshake_reject out;

	(void)state;
	wire_handshake_encode(&in, WIRE_REFUSAL);
	in.head.version = 9;
	assert_int_equal(wire_handshake_reject_decode(&in, sizeof(in.refusal), &out), 0);
	assert_int_equal(out.refusal.head.version, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_comes_back_as_it_was),
		cmocka_unit_test(a_request_cut_short_is_refused_at_every_length),
		cmocka_unit_test(a_cookie_goes_there_and_back),
		cmocka_unit_test(a_request_out_of_range_is_refused),
		cmocka_unit_test(a_session_may_come_back_on_its_first_channel),
		cmocka_unit_test(a_future_version_is_named_even_if_it_is_shorter),
		cmocka_unit_test(ends_find_the_newest_version_of_both),
		cmocka_unit_test(each_message_is_accepted_at_its_own_length_only),
		cmocka_unit_test(unknown_types_magic_and_versions_are_refused),
		cmocka_unit_test(a_refusal_cannot_write_to_the_terminal),
		cmocka_unit_test(a_refusal_of_another_version_can_be_read),
	};

	return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}
