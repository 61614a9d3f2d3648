/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The stored form of a block, and the keys that seal it. All numbers are little-endian. Regions
 * store slots with the text in front. Files of a mount store the trailer in front, so that the last
 * slot of a file can end with its text.
 *
 * Nonces: each opening draws a writer's id of 128 random bits and counts its blocks. The counter is
 * the nonce, under a key that is derived from the writer's id. So no nonce repeats under a key,
 * whatever crashes, and however many clients write. The counter's upper bits also go into the
 * derived key: one key seals at most 2^26 blocks, 256 GiB, far below the bounds of both ciphers.
 */
#ifndef WEIR_LIB_SEALED_SLOT_H
#define WEIR_LIB_SEALED_SLOT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/sealed.h>

struct weir_sealed_keys;

#define WEIR_SLOT_WRITER 16u
#define WEIR_SLOT_TAG 16u
#define WEIR_SLOT_STATE_MAC 32u

/* @cipher: an enum weir_sealed_cipher; @length: bytes of text, zeroes follow */
struct weir_slot_trailer {
	uint8_t writer[WEIR_SLOT_WRITER];
	uint64_t counter;
	uint64_t generation;
	uint32_t cipher;
	uint32_t length;
	uint64_t reserved;
	uint8_t tag[WEIR_SLOT_TAG];
};

/* Where a block belongs. @object: a file of the name; 0 in a region */
struct weir_slot_place {
	uint64_t object, block;
};

/* All zeroes: the block was never written. */
struct weir_slot {
	uint8_t text[WEIR_SEALED_BLOCK];
	struct weir_slot_trailer trailer;
};

_Static_assert(sizeof(struct weir_slot) == WEIR_SEALED_SLOT, "the size of a slot is public");

/* The generation of a block that was never written. Those of writers are greater. */
#define WEIR_SLOT_NEVER 1u

/* Whether this CPU has the instructions for @cipher, which is not the default. */
int weir_slot_supports(uint32_t cipher);

/**
 * weir_slot_keys_new() - derive the keys for the data of one name
 * @key: not kept
 * @name: of the data
 *
 * The memory is locked if the limits permit, and left out of core dumps. The caller owes a
 * weir_slot_keys_free().
 *
 * Return: the keys, or NULL if out of memory.
 */
struct weir_sealed_keys *weir_slot_keys_new(const struct weir_key *key, const char *name);
/* Wipes and frees @keys; NULL is allowed. */
void weir_slot_keys_free(struct weir_sealed_keys *keys);

/**
 * weir_slot_seal() - encrypt a block
 * @keys: from weir_slot_keys_new()
 * @place: of the block
 * @trailer: the caller has set it, except for the tag, in the byte order of the host. No other
 *	block has this writer and counter. Receives the stored form
 * @text: @trailer->length bytes
 * @stored: receives as many; may be @text
 *
 * Context: any thread.
 */
void weir_slot_seal(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
		    struct weir_slot_trailer *trailer, const uint8_t *text, uint8_t *stored);

/**
 * weir_slot_open() - verify and decrypt a block
 * @place: of the block
 * @trailer: not trusted
 * @stored: not trusted
 * @room: bytes of @stored
 * @text: receives WEIR_SEALED_BLOCK bytes, zeroes after an error; outside @stored
 * @generation: receives the generation; WEIR_SLOT_NEVER if all is zeroes
 *
 * Context: any thread.
 * Return: 0; -EBADMSG not a block of this key and place; -EOPNOTSUPP a cipher that this CPU cannot
 * compute.
 */
int weir_slot_open(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
		   const struct weir_slot_trailer *trailer, const uint8_t *stored, size_t room,
		   uint8_t *text, uint64_t *generation);

/**
 * weir_slot_generation() - choose the generation of a new slot
 * @latest: the greatest given by this opening; atomic
 * @floor: that of the slot before, or 0
 *
 * Context: any thread.
 * Return: a generation greater than @floor and all given before. It is the time in ns, if the
 * clock permits, and so greater than those of clients that wrote earlier.
 */
uint64_t weir_slot_generation(uint64_t *latest, uint64_t floor);

/* A MAC over a state to export. */
void weir_slot_mac_state(const struct weir_sealed_keys *keys, const void *state, size_t length,
			 uint8_t mac[WEIR_SLOT_STATE_MAC]);

#endif
