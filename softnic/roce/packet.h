/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bytes of a RoCE v2 packet: base and extended transport headers, payload and padding (IB
 * specification, volume 1, chapter 9; annex A17 puts them into UDP).
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_ROCE_PACKET_H
#define WEIR_SOFTNIC_ROCE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ROCE_BTH_BYTES = 12,
	ROCE_HEADERS_MAX = 40, /* BTH and AtomicETH */
	ROCE_PAYLOAD_MAX = 4096, /* the largest path MTU */
	ROCE_ICRC_BYTES = 4,
	ROCE_PACKET_MAX = ROCE_HEADERS_MAX + ROCE_PAYLOAD_MAX + ROCE_ICRC_BYTES,
	ROCE_GRH_BYTES = 40,
	ROCE_PKEY_DEFAULT = 0xffff,
};

/* The upper three bits of an opcode. */
enum roce_transport {
	ROCE_RC = 0x00,
	ROCE_UC = 0x20,
	ROCE_UD = 0x60,
	ROCE_TRANSPORT_MASK = 0xe0,
};

/* The lower five bits of an opcode (9.2). */
enum roce_opcode {
	ROCE_SEND_FIRST = 0x00,
	ROCE_SEND_MIDDLE = 0x01,
	ROCE_SEND_LAST = 0x02,
	ROCE_SEND_LAST_IMM = 0x03,
	ROCE_SEND_ONLY = 0x04,
	ROCE_SEND_ONLY_IMM = 0x05,
	ROCE_WRITE_FIRST = 0x06,
	ROCE_WRITE_MIDDLE = 0x07,
	ROCE_WRITE_LAST = 0x08,
	ROCE_WRITE_LAST_IMM = 0x09,
	ROCE_WRITE_ONLY = 0x0a,
	ROCE_WRITE_ONLY_IMM = 0x0b,
	ROCE_READ_REQUEST = 0x0c,
	ROCE_READ_FIRST = 0x0d, /* responses */
	ROCE_READ_MIDDLE = 0x0e,
	ROCE_READ_LAST = 0x0f,
	ROCE_READ_ONLY = 0x10,
	ROCE_ACK = 0x11,
	ROCE_ATOMIC_ACK = 0x12,
	ROCE_CMP_SWAP = 0x13,
	ROCE_FETCH_ADD = 0x14,
	ROCE_SEND_LAST_INV = 0x16,
	ROCE_SEND_ONLY_INV = 0x17,
	ROCE_ATOMIC_WRITE = 0x1d, /* annex A19, memory placement extensions */
};

/* Traits of an opcode: its headers, its kind, and its place in a message. */
enum {
	ROCE_HAS_DETH = 1 << 0,
	ROCE_HAS_RETH = 1 << 1,
	ROCE_HAS_ATOMIC = 1 << 2,
	ROCE_HAS_AETH = 1 << 3,
	ROCE_HAS_ORIGINAL = 1 << 4, /* AtomicAckETH */
	ROCE_HAS_IMM = 1 << 5,
	ROCE_HAS_INV = 1 << 6, /* IETH */
	ROCE_HAS_PAYLOAD = 1 << 7,
	ROCE_IS_START = 1 << 8,
	ROCE_IS_END = 1 << 9,
	ROCE_IS_SEND = 1 << 10,
	ROCE_IS_WRITE = 1 << 11,
	ROCE_IS_RESPONSE = 1 << 12,
	ROCE_IS_KNOWN = 1 << 13,
};

/* The upper three bits of an AETH's syndrome (9.3.5), and its NAK codes. */
enum {
	ROCE_SYNDROME_ACK = 0x00,
	ROCE_SYNDROME_RNR = 0x20,
	ROCE_SYNDROME_NAK = 0x60,
	ROCE_SYNDROME_MASK = 0xe0,
	ROCE_NAK_SEQUENCE = ROCE_SYNDROME_NAK,
	ROCE_NAK_INVALID = ROCE_SYNDROME_NAK | 1,
	ROCE_NAK_ACCESS = ROCE_SYNDROME_NAK | 2,
	ROCE_NAK_OPERATION = ROCE_SYNDROME_NAK | 3,
	ROCE_CREDITS_UNKNOWN = 31, /* the credit code of a responder without end-to-end credits */
};

/* The reason why a packet is refused; an index of counters. */
enum roce_refusal {
	ROCE_ACCEPTED,
	ROCE_REFUSED_SHORT, /* no room for the headers or the ICRC */
	ROCE_REFUSED_LONG, /* more payload than any path MTU */
	ROCE_REFUSED_VERSION,
	ROCE_REFUSED_OPCODE,
	ROCE_REFUSED_PAYLOAD, /* payload or padding where none may be */
	ROCE_REFUSED_PKEY,
	ROCE_REFUSED_QPN,
	ROCE_REFUSED_TRANSPORT, /* an opcode of another transport than the queue pair's */
	ROCE_REFUSED_QKEY,
	ROCE_REFUSED_ICRC,
	ROCE_REFUSALS,
};

/**
 * struct roce_packet - a packet; fields of headers that its opcode lacks are 0
 * @opcode: transport and operation
 * @is_solicited: the receiver's program asked for an event
 * @wants_ack: the responder must acknowledge
 * @psn, @dest_qpn, @pkey: BTH
 * @rkey, @addr, @dma_bytes: RETH; the first two of AtomicETH, too
 * @swap_add, @compare: AtomicETH
 * @original: AtomicAckETH
 * @syndrome, @msn: AETH
 * @qkey, @src_qpn: DETH
 * @imm: ImmDt in network order of its bytes, or the key of IETH
 * @payload: *kept until* the packet is dealt with; @payload_bytes: without padding
 */
struct roce_packet {
	uint8_t opcode;
	uint8_t syndrome;
	bool is_solicited;
	bool wants_ack;
	uint16_t pkey;
	uint32_t psn;
	uint32_t dest_qpn;
	uint32_t rkey;
	uint64_t addr;
	uint32_t dma_bytes;
	uint32_t msn;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t original;
	uint32_t qkey;
	uint32_t src_qpn;
	uint32_t imm;
	uint32_t payload_bytes;
	const uint8_t *payload;
};

/** roce_packet_traits() - ROCE_HAS_* and ROCE_IS_* of an opcode; 0: reserved */
uint32_t roce_packet_traits(uint8_t opcode);

/**
 * roce_packet_decode() - read a packet
 * @p: written if accepted; points into @bytes
 * @bytes, @size: the UDP payload, with its ICRC, which is not checked here
 *
 * Return: ROCE_ACCEPTED or the reason to drop the packet.
 */
enum roce_refusal roce_packet_decode(struct roce_packet *p, const uint8_t *bytes, size_t size);

/**
 * roce_packet_encode() - write the headers of a packet
 * @p: @payload is ignored
 * @bytes: room for ROCE_HEADERS_MAX
 *
 * The caller owes the payload right behind, and roce_packet_pad().
 *
 * Return: the length of the headers.
 */
size_t roce_packet_encode(const struct roce_packet *p, uint8_t *bytes);

/**
 * roce_packet_pad() - pad the payload with zeros to a multiple of 4
 * @at: the end of the payload, with room for 3 bytes
 *
 * Return: the length of the padding.
 */
size_t roce_packet_pad(uint8_t *at, uint32_t payload_bytes);

/** roce_packet_credits() - the credit code of an AETH for @receives posted receives */
uint8_t roce_packet_credits(uint32_t receives);

/** roce_packet_receives() - the receives of a credit code, which is not ROCE_CREDITS_UNKNOWN */
uint32_t roce_packet_receives(uint8_t code);

#endif
