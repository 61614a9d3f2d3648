// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One table names the headers of each opcode. Encoder and decoder walk the same headers in the
 * same order: DETH; RETH, AtomicETH or AETH; AtomicAckETH; ImmDt or IETH.
 */
#include <string.h>

#include "softnic/roce/packet.h"
#include "softnic/roce/psn.h"

enum {
	BTH_SOLICITED = 0x80,
	BTH_MIGRATED = 0x40, /* NICs without path migration set the bit */
	BTH_PAD_SHIFT = 4,
	BTH_VERSION_MASK = 0x0f,
	BTH_WANTS_ACK = 0x80,
	DETH_BYTES = 8,
	RETH_BYTES = 16,
	ATOMIC_BYTES = 28,
	AETH_BYTES = 4,
	ORIGINAL_BYTES = 8,
	IMM_BYTES = 4,
};

#define FIRST (ROCE_IS_KNOWN | ROCE_HAS_PAYLOAD | ROCE_IS_START)
#define MIDDLE (ROCE_IS_KNOWN | ROCE_HAS_PAYLOAD)
#define LAST (ROCE_IS_KNOWN | ROCE_HAS_PAYLOAD | ROCE_IS_END)
#define ONLY (FIRST | LAST)
#define RESPONSE (ROCE_IS_KNOWN | ROCE_IS_RESPONSE)

static const uint16_t traits_of[32] = {
	[ROCE_SEND_FIRST] = FIRST | ROCE_IS_SEND,
	[ROCE_SEND_MIDDLE] = MIDDLE | ROCE_IS_SEND,
	[ROCE_SEND_LAST] = LAST | ROCE_IS_SEND,
	[ROCE_SEND_LAST_IMM] = LAST | ROCE_IS_SEND | ROCE_HAS_IMM,
	[ROCE_SEND_ONLY] = ONLY | ROCE_IS_SEND,
	[ROCE_SEND_ONLY_IMM] = ONLY | ROCE_IS_SEND | ROCE_HAS_IMM,
	[ROCE_WRITE_FIRST] = FIRST | ROCE_IS_WRITE | ROCE_HAS_RETH,
	[ROCE_WRITE_MIDDLE] = MIDDLE | ROCE_IS_WRITE,
	[ROCE_WRITE_LAST] = LAST | ROCE_IS_WRITE,
	[ROCE_WRITE_LAST_IMM] = LAST | ROCE_IS_WRITE | ROCE_HAS_IMM,
	[ROCE_WRITE_ONLY] = ONLY | ROCE_IS_WRITE | ROCE_HAS_RETH,
	[ROCE_WRITE_ONLY_IMM] = ONLY | ROCE_IS_WRITE | ROCE_HAS_RETH | ROCE_HAS_IMM,
	[ROCE_READ_REQUEST] = ROCE_IS_KNOWN | ROCE_IS_START | ROCE_IS_END | ROCE_HAS_RETH,
	[ROCE_READ_FIRST] = RESPONSE | FIRST | ROCE_HAS_AETH,
	[ROCE_READ_MIDDLE] = RESPONSE | MIDDLE,
	[ROCE_READ_LAST] = RESPONSE | LAST | ROCE_HAS_AETH,
	[ROCE_READ_ONLY] = RESPONSE | ONLY | ROCE_HAS_AETH,
	[ROCE_ACK] = RESPONSE | ROCE_HAS_AETH,
	[ROCE_ATOMIC_ACK] = RESPONSE | ROCE_HAS_AETH | ROCE_HAS_ORIGINAL,
	[ROCE_CMP_SWAP] = ROCE_IS_KNOWN | ROCE_IS_START | ROCE_IS_END | ROCE_HAS_ATOMIC,
	[ROCE_FETCH_ADD] = ROCE_IS_KNOWN | ROCE_IS_START | ROCE_IS_END | ROCE_HAS_ATOMIC,
	[ROCE_SEND_LAST_INV] = LAST | ROCE_IS_SEND | ROCE_HAS_INV,
	[ROCE_SEND_ONLY_INV] = ONLY | ROCE_IS_SEND | ROCE_HAS_INV,
	[ROCE_ATOMIC_WRITE] = ONLY | ROCE_HAS_RETH,
};

uint32_t roce_packet_traits(uint8_t opcode)
{
	uint8_t operation = opcode & ~ROCE_TRANSPORT_MASK;

	switch (opcode & ROCE_TRANSPORT_MASK) {
	case ROCE_RC:
		return traits_of[operation];
	case ROCE_UC:
		return operation <= ROCE_WRITE_ONLY_IMM ? traits_of[operation] : 0;
	case ROCE_UD:
		if (operation != ROCE_SEND_ONLY && operation != ROCE_SEND_ONLY_IMM)
			return 0;
		return traits_of[operation] | ROCE_HAS_DETH;
	default:
		return 0;
	}
}

static size_t header_bytes(uint32_t traits)
{
	return ROCE_BTH_BYTES + (traits & ROCE_HAS_DETH ? DETH_BYTES : 0) +
	       (traits & ROCE_HAS_RETH ? RETH_BYTES : 0) +
	       (traits & ROCE_HAS_ATOMIC ? ATOMIC_BYTES : 0) +
	       (traits & ROCE_HAS_AETH ? AETH_BYTES : 0) +
	       (traits & ROCE_HAS_ORIGINAL ? ORIGINAL_BYTES : 0) +
	       (traits & (ROCE_HAS_IMM | ROCE_HAS_INV) ? IMM_BYTES : 0);
}

static uint32_t get_u32(const uint8_t **at)
{
	const uint8_t *b = *at;

	*at += 4;
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static uint64_t get_u64(const uint8_t **at)
{
	uint64_t high = get_u32(at);

	return high << 32 | get_u32(at);
}

static void put_u32(uint8_t **at, uint32_t value)
{
	uint8_t *b = *at;

	b[0] = value >> 24;
	b[1] = value >> 16;
	b[2] = value >> 8;
	b[3] = value;
	*at += 4;
}

static void put_u64(uint8_t **at, uint64_t value)
{
	put_u32(at, value >> 32);
	put_u32(at, (uint32_t)value);
}

static void decode_extended(struct roce_packet *p, uint32_t traits, const uint8_t *at)
{
	uint32_t word;

	if (traits & ROCE_HAS_DETH) {
		p->qkey = get_u32(&at);
		p->src_qpn = get_u32(&at) & ROCE_PSN_MASK;
	}
	if (traits & (ROCE_HAS_RETH | ROCE_HAS_ATOMIC)) {
		p->addr = get_u64(&at);
		p->rkey = get_u32(&at);
	}
	if (traits & ROCE_HAS_RETH)
		p->dma_bytes = get_u32(&at);
	if (traits & ROCE_HAS_ATOMIC) {
		p->swap_add = get_u64(&at);
		p->compare = get_u64(&at);
	}
	if (traits & ROCE_HAS_AETH) {
		word = get_u32(&at);
		p->syndrome = word >> 24;
		p->msn = word & ROCE_PSN_MASK;
	}
	if (traits & ROCE_HAS_ORIGINAL)
		p->original = get_u64(&at);
	if (traits & ROCE_HAS_IMM)
		memcpy(&p->imm, at, sizeof(p->imm));
	if (traits & ROCE_HAS_INV)
		p->imm = get_u32(&at);
}

enum roce_refusal roce_packet_decode(struct roce_packet *p, const uint8_t *bytes, size_t size)
{
	const uint8_t *at = bytes + 4;
	uint32_t traits, pad, word;
	size_t headers, payload;

	if (size < ROCE_BTH_BYTES + ROCE_ICRC_BYTES)
		return ROCE_REFUSED_SHORT;
	if (bytes[1] & BTH_VERSION_MASK)
		return ROCE_REFUSED_VERSION;
	traits = roce_packet_traits(bytes[0]);
	if (!traits)
		return ROCE_REFUSED_OPCODE;
	headers = header_bytes(traits);
	if (size < headers + ROCE_ICRC_BYTES)
		return ROCE_REFUSED_SHORT;
	payload = size - headers - ROCE_ICRC_BYTES;
	pad = bytes[1] >> BTH_PAD_SHIFT & 3;
	if (payload > ROCE_PAYLOAD_MAX)
		return ROCE_REFUSED_LONG;
	if (pad > payload || payload % 4 || (payload && !(traits & ROCE_HAS_PAYLOAD)))
		return ROCE_REFUSED_PAYLOAD;
	memset(p, 0, sizeof(*p));
	p->opcode = bytes[0];
	p->is_solicited = bytes[1] & BTH_SOLICITED;
	p->pkey = (uint16_t)(bytes[2] << 8 | bytes[3]);
	p->dest_qpn = get_u32(&at) & ROCE_PSN_MASK;
	word = get_u32(&at);
	p->wants_ack = word >> 24 & BTH_WANTS_ACK;
	p->psn = word & ROCE_PSN_MASK;
	decode_extended(p, traits, at);
	p->payload = bytes + headers;
	p->payload_bytes = (uint32_t)payload - pad;
	return ROCE_ACCEPTED;
}

size_t roce_packet_encode(const struct roce_packet *p, uint8_t *bytes)
{
	uint32_t traits = roce_packet_traits(p->opcode), pad = -p->payload_bytes & 3;
	uint8_t *at = bytes + 4;

	bytes[0] = p->opcode;
	bytes[1] = (p->is_solicited ? BTH_SOLICITED : 0) | BTH_MIGRATED | pad << BTH_PAD_SHIFT;
	bytes[2] = p->pkey >> 8;
	bytes[3] = (uint8_t)p->pkey;
	put_u32(&at, p->dest_qpn & ROCE_PSN_MASK);
	put_u32(&at, (p->wants_ack ? (uint32_t)BTH_WANTS_ACK << 24 : 0) | roce_psn_wire(p->psn));
	if (traits & ROCE_HAS_DETH) {
		put_u32(&at, p->qkey);
		put_u32(&at, p->src_qpn & ROCE_PSN_MASK);
	}
	if (traits & (ROCE_HAS_RETH | ROCE_HAS_ATOMIC)) {
		put_u64(&at, p->addr);
		put_u32(&at, p->rkey);
	}
	if (traits & ROCE_HAS_RETH)
		put_u32(&at, p->dma_bytes);
	if (traits & ROCE_HAS_ATOMIC) {
		put_u64(&at, p->swap_add);
		put_u64(&at, p->compare);
	}
	if (traits & ROCE_HAS_AETH)
		put_u32(&at, (uint32_t)p->syndrome << 24 | (p->msn & ROCE_PSN_MASK));
	if (traits & ROCE_HAS_ORIGINAL)
		put_u64(&at, p->original);
	if (traits & ROCE_HAS_IMM) {
		memcpy(at, &p->imm, sizeof(p->imm));
		at += sizeof(p->imm);
	}
	if (traits & ROCE_HAS_INV)
		put_u32(&at, p->imm);
	return at - bytes;
}

size_t roce_packet_pad(uint8_t *at, uint32_t payload_bytes)
{
	size_t pad = -payload_bytes & 3;

	memset(at, 0, pad);
	return pad;
}

/* End-to-end flow control (9.7.7). The code after the last means that the count is unknown. */
static const uint16_t receives_of[ROCE_CREDITS_UNKNOWN] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

uint8_t roce_packet_credits(uint32_t receives)
{
	uint8_t code = ROCE_CREDITS_UNKNOWN - 1;

	while (receives_of[code] > receives)
		code--;
	return code;
}

uint32_t roce_packet_receives(uint8_t code)
{
	return receives_of[code];
}
