/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The format of a capture: pcap, with times in nanoseconds and packets that begin with IP.
 */
#ifndef WEIR_SOFTNIC_TAP_PCAP_H
#define WEIR_SOFTNIC_TAP_PCAP_H

#include <stdint.h>

#define PCAP_VARIABLE "WEIR_SOFTNIC_PCAP" /* the environment names the file */

enum { PCAP_LINK_IP = 101, PCAP_BYTES_MAX = 1 << 16 };

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t reserved[2];
	uint32_t bytes_max;
	uint32_t link;
};

/* A constant. */
#define PCAP_HEADER                                    \
	{                                              \
		.magic = 0xa1b23c4d,                   \
		.major = 2,                            \
		.minor = 4,                            \
		.bytes_max = PCAP_BYTES_MAX,           \
		.link = PCAP_LINK_IP,                  \
	}

struct pcap_record {
	uint32_t seconds, nanoseconds;
	uint32_t bytes, original_bytes;
};

#endif
