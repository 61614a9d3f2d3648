/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages of the IB connection manager (IB specification, volume 1, chapter 12), and the
 * header by which rdma_cm names IP addresses in them. Each is one MAD of 256 bytes, a UD message to
 * queue pair 1. LAP and APR, which move a connection to another path, are unknown here.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_ROCE_CM_MAD_H
#define WEIR_SOFTNIC_ROCE_CM_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ROCE_MAD_BYTES = 256,
	ROCE_MAD_GID_BYTES = 16,
	ROCE_MAD_INFO_MAX = 72,
	ROCE_MAD_PRIVATE_MAX = 224,
	ROCE_MAD_QPN = 1, /* queue pair of all connection managers */
};

/* The attribute ID of a message. */
enum roce_mad_kind {
	ROCE_MAD_REQ = 0x10,
	ROCE_MAD_MRA = 0x11,
	ROCE_MAD_REJ = 0x12,
	ROCE_MAD_REP = 0x13,
	ROCE_MAD_RTU = 0x14,
	ROCE_MAD_DREQ = 0x15,
	ROCE_MAD_DREP = 0x16,
	ROCE_MAD_SIDR_REQ = 0x17,
	ROCE_MAD_SIDR_REP = 0x18,
};

/* Reasons of a REJ that this code gives (12.6.7.2). */
enum roce_mad_reason {
	ROCE_MAD_NO_RESOURCES = 3,
	ROCE_MAD_TIMEOUT = 4,
	ROCE_MAD_INVALID_ID = 6,
	ROCE_MAD_INVALID_SERVICE = 8,
	ROCE_MAD_INVALID_TRANSPORT = 9,
	ROCE_MAD_STALE = 10,
	ROCE_MAD_CONSUMER = 28,
};

/* The message that a REJ or an MRA answers. */
enum roce_mad_answered {
	ROCE_MAD_OF_REQ,
	ROCE_MAD_OF_REP,
	ROCE_MAD_OF_OTHER,
};

/**
 * struct roce_mad - a message; fields that its kind lacks are 0
 * @tid: transaction ID: the same in a request, its answer and their repetitions
 * @local_id: the sender's communication ID; of SIDR: the request ID
 * @remote_id: the receiver's
 * @service_id, @ca_guid, @qkey, @qpn, @pkey: the sender's
 * @psn: with which the receiver begins to send packets
 * @vendor_id, @options: 24 bits of a vendor, and its options (ECE; of REQ and REP); or 0
 * @responder_resources, @initiator_depth: reads and atomics that the sender answers and starts
 * @remote_timeout, @local_timeout: exponents of 4.096 us * 2^x: the time in which the receiver
 *	answers, and the sender
 * @transport: 0: RC, 1: UC
 * @mtu: 1: 256 to 5: 4096
 * @retry_count, @rnr_retry_count, @max_cm_retries: limits of repetitions
 * @local_gid, @remote_gid: of the path, seen from the sender
 * @ack_timeout: exponent as above
 * @answered: enum roce_mad_answered
 * @service_timeout: exponent as above, of an MRA
 * @reason: of a REJ
 * @status: of a SIDR_REP; 0: success
 * @info, @info_bytes: more about @reason or @status
 * @private_data: roce_mad_private_bytes() of them go on the wire
 */
struct roce_mad {
	uint64_t tid, service_id, ca_guid;
	uint32_t local_id, remote_id, qkey, qpn, psn, vendor_id, options, flow_label;
	uint16_t kind, pkey, reason;
	uint8_t responder_resources, initiator_depth, remote_timeout, local_timeout;
	uint8_t transport, flow_control, retry_count, rnr_retry_count, max_cm_retries, srq, mtu;
	uint8_t traffic_class, hop_limit, sl, rate, subnet_local, ack_timeout;
	uint8_t target_ack_delay, failover, answered, service_timeout, status, info_bytes;
	uint8_t local_gid[ROCE_MAD_GID_BYTES], remote_gid[ROCE_MAD_GID_BYTES];
	uint8_t info[ROCE_MAD_INFO_MAX];
	uint8_t private_data[ROCE_MAD_PRIVATE_MAX];
};

/** roce_mad_private_bytes() - private data of a kind of message; 0: no such kind */
size_t roce_mad_private_bytes(uint16_t kind);

/**
 * roce_mad_decode() - read a message
 * @m: written on success
 * @bytes, @size: the payload of the UD packet
 *
 * Reserved fields are not looked at, as the specification wants.
 *
 * Return: 0, or -EPROTO: not a message of the connection manager, drop it.
 */
int roce_mad_decode(struct roce_mad *m, const uint8_t *bytes, size_t size);

/**
 * roce_mad_encode() - write a message
 * @m: of a known kind; a field's excess bits are cut
 */
void roce_mad_encode(const struct roce_mad *m, uint8_t bytes[ROCE_MAD_BYTES]);

/** roce_mad_timeout_ns() - the time of an exponent, of which the lower 5 bits count */
uint64_t roce_mad_timeout_ns(uint8_t exponent);

#endif
