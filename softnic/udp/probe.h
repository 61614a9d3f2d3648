/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Questions (question.h) to the softnics of another host, from a port like a softnic's. The process
 * that asks opens no device. Its questions find where packets get lost.
 *
 * Context of all: one thread.
 */
#ifndef WEIR_SOFTNIC_UDP_PROBE_H
#define WEIR_SOFTNIC_UDP_PROBE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "softnic/udp/question.h"

enum {
	PROBE_ROCE_PORT = 4791,
	PROBE_PORT_MIN = 28673, /* of softnic's slots */
	PROBE_PORT_MAX = 29695,
	PROBE_QUESTION_BYTES = QUESTION_BYTES_MIN + ROCE_ICRC_BYTES, /* UDP's payload */
};

/**
 * struct probe - an end of a path
 * @from, @to: addresses of this host and the other; IPv4 ones are mapped
 * @port: of this end
 * @link_mtu: of the route, as this host knows it
 */
struct probe {
	int fd;
	struct sockaddr_in6 from, to;
	uint16_t port;
	bool is_ipv4;
	int link_mtu;
	uint64_t nonce;
};

enum probe_outcome { PROBE_SILENT, PROBE_ANSWERED, PROBE_REFUSED };

/**
 * struct probe_answer - what came of a question
 * @port: that has answered
 * @error: of a refusal: an errno, such as ECONNREFUSED for a port that nobody has
 */
struct probe_answer {
	enum probe_outcome outcome;
	uint16_t port;
	int error;
};

/**
 * struct probe_flow - what came of many questions
 * @repeated: answers that came again; @overtaken: that came after the answer to a later question
 * @rtt_ns: of the @answered, the least first; the caller frees it
 */
struct probe_flow {
	unsigned int sent, answered, repeated, overtaken;
	uint64_t *rtt_ns;
};

/* Return: 0, and the caller owes probe_close(); a negative errno: no route, or no port is free. */
int probe_open(struct probe *p, const struct sockaddr *host);
void probe_close(struct probe *p);

/* Whether an address is no broadcast, multicast or unspecified one. */
bool probe_is_of_one_host(const struct sockaddr *host);

/* Whether an address is one of this host. */
bool probe_is_here(const struct sockaddr *host);

/**
 * probe_ask() - ask a port, again and again until it answers or refuses
 * @bytes: of the question: UDP's payload
 * @tries: the first waits for 50 ms, each next one twice as long
 */
struct probe_answer probe_ask(struct probe *p, uint16_t port, enum question_kind kind, size_t bytes,
			      unsigned int tries);

/* Asks the ports of all slots. Refused: there is no such host. */
struct probe_answer probe_find(struct probe *p);

/* Asks a port @count times, without waiting for answers. Return: 0 or -ENOMEM. */
int probe_stream(struct probe *p, uint16_t port, unsigned int count, struct probe_flow *flow);

/** probe_payload() - the bytes of data that softnic puts into a packet on this route; 0: too few */
uint32_t probe_payload(const struct probe *p);

/** probe_largest() - the largest IP packet that softnic sends, with so many bytes of data */
size_t probe_largest(const struct probe *p, uint32_t payload);

/** probe_packet_bytes() - the largest IP packet that passes there and back; @refused does not */
size_t probe_packet_bytes(struct probe *p, uint16_t port, size_t refused);

/* Whether an IP packet of a size passes in both directions. */
bool probe_passes(struct probe *p, uint16_t port, size_t packet_bytes, unsigned int tries);

#endif
