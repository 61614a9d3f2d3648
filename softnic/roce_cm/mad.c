/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One table has each field's place, as in the specification's tables 106 to 120, and serves both
 * directions. Bits count from the first byte's highest, as the specification draws them.
 */
#include "softnic/roce_cm/mad.h"

#include <errno.h>
#include <string.h>

enum {
	BASE_VERSION = 1,
	CLASS_CM = 0x07,
	CLASS_VERSION = 2,
	METHOD_SEND = 3,
	HEADER_BYTES = 24,
	OPTIONS_BIT = 160, /* of the header: the attribute modifier */
	REQ_LIDS_AT = 52,
	REQ_LIDS_BYTES = 4,
	TIMEOUT_UNIT_NS = 4096,
	EXPONENT_MASK = 31,
};

/* A field of @bits from bit @bit of byte @byte on, behind the MAD header. */
struct mad_field {
	uint16_t kind;
	uint16_t byte, bit, bits;
	uint16_t offset, size; /* in struct roce_mad */
};

#define FIELD(k, at, first, width, member)                                      \
	{                                                                       \
		(k), (at), (first), (width), offsetof(struct roce_mad, member), \
			sizeof(((struct roce_mad *)0)->member)                  \
	}
#define PRIVATE(k, at) FIELD(k, at, 0, (ROCE_MAD_BYTES - HEADER_BYTES - (at)) * 8, private_data)

static const struct mad_field fields[] = {
	FIELD(ROCE_MAD_REQ, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_REQ, 5, 0, 24, vendor_id),
	FIELD(ROCE_MAD_REQ, 8, 0, 64, service_id),
	FIELD(ROCE_MAD_REQ, 16, 0, 64, ca_guid),
	FIELD(ROCE_MAD_REQ, 28, 0, 32, qkey),
	FIELD(ROCE_MAD_REQ, 32, 0, 24, qpn),
	FIELD(ROCE_MAD_REQ, 35, 0, 8, responder_resources),
	FIELD(ROCE_MAD_REQ, 39, 0, 8, initiator_depth),
	FIELD(ROCE_MAD_REQ, 43, 0, 5, remote_timeout),
	FIELD(ROCE_MAD_REQ, 43, 5, 2, transport),
	FIELD(ROCE_MAD_REQ, 43, 7, 1, flow_control),
	FIELD(ROCE_MAD_REQ, 44, 0, 24, psn),
	FIELD(ROCE_MAD_REQ, 47, 0, 5, local_timeout),
	FIELD(ROCE_MAD_REQ, 47, 5, 3, retry_count),
	FIELD(ROCE_MAD_REQ, 48, 0, 16, pkey),
	FIELD(ROCE_MAD_REQ, 50, 0, 4, mtu),
	FIELD(ROCE_MAD_REQ, 50, 5, 3, rnr_retry_count),
	FIELD(ROCE_MAD_REQ, 51, 0, 4, max_cm_retries),
	FIELD(ROCE_MAD_REQ, 51, 4, 1, srq),
	FIELD(ROCE_MAD_REQ, 56, 0, 128, local_gid),
	FIELD(ROCE_MAD_REQ, 72, 0, 128, remote_gid),
	FIELD(ROCE_MAD_REQ, 88, 0, 20, flow_label),
	FIELD(ROCE_MAD_REQ, 91, 2, 6, rate),
	FIELD(ROCE_MAD_REQ, 92, 0, 8, traffic_class),
	FIELD(ROCE_MAD_REQ, 93, 0, 8, hop_limit),
	FIELD(ROCE_MAD_REQ, 94, 0, 4, sl),
	FIELD(ROCE_MAD_REQ, 94, 4, 1, subnet_local),
	FIELD(ROCE_MAD_REQ, 95, 0, 5, ack_timeout),
	PRIVATE(ROCE_MAD_REQ, 140),

	FIELD(ROCE_MAD_MRA, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_MRA, 4, 0, 32, remote_id),
	FIELD(ROCE_MAD_MRA, 8, 0, 2, answered),
	FIELD(ROCE_MAD_MRA, 9, 0, 5, service_timeout),
	PRIVATE(ROCE_MAD_MRA, 10),

	FIELD(ROCE_MAD_REJ, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_REJ, 4, 0, 32, remote_id),
	FIELD(ROCE_MAD_REJ, 8, 0, 2, answered),
	FIELD(ROCE_MAD_REJ, 9, 0, 7, info_bytes),
	FIELD(ROCE_MAD_REJ, 10, 0, 16, reason),
	FIELD(ROCE_MAD_REJ, 12, 0, 576, info),
	PRIVATE(ROCE_MAD_REJ, 84),

	FIELD(ROCE_MAD_REP, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_REP, 4, 0, 32, remote_id),
	FIELD(ROCE_MAD_REP, 8, 0, 32, qkey),
	FIELD(ROCE_MAD_REP, 12, 0, 24, qpn),
	FIELD(ROCE_MAD_REP, 20, 0, 24, psn),
	FIELD(ROCE_MAD_REP, 24, 0, 8, responder_resources),
	FIELD(ROCE_MAD_REP, 25, 0, 8, initiator_depth),
	FIELD(ROCE_MAD_REP, 26, 0, 5, target_ack_delay),
	FIELD(ROCE_MAD_REP, 26, 5, 2, failover),
	FIELD(ROCE_MAD_REP, 26, 7, 1, flow_control),
	FIELD(ROCE_MAD_REP, 27, 0, 3, rnr_retry_count),
	FIELD(ROCE_MAD_REP, 27, 3, 1, srq),
	FIELD(ROCE_MAD_REP, 28, 0, 64, ca_guid),
	PRIVATE(ROCE_MAD_REP, 36),

	FIELD(ROCE_MAD_RTU, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_RTU, 4, 0, 32, remote_id),
	PRIVATE(ROCE_MAD_RTU, 8),

	FIELD(ROCE_MAD_DREQ, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_DREQ, 4, 0, 32, remote_id),
	FIELD(ROCE_MAD_DREQ, 8, 0, 24, qpn), /* the receiver's */
	PRIVATE(ROCE_MAD_DREQ, 12),

	FIELD(ROCE_MAD_DREP, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_DREP, 4, 0, 32, remote_id),
	PRIVATE(ROCE_MAD_DREP, 8),

	FIELD(ROCE_MAD_SIDR_REQ, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_SIDR_REQ, 4, 0, 16, pkey),
	FIELD(ROCE_MAD_SIDR_REQ, 8, 0, 64, service_id),
	PRIVATE(ROCE_MAD_SIDR_REQ, 16),

	FIELD(ROCE_MAD_SIDR_REP, 0, 0, 32, local_id),
	FIELD(ROCE_MAD_SIDR_REP, 4, 0, 8, status),
	FIELD(ROCE_MAD_SIDR_REP, 5, 0, 8, info_bytes),
	FIELD(ROCE_MAD_SIDR_REP, 8, 0, 24, qpn),
	FIELD(ROCE_MAD_SIDR_REP, 12, 0, 64, service_id),
	FIELD(ROCE_MAD_SIDR_REP, 20, 0, 32, qkey),
	FIELD(ROCE_MAD_SIDR_REP, 24, 0, 576, info),
	PRIVATE(ROCE_MAD_SIDR_REP, 96),
};

/* REP and SIDR_REP scatter the vendor's ID: bytes at these places, the highest first. */
static const struct {
	uint16_t kind;
	uint8_t bytes[3];
} vendors[] = {
	{ ROCE_MAD_REP, { 15, 19, 23 } },
	{ ROCE_MAD_SIDR_REP, { 6, 7, 11 } },
};

static uint64_t get_bits(const uint8_t *at, unsigned int bit, unsigned int bits)
{
	uint64_t value = 0;
	unsigned int i;

	for (i = bit; i < bit + bits; i++)
		value = value << 1 | (at[i / 8] >> (7 - i % 8) & 1);
	return value;
}

static void put_bits(uint8_t *at, unsigned int bit, unsigned int bits, uint64_t value)
{
	unsigned int i;

	for (i = bit + bits; i-- > bit; value >>= 1)
		at[i / 8] |= (uint8_t)((value & 1) << (7 - i % 8));
}

static uint64_t get_member(const void *member, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)member;
	case 2:
		return *(const uint16_t *)member;
	case 4:
		return *(const uint32_t *)member;
	}
	return *(const uint64_t *)member;
}

static void set_member(void *member, size_t size, uint64_t value)
{
	switch (size) {
	case 1:
		*(uint8_t *)member = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)member = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)value;
		break;
	default:
		*(uint64_t *)member = value;
	}
}

static bool is_array(const struct mad_field *f)
{
	return f->bits > 64;
}

size_t roce_mad_private_bytes(uint16_t kind)
{
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].kind == kind &&
		    fields[i].offset == offsetof(struct roce_mad, private_data))
			return fields[i].bits / 8;
	return 0;
}

static bool has_options(uint16_t kind)
{
	return kind == ROCE_MAD_REQ || kind == ROCE_MAD_REP;
}

static void decode_vendor(struct roce_mad *m, const uint8_t *body)
{
	size_t i;

	for (i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
		if (vendors[i].kind == m->kind)
			m->vendor_id = (uint32_t)body[vendors[i].bytes[0]] << 16 |
				       (uint32_t)body[vendors[i].bytes[1]] << 8 |
				       body[vendors[i].bytes[2]];
}

int roce_mad_decode(struct roce_mad *m, const uint8_t *bytes, size_t size)
{
	const uint8_t *body = bytes + HEADER_BYTES;
	struct roce_mad read = { 0 };
	const struct mad_field *f;

	if (size != ROCE_MAD_BYTES || bytes[0] != BASE_VERSION || bytes[1] != CLASS_CM ||
	    bytes[2] != CLASS_VERSION || bytes[3] != METHOD_SEND)
		return -EPROTO;
	read.tid = get_bits(bytes, 64, 64);
	read.kind = (uint16_t)get_bits(bytes, 128, 16);
	if (!roce_mad_private_bytes(read.kind))
		return -EPROTO;
	if (has_options(read.kind))
		read.options = (uint32_t)get_bits(bytes, OPTIONS_BIT, 32);
	for (f = fields; f < fields + sizeof(fields) / sizeof(fields[0]); f++) {
		if (f->kind != read.kind)
			continue;
		if (is_array(f))
			memcpy((char *)&read + f->offset, body + f->byte, f->bits / 8);
		else
			set_member((char *)&read + f->offset, f->size,
				   get_bits(body + f->byte, f->bit, f->bits));
	}
	decode_vendor(&read, body);
	if (read.info_bytes > ROCE_MAD_INFO_MAX)
		return -EPROTO;
	*m = read;
	return 0;
}

static void encode_vendor(const struct roce_mad *m, uint8_t *body)
{
	size_t i;

	for (i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
		if (vendors[i].kind != m->kind)
			continue;
		body[vendors[i].bytes[0]] = (uint8_t)(m->vendor_id >> 16);
		body[vendors[i].bytes[1]] = (uint8_t)(m->vendor_id >> 8);
		body[vendors[i].bytes[2]] = (uint8_t)m->vendor_id;
	}
}

void roce_mad_encode(const struct roce_mad *m, uint8_t bytes[ROCE_MAD_BYTES])
{
	uint8_t *body = bytes + HEADER_BYTES;
	const struct mad_field *f;

	memset(bytes, 0, ROCE_MAD_BYTES);
	bytes[0] = BASE_VERSION;
	bytes[1] = CLASS_CM;
	bytes[2] = CLASS_VERSION;
	bytes[3] = METHOD_SEND;
	put_bits(bytes, 64, 64, m->tid);
	put_bits(bytes, 128, 16, m->kind);
	if (has_options(m->kind))
		put_bits(bytes, OPTIONS_BIT, 32, m->options);
	for (f = fields; f < fields + sizeof(fields) / sizeof(fields[0]); f++) {
		if (f->kind != m->kind)
			continue;
		if (is_array(f))
			memcpy(body + f->byte, (const char *)m + f->offset, f->bits / 8);
		else
			put_bits(body + f->byte, f->bit, f->bits,
				 get_member((const char *)m + f->offset, f->size));
	}
	if (m->kind == ROCE_MAD_REQ) /* Ethernet has no LIDs: the permissive one, as ib_cm does */
		memset(body + REQ_LIDS_AT, 0xff, REQ_LIDS_BYTES);
	encode_vendor(m, body);
}

uint64_t roce_mad_timeout_ns(uint8_t exponent)
{
	return (uint64_t)TIMEOUT_UNIT_NS << (exponent & EXPONENT_MASK);
}
