// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce packet */
/*
 * The bytes of packets. The vectors with an ICRC come from Scapy's "roce" contribution, another
 * implementation; tests/softnic/roce/vectors.py makes them again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/roce/icrc.h"
#include "softnic/roce/packet.h"
#include "softnic/roce/psn.h"
#include "softnic/roce/rnr_timer.h"

#define SIZE(vector) (sizeof(vector) - 1)

static const uint8_t send_only[] = "\x04\x70\xff\xff\x00\x12\x34\x56\x80\xab\xcd\xef"
				   "hello\0\0\0"
				   "\x99\xe5\x28\x6b";
static const struct roce_flow send_flow = {
	.dont_fragment = true,
	.ip_id = 0x1234,
	.src = { 192, 0, 2, 1 },
	.dst = { 198, 51, 100, 2 },
	.src_port = 0xc001,
	.dst_port = 4791,
};

/* Sent with BECN set, a bit that the ICRC does not cover. */
static const uint8_t ack[] = "\x11\x40\xff\xff\x40\x00\x00\x11\x00\x00\x00\x05"
			     "\x1f\x00\x00\x02"
			     "\x31\x85\x4e\x13";
static const struct roce_flow ack_flow = {
	.src = { 192, 0, 2, 1 },
	.dst = { 198, 51, 100, 2 },
	.src_port = 4791,
	.dst_port = 4791,
};

static const uint8_t write_imm[] = "\x0b\xc0\xff\xff\x00\xff\xff\xfe\x00\x00\x00\x01"
				   "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\0\0\0\x04"
				   "\xde\xad\xbe\xef"
				   "abcd"
				   "\x75\x7a\x89\x78";
static const struct roce_flow write_flow = {
	.is_ipv6 = true,
	.src = { 0x20, 1, 0x0d, 0xb8, [15] = 1 },
	.dst = { 0x20, 1, 0x0d, 0xb8, [15] = 2 },
	.src_port = 0xd000,
	.dst_port = 4791,
};

static void test_icrc_agrees_with_another_implementation(void **state)
{
	(void)state;
	assert_true(roce_icrc_is_right(&send_flow, send_only, SIZE(send_only)));
	assert_true(roce_icrc_is_right(&ack_flow, ack, SIZE(ack)));
	assert_true(roce_icrc_is_right(&write_flow, write_imm, SIZE(write_imm)));
}

static uint32_t crc_by_bit(uint32_t crc, const uint8_t *at, size_t size)
{
	int i;

	for (; size; size--, at++) {
		crc ^= *at;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* All lengths, because long packets are computed in another way than short ones. */
static void test_icrc_is_the_same_bit_by_bit_at_each_length(void **state)
{
	static uint8_t bytes[ROCE_PACKET_MAX];
	uint8_t head[8 + 20 + 8] = { 0 };
	size_t size, i;
	uint32_t crc;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i + (i >> 3));
	bytes[4] = 0xff; /* as the ICRC takes the byte with BECN */
	for (size = ROCE_BTH_BYTES; size + ROCE_ICRC_BYTES <= sizeof(bytes); size++) {
		uint16_t udp = 8 + size + ROCE_ICRC_BYTES, ip = 20 + udp;
		const uint8_t ipv4[] = { 0x45, 0xff, ip >> 8, ip & 255, 0, 0, 0, 0, 0xff, 17 };

		memset(head, 0xff, sizeof(head));
		memcpy(head + 8, ipv4, sizeof(ipv4));
		memcpy(head + 20, ack_flow.src, 4);
		memcpy(head + 24, ack_flow.dst, 4);
		memcpy(head + 28, "\x12\xb7\x12\xb7", 4);
		head[32] = udp >> 8;
		head[33] = udp & 255;
		crc = ~crc_by_bit(crc_by_bit(~0u, head, sizeof(head)), bytes, size);
		assert_int_equal(roce_icrc(&ack_flow, bytes, size), crc);
	}
}

static void test_each_bit_counts_but_those_that_routers_change(void **state)
{
	uint8_t bytes[SIZE(send_only)];
	struct roce_flow flow = send_flow;
	size_t i;

	(void)state;
	for (i = 0; i < 8 * sizeof(bytes); i++) {
		memcpy(bytes, send_only, sizeof(bytes));
		bytes[i / 8] ^= 1 << i % 8;
		assert_int_equal(roce_icrc_is_right(&send_flow, bytes, sizeof(bytes)), i / 8 == 4);
	}
	flow.ip_id++;
	assert_false(roce_icrc_is_right(&flow, send_only, SIZE(send_only)));
}

static void test_headers_are_read(void **state)
{
	struct roce_packet p;

	(void)state;
	assert_int_equal(roce_packet_decode(&p, send_only, SIZE(send_only)), ROCE_ACCEPTED);
	assert_int_equal(p.opcode, ROCE_RC | ROCE_SEND_ONLY);
	assert_int_equal(p.dest_qpn, 0x123456);
	assert_int_equal(p.psn, 0xabcdef);
	assert_int_equal(p.pkey, ROCE_PKEY_DEFAULT);
	assert_true(p.wants_ack);
	assert_false(p.is_solicited);
	assert_int_equal(p.payload_bytes, 5);
	assert_memory_equal(p.payload, "hello", 5);

	assert_int_equal(roce_packet_decode(&p, ack, SIZE(ack)), ROCE_ACCEPTED);
	assert_int_equal(p.syndrome, 0x1f);
	assert_int_equal(p.msn, 2);

	assert_int_equal(roce_packet_decode(&p, write_imm, SIZE(write_imm)), ROCE_ACCEPTED);
	assert_true(p.is_solicited);
	assert_int_equal(p.addr, 0x1122334455667788);
	assert_int_equal(p.rkey, 0x99aabbcc);
	assert_int_equal(p.dma_bytes, 4);
	assert_memory_equal(&p.imm, "\xde\xad\xbe\xef", 4);
	assert_memory_equal(p.payload, "abcd", 4);
}

/* Fields that the opcode has no header for stay 0. */
static struct roce_packet filled(uint8_t opcode, uint32_t payload_bytes)
{
	uint32_t traits = roce_packet_traits(opcode);
	struct roce_packet p = {
		.opcode = opcode,
		.pkey = ROCE_PKEY_DEFAULT,
		.psn = 0xfffffe,
		.dest_qpn = 0xabcdef,
		.is_solicited = opcode & 1,
		.wants_ack = opcode & 2,
		.payload_bytes = payload_bytes,
	};

	if (traits & (ROCE_HAS_RETH | ROCE_HAS_ATOMIC)) {
		p.addr = 0x123456789abcdef0;
		p.rkey = 0xfedcba98;
	}
	if (traits & ROCE_HAS_RETH)
		p.dma_bytes = 0x80000000;
	if (traits & ROCE_HAS_ATOMIC) {
		p.swap_add = 0x0102030405060708;
		p.compare = 0x1112131415161718;
	}
	if (traits & ROCE_HAS_AETH) {
		p.syndrome = ROCE_NAK_ACCESS;
		p.msn = 0xfefdfc;
	}
	if (traits & ROCE_HAS_ORIGINAL)
		p.original = 0x2122232425262728;
	if (traits & ROCE_HAS_DETH) {
		p.qkey = 0x80010000;
		p.src_qpn = 0x765432;
	}
	if (traits & (ROCE_HAS_IMM | ROCE_HAS_INV))
		p.imm = 0x31323334;
	return p;
}

static void check_both_ways(uint8_t opcode, uint32_t payload_bytes)
{
	uint8_t bytes[ROCE_PACKET_MAX] = { 0 }, copy[ROCE_HEADERS_MAX];
	struct roce_packet p = filled(opcode, payload_bytes), again;
	size_t headers = roce_packet_encode(&p, bytes), size, cut;

	assert_true(headers <= ROCE_HEADERS_MAX);
	memset(bytes + headers, 'x', payload_bytes);
	size = headers + payload_bytes;
	size += roce_packet_pad(bytes + size, payload_bytes);
	assert_int_equal(size % 4, 0);
	size = roce_icrc_append(&write_flow, bytes, size);
	assert_true(roce_icrc_is_right(&write_flow, bytes, size));
	assert_int_equal(roce_packet_decode(&again, bytes, size), ROCE_ACCEPTED);
	assert_ptr_equal(again.payload, bytes + headers);
	assert_int_equal(again.payload_bytes, payload_bytes);
	assert_int_equal(roce_packet_encode(&again, copy), headers);
	assert_memory_equal(copy, bytes, headers);
	for (cut = 0; cut < headers + ROCE_ICRC_BYTES; cut++)
		assert_int_equal(roce_packet_decode(&again, bytes, cut), ROCE_REFUSED_SHORT);
}

static void test_each_opcode_survives_both_ways(void **state)
{
	uint32_t opcode, payload_bytes, known = 0;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		uint32_t traits = roce_packet_traits(opcode);

		known += traits != 0;
		for (payload_bytes = 0; traits && payload_bytes <= 5; payload_bytes++)
			if (!payload_bytes || traits & ROCE_HAS_PAYLOAD)
				check_both_ways(opcode, payload_bytes);
		if (traits & ROCE_HAS_PAYLOAD)
			check_both_ways(opcode, ROCE_PAYLOAD_MAX);
	}
	assert_int_equal(known, 24 + 12 + 2);
}

static void refused(enum roce_refusal why, size_t at, uint8_t value, size_t size)
{
	uint8_t bytes[ROCE_PACKET_MAX + 8] = { 0 };
	struct roce_packet p;

	memcpy(bytes, send_only, SIZE(send_only));
	bytes[at] = value;
	assert_int_equal(roce_packet_decode(&p, bytes, size), why);
}

static void test_malformed_packets_are_refused_with_a_reason(void **state)
{
	(void)state;
	refused(ROCE_REFUSED_VERSION, 1, 0x71, SIZE(send_only));
	refused(ROCE_REFUSED_OPCODE, 0, 0x15, SIZE(send_only));
	refused(ROCE_REFUSED_OPCODE, 0, 0x40, SIZE(send_only));
	refused(ROCE_REFUSED_OPCODE, 0, ROCE_UC | ROCE_READ_REQUEST, SIZE(send_only));
	refused(ROCE_REFUSED_OPCODE, 0, ROCE_UD | ROCE_SEND_FIRST, SIZE(send_only));
	/* padding, but nothing to pad */
	refused(ROCE_REFUSED_PAYLOAD, 1, 0x70, ROCE_BTH_BYTES + ROCE_ICRC_BYTES);
	refused(ROCE_REFUSED_PAYLOAD, 1, 0x70, SIZE(send_only) - 1);
	refused(ROCE_REFUSED_PAYLOAD, 0, ROCE_ACK, SIZE(send_only));
	refused(ROCE_REFUSED_LONG, 1, 0, ROCE_BTH_BYTES + ROCE_PAYLOAD_MAX + 4 + ROCE_ICRC_BYTES);
}

static void test_psns_wrap(void **state)
{
	uint64_t psn = roce_psn_first(0xfffffe);

	(void)state;
	assert_int_equal(roce_psn_wire(psn + 3), 1);
	assert_int_equal(roce_psn_extend(1, psn), psn + 3);
	assert_int_equal(roce_psn_extend(0xfffffe, psn + 3), psn);
	assert_int_equal(roce_psn_extend(0x7ffffd, psn), psn + 0x7fffff);
	assert_int_equal(roce_psn_extend(0x7ffffe, psn), psn - 0x800000);
}

static void test_credits_and_timers_have_the_specified_codes(void **state)
{
	uint32_t receives;

	(void)state;
	assert_int_equal(roce_packet_credits(0), 0);
	assert_int_equal(roce_packet_credits(5), 4);
	assert_int_equal(roce_packet_credits(6), 5);
	assert_int_equal(roce_packet_credits(UINT32_MAX), 30);
	assert_int_equal(roce_packet_receives(30), 32768);
	for (receives = 0; receives < 100000; receives++)
		assert_true(roce_packet_receives(roce_packet_credits(receives)) <= receives);
	assert_int_equal(roce_rnr_ns(0), 655360000);
	assert_int_equal(roce_rnr_ns(1), 10000);
	assert_int_equal(roce_rnr_ns(12), 640000);
	assert_int_equal(roce_rnr_ns(31), 491520000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_icrc_agrees_with_another_implementation),
		cmocka_unit_test(test_icrc_is_the_same_bit_by_bit_at_each_length),
		cmocka_unit_test(test_each_bit_counts_but_those_that_routers_change),
		cmocka_unit_test(test_headers_are_read),
		cmocka_unit_test(test_each_opcode_survives_both_ways),
		cmocka_unit_test(test_malformed_packets_are_refused_with_a_reason),
		cmocka_unit_test(test_psns_wrap),
		cmocka_unit_test(test_credits_and_timers_have_the_specified_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
