// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic udp socket; devices: softnic; timeout: 60 */
/*
 * The UDP sockets within one host. MADs go to the own port, to port 4791, and from one
 * process to another, which passes a MAD back.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/verbs_puppet.h"
#include "softnic/loop/loop.h"
#include "softnic/roce/packet.h"
#include "softnic/verbs/nic.h"
#include "softnic/udp/passed.h"
#include "softnic/udp/udp.h"

enum { PATIENCE_S = 20, STRANGE_PORT = UDP_PORT_BASE + SOFTNIC_SLOTS };

static const union ibv_gid loopback = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

/* Of the last MAD heard; the engine writes, and counts last. */
static struct {
	struct udp_mad mad;
	uint8_t bytes[UDP_MAD_BYTES];
	uint32_t count;
	uint32_t slot; /* answer of the listener */
} heard;

static uint32_t hear(const struct udp_mad *mad)
{
	heard.mad = *mad;
	memcpy(heard.bytes, mad->bytes, UDP_MAD_BYTES);
	add_ordered(&heard.count, 1);
	return load_acquire(&heard.slot);
}

static bool wait_for(uint32_t count)
{
	uint64_t end_ns = softnic_loop_now_ns() + PATIENCE_S * 1000000000ull;

	while (load_acquire(&heard.count) < count && softnic_loop_now_ns() < end_ns)
		usleep(500);
	return load_acquire(&heard.count) == count;
}

static void open_wire(struct endpoint *e)
{
	end_open(e, ALL_ACCESS);
	assert_int_equal(udp_socket_open(), 0);
	assert_int_equal(udp_socket_open(), 0);
	memset(&heard, 0, sizeof(heard));
	udp_mad_listen(hear);
}

/* Port 4791 may go to another process of this host. */
static void a_mad_arrives_whole(void **state)
{
	struct udp_address to = { .gid = loopback };
	uint8_t mad[UDP_MAD_BYTES];
	struct endpoint e;

	(void)state;
	open_wire(&e);
	to.port = udp_port(nic.slot);
	memset(mad, 'a', sizeof(mad));
	udp_mad_send(&loopback, &to, mad);
	assert_true(wait_for(1));
	assert_memory_equal(heard.bytes, mad, sizeof(mad));
	assert_memory_equal(&heard.mad.from.gid, &loopback, sizeof(loopback));
	assert_memory_equal(&heard.mad.to, &loopback, sizeof(loopback));
	assert_int_equal(heard.mad.from.port, udp_port(nic.slot));
	assert_false(heard.mad.was_passed_on);
	udp_mad_listen(NULL);
	end_close(&e);
}

/* Sends bytes from a socket that is no softnic's. */
static void send_strange(uint16_t from, const uint8_t *bytes, size_t size)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), no = 0;

	assert_true(fd >= 0);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	memcpy(&at.sin6_addr, &loopback, sizeof(at.sin6_addr));
	at.sin6_port = htons(from);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	at.sin6_port = htons(udp_port(nic.slot));
	assert_int_equal(sendto(fd, bytes, size, 0, (struct sockaddr *)&at, sizeof(at)), size);
	close(fd);
}

/* Another process may have any slot. */
static uint16_t free_slot_port(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), rc = -1;
	uint32_t slot;

	for (slot = SOFTNIC_SLOTS - 1; slot && rc; slot--) {
		at.sin6_port = htons(udp_port(slot));
		rc = bind(fd, (struct sockaddr *)&at, sizeof(at));
	}
	close(fd);
	assert_int_equal(rc, 0);
	return ntohs(at.sin6_port);
}

static size_t make_mad(uint8_t *bytes, uint32_t qkey, uint32_t mad_bytes)
{
	const struct roce_packet p = {
		.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = qkey,
		.payload_bytes = mad_bytes,
	};
	size_t size = roce_packet_encode(&p, bytes);

	memset(bytes + size, 'x', mad_bytes + ROCE_ICRC_BYTES);
	return size + mad_bytes + ROCE_ICRC_BYTES;
}

/* Only the last packet counts; that it is heard shows that the others were dropped. */
static void malformed_packets_are_dropped(void **state)
{
	static const uint32_t good_key = 0x80010000;
	const struct udp_address from = { .gid = loopback, .port = STRANGE_PORT };
	uint8_t bytes[PASSED_HEADER_BYTES + ROCE_PACKET_MAX] = { 0 };
	struct endpoint e;
	size_t size;

	(void)state;
	open_wire(&e);
	send_strange(STRANGE_PORT, bytes, 0);
	send_strange(STRANGE_PORT, bytes, 1);
	send_strange(STRANGE_PORT, bytes, sizeof(bytes));
	size = make_mad(bytes, good_key + 1, UDP_MAD_BYTES);
	send_strange(STRANGE_PORT, bytes, size);
	size = make_mad(bytes, good_key, UDP_MAD_BYTES - 4);
	send_strange(STRANGE_PORT, bytes, size);
	/* A port of a softnic with a wrong ICRC, and a passed-on packet of a port of none. */
	size = make_mad(bytes, good_key, UDP_MAD_BYTES);
	send_strange(free_slot_port(), bytes, size);
	passed_encode(bytes, &from, &from);
	size = make_mad(bytes + PASSED_HEADER_BYTES, good_key, UDP_MAD_BYTES);
	send_strange(STRANGE_PORT, bytes, PASSED_HEADER_BYTES + size);
	size = make_mad(bytes, good_key, UDP_MAD_BYTES);
	send_strange(STRANGE_PORT, bytes, size);
	assert_true(wait_for(1));
	assert_int_equal(heard.mad.from.port, STRANGE_PORT);
	udp_mad_listen(NULL);
	end_close(&e);
}

static void a_passed_on_mad_keeps_its_sender(void **state)
{
	const struct udp_address from = { .gid = { .raw = { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
					   .ifindex = 7,
					   .port = 0xc123 };
	const struct udp_address to = { .gid = { .raw = { [10] = 0xff, 0xff, 192, 0, 2, 2 } } };
	uint8_t bytes[PASSED_HEADER_BYTES + ROCE_PACKET_MAX];
	struct endpoint e;
	size_t size;

	(void)state;
	open_wire(&e);
	passed_encode(bytes, &from, &to);
	size = make_mad(bytes + PASSED_HEADER_BYTES, 0x80010000, UDP_MAD_BYTES);
	send_strange(free_slot_port(), bytes, PASSED_HEADER_BYTES + size);
	assert_true(wait_for(1));
	assert_true(heard.mad.was_passed_on);
	assert_memory_equal(&heard.mad.from.gid, &from.gid, sizeof(from.gid));
	assert_int_equal(heard.mad.from.port, from.port);
	assert_int_equal(heard.mad.from.ifindex, from.ifindex);
	assert_memory_equal(&heard.mad.to, &to.gid, sizeof(to.gid));
	udp_mad_listen(NULL);
	end_close(&e);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer forbids threads in the child of a threaded process */
/* The child decides that each MAD is for the parent's slot, given to it by a pipe. */
static void run_child(int from_parent, int to_parent)
{
	struct endpoint e;
	uint32_t slot;

	open_wire(&e);
	if (read(from_parent, &slot, sizeof(slot)) != sizeof(slot))
		_exit(1);
	store_release(&heard.slot, slot);
	if (write(to_parent, &nic.slot, sizeof(nic.slot)) != sizeof(nic.slot) ||
	    read(from_parent, &slot, 1)) /* until the parent closes the pipe */
		_exit(1);
	_exit(load_acquire(&heard.count) == 1 ? 0 : 1);
}

static void a_process_passes_on_what_is_for_another(void **state)
{
	struct udp_address to = { .gid = loopback };
	uint8_t mad[UDP_MAD_BYTES] = "passed";
	int down[2], up[2], status;
	struct endpoint e;
	uint32_t slot;
	pid_t child;

	(void)state;
	open_wire(&e);
	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(down[1]);
		run_child(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	assert_int_equal(write(down[1], &nic.slot, sizeof(nic.slot)), sizeof(nic.slot));
	assert_int_equal(read(up[0], &slot, sizeof(slot)), sizeof(slot));
	assert_int_not_equal(slot, nic.slot);
	to.port = udp_port(slot);
	udp_mad_send(&loopback, &to, mad);
	assert_true(wait_for(1));
	assert_true(heard.mad.was_passed_on);
	assert_memory_equal(heard.bytes, mad, sizeof(mad));
	assert_int_equal(heard.mad.from.port, udp_port(nic.slot));
	close(down[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(up[0]);
	udp_mad_listen(NULL);
	end_close(&e);
}
#endif

static void routes_lead_to_unicast_addresses_only(void **state)
{
	const union ibv_gid none = { 0 }, group = { .raw = { 0xff, 2, [15] = 1 } };
	const union ibv_gid group_4 = { .raw = { [10] = 0xff, 0xff, 224, 0, 0, 1 } };
	struct udp_route route;
	struct endpoint e;

	(void)state;
	open_wire(&e);
	assert_int_equal(udp_route(&none, NULL, 0, &route), -EHOSTUNREACH);
	assert_int_equal(udp_route(&group, NULL, 0, &route), -EHOSTUNREACH);
	assert_int_equal(udp_route(&group_4, NULL, 0, &route), -EHOSTUNREACH);
	assert_int_equal(udp_route(&loopback, NULL, 0, &route), 0);
	assert_memory_equal(&route.from.gid, &loopback, sizeof(loopback));
	assert_int_equal(route.from.port, udp_port(nic.slot));
	assert_int_equal(route.mtu, 4096);
	end_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mad_arrives_whole),
		cmocka_unit_test(malformed_packets_are_dropped),
		cmocka_unit_test(a_passed_on_mad_keeps_its_sender),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(a_process_passes_on_what_is_for_another),
#endif
		cmocka_unit_test(routes_lead_to_unicast_addresses_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
