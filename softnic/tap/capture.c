// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "softnic/tap/capture.h"
#include "softnic/tap/pcap.h"
#include "softnic/udp/socket.h"

enum { IPV4_AT = 12, HOPS = 64 };

int capture_fd = -1;

/* The headers that a packet had in the network. */
struct capture_headers {
	struct pcap_record record;
	union {
		struct ip v4;
		struct ip6_hdr v6;
	} ip;
	struct udphdr udp;
};

void capture_open(void)
{
	const char *path = getenv(PCAP_VARIABLE);

	if (capture_fd < 0 && path && path[0])
		capture_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static uint32_t add_words(uint32_t sum, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	size_t i;

	for (i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	if (i < size)
		sum += (uint32_t)at[i] << 8;
	return sum;
}

static uint16_t checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Each returns the length of the IP header, and adds the addresses to @sum for UDP's checksum. */
static size_t fill_ipv4(struct ip *ip, const struct udp_address *from,
			const struct udp_address *to, size_t udp_bytes, uint32_t *sum)
{
	*ip = (struct ip){
		.ip_v = 4,
		.ip_hl = sizeof(*ip) / 4,
		.ip_len = htons((uint16_t)(sizeof(*ip) + udp_bytes)),
		.ip_off = htons(IP_DF),
		.ip_ttl = HOPS,
		.ip_p = IPPROTO_UDP,
	};
	memcpy(&ip->ip_src, from->gid.raw + IPV4_AT, sizeof(ip->ip_src));
	memcpy(&ip->ip_dst, to->gid.raw + IPV4_AT, sizeof(ip->ip_dst));
	ip->ip_sum = checksum(add_words(0, ip, sizeof(*ip)));
	*sum = add_words(*sum, &ip->ip_src, 2 * sizeof(ip->ip_src));
	return sizeof(*ip);
}

static size_t fill_ipv6(struct ip6_hdr *ip, const struct udp_address *from,
			const struct udp_address *to, size_t udp_bytes, uint32_t *sum)
{
	memset(ip, 0, sizeof(*ip));
	ip->ip6_flow = htonl(6u << 28);
	ip->ip6_plen = htons((uint16_t)udp_bytes);
	ip->ip6_nxt = IPPROTO_UDP;
	ip->ip6_hlim = HOPS;
	memcpy(&ip->ip6_src, &from->gid, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, &to->gid, sizeof(ip->ip6_dst));
	*sum = add_words(*sum, &ip->ip6_src, 2 * sizeof(ip->ip6_src));
	return sizeof(*ip);
}

void capture_write(const struct udp_address *from, const struct udp_address *to,
		   const uint8_t *bytes, size_t size)
{
	size_t udp_bytes = sizeof(struct udphdr) + size, ip_bytes;
	uint32_t sum = IPPROTO_UDP + 2 * (uint32_t)udp_bytes + from->port + to->port;
	struct capture_headers h = { 0 };
	struct timespec now;
	struct iovec iov[] = {
		{ &h.record, sizeof(h.record) },
		{ &h.ip, 0 },
		{ &h.udp, sizeof(h.udp) },
		{ (void *)bytes, size },
	};

	h.udp.uh_sport = htons(from->port);
	h.udp.uh_dport = htons(to->port);
	h.udp.uh_ulen = htons((uint16_t)udp_bytes);
	ip_bytes = socket_is_ipv4(&from->gid) ? fill_ipv4(&h.ip.v4, from, to, udp_bytes, &sum) :
						fill_ipv6(&h.ip.v6, from, to, udp_bytes, &sum);
	iov[1].iov_len = ip_bytes;
	h.udp.uh_sum = checksum(add_words(sum, bytes, size));
	if (!h.udp.uh_sum)
		h.udp.uh_sum = 0xffff; /* 0 means that there is none, which IPv6 forbids */
	clock_gettime(CLOCK_REALTIME, &now);
	h.record.seconds = (uint32_t)now.tv_sec;
	h.record.nanoseconds = (uint32_t)now.tv_nsec;
	h.record.bytes = h.record.original_bytes = (uint32_t)(ip_bytes + udp_bytes);
	if (writev(capture_fd, iov, sizeof(iov) / sizeof(iov[0])) < 0)
		capture_fd = -1; /* a full disk ends the record, not the program */
}
