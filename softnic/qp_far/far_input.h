/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets for the queue pairs of this process, in batches: between far_input() and
 * far_input_end() the thread may hold nic.lock and the lock of one queue pair.
 *
 * Context of all: the lock of poller.c held.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_FAR_INPUT_H
#define WEIR_SOFTNIC_QP_FAR_FAR_INPUT_H

#include "softnic/roce/packet.h"
#include "softnic/udp/socket.h"

/** far_input() - a packet for a queue pair of our slot arrived; it may not exist */
void far_input(const struct udp_packet *packet, const struct roce_packet *decoded);

/** far_input_sealed() - a packet came for which seal_is_sealed() holds, for our slot */
void far_input_sealed(const struct udp_packet *packet);

/** far_input_message() - a message of an agreement on keys came, with a right ICRC */
void far_input_message(const struct udp_packet *packet);

/** far_input_end() - let the queue pairs answer, and release the locks; idempotent */
void far_input_end(void);

#endif
