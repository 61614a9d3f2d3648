/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The UDP sockets by which this process reaches other hosts: RoCE v2 without a NIC, a module, a
 * daemon or a privilege.
 *
 * Each process owns the UDP port UDP_PORT_BASE + slot, and sends from it. A queue pair number
 * holds the slot of its process. So once a peer has shown that it is a softnic, packets go to
 * its process directly. RC shows it by an answer, and its first packet goes to port 4791. UD and UC
 * have no answers, so softnic asks before the first packet: neighbor.h.
 *
 * Other RoCE peers know port 4791 only. All processes of the user join that port (SO_REUSEPORT).
 * The kernel gives each flow to one of these processes. That process passes a packet for another
 * slot on, over the loopback interface, to the slot's own port, and adds the sender's address. A
 * process that exits first passes on what it holds; one that is killed takes that along. Passing
 * on needs no BPF program. Only flows of foreign peers pay for it, when several processes share the
 * host.
 *
 * Addresses are GIDs, and the sockets are IPv6 sockets that also carry IPv4: the GID of an IPv4
 * address is the address that such a socket uses.
 *
 * Every byte from the wire is hostile. A packet counts only if a queue pair's transport accepts
 * it. As on any RoCE network, a sender that forges its address must guess the queue pair's number
 * and PSN; so must a local user that forges a passed-on packet.
 *
 * The sender computes the ICRC for IP id 0, which holds: the sockets set don't-fragment, and are
 * not connected. A receiver cannot see the IP id of an IPv4 packet. So the ICRC is checked over
 * IPv6, and over IPv4 if the sender's port shows a softnic. UDP's checksum covers the rest.
 */
#ifndef WEIR_SOFTNIC_UDP_UDP_H
#define WEIR_SOFTNIC_UDP_UDP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "softnic/verbs/device.h"

enum {
	UDP_ROCE_PORT = 4791,
	UDP_PORT_BASE = 0x7000, /* below the ports that Linux gives out by itself */
	UDP_MAD_BYTES = 256,
};

/**
 * struct udp_address - an end of a flow
 * @port: UDP, in host order
 * @ifindex: of the interface if @gid is a link-local IPv6 address, else any
 */
struct udp_address {
	union ibv_gid gid;
	uint32_t ifindex;
	uint16_t port;
};

/**
 * struct udp_route - how packets reach another host
 * @from: an address of this host; its port is this process's own
 * @mtu: largest payload of a RoCE packet: 256 to 4096
 */
struct udp_route {
	struct udp_address from;
	uint32_t mtu;
};

/**
 * struct udp_mad - a management datagram that arrived for queue pair 1
 * @from: of the sender, also of a passed-on MAD; answers go there
 * @to: the address of this host that it was sent to
 * @bytes: UDP_MAD_BYTES, *kept until* the function returns; of an untrusted sender
 * @was_passed_on: another process of this host received the MAD, and chose this process for it
 * @is_refused: this process has sent the MAD from @to to @from, whose host has nobody at that port
 */
struct udp_mad {
	struct udp_address from;
	union ibv_gid to;
	const uint8_t *bytes;
	bool was_passed_on, is_refused;
};

/**
 * udp_socket_open() - open the sockets of this process; idempotent
 *
 * Opens without port 4791 if the kernel's Soft-RoCE or another user holds that port. Then only
 * softnics reach us.
 *
 * Context: Any thread with a device open; any locks but the engine's.
 * Return: 0; -EHOSTUNREACH if the option wire=0 forbids it; -EADDRINUSE if another user holds this
 *	process's port; -EAFNOSUPPORT if the kernel lacks IPv6 sockets; or another negative errno.
 */
int udp_socket_open(void);

/** udp_port() - the own port of the process in @slot */
static inline uint16_t udp_port(uint32_t slot)
{
	return (uint16_t)(UDP_PORT_BASE + slot);
}

/** udp_port_is_softnic() - may a softnic own the port? None has slot 0. */
static inline bool udp_port_is_softnic(uint16_t port)
{
	return port > udp_port(0) && port < udp_port(SOFTNIC_SLOTS);
}

/** udp_socket_port_of_qpn() - the own port of the process with that queue pair, if a softnic */
uint16_t udp_socket_port_of_qpn(uint32_t qpn);

/**
 * udp_route() - find the way to another host
 * @from: source address, or NULL to let the kernel choose it
 * @ifindex: of @from, for link-local addresses
 *
 * Context: Any thread; never blocks.
 * Return: 0, or -EHOSTUNREACH.
 */
int udp_route(const union ibv_gid *to, const union ibv_gid *from, uint32_t ifindex,
	       struct udp_route *route);

/**
 * udp_mad_listen() - receive the MADs for queue pair 1
 * @fn: called on the engine thread without locks; NULL to end. Returns the slot of the process of
 *	this host for which the MAD is, and it gets the MAD. 0: the MAD is dealt with, or dropped.
 *	Ignored for a MAD that @was_passed_on.
 *
 * Context: Any thread. After the end a call of the old @fn may still run.
 */
void udp_mad_listen(uint32_t (*fn)(const struct udp_mad *mad));

/**
 * udp_mad_send() - send a MAD from queue pair 1 to queue pair 1
 * @from: of udp_route(), or @to of a received MAD
 * @to: its port is UDP_ROCE_PORT for a host that has not answered, else that of the answer
 * @mad: UDP_MAD_BYTES
 *
 * The network may lose it.
 *
 * Context: Any thread with the sockets open; any locks but the engine's.
 */
void udp_mad_send(const union ibv_gid *from, const struct udp_address *to, const uint8_t *mad);

#endif
