/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that a fault holds back: "packet_delay_us" all, which leave in the order in which they
 * came, and "reorder" one, which the next packet overtakes.
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

/**
 * delay_hold() - send a copy of a packet behind the next packet, or a millisecond later
 *
 * The time is beyond the gaps in a flow. So a packet that has no next one soon is late, not lost.
 *
 * Context: udp.lock held.
 * Return: false if another packet is held.
 */
bool delay_hold(const struct udp_path *path, const uint8_t *bytes, size_t size);

/** delay_release_held() - send the packet of delay_hold(), if any; udp.lock held */
void delay_release_held(void);

/** delay_reset() - forget all packets; in the child of a fork */
void delay_reset(void);

#endif
