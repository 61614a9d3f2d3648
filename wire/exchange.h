/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two ends of an exchange meet: the proof of the key as between a client and a donor
 * (wire/handshake.h), for a service of its own, and then each says where its pool's mirror is.
 *
 *	connects                                listens
 *	REQ   wire_exchange_connect ---------->         version, key id
 *	      <------------- the proof ------------>    HELLO to WELCOME
 *	SEND  wire_exchange_offer: my pool ------------>
 *	      <-------- SEND wire_exchange_offer: my pool, and where yours is mirrored here
 *	                                            or  SEND wire_handshake_refusal
 *	SEND  wire_exchange_offer: where yours is mirrored here ->
 *
 * What follows on the same connection are slots, each with a wire_exchange_slot_head, and, where immediates
 * confirm, wire_exchange_freed.
 */
#ifndef WEIR_WIRE_EXCHANGE_H
#define WEIR_WIRE_EXCHANGE_H

#include "wire/handshake.h"

#define WIRE_EXCHANGE_MAGIC 0x78696577u /* "weix" */
#define WIRE_EXCHANGE_VERSION 4 /* of the request and the offers; the proof between has its own */
#define WIRE_EXCHANGE_OFFER 16 /* type of a wire_exchange_offer, beyond those of the proof */
#define WIRE_EXCHANGE_SLOTS_MAX 65536
#define WIRE_EXCHANGE_SLOT_BYTES_MAX (1u << 30)
#define WIRE_EXCHANGE_FREED_MAX 60
#define WIRE_EXCHANGE_OFFERS_IN \
	2 /* offers that the end that listens receives; the other receives one */

/* Private data of the REQ. */
struct wire_exchange_connect {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint64_t key_id;
};
static_assert(sizeof(struct wire_exchange_connect) == 16, "wire_exchange_connect");

/* Memory that the receiver of this may reach. */
struct wire_exchange_remote_mr {
	uint64_t address;
	uint32_t rkey;
	uint32_t zero;
};
static_assert(sizeof(struct wire_exchange_remote_mr) == 16, "wire_exchange_remote_mr");

struct wire_exchange_offer {
	struct wire_handshake_head head;
	uint32_t slots; /* to send from, 1 to WIRE_EXCHANGE_SLOTS_MAX */
	uint32_t slot_bytes; /* that one carries, 1 to WIRE_EXCHANGE_SLOT_BYTES_MAX */
	uint8_t is_imm; /* immediates confirm, not bitmaps; 0 or 1 */
	uint8_t is_unordered; /* takes slots as it finds them: a message has one; 0 or 1 */
	uint8_t zero[2];
	uint32_t head_stride; /* from one header to the next */
	struct wire_exchange_remote_mr
		heads; /* the mirror's: a wire_exchange_slot_head of each slot; to write to */
	struct wire_exchange_remote_mr
		mirror; /* of the receiver's pool, in strides of wire_exchange_slot_stride(); to write to */
	struct wire_exchange_remote_mr bell; /* 8 bytes that the receiver writes to be woken */
	struct wire_exchange_remote_mr bits; /* of the sender's pool, then of the mirror; to read */
};
static_assert(sizeof(struct wire_exchange_offer) == 88, "wire_exchange_offer");

/*
 * Of each slot, written with its data or after. In host memory it lies right before the data, so
 * that one write has both; of data in a GPU's memory it is apart, in host memory, where the CPU
 * reads it.
 */
struct wire_exchange_slot_head {
	uint64_t sequence; /* of all slots sent, from 0 */
	uint32_t length; /* bytes of data */
	uint16_t flags;
	uint16_t
		before; /* the slot that was sent before this one: its number; of the first slot 0 */
};
static_assert(sizeof(struct wire_exchange_slot_head) == 16, "wire_exchange_slot_head");

#define WIRE_EXCHANGE_SLOT_LAST 1u /* the message ends here */
#define WIRE_EXCHANGE_SLOT_END 2u /* no message: nothing more will come */

/*
 * Where immediates confirm, each slot's write has one, which is its number. Where bitmaps do, so
 * may those to who waits for news, until there have been as many in all as its ring says, which
 * then has been answered. It tells of so many slots before that one, too, as their headers lead
 * from one to the other; and may come with a WRITE of nothing behind that slot's. A WRITE of
 * nothing has one of these, too:
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
#define WIRE_EXCHANGE_IMM_WAKE \
	0x80000000u /* what you have rung for has come: look; ends the ring */
#define WIRE_EXCHANGE_IMM_DRAINED \
	0x80000001u /* all was taken, also the slot with WIRE_EXCHANGE_SLOT_END */

/*
 * What is written to the bell: who rings waits for that. From the lowest bit: what for, how often
 * it may be told in all, how long it may wait for what comes to be told of together, which ring it
 * is.
 */
#define WIRE_EXCHANGE_WANT_NEWS 1u
#define WIRE_EXCHANGE_WANT_ROOM 2u
#define WIRE_EXCHANGE_TELLS_MAX 64u /* more than have been heard */
#define WIRE_EXCHANGE_PATIENCE_NS 32000u /* up to 255 of them */

static inline uint64_t wire_exchange_doorbell_encode(uint64_t number, uint64_t patience_ns,
						     uint32_t tells, unsigned int want)
{
	uint64_t patience = patience_ns / WIRE_EXCHANGE_PATIENCE_NS;

	return number << 42 | (patience < 255 ? patience : 255) << 34 | (uint64_t)tells << 2 | want;
}

static inline uint64_t wire_exchange_doorbell_patience_ns(uint64_t ring)
{
	return (ring >> 34 & 255) * WIRE_EXCHANGE_PATIENCE_NS;
}

/* How many may be told of now, if @told were so far. A ring that allows more than is right allows none. */
static inline uint32_t wire_exchange_doorbell_tells(uint64_t ring, uint32_t told)
{
	uint32_t tells = (uint32_t)(ring >> 2) - told;

	return ring & WIRE_EXCHANGE_WANT_NEWS && tells <= WIRE_EXCHANGE_TELLS_MAX ? tells : 0;
}

/* Slots that their sender may use again. */
struct wire_exchange_freed {
	uint32_t count;
	uint32_t zero;
	uint32_t slots[WIRE_EXCHANGE_FREED_MAX];
};
static_assert(sizeof(struct wire_exchange_freed) == 248, "wire_exchange_freed");

/* From one slot to the next. */
static inline uint64_t wire_exchange_slot_stride(uint32_t slot_bytes)
{
	return (sizeof(struct wire_exchange_slot_head) + slot_bytes + 63ull) / 64 * 64;
}

/* As wire_handshake_connect_decode(). */
int wire_exchange_connect_decode(const void *data, size_t length,
				 struct wire_exchange_connect *out);

/* Fills in the head. */
void wire_exchange_offer_encode(struct wire_exchange_offer *offer);

/* Return: 0; -EPROTO malformed or out of range; -EPROTONOSUPPORT another version. */
int wire_exchange_offer_decode(const void *data, size_t length, struct wire_exchange_offer *out);

/* Return: 0; -EPROTO. The slots' numbers are for the receiver to check. */
int wire_exchange_freed_decode(const void *data, size_t length, struct wire_exchange_freed *out);

#endif
