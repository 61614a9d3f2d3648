/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol between two connection managers.
 *
 * A connection uses one SOCK_SEQPACKET socket, with one message per packet:
 *
 *	active			passive
 *	REQ	------------>			rdma_connect
 *		<------------	REP | REJ	rdma_accept | rdma_reject
 *	RTU	------------>			the QPs can send
 *
 * When the socket ends, for any reason, the connection ends, so no message exists for the end.
 * Datagrams need no connection, only the remote QP number. The answer ends the socket:
 *
 *	SIDR_REQ ---------->			rdma_connect
 *		<------------	SIDR_REP	rdma_accept | rdma_reject
 *
 * Parsing is pure: bytes in, a checked message out, no I/O.
 */
#ifndef WEIR_SOFTNIC_CM_MSG_H
#define WEIR_SOFTNIC_CM_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "addr.h"

/* The user's share of the private data in InfiniBand's CM messages, in bytes. */
#define CM_REQ_PRIVATE_MAX 56
#define CM_REP_PRIVATE_MAX 196
#define CM_REJ_PRIVATE_MAX 148
#define CM_SIDR_REQ_PRIVATE_MAX 180
#define CM_SIDR_REP_PRIVATE_MAX 136
#define CM_PRIVATE_MAX CM_REP_PRIVATE_MAX

/* Longer than any message; a packet of this size is malformed. */
#define CM_MSG_BYTES_MAX 320

/* Reasons of a rejection, with the InfiniBand specification's numbers. */
enum cm_reason {
	CM_REASON_NONE = 0,
	CM_REASON_INVALID_SERVICE_ID = 8,
	CM_REASON_CONSUMER_DEFINED = 28,
	CM_REASON_VENDOR_OPTION = 35,
};

enum cm_msg_type {
	CM_MSG_REQ = 1,
	CM_MSG_REP,
	CM_MSG_REJ,
	CM_MSG_RTU,
	CM_MSG_SIDR_REQ,
	CM_MSG_SIDR_REP,
};

/* Status in a SIDR_REP, with the InfiniBand specification's numbers. */
enum cm_sidr_status {
	CM_SIDR_SUCCESS = 0,
	CM_SIDR_UNSUPPORTED = 1, /* no listener */
	CM_SIDR_REJECT = 2,
};

/**
 * struct cm_msg - one decoded message
 * @type: decides which other fields are valid
 * @qp_num: of the sender (REQ, REP, SIDR_REP), 24 bits
 * @responder_resources: reads the sender can serve at once (REQ, REP)
 * @initiator_depth: reads the sender wants to issue at once (REQ, REP)
 * @retry_count: retries of either side, at most 7 (REQ)
 * @rnr_retry_count: RNR retries of the receiver of the message, at most 7 (REQ, REP)
 * @srq: the sender receives from an SRQ (REQ, REP)
 * @flow_control: as in rdma_conn_param, carried only (REQ, REP)
 * @traffic_class: of the packets, both ways (REQ)
 * @psn: of the first packet to the sender (REQ, REP between hosts; else 0)
 * @mtu: enum ibv_mtu (REQ between hosts; else 0)
 * @ece_vendor: enhanced connection establishment, carried only (REQ, REP)
 * @ece_options: likewise
 * @reason: enum cm_reason (REJ), enum cm_sidr_status (SIDR_REP)
 * @src: address of the active side (REQ, SIDR_REQ)
 * @dst: address called (REQ, SIDR_REQ)
 * @private_len: bytes in @private_data, within the limit of @type
 * @private_data: the user's
 */
struct cm_msg {
	enum cm_msg_type type;
	uint32_t qp_num;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t flow_control;
	uint8_t traffic_class;
	uint8_t mtu;
	uint32_t psn;
	uint32_t ece_vendor;
	uint32_t ece_options;
	uint16_t reason;
	union cm_addr src;
	union cm_addr dst;
	uint8_t private_len;
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* Return: the status that a SIDR_REP has for the reason of a rejection. */
enum cm_sidr_status cm_msg_sidr_status(enum cm_reason reason);

/* Return: limit of private data for @type, in bytes; 0 for RTU. */
size_t cm_msg_private_max(enum cm_msg_type type);

/**
 * cm_msg_encode() - encode a message
 * @msg: valid as struct cm_msg says
 * @buf: at least CM_MSG_BYTES_MAX bytes
 *
 * Return: the bytes used.
 */
size_t cm_msg_encode(const struct cm_msg *msg, void *buf);

/**
 * cm_msg_decode() - check and decode a packet from a peer
 * @msg: written on success only
 * @buf: the packet; read only once, so a concurrent change is harmless
 * @len: any number of bytes
 *
 * Return: 0, or -EPROTO if the packet is not a message of this version.
 */
int cm_msg_decode(struct cm_msg *msg, const void *buf, size_t len);

#endif
