/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which destinations on other hosts are softnics. A softnic hears its own port, so what goes there
 * depends on no other process of its host. Any other RoCE device hears port 4791 only.
 *
 * RC learns this from the peer's answers. The sender of UD or UC may get none, so it asks the
 * destination's port before its first packet:
 *
 *	QUESTION  nonce  ------>  the own port of the destination's process
 *	       <------  ANSWER  the same nonce
 *
 * An answer takes a round trip. A host without that process answers by ICMP, or not at all: after
 * 1.9 s packets go to port 4791. While a destination is in use, softnic asks it once a second.
 *
 * A sender that forges an answer must have seen the question. A forged ICMP message moves packets
 * to port 4791 for a second, where a softnic hears them, too. An answer is as long as its question,
 * and goes to a softnic's port only.
 *
 * Port 4791 answers, too, whichever process hears the question. weir doctor asks it, and tries
 * sizes of packets: probe.h.
 */
#ifndef WEIR_SOFTNIC_UDP_NEIGHBOR_H
#define WEIR_SOFTNIC_UDP_NEIGHBOR_H

#include "softnic/udp/send.h"
#include "softnic/udp/socket.h"

/**
 * neighbor_port() - where to send packets for a queue pair
 * @path: to its host; @path->to.port is ignored
 *
 * Asks if necessary.
 *
 * Context: Any thread; not between send_begin() and send_end().
 * Return: the port, or 0 while the destination has time to answer: call again in NEIGHBOR_WAIT_NS.
 */
uint16_t neighbor_port(const struct udp_path *path, uint32_t qpn);

#define NEIGHBOR_WAIT_NS 200000ull

/**
 * neighbor_take() - a question or an answer came, with a right ICRC: question.h
 *
 * Context: Any thread; not between send_begin() and send_end().
 */
void neighbor_take(const struct udp_packet *packet);

/** neighbor_refused() - a host says that nobody has the port @to of a packet of ours */
void neighbor_refused(const struct udp_address *to);

/**
 * neighbor_ended() - the process at port @to has ended: a host has refused a queue pair's packet
 *
 * A host sends few refusals: Linux sends six to one address, and then one a second. The packets in
 * flight to a process that ends use them up, and a request to connect again stays without an
 * answer. So silence counts as a refusal for a moment.
 */
void neighbor_ended(const struct udp_address *to);

/** neighbor_has_ended() - has neighbor_ended() been called a moment ago? */
bool neighbor_has_ended(const struct udp_address *to);

/** neighbor_reset() - forget all; in the child of a fork */
void neighbor_reset(void);

#endif
