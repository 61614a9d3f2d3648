/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the two ends of an exchange connect: the proof of the key as between client and donor
 * (wire/handshake.h), under an id of its own. Then each end announces where it mirrors the peer's
 * pool.
 *
 *	connects                                listens
 *	REQ   wire_exchange_connect ---------->         version, key id
 *	      <------------- the proof ------------>    HELLO to WELCOME
 *	SEND  wire_exchange_offer: my pool ------------>
 *	      <-------- SEND wire_exchange_offer: my pool, and where yours is mirrored here
 *	                                            or  SEND wire_handshake_refusal
 *	SEND  wire_exchange_offer: where yours is mirrored here ->
 *
 * Slots follow, each with a wire_exchange_slot_head, and wire_exchange_freed where immediates
 * confirm.
 */
#ifndef WEIR_WIRE_EXCHANGE_H
#define WEIR_WIRE_EXCHANGE_H

#include "wire/handshake.h"

#define WIRE_EXCHANGE_MAGIC 0x78696577u /* "weix" */
#define WIRE_EXCHANGE_VERSION 5 /* of the request and the offers */
#define WIRE_EXCHANGE_PROOF 4 /* the version of the proof that goes with it */
#define WIRE_EXCHANGE_OFFER 16 /* type of a wire_exchange_offer, above the proof's types */
#define WIRE_EXCHANGE_SLOTS_MAX 65536
#define WIRE_EXCHANGE_SLOT_BYTES_MAX (1u << 30)
#define WIRE_EXCHANGE_FREED_MAX 60
#define WIRE_EXCHANGE_OFFERS_IN \
	2 /* offers received by the listening end; the other end receives one */

/* Private data of the REQ. */
struct wire_exchange_connect {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint64_t key_id;
	uint8_t cookie[WIRE_COOKIE]; /* of a REJ; ends of earlier builds end before it */
};
static_assert(sizeof(struct wire_exchange_connect) == 32, "wire_exchange_connect");

/* Memory that the receiver of this struct may access. */
struct wire_exchange_remote_mr {
	uint64_t address;
	uint32_t rkey;
	uint32_t zero;
};
static_assert(sizeof(struct wire_exchange_remote_mr) == 16, "wire_exchange_remote_mr");

struct wire_exchange_offer {
	struct wire_handshake_head head;
	uint32_t slots; /* in the sender's pool, 1 to WIRE_EXCHANGE_SLOTS_MAX */
	uint32_t slot_bytes; /* data bytes of a slot, 1 to WIRE_EXCHANGE_SLOT_BYTES_MAX */
	uint8_t is_imm; /* immediates confirm slots instead of bitmaps; 0 or 1 */
	uint8_t is_unordered; /* takes slots in any order: one slot a message; 0 or 1 */
	uint8_t zero[2];
	uint32_t head_stride; /* distance between headers, bytes */
	struct wire_exchange_remote_mr
		heads; /* the mirror's wire_exchange_slot_heads, one a slot; to write to */
	struct wire_exchange_remote_mr mirror; /* of the receiver's pool; to write to */
	struct wire_exchange_remote_mr doorbell; /* 8 bytes: the receiver's doorbell */
	struct wire_exchange_remote_mr bits; /* bitmaps of pool and mirror; to read */
};
static_assert(sizeof(struct wire_exchange_offer) == 88, "wire_exchange_offer");

/*
 * The header of a slot, written with the data or later. In host memory the header directly precedes
 * the data, so that one write carries both. For data in GPU memory the header is in host memory,
 * for the CPU to read.
 */
struct wire_exchange_slot_head {
	uint64_t sequence; /* number of the slot among all slots sent, from 0 */
	uint32_t length; /* bytes of data */
	uint16_t flags;
	uint16_t before; /* index of the slot sent before this one; 0 in the first slot */
};
static_assert(sizeof(struct wire_exchange_slot_head) == 16, "wire_exchange_slot_head");

#define WIRE_EXCHANGE_SLOT_LAST 1u /* last slot of a message */
#define WIRE_EXCHANGE_SLOT_END 2u /* end of the stream, carries no message */

/*
 * Immediates of slot writes. Where immediates confirm, each slot's write carries the slot's number.
 * Where bitmaps confirm, a write may carry such an immediate to a peer that waits for news, as
 * often as the peer's doorbell allows; after the last the doorbell is answered. The upper half
 * counts earlier slots announced too, found by following the headers. The immediate may also come
 * by an empty WRITE after the slot's write. Empty WRITEs also carry:
 */
static inline uint32_t wire_exchange_imm_encode(uint32_t slot, uint32_t others)
{
	return others << 16 | slot;
}

static inline uint32_t wire_exchange_imm_slot(uint32_t imm)
{
	return imm & 0xffff;
}

static inline uint32_t wire_exchange_imm_others(uint32_t imm)
{
	return imm >> 16;
}

#define WIRE_EXCHANGE_IMM_OTHERS_MAX 0x7fffu
#define WIRE_EXCHANGE_IMM_WAKE 0x80000000u /* an awaited event has occurred; answers the doorbell */
#define WIRE_EXCHANGE_IMM_DRAINED \
	0x80000001u /* all slots are taken, including the one with WIRE_EXCHANGE_SLOT_END */
#define WIRE_EXCHANGE_IMM_CLOSED 0x80000002u /* the end closes: the last of all, in both modes */

/*
 * The doorbell value, written by a waiting end. From the lowest bit: the events wanted, the total
 * number of notifications allowed, the delay allowed for joint notifications, the doorbell's
 * number.
 */
#define WIRE_EXCHANGE_WANT_NEWS 1u
#define WIRE_EXCHANGE_WANT_ROOM 2u
#define WIRE_EXCHANGE_NOTICES_MAX 64u /* allowed beyond those received */
#define WIRE_EXCHANGE_DELAY_UNIT_NS 32000u /* up to 255 of these units */

static inline uint64_t wire_exchange_doorbell_encode(uint64_t number, uint64_t delay_ns_max,
						     uint32_t notices, unsigned int want)
{
	uint64_t units = delay_ns_max / WIRE_EXCHANGE_DELAY_UNIT_NS;

	return number << 42 | (units < 255 ? units : 255) << 34 | (uint64_t)notices << 2 | want;
}

static inline uint64_t wire_exchange_doorbell_delay_ns_max(uint64_t doorbell)
{
	return (doorbell >> 34 & 255) * WIRE_EXCHANGE_DELAY_UNIT_NS;
}

/* Return: notifications allowed now, after @sent so far. An excessive allowance counts as none. */
static inline uint32_t wire_exchange_doorbell_notices(uint64_t doorbell, uint32_t sent)
{
	uint32_t notices = (uint32_t)(doorbell >> 2) - sent;

	return doorbell & WIRE_EXCHANGE_WANT_NEWS && notices <= WIRE_EXCHANGE_NOTICES_MAX ?
		       notices :
		       0;
}

/* Slots that the sender may use again. */
struct wire_exchange_freed {
	uint32_t count;
	uint32_t zero;
	uint32_t slots[WIRE_EXCHANGE_FREED_MAX];
};
static_assert(sizeof(struct wire_exchange_freed) == 248, "wire_exchange_freed");

/* Distance between slots in the mirror. */
static inline uint64_t wire_exchange_slot_stride(uint32_t slot_bytes)
{
	return (sizeof(struct wire_exchange_slot_head) + slot_bytes + 63ull) / 64 * 64;
}

/* As wire_handshake_connect_decode(). */
int wire_exchange_connect_decode(const void *data, size_t length,
				 struct wire_exchange_connect *out);

/* Fills in the head of @offer. */
void wire_exchange_offer_encode(struct wire_exchange_offer *offer);

/* Return: 0; -EPROTO malformed or out of range; -EPROTONOSUPPORT another version. */
int wire_exchange_offer_decode(const void *data, size_t length, struct wire_exchange_offer *out);

/* Return: 0; -EPROTO. The receiver must check the slot numbers. */
int wire_exchange_freed_decode(const void *data, size_t length, struct wire_exchange_freed *out);

#endif
