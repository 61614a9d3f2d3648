/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending RoCE packets: many with one system call, and a train of equal packets to one peer as
 * one message that the kernel or the network card cuts up (UDP_SEGMENT).
 *
 * Between send_begin() and send_end() the caller holds udp.lock.
 */
#ifndef WEIR_SOFTNIC_UDP_SEND_H
#define WEIR_SOFTNIC_UDP_SEND_H

#include "softnic/roce/packet.h"
#include "softnic/seal/seal.h"
#include "softnic/udp/udp.h"

/**
 * struct udp_path - a flow to one peer
 * @from: an address of this host
 * @to: its port is the peer's own, or 4791
 */
struct udp_path {
	union ibv_gid from;
	struct udp_address to;
};

void send_begin(void);
void send_end(void);

enum { SEND_PACKET_MAX = ROCE_PACKET_MAX + SEAL_EXTRA_BYTES };

/** send_room() - memory for a packet of SEND_PACKET_MAX bytes, until the next call */
uint8_t *send_room(void);

/**
 * send_packet() - send what the caller has written to send_room()
 * @path: borrowed
 * @size: in bytes, at least a BTH, without the ICRC
 *
 * Sends at send_end() at the latest. Drops the packet if the kernel refuses it.
 */
void send_packet(const struct udp_path *path, size_t size);

/** send_from_roce_port() - as send_packet(), at once, from port 4791 if it is open; no faults */
void send_from_roce_port(const struct udp_path *path, size_t size);

/** send_sealed() - as send_packet(), for a packet that needs no ICRC */
void send_sealed(const struct udp_path *path, size_t size);

/** send_late() - send a packet as it is, with its ICRC; the faults of packets have been drawn */
void send_late(const struct udp_path *path, const uint8_t *bytes, size_t size);

/**
 * send_raw() - send a message as it is, at once
 * @iov: in two parts
 *
 * Context: As send_packet(), but not between send_begin() and send_end().
 */
void send_raw(const struct udp_address *to, const void *head, size_t head_size, const void *body,
	      size_t body_size);

#endif
