// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce mad */
/*
 * The bytes of connection managers. The vectors are the five messages of one run of rping between
 * two guests of tests/vm: Linux 6.1's ib_cm over Soft-RoCE, read at eth0 of the client's guest.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/roce_cm/cma.h"
#include "softnic/roce_cm/mad.h"

static const uint8_t kernel_req[ROCE_MAD_BYTES] =
	"\x01\x07\x02\x03\x00\x00\x00\x00\x00\x00\x00\x04\x23\x86\xab\xa8"
	"\x00\x10\x00\x00\x00\x00\x00\x00\xa8\xab\x86\x23\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x01\x06\x1c\x06\x00\x00\x00\xff\xfe\x00\x00\x01"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x11\x01\x00\x00\x00\x01"
	"\x00\x00\x00\xa0\x15\x01\x81\xa7\xff\xff\x37\xf0\xff\xff\xff\xff"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x09\x08\x01"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x09\x08\x02"
	"\x18\xab\x10\x00\x00\x40\x00\x98\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x00\x40\x8f\xf5\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x0a\x09\x08\x01\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x00\x00\x00\x00\x0a\x09\x08\x02";
static const uint8_t kernel_rep[ROCE_MAD_BYTES] =
	"\x01\x07\x02\x03\x00\x00\x00\x00\x00\x00\x00\x04\x23\x86\xab\xa8"
	"\x00\x13\x00\x00\x00\x00\x00\x00\x0d\x16\xb9\xc6\xa8\xab\x86\x23"
	"\x00\x00\x00\x00\x00\x00\x11\x00\x00\x00\x00\x00\x0e\xc6\x97\x00"
	"\x01\x01\x78\xe0\x00\x00\x00\xff\xfe\x00\x00\x02";
static const uint8_t kernel_rtu[ROCE_MAD_BYTES] =
	"\x01\x07\x02\x03\x00\x00\x00\x00\x00\x00\x00\x04\x23\x86\xab\xa8"
	"\x00\x14\x00\x00\x00\x00\x00\x00\xa8\xab\x86\x23\x0d\x16\xb9\xc6";
static const uint8_t kernel_dreq[ROCE_MAD_BYTES] =
	"\x01\x07\x02\x03\x00\x00\x00\x00\x00\x00\x00\x04\x23\x86\xab\xa8"
	"\x00\x15\x00\x00\x00\x00\x00\x00\xa8\xab\x86\x23\x0d\x16\xb9\xc6"
	"\x00\x00\x11";
static const uint8_t kernel_drep[ROCE_MAD_BYTES] =
	"\x01\x07\x02\x03\x00\x00\x00\x00\x00\x00\x00\x04\x23\x86\xab\xa8"
	"\x00\x16\x00\x00\x00\x00\x00\x00\x0d\x16\xb9\xc6\xa8\xab\x86\x23";

static const uint8_t client[] = { 10, 9, 8, 1 }, server[] = { 10, 9, 8, 2 };

static struct roce_mad decoded(const uint8_t bytes[ROCE_MAD_BYTES])
{
	struct roce_mad m;

	assert_int_equal(roce_mad_decode(&m, bytes, ROCE_MAD_BYTES), 0);
	return m;
}

static void a_req_of_the_kernel_is_read(void **state)
{
	struct roce_mad m = decoded(kernel_req);
	struct roce_cma c;
	uint16_t port;

	(void)state;
	assert_int_equal(m.kind, ROCE_MAD_REQ);
	assert_int_equal(m.local_id, 0xa8ab8623);
	assert_int_equal(m.qpn, 0x11);
	assert_int_equal(m.transport, 0);
	assert_int_equal(m.remote_timeout, 20);
	assert_int_equal(m.local_timeout, 20);
	assert_int_equal(m.max_cm_retries, 15);
	assert_int_equal(m.retry_count, 7);
	assert_int_equal(m.pkey, 0xffff);
	assert_int_equal(m.mtu, 3);
	assert_memory_equal(m.local_gid + 12, client, 4);
	assert_memory_equal(m.remote_gid + 12, server, 4);
	assert_int_equal(roce_cma_port(m.service_id, ROCE_CMA_TCP, &port), 0);
	assert_int_equal(port, 7174);
	assert_int_equal(roce_cma_port(m.service_id, ROCE_CMA_UDP, &port), -EPROTO);
	assert_int_equal(roce_cma_decode(&c, m.private_data), 0);
	assert_false(c.is_ipv6);
	assert_int_equal(c.src_port, 0x8ff5);
	assert_memory_equal(c.src, client, 4);
	assert_memory_equal(c.dst, server, 4);
}

static void a_rep_of_the_kernel_is_read(void **state)
{
	struct roce_mad m = decoded(kernel_rep);

	(void)state;
	assert_int_equal(m.kind, ROCE_MAD_REP);
	assert_int_equal(m.local_id, 0x0d16b9c6);
	assert_int_equal(m.remote_id, 0xa8ab8623);
	assert_int_equal(m.qpn, 0x11);
	assert_int_equal(m.psn, 0x0ec697);
	assert_int_equal(m.responder_resources, 1);
	assert_int_equal(m.initiator_depth, 1);
	assert_int_equal(m.rnr_retry_count, 7);
}

static void the_kernels_messages_are_written_byte_by_byte(void **state)
{
	static const uint8_t *const all[] = { kernel_req, kernel_rep, kernel_rtu, kernel_dreq,
					      kernel_drep };
	uint8_t bytes[ROCE_MAD_BYTES];
	struct roce_mad m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		m = decoded(all[i]);
		roce_mad_encode(&m, bytes);
		assert_memory_equal(bytes, all[i], sizeof(bytes));
	}
}

static void addresses_are_written_as_the_kernel_does(void **state)
{
	struct roce_mad m = decoded(kernel_req);
	uint8_t bytes[ROCE_CMA_BYTES];
	struct roce_cma c;

	(void)state;
	assert_int_equal(roce_cma_decode(&c, m.private_data), 0);
	roce_cma_encode(&c, bytes);
	assert_memory_equal(bytes, m.private_data, sizeof(bytes));
	assert_int_equal(roce_cma_service_id(ROCE_CMA_TCP, 7174), m.service_id);
	m.private_data[1] = 0x50;
	assert_int_equal(roce_cma_decode(&c, m.private_data), -EPROTO);
}

static void other_messages_are_refused(void **state)
{
	static const size_t places[] = { 0, 1, 2, 3, 16 }; /* of versions, class, method and kind */
	uint8_t bytes[ROCE_MAD_BYTES];
	struct roce_mad m;
	size_t i;

	(void)state;
	assert_int_equal(roce_mad_decode(&m, kernel_req, ROCE_MAD_BYTES - 1), -EPROTO);
	assert_int_equal(roce_mad_decode(&m, kernel_req, 0), -EPROTO);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		memcpy(bytes, kernel_req, sizeof(bytes));
		bytes[places[i]] ^= 0x40;
		assert_int_equal(roce_mad_decode(&m, bytes, sizeof(bytes)), -EPROTO);
	}
}

static void a_rejection_has_no_more_reasons_than_room(void **state)
{
	struct roce_mad m = { .kind = ROCE_MAD_REJ, .info_bytes = ROCE_MAD_INFO_MAX };
	uint8_t bytes[ROCE_MAD_BYTES];

	(void)state;
	roce_mad_encode(&m, bytes);
	assert_int_equal(roce_mad_decode(&m, bytes, sizeof(bytes)), 0);
	m.info_bytes++;
	roce_mad_encode(&m, bytes);
	assert_int_equal(roce_mad_decode(&m, bytes, sizeof(bytes)), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_req_of_the_kernel_is_read),
		cmocka_unit_test(a_rep_of_the_kernel_is_read),
		cmocka_unit_test(the_kernels_messages_are_written_byte_by_byte),
		cmocka_unit_test(addresses_are_written_as_the_kernel_does),
		cmocka_unit_test(other_messages_are_refused),
		cmocka_unit_test(a_rejection_has_no_more_reasons_than_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
