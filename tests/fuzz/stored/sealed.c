// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A donor returns arbitrary bytes instead of a sealed block. Only the written slot opens, only in
 * the right place, and only with the right text and generation. Zeroes are a block never written.
 *
 * The input: a byte of switches, then records of a place, a length, and bytes to be XORed there.
 */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "lib/conn/key.h"
#include "lib/sealed/slot.h"

static const struct weir_slot_place here = { 3, 6 }, elsewhere = { 3, 7 }, other = { 2, 6 };

enum { XCHACHA = 1, ELSEWHERE = 2, NEVER_WRITTEN = 4, OTHER = 8, GENERATION = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_sealed_keys *keys;
static struct weir_slot written[2]; /* by each cipher */
static uint8_t text[WEIR_SEALED_BLOCK];

static void start(void)
{
	const struct weir_key key = { 16, "0123456789abcdef" };

	keys = weir_slot_keys_new(&key, "fuzz");
	assert(keys);
	memset(text, 't', sizeof(text));
	for (unsigned int i = 0; i < 2; i++) {
		written[i].trailer = (struct weir_slot_trailer){
			.writer = "w",
			.counter = 5,
			.generation = GENERATION,
			.cipher = i + 1,
			.length = WEIR_SEALED_BLOCK,
		};
		if (weir_slot_supports(i + 1))
			weir_slot_seal(keys, &here, &written[i].trailer, text, written[i].text);
	}
}

static void change(struct weir_slot *slot, const uint8_t *data, size_t size)
{
	while (size > 3) {
		size_t at = data[0] | (size_t)data[1] << 8, length = data[2];

		data += 3;
		size -= 3;
		for (size_t i = 0; i < length && i < size; i++)
			((uint8_t *)slot)[(at + i) % sizeof(*slot)] ^= data[i];
		data += length < size ? length : size;
		size -= length < size ? length : size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct weir_slot_place *place;
	const struct weir_slot *original;
	uint8_t got[WEIR_SEALED_BLOCK];
	uint64_t generation = 0;
	struct weir_slot slot;
	bool is_good;
	int rc;

	if (!size)
		return 0;
	if (!keys)
		start();
	original = &written[data[0] & XCHACHA];
	slot = data[0] & NEVER_WRITTEN ? (struct weir_slot){ 0 } : *original;
	change(&slot, data + 1, size - 1);
	memset(got, 1, sizeof(got));
	place = data[0] & ELSEWHERE ? &elsewhere : data[0] & OTHER ? &other : &here;
	rc = weir_slot_open(keys, place, &slot.trailer, slot.text, sizeof(slot.text), got,
			    &generation);
	if (sodium_is_zero((uint8_t *)&slot, sizeof(slot))) {
		assert(!rc && generation == WEIR_SLOT_NEVER);
		assert(sodium_is_zero(got, sizeof(got)));
		return 0;
	}
	is_good = place == &here && !memcmp(&slot, original, sizeof(slot)) &&
		  weir_slot_supports(original->trailer.cipher);
	assert(is_good ? !rc : rc == -EBADMSG || rc == -EOPNOTSUPP);
	assert(generation == (is_good ? GENERATION : 0));
	assert(is_good ? !memcmp(got, text, sizeof(got)) : sodium_is_zero(got, sizeof(got)));
	return 0;
}
