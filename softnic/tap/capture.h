/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A record of the packets that this process sends and receives, for tshark and its like: weir run
 * --pcap. The file is a pcap of IP packets, and weir run has written its header. Each packet is
 * appended by one system call, so processes share the file.
 *
 * A UDP socket shows no IP header, so each packet gets one of its own: with the addresses and ports
 * of the flow, and the IP id that the ICRC needs. A packet that another process of this host has
 * passed on is recorded as it came from its sender.
 */
#ifndef WEIR_SOFTNIC_TAP_CAPTURE_H
#define WEIR_SOFTNIC_TAP_CAPTURE_H

#include "softnic/udp/udp.h"

/** capture_open() - begin if the environment asks for it; udp.lock held */
void capture_open(void);

extern int capture_fd; /* or -1 */

void capture_write(const struct udp_address *from, const struct udp_address *to,
		   const uint8_t *bytes, size_t size);

/**
 * capture_packet() - record a packet, if the process records
 * @bytes, @size: from the BTH to the ICRC
 *
 * Context: Any thread; any locks.
 */
static inline void capture_packet(const struct udp_address *from, const struct udp_address *to,
				  const uint8_t *bytes, size_t size)
{
	if (__builtin_expect(capture_fd >= 0, 0))
		capture_write(from, to, bytes, size);
}

#endif
