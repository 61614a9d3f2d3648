/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that the fault "packet_delay_us" holds back. They leave in the order in which they came.
 */
#ifndef WEIR_SOFTNIC_TAP_DELAY_H
#define WEIR_SOFTNIC_TAP_DELAY_H

#include "softnic/udp/send.h"

/**
 * delay_packet() - send a copy of a packet later, by send_late()
 * @bytes, @size: whole, with the ICRC
 *
 * Drops the packet if too many wait, as a full queue of a network does.
 *
 * Context: udp.lock held.
 */
void delay_packet(const struct udp_path *path, const uint8_t *bytes, size_t size,
		  uint64_t delay_ns);

/** delay_reset() - forget all packets; in the child of a fork */
void delay_reset(void);

#endif
