// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm msg; devices: softnic */
/* The connection manager's messages: valid ones arrive unchanged, anything else is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/cm/msg.h"

static struct cm_msg request(void)
{
	struct cm_msg m = {
		.type = CM_MSG_REQ,
		.qp_num = 0xabcdef,
		.responder_resources = 16,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 3,
		.srq = 1,
		.flow_control = 1,
		.traffic_class = 104,
		.ece_vendor = 5,
		.ece_options = 6,
		.private_len = CM_REQ_PRIVATE_MAX,
	};

	m.src.in.sin_family = AF_INET;
	m.src.in.sin_port = htons(1);
	m.src.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	m.dst.in6.sin6_family = AF_INET6;
	m.dst.in6.sin6_port = htons(65535);
	m.dst.in6.sin6_addr = in6addr_loopback;
	m.dst.in6.sin6_scope_id = 3;
	memset(m.private_data, 0x5a, CM_REQ_PRIVATE_MAX);
	return m;
}

static void a_request_arrives_as_it_was_sent(void **state)
{
	struct cm_msg sent = request(), got;
	uint8_t buf[CM_MSG_BYTES_MAX];
	size_t len = cm_msg_encode(&sent, buf);

	(void)state;
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(cm_msg_decode(&got, buf, len), 0);
	assert_int_equal(got.type, CM_MSG_REQ);
	assert_int_equal(got.qp_num, sent.qp_num);
	assert_int_equal(got.responder_resources, 16);
	assert_int_equal(got.initiator_depth, 1);
	assert_int_equal(got.retry_count, 7);
	assert_int_equal(got.rnr_retry_count, 3);
	assert_int_equal(got.srq, 1);
	assert_int_equal(got.ece_options, 6);
	assert_memory_equal(&got.src, &sent.src, sizeof(got.src));
	assert_memory_equal(&got.dst, &sent.dst, sizeof(got.dst));
	assert_int_equal(got.private_len, sent.private_len);
	assert_memory_equal(got.private_data, sent.private_data, CM_PRIVATE_MAX);
}

static void any_other_length_is_refused(void **state)
{
	struct cm_msg m = request();
	uint8_t buf[CM_MSG_BYTES_MAX] = { 0 };
	size_t right = cm_msg_encode(&m, buf), len;

	(void)state;
	for (len = 0; len <= sizeof(buf); len++)
		assert_int_equal(cm_msg_decode(&m, buf, len), len == right ? 0 : -EPROTO);
}

static void each_type_has_its_limit_of_private_data(void **state)
{
	static const struct {
		enum cm_msg_type type;
		size_t max;
	} cases[] = {
		{ CM_MSG_REQ, 56 }, { CM_MSG_REP, 196 },      { CM_MSG_REJ, 148 },
		{ CM_MSG_RTU, 0 },  { CM_MSG_SIDR_REQ, 180 }, { CM_MSG_SIDR_REP, 136 },
	};
	uint8_t buf[CM_MSG_BYTES_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cm_msg m = request(), got;

		m.type = cases[i].type;
		m.private_len = (uint8_t)cases[i].max;
		assert_int_equal(cm_msg_decode(&got, buf, cm_msg_encode(&m, buf)), 0);
		if (cases[i].max == CM_PRIVATE_MAX)
			continue;
		m.private_len++;
		assert_int_equal(cm_msg_decode(&got, buf, cm_msg_encode(&m, buf)), -EPROTO);
	}
}

static void a_field_out_of_range_is_refused(void **state)
{
	uint8_t buf[CM_MSG_BYTES_MAX];
	struct cm_msg m, got;

	(void)state;
#define REFUSED(change)                                                                      \
	do {                                                                                 \
		m = request();                                                               \
		change;                                                                      \
		assert_int_equal(cm_msg_decode(&got, buf, cm_msg_encode(&m, buf)), -EPROTO); \
	} while (0)
	REFUSED(m.type = 0);
	REFUSED(m.type = CM_MSG_SIDR_REP + 1);
	REFUSED(m.qp_num = 1 << 24);
	REFUSED(m.retry_count = 8);
	REFUSED(m.rnr_retry_count = 8);
	REFUSED(m.srq = 2);
	REFUSED(m.src.sa.sa_family = AF_UNIX);
	REFUSED(m.dst.sa.sa_family = AF_UNSPEC);
#undef REFUSED
}

static void another_protocol_or_version_is_refused(void **state)
{
	struct cm_msg m = request();
	uint8_t buf[CM_MSG_BYTES_MAX];
	size_t len = cm_msg_encode(&m, buf), i;

	(void)state;
	for (i = 0; i < 5; i++) { /* the magic and the version */
		buf[i] ^= 1;
		assert_int_equal(cm_msg_decode(&m, buf, len), -EPROTO);
		buf[i] ^= 1;
	}
	assert_int_equal(cm_msg_decode(&m, buf, len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_arrives_as_it_was_sent),
		cmocka_unit_test(any_other_length_is_refused),
		cmocka_unit_test(each_type_has_its_limit_of_private_data),
		cmocka_unit_test(a_field_out_of_range_is_refused),
		cmocka_unit_test(another_protocol_or_version_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
