/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The decoders of control messages. */
#include "tests/support/cmocka_all.h"
#include "wire/control.h"

static char message[WIRE_CONTROL_MESSAGE_BYTES + 64];

static size_t build(uint16_t kind, uint32_t says, size_t has)
{
	const struct wire_control_head head = { .kind = kind, .length = says };

	memcpy(message, &head, sizeof(head));
	return sizeof(head) + has;
}

static void the_length_must_be_what_the_head_says(void **state)
{
	static const struct {
		uint32_t says;
		size_t has;
		int rc;
	} cases[] = {
		{ 0, 0, 0 },
		{ 10, 10, 0 },
		{ 10, 9, -EPROTO },
		{ 10, 11, -EPROTO },
		{ UINT32_MAX, 10, -EPROTO },
		{ WIRE_CONTROL_BODY_MAX, WIRE_CONTROL_BODY_MAX, 0 },
		{ WIRE_CONTROL_BODY_MAX + 1, WIRE_CONTROL_BODY_MAX + 1, -EPROTO },
	};
	struct wire_control_head head;
	const void *body;
	size_t i, length;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		length = build(WIRE_APP_ONEWAY, cases[i].says, cases[i].has);
		assert_int_equal(wire_control_decode(message, length, &head, &body), cases[i].rc);
		if (!cases[i].rc)
			assert_ptr_equal(body, message + sizeof(head));
	}
	for (i = 0; i < sizeof(head); i++)
		assert_int_equal(wire_control_decode(message, i, &head, &body), -EPROTO);
}

static void unknown_kinds_and_credits_with_a_body_are_refused(void **state)
{
	struct wire_control_head head;
	const void *body;

	(void)state;
	build(0, 0, 0);
	assert_int_equal(wire_control_decode(message, sizeof(head), &head, &body), -EPROTO);
	build(WIRE_CONTROL_RECLAIM + 1, 0, 0);
	assert_int_equal(wire_control_decode(message, sizeof(head), &head, &body), -EPROTO);
	assert_int_equal(wire_control_decode(message, build(WIRE_CONTROL_CREDIT, 1, 1), &head,
					     &body),
			 -EPROTO);
	assert_int_equal(
		wire_control_decode(message, build(WIRE_CONTROL_CREDIT, 0, 0), &head, &body), 0);
}

static void a_status_is_never_positive(void **state)
{
	struct wire_control_head head = { .kind = WIRE_APP_REPLY };
	const void *body;

	(void)state;
	head.status = -EIO;
	memcpy(message, &head, sizeof(head));
	assert_int_equal(wire_control_decode(message, sizeof(head), &head, &body), 0);
	head.status = 1;
	memcpy(message, &head, sizeof(head));
	assert_int_equal(wire_control_decode(message, sizeof(head), &head, &body), -EPROTO);
}

static void a_request_comes_back_with_its_name(void **state)
{
	struct wire_control_request in = { .op = WIRE_REGION_CREATE,
					   .flags = WIRE_REGION_EXCLUSIVE,
					   .value = 42 };
	char body[sizeof(in) + WIRE_CONTROL_NAME_MAX], name[WIRE_CONTROL_NAME_MAX + 1],
		longest[WIRE_CONTROL_NAME_MAX + 2];
	struct wire_control_request out;
	int length;

	(void)state;
	length = wire_control_request_encode(&in, "kettle", body);
	assert_int_equal(length, sizeof(in) + 6);
	assert_int_equal(wire_control_request_decode(body, length, &out, name), 0);
	assert_memory_equal(&out, &in, sizeof(in));
	assert_string_equal(name, "kettle");

	length = wire_control_request_encode(&in, NULL, body);
	assert_int_equal(wire_control_request_decode(body, length, &out, name), 0);
	assert_string_equal(name, "");

	memset(longest, 'n', sizeof(longest));
	longest[WIRE_CONTROL_NAME_MAX] = '\0';
	length = wire_control_request_encode(&in, longest, body);
	assert_int_equal(wire_control_request_decode(body, length, &out, name), 0);
	assert_string_equal(name, longest);

	longest[WIRE_CONTROL_NAME_MAX] = 'n';
	longest[WIRE_CONTROL_NAME_MAX + 1] = '\0';
	assert_int_equal(wire_control_request_encode(&in, longest, body), -EINVAL);
	assert_int_equal(wire_control_request_encode(&in, "", body), -EINVAL);
	assert_int_equal(wire_control_request_encode(&in, "a/b", body), -EINVAL);
}

static void a_malformed_request_is_refused(void **state)
{
	struct wire_control_request in = { .op = WIRE_REGION_OPEN };
	char body[512], name[WIRE_CONTROL_NAME_MAX + 1];
	struct wire_control_request out;
	size_t i, length;

	(void)state;
	length = wire_control_request_encode(&in, "name", body);
	for (i = 0; i < length; i++)
		assert_int_equal(wire_control_request_decode(body, i, &out, name), -EPROTO);
	assert_int_equal(wire_control_request_decode(body, length + 1, &out, name), -EPROTO);
	body[sizeof(in) + 1] = '\0';
	assert_int_equal(wire_control_request_decode(body, length, &out, name), -EINVAL);
	body[sizeof(in) + 1] = '/';
	assert_int_equal(wire_control_request_decode(body, length, &out, name), -EINVAL);
	in.name_length = WIRE_CONTROL_NAME_MAX + 1;
	memset(body, 'n', sizeof(body));
	memcpy(body, &in, sizeof(in));
	assert_int_equal(wire_control_request_decode(body, sizeof(in) + in.name_length, &out, name),
			 -EINVAL);
	in = (struct wire_control_request){ .op = WIRE_DONOR_INFO + 1 };
	assert_int_equal(wire_control_request_decode(&in, sizeof(in), &out, name), -EPROTO);
}

static void a_list_has_as_many_entries_as_it_says(void **state)
{
	struct {
		struct wire_control_list list;
		struct wire_control_entry entries[3];
	} in = { .list = { .count = 3 } };
	struct wire_control_entry entry;
	struct wire_control_list list;

	(void)state;
	in.entries[2].length = 99;
	assert_int_equal(wire_control_list_decode(&in, sizeof(in), &list), 0);
	assert_int_equal(wire_control_entry_decode(&in, sizeof(in), 2, &entry), 0);
	assert_int_equal(entry.length, 99);
	assert_int_equal(wire_control_entry_decode(&in, sizeof(in), 3, &entry), -EPROTO);
	assert_int_equal(wire_control_list_decode(&in, sizeof(in) - 1, &list), -EPROTO);
	memset(in.entries[0].name, 'x', sizeof(in.entries[0].name));
	assert_int_equal(wire_control_entry_decode(&in, sizeof(in), 0, &entry), -EPROTO);
	in.list.count = UINT32_MAX;
	assert_int_equal(wire_control_list_decode(&in, sizeof(in), &list), -EPROTO);
}

static void a_sentence_is_cut_and_masked(void **state)
{
	char text[6];

	(void)state;
	wire_control_text_decode("ab\ncdefg", 8, text, sizeof(text));
	assert_string_equal(text, "ab?cd");
	wire_control_text_decode(NULL, 0, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_length_must_be_what_the_head_says),
		cmocka_unit_test(unknown_kinds_and_credits_with_a_body_are_refused),
		cmocka_unit_test(a_status_is_never_positive),
		cmocka_unit_test(a_request_comes_back_with_its_name),
		cmocka_unit_test(a_malformed_request_is_refused),
		cmocka_unit_test(a_list_has_as_many_entries_as_it_says),
		cmocka_unit_test(a_sentence_is_cut_and_masked),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
