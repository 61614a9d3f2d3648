/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All messages have one layout; unused fields are zero. Both ends are on one host, so integers,
 * except ports, are in host byte order. The packet length must match the header exactly.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "msg.h"

#define CM_WIRE_MAGIC 0x6d637377 /* "wscm" */
#define CM_WIRE_VERSION 1

struct cm_wire_addr {
	uint16_t family;
	uint16_t port; /* big endian */
	uint32_t scope;
	uint8_t addr[16]; /* IPv4: the first 4 bytes */
};

struct cm_wire {
	uint32_t magic;
	uint8_t version;
	uint8_t type;
	uint8_t private_len;
	uint8_t srq;
	uint32_t qp_num;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t flow_control;
	uint8_t traffic_class;
	uint16_t reason;
	uint32_t ece_vendor;
	uint32_t ece_options;
	struct cm_wire_addr src;
	struct cm_wire_addr dst;
	uint8_t private_data[CM_PRIVATE_MAX];
};

#define CM_WIRE_HEADER offsetof(struct cm_wire, private_data)

static_assert(CM_WIRE_HEADER == 76, "the layout is the protocol: change the version with it");
static_assert(sizeof(struct cm_wire) < CM_MSG_BYTES_MAX, "room for the longest message");

size_t cm_msg_private_max(enum cm_msg_type type)
{
	switch (type) {
	case CM_MSG_REQ:
		return CM_REQ_PRIVATE_MAX;
	case CM_MSG_REP:
		return CM_REP_PRIVATE_MAX;
	case CM_MSG_REJ:
		return CM_REJ_PRIVATE_MAX;
	case CM_MSG_SIDR_REQ:
		return CM_SIDR_REQ_PRIVATE_MAX;
	case CM_MSG_SIDR_REP:
		return CM_SIDR_REP_PRIVATE_MAX;
	case CM_MSG_RTU:
		break;
	}
	return 0;
}

enum cm_sidr_status cm_msg_sidr_status(enum cm_reason reason)
{
	return reason == CM_REASON_INVALID_SERVICE_ID ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT;
}

static void addr_encode(struct cm_wire_addr *to, const union cm_addr *from)
{
	to->family = from->sa.sa_family;
	if (from->sa.sa_family == AF_INET6) {
		to->port = from->in6.sin6_port;
		to->scope = from->in6.sin6_scope_id;
		memcpy(to->addr, &from->in6.sin6_addr, sizeof(from->in6.sin6_addr));
	} else if (from->sa.sa_family == AF_INET) {
		to->port = from->in.sin_port;
		memcpy(to->addr, &from->in.sin_addr, sizeof(from->in.sin_addr));
	}
}

static int addr_decode(union cm_addr *to, const struct cm_wire_addr *from)
{
	memset(to, 0, sizeof(*to));
	switch (from->family) {
	case AF_INET:
		to->in.sin_port = from->port;
		memcpy(&to->in.sin_addr, from->addr, sizeof(to->in.sin_addr));
		break;
	case AF_INET6:
		to->in6.sin6_port = from->port;
		to->in6.sin6_scope_id = from->scope;
		memcpy(&to->in6.sin6_addr, from->addr, sizeof(to->in6.sin6_addr));
		break;
	default:
		return -EPROTO;
	}
	to->sa.sa_family = from->family;
	return 0;
}

size_t cm_msg_encode(const struct cm_msg *msg, void *buf)
{
	struct cm_wire wire = {
		.magic = CM_WIRE_MAGIC,
		.version = CM_WIRE_VERSION,
		.type = (uint8_t)msg->type,
		.private_len = msg->private_len,
		.srq = msg->srq,
		.qp_num = msg->qp_num,
		.responder_resources = msg->responder_resources,
		.initiator_depth = msg->initiator_depth,
		.retry_count = msg->retry_count,
		.rnr_retry_count = msg->rnr_retry_count,
		.flow_control = msg->flow_control,
		.traffic_class = msg->traffic_class,
		.reason = msg->reason,
		.ece_vendor = msg->ece_vendor,
		.ece_options = msg->ece_options,
	};
	size_t len = CM_WIRE_HEADER + msg->private_len;

	addr_encode(&wire.src, &msg->src);
	addr_encode(&wire.dst, &msg->dst);
	memcpy(wire.private_data, msg->private_data, msg->private_len);
	memcpy(buf, &wire, len);
	return len;
}

static int header_is_valid(const struct cm_wire *wire, size_t len)
{
	return wire->magic == CM_WIRE_MAGIC && wire->version == CM_WIRE_VERSION &&
	       wire->type >= CM_MSG_REQ && wire->type <= CM_MSG_SIDR_REP &&
	       wire->private_len <= cm_msg_private_max(wire->type) &&
	       len == CM_WIRE_HEADER + wire->private_len;
}

static int fields_are_valid(const struct cm_wire *wire)
{
	return wire->qp_num < 1 << 24 && wire->retry_count <= 7 && wire->rnr_retry_count <= 7 &&
	       wire->srq <= 1;
}

int cm_msg_decode(struct cm_msg *msg, const void *buf, size_t len)
{
	struct cm_wire wire = { 0 };
	struct cm_msg m = { 0 };

	if (len < CM_WIRE_HEADER || len > sizeof(wire))
		return -EPROTO;
	memcpy(&wire, buf, len);
	if (!header_is_valid(&wire, len) || !fields_are_valid(&wire))
		return -EPROTO;
	if ((wire.type == CM_MSG_REQ || wire.type == CM_MSG_SIDR_REQ) &&
	    (addr_decode(&m.src, &wire.src) || addr_decode(&m.dst, &wire.dst)))
		return -EPROTO;

	m.type = wire.type;
	m.qp_num = wire.qp_num;
	m.responder_resources = wire.responder_resources;
	m.initiator_depth = wire.initiator_depth;
	m.retry_count = wire.retry_count;
	m.rnr_retry_count = wire.rnr_retry_count;
	m.srq = wire.srq;
	m.flow_control = wire.flow_control;
	m.traffic_class = wire.traffic_class;
	m.ece_vendor = wire.ece_vendor;
	m.ece_options = wire.ece_options;
	m.reason = wire.reason;
	m.private_len = wire.private_len;
	memcpy(m.private_data, wire.private_data, wire.private_len);
	*msg = m;
	return 0;
}
