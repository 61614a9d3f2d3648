// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic capture */
/* Checksums of the packets in a capture. */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "softnic/tap/capture.h"
#include "softnic/tap/pcap.h"

enum { FROM_PORT = 0x7001, TO_PORT = 4791, PAYLOAD_BYTES = 33 };

static const char *const addresses[][2] = {
	{ "::ffff:10.77.0.1", "::ffff:10.77.0.2" },
	{ "fd77:6569:7200::1", "fd77:6569:7200::2" },
};

struct recorded {
	struct pcap_record record;
	uint8_t ip[sizeof(struct ip6_hdr) + sizeof(struct udphdr) + PAYLOAD_BYTES];
};

static uint16_t sum_of(const uint8_t *at, size_t size, uint32_t sum)
{
	size_t i;

	for (i = 0; i < size; i++)
		sum += i % 2 ? at[i] : at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Records a packet whose UDP checksum depends on @word. Returns the checksum, which is right. */
static uint16_t record(const char *const *address, uint16_t word)
{
	struct udp_address from = { .port = FROM_PORT }, to = { .port = TO_PORT };
	uint8_t payload[PAYLOAD_BYTES] = { word >> 8, word & 0xff, [PAYLOAD_BYTES - 1] = 7 };
	size_t ip_bytes, addresses_at, addresses_bytes;
	struct recorded found;
	struct udphdr udp;
	bool is_ipv4;

	inet_pton(AF_INET6, address[0], &from.gid);
	inet_pton(AF_INET6, address[1], &to.gid);
	assert_int_equal(lseek(capture_fd, 0, SEEK_SET), 0);
	capture_write(&from, &to, payload, sizeof(payload));
	assert_true(pread(capture_fd, &found, sizeof(found), 0) > 0);
	is_ipv4 = found.ip[0] >> 4 == 4;
	ip_bytes = is_ipv4 ? sizeof(struct ip) : sizeof(struct ip6_hdr);
	addresses_bytes = is_ipv4 ? 8 : 32;
	addresses_at = ip_bytes - addresses_bytes;
	assert_int_equal(found.record.bytes, ip_bytes + sizeof(udp) + sizeof(payload));
	memcpy(&udp, found.ip + ip_bytes, sizeof(udp));
	assert_int_equal(sum_of(found.ip + addresses_at, found.record.bytes - addresses_at,
				IPPROTO_UDP + sizeof(udp) + sizeof(payload)),
			 0xffff);
	if (is_ipv4)
		assert_int_equal(sum_of(found.ip, ip_bytes, 0), 0xffff);
	return ntohs(udp.uh_sum);
}

/* In UDP a checksum of 0 means that there is none, which IPv6 forbids (RFC 8200, 8.1). */
static void a_checksum_is_right_and_never_0(void **state)
{
	size_t i;

	(void)state;
	capture_fd = memfd_create("capture", MFD_CLOEXEC);
	assert_true(capture_fd >= 0);
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		uint16_t first = record(addresses[i], 0);

		assert_int_not_equal(first, 0);
		/* The checksum is the complement of the sum, so this word brings it to 0. */
		assert_int_equal(record(addresses[i], first), 0xffff);
	}
	close(capture_fd);
	capture_fd = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_checksum_is_right_and_never_0) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
